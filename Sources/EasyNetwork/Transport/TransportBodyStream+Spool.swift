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
            do {
                let reader = try self.reader()
                try await withTaskCancellationHandler {
                    try await self.write(from: reader, to: file, moved)
                } onCancel: {
                    WorkQueue.shared.add {
                        reader.cancel()
                        // A reader that never responds would otherwise leave the file behind.
                        try? FileManager.default.removeItem(at: file)
                    }
                }
                completion(.success(file))
            } catch {
                try? FileManager.default.removeItem(at: file)
                completion(.failure(.body(error)))
            }
        }
    }

    private func write(from reader: any BodyReader, to file: URL, _ moved: @Sendable () -> Void) async throws {
        defer { reader.cancel() }
        // The file is readable only by this user, because a body can contain secrets.
        let attributes: [FileAttributeKey: Any] = [.posixPermissions: 0o600]
        guard FileManager.default.createFile(atPath: file.path, contents: nil, attributes: attributes) else {
            throw CocoaError(.fileWriteUnknown)
        }
        let handle = try FileHandle(forWritingTo: file)
        defer { try? handle.close() }
        var count = 0
        while true {
            let read = await withCheckedContinuation { continuation in
                reader.next { continuation.resume(returning: $0) }
            }
            moved()
            guard let piece = try read.get() else { break }
            try Task.checkCancellation()
            try handle.write(contentsOf: piece)
            count += piece.count
        }
        if let error = lengthError(count) { throw error }
    }
}
