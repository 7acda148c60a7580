import Foundation

/// Reads a ``TransportBodyStream`` for one transmission.
package protocol BodyReader: Sendable {
    /// Requests the next bytes. The caller must wait for them before it calls this method again, and must not call it
    /// on a transport's thread.
    ///
    /// - Parameter completion: The closure to call once, on any thread, with some bytes, or with nil after the last
    ///   bytes.
    func next(_ completion: @escaping @Sendable (Result<Data?, NetworkError>) -> Void)

    /// Ends the reading. Bytes that were already requested can still arrive. Any other request fails with
    /// ``NetworkError/Code/cancelled``.
    func cancel()
}

extension BodyReader {
    /// Returns the next bytes; nil after the last. Cancelling the task cancels the reader.
    package func next() async throws(NetworkError) -> Data? {
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in next { continuation.resume(returning: $0) } }
        } onCancel: {
            cancel()
        }
        return try result.get()
    }
}

/// Reads an input stream once.
///
/// The reader keeps its own state: it never reads a closed stream, and reads `streamError` only after an error. On
/// Linux, reading `streamError` without an error crashes the process.
final class InputStreamReader: BodyReader, @unchecked Sendable {
    // The class is Sendable because stream and state are used only on the serial `queue`.
    private enum State {
        case notOpened
        case open
        /// The stream is closed. Each further read returns this result.
        case over(Result<Data?, NetworkError>)
    }

    private let stream: InputStream
    private var state = State.notOpened
    /// Whether this reader has added the stream to `streamsInUse`.
    private var hasClaim = false
    /// The queue on which the stream is read, because a stream can block for any time.
    private let queue = DispatchQueue(label: "EasyNetwork.InputStreamReader", autoreleaseFrequency: .workItem)

    /// The streams that a reader uses. A stream serves one thread at a time, but a closure can return it twice.
    private static let streamsInUse = Locked<Set<ObjectIdentifier>>([])

    /// The maximum number of bytes of one read.
    private static let pieceSize = 65_536

    init(_ stream: InputStream) {
        self.stream = stream
    }

    deinit {
        // Close a stream that was given up between two reads. Otherwise a writer at its other end would wait.
        if case .open = state { stream.close() }
        if hasClaim { _ = Self.streamsInUse.withLock { $0.remove(ObjectIdentifier(stream)) } }
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
                return end(.failure(.invalidRequest("the input stream was already used; return a new one")))
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
        if count == 0 { return end(.success(nil)) }
        let error = stream.streamStatus == .error ? stream.streamError : nil
        return end(.failure(.body(error ?? CocoaError(.fileReadUnknown))))
    }

    /// Reserves the stream for this reader.
    ///
    /// - Returns: False if another reader uses the stream, or has read it.
    private func claim() -> Bool {
        hasClaim = Self.streamsInUse.withLock { $0.insert(ObjectIdentifier(stream)).inserted }
        return hasClaim && ![.closed, .atEnd, .error].contains(stream.streamStatus)
    }

    private func end(_ result: Result<Data?, NetworkError>) -> Result<Data?, NetworkError> {
        if case .open = state { stream.close() }
        state = .over(result)
        return result
    }
}

/// Reads an asynchronous sequence, one element for each request.
final class PiecesReader: BodyReader {
    private typealias Completion = @Sendable (Result<Data?, NetworkError>) -> Void

    private let asked: AsyncStream<Completion>.Continuation
    private let task: Task<Void, Never>

    init<Pieces: AsyncSequence & Sendable>(_ pieces: Pieces) where Pieces.Element == Data {
        // The stream holds at most one completion; see `next(_:)` of the protocol.
        let (completions, asked) = AsyncStream.makeStream(of: Completion.self)
        self.asked = asked
        // User code that blocks can produce the pieces, so the task runs on the work queue.
        task = WorkQueue.task {
            var iterator = pieces.makeAsyncIterator()
            for await completion in completions {
                do {
                    try Task.checkCancellation()
                    var piece = try await iterator.next()
                    // An empty piece would be taken for the end of the body.
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
