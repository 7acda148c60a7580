/// The most recently used entries, within limits.
///
/// Methods return the entries that they remove, so that these are released outside of the caller's lock.
struct MemoryCache: Sendable {
    /// The limit of the sum of ``CacheEntry/cost``, in bytes.
    let costLimit: Int
    let countLimit: Int
    private var entries = RecencyList<CacheEntry>()

    init(costLimit: Int, countLimit: Int) {
        self.costLimit = costLimit
        self.countLimit = countLimit
    }

    var count: Int { entries.count }
    var cost: Int { Int(clamping: entries.cost) }

    /// The entry, which becomes the most recently used one.
    mutating func load(_ key: String) -> CacheEntry? {
        entries.use(key)
    }

    /// Stores an entry by its key, unless it exceeds the limits alone.
    ///
    /// - Returns: the replaced entry, and the ones that were removed to make room.
    mutating func store(_ entry: CacheEntry) -> [CacheEntry] {
        let cost = entry.cost
        guard cost <= costLimit, countLimit > 0 else { return remove(entry.header.key).map { [$0] } ?? [] }
        let old = entries.insert(entry, cost: cost, for: entry.header.key)
        return (old.map { [$0] } ?? []) + trim()
    }

    mutating func remove(_ key: String) -> CacheEntry? {
        entries.remove(key)
    }

    /// The entry, which does not count as used.
    subscript(key: String) -> CacheEntry? { entries[key] }

    /// All entries, in no order.
    var all: [CacheEntry] { entries.keys.compactMap { entries[$0] } }

    private mutating func trim() -> [CacheEntry] {
        var removed: [CacheEntry] = []
        while entries.cost > costLimit || entries.count > countLimit {
            guard let oldest = entries.oldest(), let entry = entries.remove(oldest.key) else { break }
            removed.append(entry)
        }
        return removed
    }
}

/// Values by key in the order of their last use, with the sum of their costs. All operations take constant time on average.
///
/// `NSCache` is not usable: on Linux it keeps the oldest values.
struct RecencyList<Value: Sendable>: Sendable {
    private var entries: [String: (value: Value, cost: Int, lastUse: Int)] = [:]
    /// All uses in their order. The ones that are not the last use of their key are skipped.
    private var uses: [(key: String, number: Int)] = []
    private var firstUse = 0
    private var lastNumber = 0
    private(set) var cost: Int64 = 0

    var count: Int { entries.count }
    var keys: some Collection<String> { entries.keys }

    /// The value, which does not count as used.
    subscript(key: String) -> Value? { entries[key]?.value }

    /// The value, which becomes the most recently used one.
    mutating func use(_ key: String) -> Value? {
        guard let value = entries[key]?.value else { return nil }
        let number = nextUse(of: key)
        entries[key]?.lastUse = number
        return value
    }

    /// Stores a value as the most recently used one.
    ///
    /// - Returns: the replaced value.
    mutating func insert(_ value: Value, cost: Int, for key: String) -> Value? {
        let old = remove(key)
        entries[key] = (value, cost, nextUse(of: key))
        self.cost += Int64(cost)
        return old
    }

    mutating func remove(_ key: String) -> Value? {
        guard let old = entries.removeValue(forKey: key) else { return nil }
        cost -= Int64(old.cost)
        return old.value
    }

    /// The least recently used value.
    mutating func oldest() -> (key: String, value: Value)? {
        while firstUse < uses.count {
            let use = uses[firstUse]
            if let entry = entries[use.key], entry.lastUse == use.number { return (use.key, entry.value) }
            firstUse += 1
        }
        return nil
    }

    private mutating func nextUse(of key: String) -> Int {
        if uses.count > 2 * entries.count + 32 {
            uses = uses[firstUse...].filter { entries[$0.key]?.lastUse == $0.number }
            firstUse = 0
        }
        lastNumber += 1
        uses.append((key, lastNumber))
        return lastNumber
    }
}
