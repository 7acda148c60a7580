import Foundation

extension NetworkCache {
    /// Loads an entry from memory, from the pending writes, or from disk.
    ///
    /// - Parameters:
    ///   - isPromoting: whether an entry from disk is also stored in memory. Default true.
    ///   - completion: called before this method returns if the disk is not read; else on a background queue.
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

    /// Stores an entry in some tiers, and removes the old one from all others.
    ///
    /// If the entry cannot be stored, the old one is still removed.
    ///
    /// - Parameter generation: the ``generation`` at the time of the request. The entry is not stored if its key was
    ///   invalidated since, or many entries were removed. Default nil: it is always stored.
    func store(_ entry: CacheEntry, in tiers: CacheStorage = .all, askedIn generation: Int? = nil) {
        change(entry.header.key) { $0.store(entry, in: tiers, askedIn: generation) }
    }

    /// The number of invalidations and removals of many entries, for ``store(_:in:askedIn:)``.
    var generation: Int {
        coordinator.withLock { $0.generation }
    }

    /// Removes an outdated entry. Pending responses for its key are not stored.
    func invalidate(_ key: String) {
        change(key) { $0.invalidate(key) }
    }

    /// Removes an entry from all tiers.
    func remove(_ key: String) {
        change(key) { $0.remove(key) }
    }

    /// Releases removed entries outside of the lock.
    func withCoordinator<Result>(_ body: (inout CacheCoordinator) -> Result) -> Result {
        let (result, released) = coordinator.withLock { coordinator in (body(&coordinator), coordinator.released.take())
        }
        withExtendedLifetime(released) {}
        return result
    }
}

extension NetworkCache {
    private func change(_ key: String, _ body: (inout CacheCoordinator) -> Int?) {
        withCoordinator { coordinator in
            // Under the lock, so that the order of changes is the same on disk.
            if let number = body(&coordinator) { disk?.add { self.write(key, number) } }
        }
    }

    /// Writes a change, unless a later one with the same key will be written.
    private func write(_ key: String, _ number: Int) {
        guard let entry = coordinator.withLock({ $0.pending(key, number) }) else { return }
        // After a failure there is no entry with the key.
        if let entry {
            try? disk?.store(entry, now: clock.date)
        } else {
            try? disk?.remove(named: DiskCache.name(of: key))
        }
        withCoordinator { $0.settle(key, number) }
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
        // Before the completions, so that a `flush()` after them waits for it.
        if case .failure(.absent) = answer {} else { disk.add(afterwards) }
        WorkQueue.shared.async { [answer] in
            for waiter in waiters { waiter.completion(answer) }
        }
    }
}
