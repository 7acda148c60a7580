#if os(Linux) && canImport(CCurl)
import Foundation

/// Who is to be looked at when, the earliest first: a binary heap, as a value.
///
/// An entry is taken out when its time has come, or with ``sweep(_:)``; one that has lost its meaning before does no harm.
struct DeadlineHeap<Element> {
    private var entries: [(time: TimeInterval, element: Element)] = []

    var count: Int { entries.count }
    /// Nil when there is nobody.
    var earliest: TimeInterval? { entries.first?.time }

    mutating func add(_ element: Element, at time: TimeInterval) {
        entries.append((time, element))
        var child = entries.count - 1
        while child > 0 {
            let parent = (child - 1) / 2
            guard entries[child].time < entries[parent].time else { break }
            entries.swapAt(child, parent)
            child = parent
        }
    }

    /// Takes out one whose time has come; nil when there is none.
    mutating func takeDue(now: TimeInterval) -> Element? {
        guard let first = entries.first, first.time <= now else { return nil }
        entries.swapAt(0, entries.count - 1)
        entries.removeLast()
        siftDown(from: 0)
        return first.element
    }

    /// Takes out all that are not wanted any more.
    mutating func sweep(_ isWanted: (Element) -> Bool) {
        entries.removeAll { !isWanted($0.element) }
        for index in (0..<(entries.count / 2)).reversed() { siftDown(from: index) }
    }

    private mutating func siftDown(from index: Int) {
        var parent = index
        while true {
            let children = (2 * parent + 1)..<min(2 * parent + 3, max(entries.count, 2 * parent + 1))
            guard let child = children.min(by: { entries[$0].time < entries[$1].time }),
                entries[child].time < entries[parent].time
            else { return }
            entries.swapAt(child, parent)
            parent = child
        }
    }
}
#endif
