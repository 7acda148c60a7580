import Foundation

/// Writes a body that is made while it is sent to a temporary file, piece by piece, for a transport that needs one.
package final class BodySpool: Sendable {
    package typealias Completion = @Sendable (Result<URL, NetworkError>) -> Void

    private struct State {
        var reader: (any BodyReader)?
        var isCancelled = false
    }

    private let stream: TransportBodyStream
    private let file = FileManager.default.temporaryDirectory.appendingPathComponent("EasyNetwork-\(UUID().uuidString)")
    private let state = Locked(State())

    package init(_ stream: TransportBodyStream) {
        self.stream = stream
    }

    /// - Parameters:
    ///   - moved: called for each piece.
    ///   - completion: called once, on any thread; the file is the caller's to remove. After a cancel it may not be
    ///     called at all.
    package func write(moved: @escaping @Sendable () -> Void = {}, _ completion: @escaping Completion) {
        WorkQueue.shared.async {
            do throws(NetworkError) {
                let reader = try self.stream.reader()
                let isWanted = self.state.withLock { state in
                    if !state.isCancelled { state.reader = reader }
                    return !state.isCancelled
                }
                guard isWanted else { return reader.cancel() }
                do throws(NetworkError) {
                    self.writeNext(from: reader, to: try self.makeFile(), count: 0, moved, completion)
                } catch {
                    reader.cancel()
                    throw error
                }
            } catch {
                self.fail(error, completion)
            }
        }
    }

    package func cancel() {
        let reader = state.withLock { state in
            state.isCancelled = true
            return state.reader.take()
        }
        guard let reader else { return }
        WorkQueue.shared.async {
            reader.cancel()
            // One that never answers would keep it.
            Self.remove(self.file)
        }
    }

    package static func remove(_ file: URL) {
        try? FileManager.default.removeItem(at: file)
    }

    private func makeFile() throws(NetworkError) -> FileHandle {
        // Readable by nobody else: a body may hold secrets.
        let attributes: [FileAttributeKey: Any] = [.posixPermissions: 0o600]
        guard FileManager.default.createFile(atPath: file.path, contents: nil, attributes: attributes) else {
            throw .body(CocoaError(.fileWriteUnknown))
        }
        do {
            return try FileHandle(forWritingTo: file)
        } catch {
            throw .body(error)
        }
    }

    private func writeNext(
        from reader: any BodyReader,
        to handle: FileHandle,
        count: Int,
        _ moved: @escaping @Sendable () -> Void,
        _ completion: @escaping Completion
    ) {
        reader.next { result in
            moved()
            // Not on the thread that made the piece, and not in a recursion that grows with each one.
            WorkQueue.shared.async {
                do throws(NetworkError) {
                    guard let piece = try result.get() else {
                        try self.check(count)
                        try? handle.close()
                        reader.cancel()
                        return completion(.success(self.file))
                    }
                    guard !self.state.withLock({ $0.isCancelled }) else { throw NetworkError(code: .cancelled) }
                    try Self.write(piece, to: handle)
                    self.writeNext(from: reader, to: handle, count: count + piece.count, moved, completion)
                } catch {
                    try? handle.close()
                    reader.cancel()
                    self.fail(error, completion)
                }
            }
        }
    }

    private static func write(_ piece: Data, to handle: FileHandle) throws(NetworkError) {
        do {
            try handle.write(contentsOf: piece)
        } catch {
            throw .body(error)
        }
    }

    private func check(_ count: Int) throws(NetworkError) {
        if let error = stream.lengthError(count) { throw error }
    }

    private func fail(_ error: NetworkError, _ completion: Completion) {
        Self.remove(file)
        completion(.failure(error))
    }
}
