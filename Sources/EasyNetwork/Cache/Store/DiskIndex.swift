import Foundation

/// The files of the cache, in the order of their last use: which have to go.
struct DiskIndex: Sendable {
    private var files = RecencyList<Date>()

    /// - Parameter found: names with sizes and times of last use, in any order.
    init(_ found: [CacheDirectory.Found], now: Date) {
        for file in found.sorted(by: { ($0.status.usedAt, $0.name) < ($1.status.usedAt, $1.name) }) {
            // A clock that went ahead and was set right leaves dates that would never grow old.
            note(file.name, bytes: file.status.size, usedAt: min(file.status.usedAt, now))
        }
    }

    var usage: (bytes: Int, count: Int) { (Int(clamping: files.cost), files.count) }
    var names: [String] { Array(files.keys) }

    mutating func note(_ name: String, bytes: Int, usedAt date: Date) {
        _ = files.insert(date, cost: bytes, for: name)
    }

    /// Notes the use of a file that it has. What was removed meanwhile does not come back.
    mutating func use(_ name: String, bytes: Int, at date: Date) {
        if files[name] != nil { note(name, bytes: bytes, usedAt: date) }
    }

    mutating func remove(_ name: String) {
        _ = files.remove(name)
    }

    /// Takes out the file that was used before all others, if the limits ask for it.
    mutating func takeExcess(_ limits: NetworkCache.Disk, now: Date) -> String? {
        guard let oldest = files.oldest else { return nil }
        let isExcess =
            files.cost > limits.bytes ?? .max || files.count > limits.count ?? .max
            || limits.isExpired(oldest.value, now: now)
        guard isExcess else { return nil }
        remove(oldest.key)
        return oldest.key
    }
}
