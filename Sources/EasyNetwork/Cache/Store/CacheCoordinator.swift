/// The state of the cache without the disk: the entries in memory, the pending writes, and the pending reads.
///
/// A load after a change sees the change before it is written.
struct CacheCoordinator: Sendable {
    typealias Answer = Result<CacheEntry, CacheMiss>
    typealias Removal = @Sendable (NetworkCache.Entry) -> Bool

    /// A change to write to disk.
    typealias Change = (key: String, number: Int)

    /// A load that waits for the disk, and whether the entry is also stored in memory.
    typealias Waiter = (isPromoting: Bool, completion: @Sendable (Answer) -> Void)

    /// The next step of a load.
    enum Step {
        case answer(Answer)
        /// Wait for a pending read, which completes the load.
        case wait
        /// Read, apply the removals, and call ``finishRead(_:_:)``.
        case read(flight: Int, removals: [Removal])
    }

    /// The maximum number of bytes that wait to be written.
    static let waitingLimit = 64_000_000
    /// The maximum number of invalidations for single keys. The next one counts for all keys.
    static let invalidationLimit = 1_000

    private(set) var memory: RecencyList<CacheEntry>
    /// The entries that were removed and must be released outside of the lock.
    var released: [CacheEntry] = []
    private let hasDisk: Bool
    /// The pending changes of files. An entry of nil means removal. An entry that is not merged does not list the
    /// variants of the file that it replaces.
    private(set) var changes: [String: (number: Int, entry: CacheEntry?, isMerged: Bool)] = [:]
    private(set) var waitingCost = 0
    private(set) var removals: [Int: Removal] = [:]
    private(set) var flights: [Int: (key: String, waiters: [Waiter])] = [:]
    /// The reads that began after the last change of their key.
    private(set) var currentFlights: [String: Int] = [:]
    private var lastNumber = 0
    /// The number of invalidations and removals. The generation of a response is the one at the time of its request.
    private(set) var generation = 0
    /// The generation of the last removal of many entries. Older responses are not stored.
    private var oldestGeneration = 0
    /// The generation of the last invalidation by the hash of the key, because keys can be long. After a collision, a
    /// response is not stored.
    private(set) var invalidations: [Int: Int] = [:]

    init(memory: RecencyList<CacheEntry>, hasDisk: Bool) {
        self.memory = memory
        self.hasDisk = hasDisk
    }

    private mutating func endGeneration() {
        generation += 1
        oldestGeneration = generation
        invalidations = [:]
    }

    private mutating func nextNumber() -> Int {
        lastNumber += 1
        return lastNumber
    }
}

// MARK: - Loading

extension CacheCoordinator {
    mutating func load(_ key: String, from tiers: CacheStorage, _ waiter: Waiter) -> Step {
        if tiers.contains(.memory), let entry = memory.use(key) { return .answer(.success(entry)) }
        guard hasDisk, tiers.contains(.disk) else { return .answer(.failure(.absent)) }
        if let change = changes[key] {
            guard let entry = change.entry else { return .answer(.failure(.absent)) }
            if waiter.isPromoting { released += memory.store(entry) }
            return .answer(.success(entry))
        }
        if let number = currentFlights[key] {
            flights[number]?.waiters.append(waiter)
            return .wait
        }
        let number = nextNumber()
        flights[number] = (key, [waiter])
        currentFlights[key] = number
        return .read(flight: number, removals: Array(removals.values))
    }

    /// Ends a read. The entry is not stored in memory if its key has changed since.
    mutating func finishRead(_ number: Int, _ answer: Answer) -> [Waiter] {
        guard let flight = flights.removeValue(forKey: number) else { return [] }
        if currentFlights[flight.key] == number {
            currentFlights[flight.key] = nil
            if case .success(let entry) = answer, flight.waiters.contains(where: { $0.isPromoting }) {
                released += memory.store(entry)
            }
        }
        return flight.waiters
    }
}

// MARK: - Changing

extension CacheCoordinator {
    /// Stores an entry in some tiers, and removes the old one from all others, or keeps it as a variant.
    ///
    /// - Parameter generation: the generation of the request. The entry can have become out of date since. With nil,
    ///   the entry is always stored.
    /// - Returns: the changes to write.
    mutating func store(_ entry: CacheEntry, in tiers: CacheStorage, askedIn generation: Int?) -> [Change] {
        let key = entry.header.key
        if let generation {
            // The stored entry can be even older.
            guard generation >= oldestGeneration else { return remove(key) }
            // The invalidation has removed the old entry, so an existing one is newer than this response.
            guard generation >= invalidations[key.hashValue] ?? 0 else { return [] }
        }
        let old = memory[key] ?? changes[key]?.entry
        let isMerged = changes[key]?.isMerged ?? (old != nil || entry.header.nominated == nil)
        var (newest, demoted, dropped) = entry.replacing(old)
        if newest.header.nominated != nil, !tiers.contains(.disk) { newest.header.isInMemoryOnly = true }
        let tiersOfDemoted = demoted?.header.isInMemoryOnly == true ? .memory : tiers
        // Keep this order, so that a kill between two writes loses no entry.
        let stored = [demoted.flatMap { put($0, in: tiersOfDemoted) }, put(newest, in: tiers, isMerged: isMerged)]
        return stored.compactMap { $0 } + dropped.compactMap { delete($0) }
    }

