import Foundation

extension NetworkCache {
    /// The size of the cache after all pending writes: bytes and number of the entries in memory, with their headers,
    /// and of the files. Changes that other processes made in the last ten minutes can be missing.
    public var usage: (memoryBytes: Int, memoryCount: Int, diskBytes: Int, diskCount: Int) {
        get async {
            let disk = await onDisk { disk, now in
                try? disk.refresh(now: now)
                return disk.usage
            }
            let memory = coordinator.withLock { ($0.memory.cost, $0.memory.count) }
            return (memory.0, memory.1, disk?.bytes ?? 0, disk?.count ?? 0)
        }
    }

    /// All entries, in memory or on disk, in no order. Use it in tools: it reads the beginning of every file.
    public var entries: [Entry] {
        get async {
            let onDisk = await onDisk { disk, now in
                let names = (try? disk.names(now: now)) ?? []
                return names.compactMap { try? disk.header(named: $0) }
            }
            var entries: [String: Entry] = [:]
            for header in onDisk ?? [] { entries[header.key] = header }
            for entry in coordinator.withLock({ $0.memory.values }) { entries[entry.header.key] = entry.header }
            return Array(entries.values)
        }
    }

    /// Waits until all earlier changes have been written or have failed.
    public func flush() async {
        _ = await onDisk { _, _ in }
    }

    /// Removes all entries that were stored before the call, in memory and on disk.
    ///
    /// - Throws: ``NetworkError/Code/invalidRequest`` if a file cannot be removed. The other files are still removed.
    public func removeAll() async throws(NetworkError) {
        try await remove(matching: nil)
    }

    /// Removes the entries of a URL, with any method and in all variants.
    ///
    /// - Throws: ``NetworkError/Code/invalidRequest`` if a file cannot be removed. The other files are still removed.
    public func remove(_ url: URL) async throws(NetworkError) {
        try await remove { $0.url?.absoluteString == url.absoluteString }
    }

    /// Removes the entries for which a closure returns true.
    ///
    /// ```swift
    /// try await cache.remove { $0.url?.host == "api.example.com" && $0.receivedAt < yesterday }
    /// ```
    ///
    /// - Parameter isRemoved: the closure, which is called on background queues and on the caller's thread, for some
    ///   entries several times.
    /// - Throws: ``NetworkError/Code/invalidRequest`` if a file cannot be removed. The other files are still removed.
    public func remove(where isRemoved: @escaping @Sendable (Entry) -> Bool) async throws(NetworkError) {
        try await remove(matching: isRemoved)
    }
}

extension NetworkCache {
    /// Runs a closure after all earlier changes.
    ///
    /// - Returns: nil without a disk.
    private func onDisk<Value: Sendable>(_ body: @escaping @Sendable (DiskCache, Date) -> Value) async -> Value? {
        guard let disk else { return nil }
        return await withCheckedContinuation { continuation in
            disk.add { continuation.resume(returning: body(disk, self.clock.date)) }
        }
    }

    /// - Parameter isRemoved: nil for all entries.
    private func remove(matching isRemoved: CacheCoordinator.Removal?) async throws(NetworkError) {
        let result: Result<Void?, any Error> = await withCheckedContinuation { continuation in
            let candidates = coordinator.withLock { coordinator in
                let (number, candidates) = coordinator.beginRemoval(isRemoved ?? { _ in true })
                disk?.add { [disk] in
                    let result = Result { try disk?.removeAll(where: isRemoved, now: self.clock.date) }
                    let removal = self.coordinator.withLock { $0.endRemoval(number) }
                    // Release the closure outside of the lock.
                    withExtendedLifetime(removal) {}
                    continuation.resume(returning: result)
                }
                return candidates
            }
            let dropped = candidates.filter { isRemoved?($0.header) ?? true }
            withCoordinator { $0.drop(dropped) }
            if disk == nil { continuation.resume(returning: .success(nil)) }
        }
        guard case .failure(let failure) = result else { return }
        let directory = disk?.limits.directory.path ?? ""
        throw .invalidRequest("an entry of the cache in \(directory) cannot be removed", underlying: failure)
    }
}
