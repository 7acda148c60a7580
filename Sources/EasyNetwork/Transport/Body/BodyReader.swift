import Foundation

/// One sending of a ``TransportBodyStream``.
package protocol BodyReader: Sendable {
    /// Asks for the next bytes; not again before they have come. Not on a transport's thread.
    ///
    /// - Parameter completion: called once, on any thread, with some bytes, or with nil after the last.
    func next(_ completion: @escaping @Sendable (Result<Data?, NetworkError>) -> Void)

    /// No more is wanted. What was asked for may still come; what has not been begun fails with
    /// ``NetworkError/Code/cancelled``.
    func cancel()
}

/// Reads an input stream, once.
///
/// It keeps the state of the reading itself: a stream that is closed is not read, and no stream is asked for an error
/// that it may not have, since `streamError` stops the process on Linux then.
final class InputStreamReader: BodyReader, @unchecked Sendable {
    // Sendable because stream and state are used on `queue` only, which does one thing at a time.
    private enum State {
        case notOpened
        case open
        /// Closed; each further piece that is asked for is this.
        case over(Result<Data?, NetworkError>)
    }

    private let stream: InputStream
    private var state = State.notOpened
    /// Whether the stream is in ``streamsInUse`` for this reader.
    private var hasClaim = false
    /// A queue of its own: a stream may block for as long as it likes.
    private let queue = DispatchQueue(label: "EasyNetwork.InputStreamReader")

    /// A stream is no good for two threads at a time, and may be handed out a second time.
    private static let streamsInUse = Locked<Set<ObjectIdentifier>>([])

    /// How many bytes are read at once.
    private static let pieceSize = 65_536

    init(_ stream: InputStream) {
        self.stream = stream
    }

    deinit {
        guard hasClaim else { return }
        let id = ObjectIdentifier(stream)
        _ = Self.streamsInUse.withLock { $0.remove(id) }
    }

    func next(_ completion: @escaping @Sendable (Result<Data?, NetworkError>) -> Void) {
        queue.async { completion(self.read()) }
    }

    func cancel() {
        queue.async {
            if case .over = self.state { return }
            _ = self.end(.failure(NetworkError(code: .cancelled)))
        }
    }

    private func read() -> Result<Data?, NetworkError> {
        switch state {
        case .over(let result): return result
        case .open: break
        case .notOpened:
            guard claim() else {
                let message = "the input stream was already used; return a new one"
                return end(.failure(NetworkError(code: .invalidRequest, message: message)))
            }
            stream.open()
            state = .open
        }
        var piece = Data(count: Self.pieceSize)
        let count = piece.withUnsafeMutableBytes { buffer in
            // A buffer of that size has an address.
            buffer.bindMemory(to: UInt8.self).baseAddress.map { stream.read($0, maxLength: buffer.count) } ?? 0
        }
        if count > 0 { return .success(piece.prefix(count)) }
        return end(count == 0 ? .success(nil) : .failure(.body(readError)))
    }

    /// Takes the stream for this reader alone.
    ///
    /// - Returns: false when another reader has it, or has read it.
    private func claim() -> Bool {
        let id = ObjectIdentifier(stream)
        hasClaim = Self.streamsInUse.withLock { $0.insert(id).inserted }
        guard hasClaim else { return false }
        switch stream.streamStatus {
        case .closed, .atEnd, .error: return false
        default: return true
        }
    }

    /// Why a read has failed. Asked for while the stream is open.
    private var readError: any Error {
        let error = stream.streamStatus == .error ? stream.streamError : nil
        return error ?? CocoaError(.fileReadUnknown)
    }

    private func end(_ result: Result<Data?, NetworkError>) -> Result<Data?, NetworkError> {
        if case .open = state { stream.close() }
        state = .over(result)
        return result
    }
}

/// Iterates over an asynchronous sequence, one element when one is asked for.
final class PiecesReader: BodyReader {
    private typealias Completion = @Sendable (Result<Data?, NetworkError>) -> Void

    private struct State {
        /// Asked for, and not taken up yet.
        var completion: Completion?
        /// The task, when it waits for being asked.
        var waiting: CheckedContinuation<Void, Never>?
        var isCancelled = false
        var task: Task<Void, Never>?
    }

    private let state = Locked(State())

    init<Pieces: AsyncSequence & Sendable>(_ pieces: Pieces) where Pieces.Element == Data {
        let task = Task { [self] in
            var iterator = pieces.makeAsyncIterator()
            while let completion = await asked() {
                do {
                    var piece = try await iterator.next()
                    // Nothing would be taken for the end.
                    while piece?.isEmpty == true { piece = try await iterator.next() }
                    completion(.success(piece))
                    if piece == nil { return }
                } catch {
                    return completion(.failure(.body(error)))
                }
            }
        }
        state.withLock { $0.task = task }
    }

    func next(_ completion: @escaping @Sendable (Result<Data?, NetworkError>) -> Void) {
        let (waiting, isCancelled) = state.withLock { state in
            if !state.isCancelled { state.completion = completion }
            return (state.waiting.take(), state.isCancelled)
        }
        waiting?.resume()
        if isCancelled { completion(.failure(NetworkError(code: .cancelled))) }
    }

    func cancel() {
        let (waiting, task, completion) = state.withLock { state in
            state.isCancelled = true
            return (state.waiting.take(), state.task.take(), state.completion.take())
        }
        completion?(.failure(NetworkError(code: .cancelled)))
        task?.cancel()
        waiting?.resume()
    }

    /// Waits until a piece is asked for.
    ///
    /// - Returns: nil when no more is wanted.
    private func asked() async -> Completion? {
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                let isOver = state.isCancelled || state.completion != nil
                if !isOver { state.waiting = continuation }
                return isOver
            }
            if isOver { continuation.resume() }
        }
        return state.withLock { $0.isCancelled ? nil : $0.completion.take() }
    }
}