    private mutating func put(_ entry: CacheEntry, in tiers: CacheStorage, isMerged: Bool = true) -> Change? {
        if tiers.contains(.memory) { released += memory.store(entry) } else { release(memory.remove(entry.header.key)) }
        let isWritten = tiers.contains(.disk) && waitingCost + entry.cost <= Self.waitingLimit
        return change(entry.header.key, isWritten ? entry : nil, isMerged: isMerged || !isWritten)
    }

    /// Removes an outdated entry. Responses to earlier requests for its key are not stored.
    mutating func invalidate(_ key: String) -> [Change] {
        if invalidations.count >= Self.invalidationLimit {
            endGeneration()
        } else {
            generation += 1
            invalidations[key.hashValue] = generation
        }
        return remove(key)
    }

    /// Removes an entry and the variants that it lists.
    mutating func remove(_ key: String) -> [Change] {
        let variants = (memory[key] ?? changes[key]?.entry)?.header.variantKeys ?? []
        return ([key] + variants).compactMap { delete($0) }
    }

    private mutating func delete(_ key: String) -> Change? {
        release(memory.remove(key))
        return change(key, nil)
    }

    /// Returns the change to write, or nil if a later one replaces it.
    func pending(_ key: String, _ number: Int) -> (entry: CacheEntry?, isMerged: Bool)? {
        guard let change = changes[key], change.number == number else { return nil }
        return (change.entry, change.isMerged)
    }

    /// Ends a change, after success or failure.
    ///
    /// - Parameter written: the entry with the variants of the file that it replaced.
    mutating func settle(_ key: String, _ number: Int, _ written: CacheEntry?) {
        guard let change = changes[key], change.number == number else { return }
        if let written, !change.isMerged {
            if memory[key]?.header == change.entry?.header { released += memory.store(written) }
            // Memory can contain an older response under the key of a variant that has just been written.
            for variant in written.header.variantKeys where change.entry?.header.variantKeys.contains(variant) != true {
                currentFlights[variant] = nil
                release(memory.remove(variant))
            }
        }
        setChange(key, nil)
    }

    /// - Returns: nil without a disk.
    private mutating func change(_ key: String, _ entry: CacheEntry?, isMerged: Bool = true) -> Change? {
        guard hasDisk else { return nil }
        let number = nextNumber()
        setChange(key, (number, entry, isMerged))
        return (key, number)
    }

    private mutating func setChange(_ key: String, _ change: (number: Int, entry: CacheEntry?, isMerged: Bool)?) {
        currentFlights[key] = nil
        let old = changes[key]?.entry
        waitingCost += (change?.entry?.cost ?? 0) - (old?.cost ?? 0)
        changes[key] = change
        release(old)
    }

    private mutating func release(_ entry: CacheEntry?) {
        if let entry { released.append(entry) }
    }
}

// MARK: - Removing many entries

extension CacheCoordinator {
    /// Begins a removal. Until it ends, no entry that the predicate selects is read from disk. Without a disk, the
    /// removal ends at once.
    ///
    /// - Returns: the number of the removal, and the candidates. Apply the predicate to them outside of the lock, and
    ///   pass the selected ones to ``drop(_:)``.
    mutating func beginRemoval(_ removal: @escaping Removal) -> (number: Int, candidates: [CacheEntry]) {
        endGeneration()
        let number = nextNumber()
        if hasDisk { removals[number] = removal }
        currentFlights = [:]
        return (number, memory.values + changes.values.compactMap(\.entry))
    }

    /// Removes entries that have not been replaced.
    mutating func drop(_ entries: [CacheEntry]) {
        for entry in entries {
            let key = entry.header.key
            if memory[key]?.header == entry.header { release(memory.remove(key)) }
            if let waiting = changes[key], waiting.entry?.header == entry.header {
                // Keep the number: if the entry is being written, the removal follows.
                setChange(key, (waiting.number, nil, true))
            }
        }
    }

    mutating func endRemoval(_ number: Int) -> Removal? {
        removals.removeValue(forKey: number)
    }
}
