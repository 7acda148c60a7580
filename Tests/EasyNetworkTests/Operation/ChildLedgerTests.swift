import Testing

@testable import EasyNetwork

@Suite("ChildLedger")
struct ChildLedgerTests {
    private func ledger(_ order: ChildLedger.Order, endsAtFirstFailure: Bool = true, count: Int = 3) -> ChildLedger {
        var ledger = ChildLedger(order: order, endsAtFirstFailure: endsAtFirstFailure)
        for _ in 0..<count { _ = ledger.add() }
        return ledger
    }

    private func takeAll(_ ledger: inout ChildLedger) -> [Int] {
        var taken: [Int] = []
        while let index = ledger.takeNext() { taken.append(index) }
        return taken
    }

    @Test("OPQ-4: a batch hands on nothing before it begins, then everything, and what is added later")
    func together() {
        var ledger = ledger(.together)
        #expect(takeAll(&ledger) == [])
        ledger.begin()
        #expect(takeAll(&ledger) == [0, 1, 2])
        let isAdded = ledger.add()
        #expect(isAdded)
        #expect(takeAll(&ledger) == [3])
        for _ in 0..<3 { ledger.settle() }
        let isEarly = ledger.succeed()
        ledger.settle()
        let succeeds = ledger.succeed()
        let again = ledger.succeed()
        #expect(!isEarly && succeeds && !again)
        let isAddedLate = ledger.add()
        #expect(!isAddedLate && ledger.count == 4)
    }

    @Test("OPQ-5: a chain hands on one when the one before is settled")
    func inTurn() {
        var ledger = ledger(.inTurn)
        ledger.begin()
        #expect(takeAll(&ledger) == [0])
        ledger.settle()
        #expect(takeAll(&ledger) == [1])
        ledger.settle()
        #expect(takeAll(&ledger) == [2])
        ledger.settle()
        let succeeds = ledger.succeed()
        #expect(succeeds)
    }

    @Test("OPQ-4: an empty one succeeds when it begins")
    func empty() {
        var ledger = ledger(.together, count: 0)
        let isEarly = ledger.succeed()
        ledger.begin()
        let succeeds = ledger.succeed()
        #expect(!isEarly && succeeds)
    }

    @Test("OPQ-5: the first failure ends it; the rest is handed on when it has been ended, all at once")
    func failure() {
        var ledger = ledger(.inTurn)
        ledger.begin()
        #expect(takeAll(&ledger) == [0])
        let ends = ledger.fail(0)
        let endsAgain = ledger.fail(1)
        #expect(ends && !endsAgain && ledger.failedIndex == 0 && !ledger.isOpen)
        ledger.settle()
        #expect(takeAll(&ledger) == [])
        let handedOn = ledger.takeRest()
        let second = ledger.takeRest()
        #expect(handedOn == 1 && second == nil)
        #expect(takeAll(&ledger) == [])
        ledger.restEnded()
        #expect(!ledger.isDrained)
        #expect(takeAll(&ledger) == [1, 2])
        ledger.settle()
        ledger.settle()
        let succeeds = ledger.succeed()
        #expect(ledger.isDrained && !succeeds)
    }

    @Test("OPQ-4: collect-all is not ended by failures")
    func collectAll() {
        var ledger = ledger(.together, endsAtFirstFailure: false)
        ledger.begin()
        let ends = ledger.fail(0)
        #expect(!ends && ledger.isOpen && ledger.failedIndex == nil)
    }

    @Test("OPQ-2: ended before it begins, it hands on its children only once it has begun")
    func endedEarly() {
        var ledger = ledger(.together)
        let handedOn = ledger.takeRest()
        ledger.restEnded()
        #expect(handedOn == 0)
        #expect(takeAll(&ledger) == [])
        ledger.begin()
        #expect(takeAll(&ledger) == [0, 1, 2])
    }
}
