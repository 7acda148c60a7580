import Foundation

/// Writes a ``TransportBodyStream`` to a temporary file, for a transport that cannot send it piece by piece.
package final class BodySpool: Sendable {
    package typealias Completion = @Sendable (Result<URL, NetworkError>) -> Void

    private let stream: TransportBodyStream
    private let file = FileManager.default.temporaryDirectory.appendingPathComponent("EasyNetwork-\(UUID().uuidString)")
    private let state = Locked((reader: (any BodyReader)?.none, isCancelled: false))

    package init(_ stream: TransportBodyStream) {
        self.stream = stream
    }

    /// - Parameters:
    ///   - moved: Called for each piece.
    ///   - completion: Called once, on any thread, with a file that the caller has to remove. After a cancel it may not be
    ///     called.
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
            // A reader that never answers would otherwise leave it behind.
            Self.remove(self.file)
        }
    }

    package static func remove(_ file: URL) {
        try? FileManager.default.removeItem(at: file)
    }

    private func makeFile() throws(NetworkError) -> FileHandle {
        // For this user only: a body may contain secrets.
        let attributes: [FileAttributeKey: Any] = [.posixPermissions: 0o600]
        do {
            guard FileManager.default.createFile(atPath: file.path, contents: nil, attributes: attributes) else {
                throw CocoaError(.fileWriteUnknown)
            }
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
            // Neither on the thread that made the piece, nor in a recursion that grows with each one.
            WorkQueue.shared.async {
                do throws(NetworkError) {
                    guard let piece = try result.get() else {
                        if let error = self.stream.lengthError(count) { throw error }
                        try? handle.close()
                        reader.cancel()
                        return completion(.success(self.file))
                    }
                    guard !self.state.withLock({ $0.isCancelled }) else { throw NetworkError(code: .cancelled) }
                    do { try handle.write(contentsOf: piece) } catch { throw .body(error) }
                    self.writeNext(from: reader, to: handle, count: count + piece.count, moved, completion)
                } catch {
                    try? handle.close()
                    reader.cancel()
                    self.fail(error, completion)
                }
            }
        }
    }

    private func fail(_ error: NetworkError, _ completion: Completion) {
        Self.remove(file)
        completion(.failure(error))
    }
}
