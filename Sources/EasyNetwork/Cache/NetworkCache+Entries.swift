import Foundation

extension NetworkCache {
    /// Loads an entry from memory, from the pending writes, or from disk.
    ///
    /// - Parameters:
    ///   - isPromoting: whether an entry from disk is also stored in memory. Defaults to true.
    ///   - completion: called before this method returns if the disk is not read, otherwise on a background queue.
    func load(
        _ key: String,
        from tiers: CacheStorage = .all,
        isPromoting: Bool = true,
        completion: @escaping @Sendable (Result<CacheEntry, CacheMiss>) -> Void
    ) {
        switch withCoordinator({ $0.load(key, from: tiers, (isPromoting, completion)) }) {
        case .answer(let answer): completion(answer)
        case .wait: break
        case .read(let flight, let removals): disk?.read(key) { self.read(key, flight, removals) }
        }
    }

    /// Loads the response of a URL whose nominated fields match a request, or another response of the URL if none
    /// matches. An entry of an explicit policy has no nominated fields.
    func load(
        _ key: String,
        for request: HTTPHeaders,
        isPromoting: Bool,
        completion: @escaping @Sendable (Result<CacheEntry, CacheMiss>) -> Void
    ) {
        load(key, isPromoting: isPromoting) { found in
            guard let variant = (try? found.get())?.header.variant(for: request) else { return completion(found) }
            self.load(CacheKey.variant(variant, of: key), isPromoting: isPromoting) { other in
                // The variant can have been evicted.
                completion((try? other.get())?.header.nominated == variant ? other : found)
            }
        }
    }

    /// Stores an entry in some tiers, and removes the old one from all others. By the rules of HTTP, an old entry with
    /// other nominated fields becomes a variant; see ``CacheEntry/replacing(_:)``.
    ///
    /// If the entry cannot be stored, the old one is still removed.
    ///
    /// - Parameter generation: the ``generation`` at the time of the request. The entry is not stored if its key was
    ///   invalidated since, or many entries were removed. Defaults to nil: the entry is always stored.
    func store(_ entry: CacheEntry, in tiers: CacheStorage = .all, askedIn generation: Int? = nil) {
        change { $0.store(entry, in: tiers, askedIn: generation) }
    }

    /// The number of invalidations and removals of many entries, for ``store(_:in:askedIn:)``.
    var generation: Int {
        coordinator.withLock { $0.generation }
    }

    /// Removes an outdated entry with its variants. Pending responses for its key are not stored.
    func invalidate(_ key: String) {
        change { $0.invalidate(key) }
    }

    /// Removes an entry with its variants from all tiers.
    func remove(_ key: String) {
        change { $0.remove(key) }
    }

    /// Runs a closure under the lock, and releases removed entries outside of it.
    func withCoordinator<Result>(_ body: (inout CacheCoordinator) -> Result) -> Result {
        let (result, released) = coordinator.withLock { coordinator in (body(&coordinator), coordinator.released.take())
        }
        withExtendedLifetime(released) {}
        return result
    }
}

extension NetworkCache {
    private func change(_ body: (inout CacheCoordinator) -> [CacheCoordinator.Change]) {
        withCoordinator { coordinator in
            // Add the changes under the lock, so that their order is the same on disk.
            for (key, number) in body(&coordinator) { disk?.add { self.write(key, number) } }
        }
    }

    /// Writes a change, unless a later one with the same key will be written.
    private func write(_ key: String, _ number: Int) {
        guard let (entry, isMerged) = coordinator.withLock({ $0.pending(key, number) }) else { return }
        let written = disk?.replace(key, by: entry, isMerged: isMerged, now: clock.date)
        withCoordinator { $0.settle(key, number, written) }
    }

    private func read(_ key: String, _ flight: Int, _ removals: [CacheCoordinator.Removal]) {
        guard let disk else { return }
        let now = clock.date
        var answer: CacheCoordinator.Answer
        let afterwards: @Sendable () -> Void
        do throws(CacheMiss) {
            let (entry, status) = try disk.load(key, now: now)
            let isRemoved = removals.contains { $0(entry.header) }
            answer = isRemoved ? .failure(.absent) : .success(entry)
            afterwards = { disk.use(key, status, now: now) }
        } catch {
            answer = .failure(error)
            afterwards = { disk.discard(key, now: now) }
        }
        let waiters = withCoordinator { $0.finishRead(flight, answer) }
        // Add the work before the completions run, so that a `flush()` after them waits for it.
        if case .failure(.absent) = answer {} else { disk.add(afterwards) }
        WorkQueue.shared.add { [answer] in
            for waiter in waiters { waiter.completion(answer) }
        }
    }
}
