import Testing

@testable import EasyNetwork

@Suite("PartRegistry")
struct PartRegistryTests {
    private final class Owner {}

    private let registry = PartRegistry()
    private let granted = Locked<[String]>([])

    private func take(_ name: String, for owner: Owner, isOver: Bool = false) -> Bool {
        registry.take("part", for: owner, unless: { isOver }) { [granted] in granted.withLock { $0.append(name) } }
    }

    @Test("TRF-3: a part belongs to one, and to the next when that one gives it back")
    func inTurn() {
        let (first, second, third) = (Owner(), Owner(), Owner())
        #expect(take("first", for: first))
        #expect(!take("second", for: second), "the first one does not give it up")
        registry.willGiveBack("part", by: first)
        #expect(take("second", for: second))
        #expect(!take("third", for: third), "one waits for it already")
        #expect(granted.withLock { $0 } == ["first"])
        registry.giveBack("part")
        #expect(granted.withLock { $0 } == ["first", "second"])
    }

    @Test("TRF-3: one that is over by the time it asks takes nothing, and keeps nobody from it")
    func overBeforeItAsks() {
        let (first, second, third) = (Owner(), Owner(), Owner())
        registry.willGiveBack("part", by: first)
        #expect(!take("first", for: first, isOver: true))
        #expect(take("second", for: second))
        registry.willGiveBack("part", by: second)
        #expect(!take("first", for: first, isOver: true), "nor does it wait for its turn")
        #expect(take("third", for: third))
        registry.giveBack("part")
        #expect(granted.withLock { $0 } == ["second", "third"])
    }
}
