import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("GroupState")
struct GroupStateTests {
    private func group(inTurn: Bool, endsAtFirstFailure: Bool = true, count: Int = 3) -> GroupState {
        var group = GroupState(inTurn: inTurn, endsAtFirstFailure: endsAtFirstFailure)
        for _ in 0..<count { _ = group.add() }
        return group
    }

    private func takeAll(_ group: inout GroupState) -> [Int] {
        var taken: [Int] = []
        while let index = group.takeNext() { taken.append(index) }
        return taken
    }

    @Test("OPQ-4: a batch hands on nothing before it begins, then everything, and later children too")
    func together() {
        var group = group(inTurn: false)
        expect(takeAll(&group), equals: [])
        group.begin()
        expect(takeAll(&group), equals: [0, 1, 2])
        let isAdded = group.add()
        expect(isAdded)
        expect(takeAll(&group), equals: [3])
        for _ in 0..<3 { group.settle() }
        let isEarly = group.succeed()
        group.settle()
        let succeeds = group.succeed()
        let again = group.succeed()
        expect(!isEarly && succeeds && !again)
        let isAddedLate = group.add()
        expect(!isAddedLate && group.count == 4)
    }

    @Test("OPQ-5: a chain hands on a step when the one before is settled")
    func inTurn() {
        var group = group(inTurn: true)
        group.begin()
        expect(takeAll(&group), equals: [0])
        group.settle()
        expect(takeAll(&group), equals: [1])
        group.settle()
        expect(takeAll(&group), equals: [2])
        group.settle()
        let succeeds = group.succeed()
        expect(succeeds)
    }

    @Test("OPQ-4: an empty group succeeds when it begins")
    func empty() {
        var group = group(inTurn: false, count: 0)
        let isEarly = group.succeed()
        group.begin()
        let succeeds = group.succeed()
        expect(!isEarly && succeeds)
    }

    @Test("OPQ-5: the first failure ends it; the rest is handed on when it has been ended, all at once")
    func failure() {
        var group = group(inTurn: true)
        group.begin()
        expect(takeAll(&group), equals: [0])
        let ends = group.fail(0)
        let endsAgain = group.fail(1)
        expect(ends && !endsAgain && group.failedIndex == 0 && !group.isOpen)
        group.settle()
        expect(takeAll(&group), equals: [])
        let handedOn = group.takeRest()
        let second = group.takeRest()
        expect(handedOn == 1 && second == nil)
        expect(takeAll(&group), equals: [])
        group.restEnded()
        expect(!group.isDrained)
        expect(takeAll(&group), equals: [1, 2])
        group.settle()
        group.settle()
        let succeeds = group.succeed()
        expect(group.isDrained && !succeeds)
    }

    @Test("OPQ-4: collect-all is not ended by failures")
    func collectAll() {
        var group = group(inTurn: false, endsAtFirstFailure: false)
        group.begin()
        let ends = group.fail(0)
        expect(!ends && group.isOpen && group.failedIndex == nil)
    }

    @Test("OPQ-2: ended before it begins, it hands on its children only once it has begun")
    func endedEarly() {
        var group = group(inTurn: false)
        let handedOn = group.takeRest()
        group.restEnded()
        expect(handedOn, equals: 0)
        expect(takeAll(&group), equals: [])
        group.begin()
        expect(takeAll(&group), equals: [0, 1, 2])
    }
}
