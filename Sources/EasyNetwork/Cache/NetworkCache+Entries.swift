import Foundation

// What the service does with one entry.
extension NetworkCache {
    /// The entry in memory, which is now the last used. Takes about a microsecond.
    func memoryEntry(for key: String) -> CacheEntry? {
        ledger.withLock { $0.memoryEntry(key) }
    }

    /// Looks for an entry in memory, among what waits to be written, and on disk.
    ///
    /// - Parameters:
    ///   - key: any text. What Swift takes for equal is one key.
    ///   - isPromoting: whether what is found on disk is kept in memory too. Default true.
    ///   - completion: is called before this returns when the disk need not be asked; else on a background queue.
    func load(
        _ key: String,
        from tiers: CacheStorage = .all,
        isPromoting: Bool = true,
        completion: @escaping @Sendable (Result<CacheEntry, CacheFailure>) -> Void
    ) {
        let waiter = CacheLedger.Waiter(isPromoting: isPromoting, completion: completion)
        let (step, released) = ledger.withLock { $0.load(key, from: tiers, waiter) }
        withExtendedLifetime(released) {}
        switch step {
        case .answer(let answer): completion(answer)
        case .wait: break
        case .read(let flight, let removals): disk?.read(key) { self.read(key, flight, removals) }
        }
    }

    /// Keeps an entry in the tiers, in the place of those of its key in all tiers.
    ///
    /// - Parameter completion: told when it is written, on a background queue; before this returns when there is no
    ///   disk. A change of the same key that comes before it is written counts as its writing. After a failure no older
    ///   entry is left on disk, unless the system refused its removal as well.
    ///   - generation: the ``generation`` in which the entry was asked for: it is not stored if its key was invalidated
    ///     since, or many entries were removed. Default nil: it is stored in any case.
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

    /// A number that grows with each removal of many and each invalidation, for ``store(_:in:askedIn:completion:)``.
    var generation: Int {
        ledger.withLock { $0.generation }
    }

    /// Removes the entry of a key because it has become wrong; answers for this key that are on their way are not stored.
    func invalidate(_ key: String) {
        change(key, nil) { ledger in
            let (number, released) = ledger.invalidate(key)
            return (number, nil, released)
        }
    }

    /// Removes the entry of a key from all tiers.
    ///
    /// - Parameter completion: as that of ``store(_:in:askedIn:completion:)``.
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
            // Under the lock, so that the order on disk is that in the ledger.
            if let number { disk?.add { self.write(key, number, failure, completion) } }
            return (number, failure, released)
        }
        withExtendedLifetime(released) {}
        if number == nil { completion?(Self.result(failure)) } else { disk?.run() }
    }

    /// Makes the change of that number, unless a later one of the same key will.
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
        // Added before anyone is told: who is told and then flushes has it behind them.
        if case .failure(.absent) = answer {} else { disk.add { disk.withCache(afterwards) } }
        WorkQueue.shared.async { [answer] in
            for waiter in waiters { waiter.completion(answer) }
        }
        disk.run()
    }

    private static func result(_ failure: CacheFailure?) -> Result<Void, CacheFailure> {
        failure.map { .failure($0) } ?? .success(())
    }
}
