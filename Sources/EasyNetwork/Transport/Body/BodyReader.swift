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

/// Reads an input stream.
final class InputStreamReader: BodyReader, @unchecked Sendable {
    // Sendable because the stream is used on `queue` only, which does one thing at a time.
    private let stream: InputStream
    private var isOpen = false
    /// A queue of its own: a stream may block for as long as it likes.
    private let queue = DispatchQueue(label: "EasyNetwork.InputStreamReader")

    /// How many bytes are read at once.
    private static let pieceSize = 65_536

    init(_ stream: InputStream) {
        self.stream = stream
    }

    func next(_ completion: @escaping @Sendable (Result<Data?, NetworkError>) -> Void) {
        queue.async { completion(self.read()) }
    }

    func cancel() {
        queue.async { self.stream.close() }
    }

    private func read() -> Result<Data?, NetworkError> {
        if !isOpen {
            stream.open()
            isOpen = true
        }
        var piece = Data(count: Self.pieceSize)
        let count = piece.withUnsafeMutableBytes { buffer in
            // A buffer of that size has an address.
            buffer.bindMemory(to: UInt8.self).baseAddress.map { stream.read($0, maxLength: buffer.count) } ?? 0
        }
        if count < 0 {
            let error = stream.streamError ?? CocoaError(.fileReadUnknown)
            return .failure(.body(error))
        }
        return .success(count == 0 ? nil : piece.prefix(count))
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
