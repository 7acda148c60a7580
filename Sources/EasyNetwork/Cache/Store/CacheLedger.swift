/// What the cache knows without looking at the disk: the entries in memory, what is still to be written, and who waits
/// for what is being read.
///
/// Its rule is that who asks after a change sees that change, though the disk does not know of it yet. What goes out is
/// handed out, so that it is released outside the lock.
struct CacheLedger: Sendable {
    typealias Answer = Result<CacheEntry, CacheFailure>
    typealias Removal = @Sendable (NetworkCache.Entry) -> Bool

    /// Who waits for an entry.
    struct Waiter: Sendable {
        /// Whether the entry shall be in memory afterwards.
        var isPromoting: Bool
        var completion: @Sendable (Answer) -> Void
    }

    /// What an asker is to do.
    enum Step {
        case answer(Answer)
        /// Somebody else's reading will answer.
        case wait
        /// To read, to take away what meets one of the removals, and to land.
        case read(flight: Int, removals: [Removal])
    }

    /// What is to be done to the file of a key.
    private struct Change: Sendable {
        var number: Int
        /// Nil when it shall be removed.
        var entry: CacheEntry?
    }

    private struct Flight: Sendable {
        var key: String
        var waiters: [Waiter]
    }

    /// More bytes than this do not wait to be written.
    static let waitingLimit = 64_000_000
    /// The number of invalidations that are told apart; the next one counts for all keys.
    static let invalidationLimit = 1_000

    private(set) var memory: MemoryCache
    private let hasDisk: Bool
    private var changes: [String: Change] = [:]
    private var waitingCost = 0
    private var removals: [Int: Removal] = [:]
    private var flights: [Int: Flight] = [:]
    /// The flights whose answer is not older than the last change.
    private var currentFlights: [String: Int] = [:]
    private var lastNumber = 0
    /// Counts invalidations and removals: an answer is as old as the count at the time when it was asked for.
    private(set) var generation = 0
    /// The generation of the last removal of many. Older answers are not stored, whatever their key.
    private var oldestGeneration = 0
    /// The generation of the last invalidation of a key, by the hash of the key, since keys may be long. Two keys with one
    /// hash cost an answer that is not stored.
    private var invalidations: [Int: Int] = [:]

    init(memory: MemoryCache, hasDisk: Bool) {
        self.memory = memory
        self.hasDisk = hasDisk
    }

    /// Whether something waits to be removed from the disk.
    var isRemoving: Bool { !removals.isEmpty }

