import Foundation
import Testing

@testable import EasyNetwork
@testable import EasyNetworkOutbox
@testable import TestSupport

@Suite
struct OutboxIndexTests {
    private func name(
        _ sequence: UInt64,
        lane: String? = "",
        _ priority: JobPriority = .normal,
        hasDependencies: Bool = false
    ) -> OutboxName {
        OutboxName(
            sequence: sequence,
            id: UUID(),
            priority: priority,
            hasDependencies: hasDependencies,
            type: "t",
            lane: lane
        )
    }

    @Test("BEY-13: the name of a file has all that its entry is found by, whatever its type and lane are called")
    func names() throws {
        for (type, lane) in [("message", ""), ("a.b/c", "é ..%2F\n\u{0}"), ("", "."), ("..", "/")] {
            let name = OutboxName(
                sequence: 1 << 62 - 1,
                id: UUID(),
                priority: .high,
                hasDependencies: true,
                type: type,
                lane: lane
            )
            expect(!name.text.utf8.contains(UInt8(ascii: "/")))
            expect(OutboxName(name.text), equals: name)
        }
        // Two names that differ by their case alone are two files on any disk.
        let texts = ["", ".", "..", "/", "../a", "a/\u{301}b", "é\n\u{0}", "a", "A", String(repeating: "A", count: 80)]
        let files = texts.map(OutboxName.fileName)
        expect(files.allSatisfy { $0.wholeMatch(of: /name-[a-z0-9A-F%_-]*/) != nil && $0.utf8.count <= 255 })
        expect(Set(files.map { $0.lowercased() }).count, equals: texts.count)
        expect(name(9).text < name(10).text && name(10).text < name(1 << 61).text)
        for text in [
            "", "a", "0.1.2.3.4", "..", ".DS_Store", name(1).text + ".x", "x" + name(1).text,
        ] {
            expect(OutboxName(text) == nil, "\(text)")
        }
        let own = name(1)
        let foreign = OutboxName("f" + own.text.dropFirst())
        expect(foreign?.isInOrder == false && foreign?.numbered(1) == own && own.isInOrder)
    }

    @Test("BEY-13: a lane delivers one entry after the other in the order of their sequence; lanes go side by side")
    func lanes() {
        var index = OutboxIndex()
        let (a1, a2, b1) = (name(1, lane: "a"), name(3, lane: "a"), name(2, lane: "b"))
        // A revived one comes at its old place.
        for name in [a2, b1, a1] { index.insert(name) }
        let first = [index.next(), index.next(), index.next()]
        expect(Set(first.compactMap { $0 }), equals: [a1, b1])
        expect(index.remove(a1.id), equals: a1)
        expect(index.next(), equals: a2)
        expect(index.next() == nil)
        index.remove(a2.id)
        index.remove(b1.id)
        expect(index.count == 0 && index.next() == nil)
    }

    @Test("BEY-13: an older entry that comes back while a newer one is under way goes next, and the lane goes on")
    func older() {
        for fails in [false, true] {
            var index = OutboxIndex()
            let (older, newer, last) = (name(1), name(2), name(3))
            for name in [newer, last] { index.insert(name) }
            expect(index.next(), equals: newer)
            index.insert(older)
            expect(index.next() == nil)
            if fails {
                index.postpone(newer.id, OutboxIndex.Wait(delay: 10), at: 0)
                expect(index.next() == nil)
                index.wake(at: 10)
            } else {
                index.remove(newer.id)
            }
            expect(index.next(), equals: older)
            index.remove(older.id)
            if fails {
                expect(index.next(), equals: newer)
                index.remove(newer.id)
            }
            expect(index.next(), equals: last)
        }
    }

    @Test("BEY-13: a lane with a more important entry at its head comes first")
    func priorities() {
        var index = OutboxIndex()
        let names = [
            name(1, lane: "a", .low), name(2, lane: "b", .veryHigh), name(3, lane: "c"), name(4, lane: "d", .veryHigh),
        ]
        for name in names { index.insert(name) }
        expect((0..<4).map { _ in index.next() }, equals: [names[1], names[3], names[2], names[0]])
    }

