import Foundation

/// Timers by time, then by the order in which they were set; a binary heap.
struct TimerHeap: Sendable {
    struct Entry: Sendable {
        var time: TimeInterval
        var order: Int

        func isBefore(_ other: Entry) -> Bool {
            time < other.time || time == other.time && order < other.order
        }
    }

    private var entries: [Entry] = []

    var first: Entry? { entries.first }
    var count: Int { entries.count }

    mutating func insert(_ entry: Entry) {
        entries.append(entry)
        var child = entries.count - 1
        while child > 0, entries[child].isBefore(entries[(child - 1) / 2]) {
            entries.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    mutating func removeFirst() {
        guard let last = entries.popLast(), !entries.isEmpty else { return }
        entries[0] = last
        var parent = 0
        while 2 * parent + 1 < entries.count {
            var child = 2 * parent + 1
            if child + 1 < entries.count, entries[child + 1].isBefore(entries[child]) { child += 1 }
            guard entries[child].isBefore(entries[parent]) else { return }
            entries.swapAt(child, parent)
            parent = child
        }
    }

    mutating func removeAll(where isUnwanted: (Entry) -> Bool) {
        // A sorted array is a heap.
        entries = entries.filter { !isUnwanted($0) }.sorted { $0.isBefore($1) }
    }
}
