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
        completion: @escaping @Sendable (Result<CacheEntry, CacheFailure>) -> Void
    ) {
        switch withLedger({ $0.load(key, from: tiers, (isPromoting, completion)) }) {
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
        change(entry.header.key, completion) { $0.store(entry, in: tiers, askedIn: generation) }
    }

    /// The number of invalidations and removals of many entries, for ``store(_:in:askedIn:completion:)``.
    var generation: Int {
        ledger.withLock { $0.generation }
    }

    /// Removes an outdated entry. Pending responses for its key are not stored.
    func invalidate(_ key: String) {
        change(key, nil) { $0.invalidate(key) }
    }

    /// Removes an entry from all tiers.
    ///
    /// - Parameter completion: as for ``store(_:in:askedIn:completion:)``.
    func remove(_ key: String, completion: (@Sendable (Result<Void, CacheFailure>) -> Void)? = nil) {
        change(key, completion) { $0.remove(key) }
    }

    /// Releases removed entries outside of the lock.
    func withLedger<Result>(_ body: (inout CacheLedger) -> Result) -> Result {
        let (result, released) = ledger.withLock { ledger in (body(&ledger), ledger.released.take()) }
        withExtendedLifetime(released) {}
        return result
    }
}

extension NetworkCache {
    private func change(
        _ key: String,
        _ completion: (@Sendable (Result<Void, CacheFailure>) -> Void)?,
        _ body: (inout CacheLedger) -> CacheLedger.ChangeResult
    ) {
        let (number, failure) = withLedger { ledger in
            let (number, failure) = body(&ledger)
            // Under the lock, so that the order of changes is the same on disk.
            if let number { disk?.add { self.write(key, number, failure, completion) } }
            return (number, failure)
        }
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
            withLedger { $0.settle(key, number) }
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
        let waiters = withLedger { $0.land(flight, answer) }
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
