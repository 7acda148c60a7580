import EasyNetwork
import Foundation

/// The waiting loads, and which of them starts next: the highest rank first, and within a rank the oldest or the
/// newest.
struct ResourceOrder: Sendable {
    /// The importance of a load: a prefetch, or the highest priority of its receipts.
    enum Rank: Int, Comparable, CaseIterable, Sendable {
        case prefetch, veryLow, low, normal, high, veryHigh

        init(_ priority: Operation.QueuePriority) {
            self = Rank(rawValue: Int(JobPriority(priority).rawValue) + 1) ?? .normal
        }

        /// The priority of the job. A prefetch has the lowest.
        var priority: Operation.QueuePriority {
            JobPriority(rawValue: UInt8(max(0, rawValue - 1)))?.operationPriority ?? .normal
        }

        static func < (one: Rank, other: Rank) -> Bool { one.rawValue < other.rawValue }
    }

    private typealias Entry = (key: String, number: Int)

    /// The entries of a rank. Entries of keys that have left or moved stay until they would be next. Entries before
    /// `first` have left.
    private typealias Bucket = (entries: [Entry], first: Int)

    private let isLIFO: Bool
    private var buckets = Array(repeating: Bucket([], 0), count: Rank.allCases.count)
    private var places: [String: (rank: Rank, number: Int)] = [:]
    private var lastNumber = 0

    init(isLIFO: Bool) {
        self.isLIFO = isLIFO
    }

    var count: Int { places.count }

    /// The number of entries, including the entries that will be skipped.
    var entryCount: Int { buckets.reduce(0) { $0 + $1.entries.count } }

    /// Adds a key as the newest of its rank, or moves it there from another rank.
    mutating func insert(_ key: String, _ rank: Rank) {
        guard places[key]?.rank != rank else { return }
        lastNumber += 1
        places[key] = (rank, lastNumber)
        var bucket = buckets[rank.rawValue]
        buckets[rank.rawValue] = ([], 0)
        if bucket.entries.count > 2 * places.count + 32 {
            // Removing skipped entries keeps the bucket bounded, however often keys are added and removed.
            bucket.entries = bucket.entries[bucket.first...].filter { places[$0.key]?.number == $0.number }
            bucket.first = 0
        }
        bucket.entries.append((key, lastNumber))
        buckets[rank.rawValue] = bucket
    }

    mutating func remove(_ key: String) {
        places[key] = nil
    }

    /// Removes and returns the key that starts next.
    ///
    /// - Parameter lowest: the lowest rank to take a key from.
    mutating func takeNext(from lowest: Rank) -> String? {
        for rank in Rank.allCases.reversed() where rank >= lowest {
            while let entry = takeEntry(&buckets[rank.rawValue]) {
                guard places[entry.key]?.number == entry.number else { continue }
                places[entry.key] = nil
                return entry.key
            }
        }
        return nil
    }

    private func takeEntry(_ bucket: inout Bucket) -> Entry? {
        if isLIFO { return bucket.entries.count > bucket.first ? bucket.entries.popLast() : nil }
        guard bucket.first < bucket.entries.count else {
            bucket = ([], 0)
            return nil
        }
        bucket.first += 1
        return bucket.entries[bucket.first - 1]
    }
}