    /// Whether nothing is under way.
    var isIdle: Bool {
        changes.isEmpty && removals.isEmpty && flights.isEmpty && currentFlights.isEmpty && waitingCost == 0
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

// MARK: - Asking

extension CacheLedger {
    mutating func load(_ key: String, from tiers: CacheStorage, _ waiter: Waiter) -> (Step, released: [CacheEntry]) {
        if tiers.contains(.memory), let entry = memory.load(key) { return (.answer(.success(entry)), []) }
        guard hasDisk, tiers.contains(.disk) else { return (.answer(.failure(.absent)), []) }
        if let change = changes[key] {
            guard let entry = change.entry else { return (.answer(.failure(.absent)), []) }
            return (.answer(.success(entry)), waiter.isPromoting ? memory.store(entry) : [])
        }
        if let number = currentFlights[key] {
            flights[number]?.waiters.append(waiter)
            return (.wait, [])
        }
        let number = nextNumber()
        flights[number] = Flight(key: key, waiters: [waiter])
        currentFlights[key] = number
        return (.read(flight: number, removals: Array(removals.values)), [])
    }

    mutating func memoryEntry(_ key: String) -> CacheEntry? {
        memory.load(key)
    }

    /// What a reading found.
    ///
    /// - Returns: who waited for it. They may have asked before a change that is known by now; then it is not kept.
    mutating func land(_ number: Int, _ answer: Answer) -> (waiters: [Waiter], released: [CacheEntry]) {
        guard let flight = flights.removeValue(forKey: number) else { return ([], []) }
        guard currentFlights[flight.key] == number else { return (flight.waiters, []) }
        currentFlights[flight.key] = nil
        guard case .success(let entry) = answer, flight.waiters.contains(where: \.isPromoting) else {
            return (flight.waiters, [])
        }
        return (flight.waiters, memory.store(entry))
    }
}

// MARK: - Changing

extension CacheLedger {
    /// Keeps an entry where it shall be, and forgets those of its key elsewhere.
    ///
    /// - Returns: the number of the change to be made on disk, nil when there is no disk; and why the entry is not kept,
    ///   if that is known by now.
    mutating func store(
        _ entry: CacheEntry,
        in tiers: CacheStorage
    ) -> (number: Int?, failure: CacheFailure?, released: [CacheEntry]) {
        let key = entry.header.key
        var released = tiers.contains(.memory) ? memory.store(entry) : memory.remove(key).map { [$0] } ?? []
        var failure: CacheFailure?
        if tiers == .memory, memory[key] == nil { failure = .tooLarge }
        if tiers == .disk, !hasDisk { failure = .noDisk }
        let isBusy = hasDisk && tiers.contains(.disk) && waitingCost + entry.cost > Self.waitingLimit
        if isBusy { failure = .busy }
        guard hasDisk else { return (nil, failure, released) }
        let number = nextNumber()
        let isWritten = tiers.contains(.disk) && !isBusy
        if let old = change(key, Change(number: number, entry: isWritten ? entry : nil)) { released.append(old) }
        return (number, failure, released)
    }

    /// Keeps an entry that was asked for in that generation, unless it is out of date by now.
    mutating func store(
        _ entry: CacheEntry,
        in tiers: CacheStorage,
        askedIn generation: Int
    ) -> (number: Int?, failure: CacheFailure?, released: [CacheEntry]) {
        let key = entry.header.key
        guard generation >= oldestGeneration else {
            // The stored entry may be older than this answer, and then it is out of date as well.
            let (number, released) = remove(key)
            return (number, nil, released)
        }
        // The invalidation has removed the entry; one that is there was asked for later than this one.
        guard generation >= invalidations[key.hashValue] ?? 0 else { return (nil, nil, []) }
        return store(entry, in: tiers)
    }

    /// Removes an entry that has become wrong; an answer for this key that was asked for before is not stored.
    mutating func invalidate(_ key: String) -> (number: Int?, released: [CacheEntry]) {
        if invalidations.count >= Self.invalidationLimit {
            endGeneration()
        } else {
            generation += 1
            invalidations[key.hashValue] = generation
        }
        return remove(key)
    }

    mutating func remove(_ key: String) -> (number: Int?, released: [CacheEntry]) {
        let number = hasDisk ? nextNumber() : nil
        let old = number.flatMap { change(key, Change(number: $0)) }
        return (number, [memory.remove(key), old].compactMap { $0 })
    }

    /// What is to be done to the file of the key now: the change of that number, unless a later one will do it.
    func pending(_ key: String, _ number: Int) -> CacheEntry?? {
        guard let change = changes[key], change.number == number else { return nil }
        return .some(change.entry)
    }

    /// The change was made, or could not be.
    mutating func settle(_ key: String, _ number: Int) -> CacheEntry? {
        changes[key]?.number == number ? change(key, nil) : nil
    }

    private mutating func change(_ key: String, _ change: Change?) -> CacheEntry? {
        currentFlights[key] = nil
        let old = changes[key]?.entry
        waitingCost += (change?.entry?.cost ?? 0) - (old?.cost ?? 0)
        changes[key] = change
        return old
    }
}

// MARK: - Removing many

extension CacheLedger {
    /// Notes that what the predicate picks is to be removed from the disk: until it is, nothing of it is answered.
    ///
    /// - Returns: its number, and the entries among which the predicate is to pick, outside the lock, for ``drop(_:)``.
    mutating func beginRemoval(_ removal: @escaping Removal) -> (number: Int, candidates: [CacheEntry]) {
        endGeneration()
        let number = nextNumber()
        removals[number] = removal
        currentFlights = [:]
        return (number, memory.all + changes.values.compactMap(\.entry))
    }

    /// Forgets entries, unless others have come in their place.
    mutating func drop(_ entries: [CacheEntry]) -> [CacheEntry] {
        var released: [CacheEntry] = []
        for entry in entries {
            let key = entry.header.key
            if memory[key]?.header == entry.header, let old = memory.remove(key) { released.append(old) }
            if let waiting = changes[key], waiting.entry?.header == entry.header {
                // Under its number: where it is written this very moment, the removal comes after it.
                if let old = change(key, Change(number: waiting.number)) { released.append(old) }
            }
        }
        return released
    }

    mutating func endRemoval(_ number: Int) -> Removal? {
        removals.removeValue(forKey: number)
    }
}
