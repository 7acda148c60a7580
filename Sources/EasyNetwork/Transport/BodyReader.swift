import Foundation

/// Reads a ``TransportBodyStream`` for one sending.
package protocol BodyReader: Sendable {
    /// Asks for the next bytes; not again before they have come, and not on a transport's thread.
    ///
    /// - Parameter completion: Called once, on any thread, with some bytes, or with nil after the last.
    func next(_ completion: @escaping @Sendable (Result<Data?, NetworkError>) -> Void)

    /// Ends the reading. Bytes that were asked for may still come; everything else fails with
    /// ``NetworkError/Code/cancelled``.
    func cancel()
}

extension BodyReader {
    /// The next bytes; nil after the last. A task that is cancelled cancels the reader.
    package func next() async throws(NetworkError) -> Data? {
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in next { continuation.resume(returning: $0) } }
        } onCancel: {
            cancel()
        }
        return try result.get()
    }
}

/// Reads an input stream, once.
///
/// It keeps its own state: a closed stream is never read, and `streamError`, which on Linux stops the process if there
/// is no error, is read only after one.
final class InputStreamReader: BodyReader, @unchecked Sendable {
    // Sendable because stream and state are used on the serial `queue` only.
    private enum State {
        case notOpened
        case open
        /// Closed. Each further read gives this result.
        case over(Result<Data?, NetworkError>)
    }

    private let stream: InputStream
    private var state = State.notOpened
    /// Whether the stream is in `streamsInUse` for this reader.
    private var hasClaim = false
    /// A stream may block for any time.
    private let queue = DispatchQueue(label: "EasyNetwork.InputStreamReader", autoreleaseFrequency: .workItem)

    /// A stream serves one thread at a time, and its maker may return it a second time.
    private static let streamsInUse = Locked<Set<ObjectIdentifier>>([])

    /// The bytes of one read.
    private static let pieceSize = 65_536

    init(_ stream: InputStream) {
        self.stream = stream
    }

    deinit {
        // A body that was given up between two reads; a writer at the other end would wait.
        if case .open = state { stream.close() }
        guard hasClaim else { return }
        let id = ObjectIdentifier(stream)
        _ = Self.streamsInUse.withLock { $0.remove(id) }
    }

    func next(_ completion: @escaping @Sendable (Result<Data?, NetworkError>) -> Void) {
        queue.add { completion(self.read()) }
    }

    func cancel() {
        queue.add {
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
            // The buffer is not empty, so it has an address.
            buffer.bindMemory(to: UInt8.self).baseAddress.map { stream.read($0, maxLength: buffer.count) } ?? 0
        }
        if count > 0 { return .success(piece.prefix(count)) }
        return end(count == 0 ? .success(nil) : .failure(.body(readError)))
    }

    /// Reserves the stream for this reader.
    ///
    /// - Returns: false if another reader has it, or has read it.
    private func claim() -> Bool {
        let id = ObjectIdentifier(stream)
        hasClaim = Self.streamsInUse.withLock { $0.insert(id).inserted }
        guard hasClaim else { return false }
        switch stream.streamStatus {
        case .closed, .atEnd, .error: return false
        default: return true
        }
    }

    /// The reason why a read has failed, while the stream is open.
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

/// Reads an asynchronous sequence, one element each time it is asked.
final class PiecesReader: BodyReader {
    private typealias Completion = @Sendable (Result<Data?, NetworkError>) -> Void

    private let asked: AsyncStream<Completion>.Continuation
    private let task: Task<Void, Never>

    init<Pieces: AsyncSequence & Sendable>(_ pieces: Pieces) where Pieces.Element == Data {
        // Holds at most one completion, see `next(_:)` of the protocol.
        let (completions, asked) = AsyncStream.makeStream(of: Completion.self)
        self.asked = asked
        // The pieces may be made by code of the user that blocks.
        task = WorkQueue.task {
            var iterator = pieces.makeAsyncIterator()
            for await completion in completions {
                guard !Task.isCancelled else {
                    completion(.failure(NetworkError(code: .cancelled)))
                    continue
                }
                do {
                    var piece = try await iterator.next()
                    // An empty piece would count as the end.
                    while piece?.isEmpty == true { piece = try await iterator.next() }
                    completion(.success(piece))
                } catch {
                    completion(.failure(.body(error)))
                }
            }
        }
    }

    deinit {
        cancel()
    }

    func next(_ completion: @escaping @Sendable (Result<Data?, NetworkError>) -> Void) {
        if case .terminated = asked.yield(completion) { completion(.failure(NetworkError(code: .cancelled))) }
    }

    func cancel() {
        task.cancel()
        asked.finish()
    }
}
