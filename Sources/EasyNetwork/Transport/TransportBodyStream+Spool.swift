import Foundation

extension TransportBodyStream {
    /// Writes the body to a temporary file, for a transport that cannot send it in pieces.
    ///
    /// - Parameters:
    ///   - moved: A closure to call for each piece.
    ///   - completion: A closure to call once, on any thread, with a file that the caller must remove. After a
    ///     cancellation it might not be called.
    /// - Returns: The task, which the caller can cancel.
    package func spool(
        moved: @escaping @Sendable () -> Void = {},
        _ completion: @escaping @Sendable (Result<URL, NetworkError>) -> Void
    ) -> Task<Void, Never> {
        let name = "EasyNetwork-\(UUID().uuidString)"
        let file = FileManager.default.temporaryDirectory.appendingPathComponent(name)
        return WorkQueue.task {
            do throws(NetworkError) {
                let reader = try self.reader()
                let result = await withTaskCancellationHandler {
                    await self.write(from: reader, to: file, moved)
                } onCancel: {
                    WorkQueue.shared.add {
                        reader.cancel()
                        // A reader that never responds would otherwise leave the file behind.
                        try? FileManager.default.removeItem(at: file)
                    }
                }
                reader.cancel()
                try result.get()
                completion(.success(file))
            } catch {
                try? FileManager.default.removeItem(at: file)
                completion(.failure(error))
            }
        }
    }

    private func write(
        from reader: any BodyReader,
        to file: URL,
        _ moved: @Sendable () -> Void
    ) async -> Result<Void, NetworkError> {
        do throws(NetworkError) {
            let handle = try Self.makeFile(file)
            defer { try? handle.close() }
            var count = 0
            while let piece = try await Self.next(from: reader, moved) {
                if Task.isCancelled { throw NetworkError(code: .cancelled) }
                do { try handle.write(contentsOf: piece) } catch { throw .body(error) }
                count += piece.count
            }
            if let error = lengthError(count) { throw error }
            return .success(())
        } catch {
            return .failure(error)
        }
    }

    private static func next(
        from reader: any BodyReader,
        _ moved: @Sendable () -> Void
    ) async throws(NetworkError) -> Data? {
        let piece = await withCheckedContinuation { continuation in reader.next { continuation.resume(returning: $0) } }
        moved()
        return try piece.get()
    }

    private static func makeFile(_ file: URL) throws(NetworkError) -> FileHandle {
        // The file is readable only by this user, because a body can contain secrets.
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
}
