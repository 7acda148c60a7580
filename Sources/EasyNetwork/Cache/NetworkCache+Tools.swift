import Foundation

extension NetworkCache {
    /// The properties of an entry, without its body.
    public struct Entry: Hashable, Sendable {
        public let key: String
        /// The method of the request.
        public let method: String
        /// The URL of the response.
        public let url: URL?
        public let statusCode: Int
        public let headers: HTTPHeaders
        /// The date at which the response arrived.
        public let receivedAt: Date
        /// The size of the body in bytes.
        public let bodyCount: Int

        init(_ header: CacheHeader, bodyCount: Int) {
            key = header.key
            method = header.method
            url = header.url
            statusCode = header.statusCode
            headers = header.headers
            receivedAt = header.receivedAt
            self.bodyCount = bodyCount
        }

        init(_ entry: CacheEntry) {
            self.init(entry.header, bodyCount: entry.body.count)
        }
    }

    /// The size of a cache.
    public struct Usage: Hashable, Sendable {
        /// The bytes of all entries in memory, with their headers.
        public var memoryBytes = 0
        public var memoryCount = 0
        /// The bytes of all files.
        public var diskBytes = 0
        public var diskCount = 0
    }

    /// The size of the cache after all pending writes. Changes of other processes in the last ten minutes may be missing.
    public var usage: Usage {
        get async {
            let disk = await onDisk { disk, now in
                try? disk.refresh(now: now)
                return disk.usage
            }
            let memory = coordinator.withLock { ($0.memory.cost, $0.memory.count) }
            return Usage(
                memoryBytes: memory.0,
                memoryCount: memory.1,
                diskBytes: disk?.bytes ?? 0,
                diskCount: disk?.count ?? 0
            )
        }
    }

    /// All entries, in memory or on disk, in no order. For tools: reads the beginning of every file.
    public var entries: [Entry] {
        get async {
            let onDisk = await onDisk { disk, now in
                let names = (try? disk.names(now: now)) ?? []
                return names.compactMap { try? disk.directory.readHeader(named: $0) }
            }
            var entries: [String: Entry] = [:]
            for found in onDisk ?? [] { entries[found.header.key] = Entry(found.header, bodyCount: found.bodyCount) }
            for entry in coordinator.withLock({ $0.memory.all }) { entries[entry.header.key] = Entry(entry) }
            return Array(entries.values)
        }
    }

    /// Returns when all earlier changes are written or have failed.
    public func flush() async {
        _ = await onDisk { _, _ in }
    }

    /// Removes all entries that were stored before, in memory and on disk.
    ///
    /// - Throws: ``NetworkError/Code/invalidRequest`` when a file cannot be removed; the others are removed.
    public func removeAll() async throws(NetworkError) {
        try await remove(matching: nil)
    }

    /// Removes the entries of a URL, with any method and in all variants.
    ///
    /// - Throws: ``NetworkError/Code/invalidRequest`` when a file cannot be removed; the others are removed.
    public func remove(_ url: URL) async throws(NetworkError) {
        try await remove { $0.url?.absoluteString == url.absoluteString }
    }

    /// Removes some entries.
    ///
    /// ```swift
    /// try await cache.remove { $0.url?.host == "api.example.com" && $0.receivedAt < yesterday }
    /// ```
    ///
    /// - Parameter isRemoved: called on background queues and on the caller's thread, several times for some entries.
    /// - Throws: ``NetworkError/Code/invalidRequest`` when a file cannot be removed; the others are removed.
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
        let failure = await withCheckedContinuation { continuation in
            let (number, candidates) = coordinator.withLock { coordinator in
                let (number, candidates) = coordinator.beginRemoval(isRemoved ?? { _ in true })
                disk?.add {
                    let failure = self.removeFiles(matching: isRemoved)
                    let removal = self.coordinator.withLock { $0.endRemoval(number) }
                    withExtendedLifetime(removal) {}
                    continuation.resume(returning: failure)
                }
                return (number, candidates)
            }
            let dropped = candidates.filter { isRemoved?(Entry($0)) ?? true }
            withCoordinator { $0.drop(dropped) }
            guard disk == nil else { return }
            let removal = coordinator.withLock { $0.endRemoval(number) }
            withExtendedLifetime(removal) {}
            continuation.resume(returning: nil)
        }
        guard let failure else { return }
        let message = "an entry of the cache in \(disk?.directory.path ?? "") cannot be removed"
        throw NetworkError(code: .invalidRequest, message: message, underlying: failure)
    }

    /// - Returns: the first failure.
    private func removeFiles(matching isRemoved: CacheCoordinator.Removal?) -> CacheFailure? {
        guard let disk else { return nil }
        let now = clock.date
        var failure: CacheFailure?
        do throws(CacheFailure) {
            for name in try disk.names(now: now) {
                do throws(CacheFailure) {
                    if try shallRemove(name, disk, isRemoved) { try disk.remove(named: name) }
                } catch {
                    failure = failure ?? error
                }
            }
        } catch {
            failure = error
        }
        return failure
    }

    /// Whether the file is selected or unusable.
    private func shallRemove(
        _ name: String,
        _ disk: DiskCache,
        _ isRemoved: CacheCoordinator.Removal?
    ) throws(CacheFailure) -> Bool {
        guard let isRemoved else { return true }
        do {
            let (header, bodyCount) = try disk.directory.readHeader(named: name)
            return isRemoved(Entry(header, bodyCount: bodyCount))
        } catch .absent {
            return false
        } catch .damaged, .foreign, .otherVersion {
            return true
        } catch {
            throw error
        }
    }
}
