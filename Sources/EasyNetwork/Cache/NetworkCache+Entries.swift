import Foundation

extension NetworkCache {
    /// The entry in memory, which becomes the most recently used one.
    func memoryEntry(for key: String) -> CacheEntry? {
        ledger.withLock { $0.memoryEntry(key) }
    }

    /// Loads an entry from memory, from the pending writes, or from disk.
    ///
    /// - Parameters:
    ///   - isPromoting: whether an entry from disk is also stored in memory. Default true.
    ///   - completion: called before this method returns if the disk is not read; else on a background queue.
    func load(
        _ key: String,
        from tiers: CacheStorage = .all,
        isPromoting: Bool = true,
        completion: @escaping @Sendable (Result<CacheEntry, CacheFailure>) -> Void
    ) {
        let waiter: CacheLedger.Waiter = (isPromoting, completion)
        let (step, released) = ledger.withLock { $0.load(key, from: tiers, waiter) }
        withExtendedLifetime(released) {}
        switch step {
        case .answer(let answer): completion(answer)
        case .wait: break
        case .read(let flight, let removals): disk?.read(key) { self.read(key, flight, removals) }
        }
    }

    /// Stores an entry in some tiers, and removes the old one from all others.
    ///
    /// - Parameters:
    ///   - generation: the ``generation`` at the time of the request. The entry is not stored if its key was invalidated
    ///     since, or many entries were removed. Default nil: it is always stored.
    ///   - completion: called when the entry, or a later one with its key, is written, on a background queue; before this
    ///     method returns without a disk. After a failure the old entry has been removed from disk too, if possible.
    func store(
        _ entry: CacheEntry,
        in tiers: CacheStorage = .all,
        askedIn generation: Int? = nil,
        completion: (@Sendable (Result<Void, CacheFailure>) -> Void)? = nil
    ) {
        change(entry.header.key, completion) { ledger in
            guard let generation else { return ledger.store(entry, in: tiers) }
            return ledger.store(entry, in: tiers, askedIn: generation)
        }
    }

    /// The number of invalidations and removals of many entries, for ``store(_:in:askedIn:completion:)``.
    var generation: Int {
        ledger.withLock { $0.generation }
    }

    /// Removes an outdated entry. Pending responses for its key are not stored.
    func invalidate(_ key: String) {
        change(key, nil) { ledger in
            let (number, released) = ledger.invalidate(key)
            return (number, nil, released)
        }
    }

    /// Removes an entry from all tiers.
    ///
    /// - Parameter completion: as for ``store(_:in:askedIn:completion:)``.
    func remove(_ key: String, completion: (@Sendable (Result<Void, CacheFailure>) -> Void)? = nil) {
        change(key, completion) { ledger in
            let (number, released) = ledger.remove(key)
            return (number, nil, released)
        }
    }
}

extension NetworkCache {
    private func change(
        _ key: String,
        _ completion: (@Sendable (Result<Void, CacheFailure>) -> Void)?,
        _ body: (inout CacheLedger) -> (number: Int?, failure: CacheFailure?, released: [CacheEntry])
    ) {
        let (number, failure, released) = ledger.withLock { ledger in
            let (number, failure, released) = body(&ledger)
            // Under the lock, so that the order of changes is the same on disk.
            if let number { disk?.add { self.write(key, number, failure, completion) } }
            return (number, failure, released)
        }
        withExtendedLifetime(released) {}
        if number == nil { completion?(Self.result(failure)) }
    }

    /// Writes a change, unless a later one with the same key will be written.
    private func write(
        _ key: String,
        _ number: Int,
        _ failure: CacheFailure?,
        _ completion: (@Sendable (Result<Void, CacheFailure>) -> Void)?
    ) {
        var failure = failure
        if let entry = ledger.withLock({ $0.pending(key, number) }) {
            do throws(CacheFailure) {
                let now = clock.date
                try disk?.withCache { cache throws(CacheFailure) in
                    if let entry { try cache.store(entry, now: now) } else { try cache.remove(key) }
                }
            } catch {
                failure = error
            }
            let released = ledger.withLock { $0.settle(key, number) }
            withExtendedLifetime(released) {}
        }
        guard let completion else { return }
        let result = Self.result(failure)
        WorkQueue.shared.async { completion(result) }
    }

    private func read(_ key: String, _ flight: Int, _ removals: [CacheLedger.Removal]) {
        guard let disk else { return }
        let now = clock.date
        var answer: CacheLedger.Answer
        let afterwards: @Sendable (inout DiskCache) -> Void
        do throws(CacheFailure) {
            let (entry, status) = try disk.directory.read(key, disk.limits, now: now)
            let isRemoved = removals.contains { $0(Entry(entry)) }
            answer = isRemoved ? .failure(.absent) : .success(entry)
            afterwards = { $0.use(key, status, now: now) }
        } catch {
            answer = .failure(error)
            afterwards = { $0.discard(key, now: now) }
        }
        let (waiters, released) = ledger.withLock { $0.land(flight, answer) }
        withExtendedLifetime(released) {}
        // Before the completions, so that a `flush()` after them waits for it.
        if case .failure(.absent) = answer {} else { disk.add { disk.withCache(afterwards) } }
        WorkQueue.shared.async { [answer] in
            for waiter in waiters { waiter.completion(answer) }
        }
    }

    private static func result(_ failure: CacheFailure?) -> Result<Void, CacheFailure> {
        failure.map { .failure($0) } ?? .success(())
    }
}
