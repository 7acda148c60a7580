import Foundation

/// A binary heap of timed elements. The earliest is first; elements with the same time keep the order of insertion.
///
/// An element stays until ``takeDue(now:)`` or ``sweep(_:)`` removes it.
package struct TimerHeap<Element> {
    fileprivate struct Entry {
        var time: TimeInterval
        var order: Int
        var element: Element

        func isBefore(_ other: Entry) -> Bool {
            time < other.time || time == other.time && order < other.order
        }
    }

    private var entries: [Entry] = []
    private var lastOrder = 0

    package init() {}

    package var count: Int { entries.count }
    package var first: Element? { entries.first?.element }
    /// The time of the first element; nil if the heap is empty.
    package var earliest: TimeInterval? { entries.first?.time }

    package mutating func add(_ element: Element, at time: TimeInterval) {
        lastOrder += 1
        entries.append(Entry(time: time, order: lastOrder, element: element))
        var child = entries.count - 1
        while child > 0, entries[child].isBefore(entries[(child - 1) / 2]) {
            entries.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    /// Removes and returns the first element if it is due.
    package mutating func takeDue(now: TimeInterval) -> Element? {
        guard let first = entries.first, first.time <= now else { return nil }
        entries.swapAt(0, entries.count - 1)
        entries.removeLast()
        siftDown()
        return first.element
    }

    /// Removes the elements for which `isWanted` returns false.
    package mutating func sweep(_ isWanted: (Element) -> Bool) {
        // A sorted array is a heap.
        entries = entries.filter { isWanted($0.element) }.sorted { $0.isBefore($1) }
    }

    private mutating func siftDown() {
        var parent = 0
        while 2 * parent + 1 < entries.count {
            var child = 2 * parent + 1
            if child + 1 < entries.count, entries[child + 1].isBefore(entries[child]) { child += 1 }
            guard entries[child].isBefore(entries[parent]) else { return }
            entries.swapAt(child, parent)
            parent = child
        }
    }
}

extension TimerHeap: Sendable where Element: Sendable {}

extension TimerHeap.Entry: Sendable where Element: Sendable {}
