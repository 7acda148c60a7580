import Foundation

/// The entries in memory: those that were used last, within the limits. A value; who shares it puts it behind a lock.
///
/// What goes out is handed out, so that it is released outside the lock.
struct MemoryCache: Sendable {
    /// ``CacheEntry/cost`` of all together, in bytes.
    let costLimit: Int
    let countLimit: Int
    private var entries = RecencyList<CacheEntry>()

    init(costLimit: Int, countLimit: Int) {
        self.costLimit = costLimit
        self.countLimit = countLimit
    }

    var count: Int { entries.count }
    var cost: Int { Int(clamping: entries.cost) }

    /// The entry, which is now the last used.
    mutating func load(_ key: String) -> CacheEntry? {
        entries.use(key)
    }

    /// Keeps an entry under the key in its header, unless it is larger than all may be.
    ///
    /// - Returns: the one of the same key, and those that had to make room.
    mutating func store(_ entry: CacheEntry) -> [CacheEntry] {
        let cost = entry.cost
        guard cost <= costLimit, countLimit > 0 else { return remove(entry.header.key).map { [$0] } ?? [] }
        let old = entries.insert(entry, cost: cost, for: entry.header.key)
        return (old.map { [$0] } ?? []) + trim()
    }

    mutating func remove(_ key: String) -> CacheEntry? {
        entries.remove(key)
    }

    /// Looks without using.
    subscript(key: String) -> CacheEntry? { entries[key] }

    /// All, in no order.
    var all: [CacheEntry] { entries.keys.compactMap { entries[$0] } }

    /// Empties it.
    ///
    /// - Returns: something that holds what was in it.
    mutating func removeAll() -> MemoryCache {
        let old = self
        entries = RecencyList()
        return old
    }

    private mutating func trim() -> [CacheEntry] {
        var removed: [CacheEntry] = []
        while entries.cost > costLimit || entries.count > countLimit {
            guard let oldest = entries.oldest, let entry = entries.remove(oldest.key) else { break }
            removed.append(entry)
        }
        return removed
    }
}
