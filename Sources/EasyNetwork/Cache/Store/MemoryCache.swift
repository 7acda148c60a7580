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
            guard let oldest = entries.oldest, let entry = entries.remove(oldest.key) else { break }
            removed.append(entry)
        }
        return removed
    }
}

/// Values by key in the order of their last use, with the sum of their costs. All operations take constant time.
///
/// `NSCache` is not usable: on Linux it keeps the oldest values. This is a doubly linked list in an array, whose free places
/// are linked too.
struct RecencyList<Value: Sendable>: Sendable {
    private struct Place: Sendable {
        var key: String
        /// Nil in a free place.
        var value: Value?
        var cost: Int
        var older: Int?
        var newer: Int?
    }

    private var places: [Place] = []
    private var indices: [String: Int] = [:]
    private var oldestIndex: Int?
    private var newestIndex: Int?
    private var freeIndex: Int?
    private(set) var cost: Int64 = 0

    var count: Int { indices.count }
    var keys: some Collection<String> { indices.keys }

    /// The least recently used value.
    var oldest: (key: String, value: Value)? {
        guard let oldestIndex, let value = places[oldestIndex].value else { return nil }
        return (places[oldestIndex].key, value)
    }

    /// The value, which does not count as used.
    subscript(key: String) -> Value? {
        indices[key].flatMap { places[$0].value }
    }

    /// The value, which becomes the most recently used one.
    mutating func use(_ key: String) -> Value? {
        guard let index = indices[key] else { return nil }
        unlink(index)
        linkAsNewest(index)
        return places[index].value
    }

    /// Stores a value as the most recently used one.
    ///
    /// - Returns: the replaced value.
    mutating func insert(_ value: Value, cost: Int, for key: String) -> Value? {
        let old = remove(key)
        let place = Place(key: key, value: value, cost: cost)
        let index: Int
        if let free = freeIndex {
            index = free
            freeIndex = places[free].newer
            places[free] = place
        } else {
            index = places.count
            places.append(place)
        }
        indices[key] = index
        linkAsNewest(index)
        self.cost += Int64(cost)
        return old
    }

    mutating func remove(_ key: String) -> Value? {
        guard let index = indices.removeValue(forKey: key) else { return nil }
        unlink(index)
        let old = places[index]
        cost -= Int64(old.cost)
        places[index] = Place(key: "", value: nil, cost: 0, newer: freeIndex)
        freeIndex = index
        return old.value
    }

    private mutating func unlink(_ index: Int) {
        let (older, newer) = (places[index].older, places[index].newer)
        if let older { places[older].newer = newer } else { oldestIndex = newer }
        if let newer { places[newer].older = older } else { newestIndex = older }
        places[index].older = nil
        places[index].newer = nil
    }

    private mutating func linkAsNewest(_ index: Int) {
        places[index].older = newestIndex
        if let newestIndex { places[newestIndex].newer = index } else { oldestIndex = index }
        newestIndex = index
    }
}