    @Test("BEY-13: a failure holds up its own lane until its time has come")
    func postponed() {
        var index = OutboxIndex()
        let (a1, a2, b1) = (name(1, lane: "a"), name(2, lane: "a"), name(3, lane: "b"))
        for name in [a1, a2] { index.insert(name) }
        expect(index.next(), equals: a1)
        index.postpone(a1.id, OutboxIndex.Wait(delay: 10), at: 0)
        index.insert(b1)
        expect(index.next(), equals: b1)
        index.wake(at: 9)
        expect(index.next() == nil)
        index.wake(at: 10)
        expect(index.next(), equals: a1)
        index.postpone(a1.id, OutboxIndex.Wait(delay: 20), at: 0)
        index.wake(at: 11, isReachableAgain: true)
        expect(index.next(), equals: a1)
        index.postpone(a1.id, OutboxIndex.Wait(delay: 20, isFirm: true), at: 0)
        index.wake(at: 11, isReachableAgain: true)
        expect(index.next() == nil)
        // Its wait ends with it.
        index.remove(a1.id)
        expect(index.next(), equals: a2)
    }

    @Test("BEY-13: an entry waits for those it depends on, in whatever lane they are, and not for those that have left")
    func dependencies() {
        var index = OutboxIndex()
        let (root, other, gone) = (name(1, lane: "a"), name(2, lane: "b"), UUID())
        let dependent = name(3, lane: "c", hasDependencies: true)
        index.insert(root)
        index.insert(other)
        index.insert(dependent, after: [gone, root.id, other.id])
        expect(Set([index.next(), index.next()].compactMap { $0 }), equals: [root, other])
        expect(index.next() == nil)
        index.remove(root.id)
        expect(index.next() == nil)
        index.remove(other.id)
        expect(index.next(), equals: dependent)
    }

    @Test("BEY-19: entries without a lane go side by side")
    func unordered() {
        var index = OutboxIndex()
        let names = (1...3).map { name(UInt64($0), lane: nil) }
        for name in names { index.insert(name) }
        expect((0..<3).map { _ in index.next() }, equals: names)
        index.postpone(names[0].id, OutboxIndex.Wait(delay: 10), at: 0)
        index.remove(names[1].id)
        expect(index.next() == nil && index.count == 2)
        index.wake(at: 10)
        expect(index.next(), equals: names[0])
    }

    @Test("BEY-19: one that leaves its lane lets those behind it pass, and those that depend on it still wait")
    func leavesLane() {
        var index = OutboxIndex()
        let (first, second) = (name(1, lane: "a"), name(2, lane: "a"))
        let dependent = name(3, lane: "b", hasDependencies: true)
        index.insert(first)
        index.insert(second)
        index.insert(dependent, after: [first.id])
        expect(index.next() == first && index.next() == nil)
        index.postpone(first.id, OutboxIndex.Wait(delay: 10, leavesLane: true), at: 0)
        expect(index.next() == second && index.next() == nil && index.count == 3)
        index.postpone(second.id, OutboxIndex.Wait(delay: 20), at: 0)
        index.wake(at: 10)
        expect(index.next() == first && index.next() == nil)
        index.remove(first.id)
        expect(index.next() == dependent && index.next() == nil)
    }

    @Test("BEY-19: an older entry that comes back does not wait for the one behind it")
    func olderInFront() {
        var index = OutboxIndex()
        let (old, new) = (name(1, lane: "a"), name(2, lane: "a"))
        index.insert(new)
        expect(index.next(), equals: new)
        index.postpone(new.id, OutboxIndex.Wait(delay: 3_600, reason: .early, isFirm: true), at: 0)
        expect(index.isIdle)
        index.insert(old)
        expect(!index.isIdle && index.next() == old)
        index.remove(old.id)
        expect(index.next(), equals: new, "it asks for its wait again")
    }

    @Test("BEY-19: what waits for its time alone, and what comes after it, is idle; what failed is not")
    func idle() {
        var index = OutboxIndex()
        let (early, failed) = (name(1, lane: nil), name(2, lane: nil))
        let dependent = name(3, lane: nil, hasDependencies: true)
        expect(index.isIdle)
        index.insert(early)
        index.insert(failed)
        index.insert(dependent, after: [early.id])
        expect(index.next() == early && index.next() == failed && index.next() == nil)
        index.postpone(early.id, OutboxIndex.Wait(delay: 10, reason: .early, isFirm: true), at: 0)
        index.postpone(failed.id, OutboxIndex.Wait(delay: 5), at: 0)
        expect(!index.isIdle)
        index.remove(failed.id)
        expect(index.isIdle && index.count == 2 && index.nextWake != nil)
        index.wake(at: 1, isReachableAgain: true)
        expect(index.isIdle, "its time is firm")
        index.wake(early.id)
        expect(!index.isIdle)
    }
}
