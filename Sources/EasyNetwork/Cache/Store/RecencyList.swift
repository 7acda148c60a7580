/// Values by key in the order of their last use, with the sum of their costs. All operations take constant time on
/// average.
///
/// `NSCache` is not suitable: on Linux it keeps the oldest values.
package struct RecencyList<Value: Sendable>: Sendable {
    package let costLimit: Int
    package let countLimit: Int
    private var entries: [String: (value: Value, cost: Int, lastUse: Int)] = [:]
    /// All uses in order. Uses that are not the last one of their key are skipped.
    private var uses: [(key: String, number: Int)] = []
    private var firstUse = 0
    private var lastNumber = 0
    private var sum: Int64 = 0

    package init(costLimit: Int, countLimit: Int) {
        self.costLimit = costLimit
        self.countLimit = countLimit
    }

    var count: Int { entries.count }
    var cost: Int { Int(clamping: sum) }
    var keys: some Collection<String> { entries.keys }

    /// Returns the keys of the selected values, in any order.
    package func keys(where isWanted: (Value) -> Bool) -> [String] {
        entries.compactMap { isWanted($0.value.value) ? $0.key : nil }
    }

    var values: [Value] { entries.values.map(\.value) }

    /// Whether the values exceed a limit. The list does not remove any by itself.
    var isOverfull: Bool { sum > Int64(costLimit) || count > countLimit }

    /// The value of a key, which does not count as used.
    package subscript(key: String) -> Value? { entries[key]?.value }

    /// Returns a value, and makes it the most recently used one.
    package mutating func use(_ key: String) -> Value? {
        guard let value = entries[key]?.value else { return nil }
        let number = nextUse(of: key)
        entries[key]?.lastUse = number
        return value
    }

    /// Stores a value as the most recently used one.
    ///
    /// - Returns: the replaced value.
    @discardableResult
    mutating func insert(_ value: Value, cost: Int, for key: String) -> Value? {
        let old = remove(key)
        entries[key] = (value, cost, nextUse(of: key))
        sum += Int64(cost)
        return old
    }

    @discardableResult
    package mutating func remove(_ key: String) -> Value? {
        guard let old = entries.removeValue(forKey: key) else { return nil }
        sum -= Int64(old.cost)
        return old.value
    }

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

extension RecencyList {
    /// Stores a value, unless it exceeds the limits by itself.
    ///
    /// - Returns: the replaced value, and those that were removed to make room. The caller releases them outside of its
    ///   lock.
    package mutating func store(_ value: Value, cost: Int, for key: String) -> [Value] {
        let fits = cost <= costLimit && countLimit > 0
        var removed = [fits ? insert(value, cost: cost, for: key) : remove(key)]
        while isOverfull, let oldest = oldest() { removed.append(remove(oldest.key)) }
        return removed.compactMap { $0 }
    }
}

extension RecencyList<CacheEntry> {
    /// Stores an entry with its own cost and key, see ``store(_:cost:for:)``.
    mutating func store(_ entry: CacheEntry) -> [CacheEntry] {
        store(entry, cost: entry.cost, for: entry.header.key)
    }
}
