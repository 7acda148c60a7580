import Testing

@testable import EasyNetwork
@testable import TestSupport

/// Walks all orders in which a group with undoable steps can go: success, refusal, lost responses, a cancellation, a
/// kill, a failing disk, undos that fail, and a user who wants a whole group undone.
///
/// The world is a value: the ``UndoState``, the steps, the messages under way, the server and the journal on disk. Each
/// effect is performed at any time after it was returned. The walk ends when no new world is found.
@Suite("Undoing in all orders", .timeLimit(.minutes(10)))
struct UndoExplorationTests {
    struct Scenario: CustomTestStringConvertible {
        var testDescription: String
        var count = 3
        var isChain = true
        var isJournaled = false
        var budget: Budget
    }

    /// How often something happens that need not.
    struct Budget: Hashable {
        var kills = 0
        var cancels = 0
        var refusals = 0
        var lostResponses = 0
        var diskFaults = 0
        var undoFailures = 0
        var asks = 0
    }

    enum Step: Hashable { case waiting, sent, succeeded, unknown, nothing }

    enum Mark: Hashable { case open, whole, gone }

    struct World: Hashable {
        /// Nil after a kill.
        var logic: UndoState?
        var pending: [UndoState.Effect] = []
        var steps: [Step]
        /// The steps that ended and can be undone, in this order, without those that are undone.
        var ended: [Int] = []
        var isSuccess: Bool?
        var hasFailedInput = false
        var isAsked = false
        var hasEnded = false
        var undoing: Int?
        /// The requests that have been sent and have not reached the server.
        var underWay: Set<Int> = []
        var acted: Set<Int> = []
        /// The server refuses the requests of these steps from now on.
        var undone: Set<Int> = []
        /// The steps whose undo has failed, and that no store delivers.
        var failed: Set<Int> = []
        var undoCounts: [Int]
        /// The undo requests on disk, and those that the store delivers.
        var kept: Set<Int> = []
        var handedOver: Set<Int> = []
        var mark = Mark.open
        /// Whether the journal of a group that has failed cannot be opened again, which its error says.
        var isUnstored = false
        var isRelaunched = false
        var budget: Budget
        var violation: String?
    }

    static let scenarios: [Scenario] = {
        let all = Budget(cancels: 1, refusals: 1, lostResponses: 1, undoFailures: 1, asks: 1)
        var kills = all
        (kills.kills, kills.diskFaults) = (1, 1)
        return [
            Scenario(testDescription: "a chain", budget: all),
            Scenario(testDescription: "a batch", isChain: false, budget: all),
            Scenario(testDescription: "a chain with a journal and a kill", isJournaled: true, budget: kills),
            Scenario(
                testDescription: "a batch with a journal and a kill",
                count: 2,
                isChain: false,
                isJournaled: true,
                budget: kills
            ),
        ]
    }()

    @Test("OPQ-14: whatever happens, each step is a part of a whole group or undone, last first", arguments: scenarios)
    func walk(scenario: Scenario) {
        var logic = UndoState()
        logic.isJournaled = scenario.isJournaled
        let first = World(
            logic: logic,
            steps: Array(repeating: .waiting, count: scenario.count),
            undoCounts: Array(repeating: 0, count: scenario.count),
            budget: scenario.budget
        )
        var known: Set<World> = [first]
        var rest = [first]
        var (moveCount, endCount) = (0, 0)
        while let world = rest.popLast() {
            let moves = Self.moves(world, scenario)
            moveCount += moves.count
            if let violation = world.violation ?? (moves.isEmpty ? Self.problemAtEnd(world) : nil) {
                Issue.record("\(violation): \(world)")
                return
            }
            if moves.isEmpty { endCount += 1 }
            for next in moves where known.insert(next).inserted { rest.append(next) }
        }
        print("\(scenario.testDescription): \(known.count) worlds, \(moveCount) steps, \(endCount) ends")
        expect(endCount > 0)
    }

    // MARK: - What can happen next

    private static func moves(_ world: World, _ scenario: Scenario) -> [World] {
        var moves: [World] = []
        func add(_ change: (inout World) -> Void) {
            var next = world
            change(&next)
            moves.append(next)
        }
        for index in world.underWay {
            add {
                $0.underWay.remove(index)
                if !$0.undone.contains(index) { $0.acted.insert(index) }
            }
        }
        guard world.logic != nil else { return moves + movesAfterKill(world) }
        if world.budget.kills > 0, !world.hasEnded {
            add { world in
                world.budget.kills -= 1
                (world.logic, world.pending, world.undoing) = (nil, [], nil)
            }
        }
        for index in world.steps.indices { moves += Self.moves(of: index, world, scenario) }
        if world.budget.cancels > 0, world.isSuccess == nil {
            add { world in
                world.budget.cancels -= 1
                fail(&world)
            }
        }
        let isDrained = world.steps.allSatisfy { $0 != .sent && $0 != .waiting }
        if isDrained, world.isSuccess == nil, world.logic?.phase == .open, world.pending.isEmpty {
            add { note(.completed, &$0) }
        }
        if isDrained, world.isSuccess == false, !world.hasFailedInput {
            add { world in
                world.hasFailedInput = true
                note(.failed, &world)
            }
        }
        if world.budget.asks > 0, world.hasEnded || world.isSuccess == true {
            add { world in
                world.budget.asks -= 1
                world.isAsked = true
                world.hasEnded = false
                world.failed = []
                note(.asked, &world)
            }
        }
        if let effect = world.pending.first { moves += Self.moves(of: effect, world) }
        if let index = world.undoing {
            add { endUndo(index, failed: false, scenario, &$0) }
            if world.budget.undoFailures > 0 { add { endUndo(index, failed: true, scenario, &$0) } }
        }
        for index in world.handedOver { add { deliver(index, &$0) } }
        return moves
    }

    private static func moves(of index: Int, _ world: World, _ scenario: Scenario) -> [World] {
        var moves: [World] = []
        func add(_ change: (inout World) -> Void) {
            var next = world
            change(&next)
            moves.append(next)
        }
        switch world.steps[index] {
        case .waiting:
            let isTurn = !scenario.isChain || index == 0 || world.steps[index - 1] == .succeeded
            guard isTurn, world.isSuccess == nil else { return [] }
            add { world in
                // The intent is on disk before the request is sent.
                if scenario.isJournaled { world.kept.insert(index) }
                world.steps[index] = .sent
                world.underWay.insert(index)
            }
            if scenario.isJournaled, world.budget.diskFaults > 0 {
                add { world in
                    world.budget.diskFaults -= 1
                    end(index, .nothing, &world)
                    fail(&world)
                }
            }
        case .sent:
            if world.acted.contains(index) { add { end(index, .succeeded, &$0) } }
            if world.budget.lostResponses > 0 {
                add { world in
                    world.budget.lostResponses -= 1
                    end(index, .unknown, &world)
                    fail(&world)
                }
            }
            if world.budget.refusals > 0, world.underWay.contains(index) {
                add { world in
                    world.budget.refusals -= 1
                    world.underWay.remove(index)
                    end(index, .nothing, &world)
                    fail(&world)
                }
            }
        case .succeeded, .unknown, .nothing: break
        }
        return moves
    }

    private static func moves(of effect: UndoState.Effect, _ world: World) -> [World] {
        var moves: [World] = []
        func perform(_ change: (inout World) -> Void) {
            var next = world
            next.pending.removeFirst()
            change(&next)
            moves.append(next)
        }
        switch effect {
        case .commit:
            perform { world in
                world.mark = .whole
                note(.committed(true), &world)
            }
            if world.budget.diskFaults > 0 {
                perform { world in
                    world.budget.diskFaults -= 1
                    note(.committed(false), &world)
                }
            }
        case .succeed:
            perform { world in
                if world.logic?.isJournaled == true, world.mark != .whole {
                    world.violation = "the group succeeds before the journal says that it is whole"
                }
                if world.isSuccess == nil { world.isSuccess = true }
            }
        case .fail: perform { fail(&$0) }
        case .reopen:
            perform { world in
                world.mark = .open
                note(.reopened(true), &world)
            }
            if world.budget.diskFaults > 0 {
                perform { world in
                    world.budget.diskFaults -= 1
                    // A whole group stays one.
                    if world.isSuccess == true { world.isAsked = false } else { world.isUnstored = true }
                    note(.reopened(false), &world)
                }
            }
        case .undo(let index):
            perform { world in
                if world.ended.last != index { world.violation = "\(index) is undone before others" }
                if world.undoing != nil { world.violation = "two undos at once" }
                if world.undone.contains(index) { world.violation = "\(index) is undone twice" }
                if world.isSuccess != false, !world.isAsked { world.violation = "a whole group is undone" }
                if world.mark == .whole, !world.isUnstored {
                    world.violation = "an undo is sent while the journal says that all is whole"
                }
                world.undoing = index
                world.undoCounts[index] += 1
            }
        case .end:
            perform { world in
                let left = world.ended.filter { !world.failed.contains($0) && !world.handedOver.contains($0) }
                let isWhole = world.isSuccess == true && !world.isAsked
                if world.undoing != nil || !left.isEmpty && !isWhole {
                    world.violation = "the group ends before its undos"
                }
                world.hasEnded = true
                if world.kept.isEmpty { world.mark = .gone }
            }
        }
        return moves
    }

    /// The next process carries out a journal that is not whole, and continues nothing.
    private static func movesAfterKill(_ world: World) -> [World] {
        var next = world
        if !world.isRelaunched {
            next.isRelaunched = true
            if world.mark != .whole { next.handedOver.formUnion(world.kept) }
            next.kept = []
            return [next]
        }
        return world.handedOver.map { index in
            var next = world
            deliver(index, &next)
            return next
        }
    }

    // MARK: - How it changes the world

    private static func note(_ input: UndoState.Input, _ world: inout World) {
        world.pending += world.logic?.handle(input) ?? []
    }

    private static func end(_ index: Int, _ step: Step, _ world: inout World) {
        world.steps[index] = step
        guard step != .nothing else {
            world.kept.remove(index)
            return
        }
        world.ended.append(index)
        note(.ended(index), &world)
    }

    /// The group fails or is cancelled, and its other steps end at once.
    private static func fail(_ world: inout World) {
        guard world.isSuccess == nil else { return }
        world.isSuccess = false
        for index in world.steps.indices {
            switch world.steps[index] {
            case .waiting: world.steps[index] = .nothing
            case .sent: end(index, .unknown, &world)
            case .succeeded, .unknown, .nothing: break
            }
        }
    }

    private static func endUndo(_ index: Int, failed: Bool, _ scenario: Scenario, _ world: inout World) {
        let isStored = scenario.isJournaled && !world.isUnstored
        world.undoing = nil
        world.kept.remove(index)
        if failed {
            world.budget.undoFailures -= 1
            if isStored { world.handedOver.insert(index) } else { world.failed.insert(index) }
        } else {
            world.undone.insert(index)
        }
        let isDone = !failed || isStored
        if !failed { world.ended.removeAll { $0 == index } } else { move(index, &world) }
        note(.undone(index, isDone: isDone), &world)
    }

    /// An undo that has failed no longer holds up the others, and comes in its turn if the user asks again.
    private static func move(_ index: Int, _ world: inout World) {
        world.ended.removeAll { $0 == index }
        world.ended.insert(index, at: 0)
    }

    private static func deliver(_ index: Int, _ world: inout World) {
        world.handedOver.remove(index)
        world.undone.insert(index)
        world.ended.removeAll { $0 == index }
    }

    // MARK: - Laws

    private static func problemAtEnd(_ world: World) -> String? {
        // The error of the group has told that a kill may leave steps.
        if world.isUnstored, world.logic == nil { return nil }
        let left = world.acted.subtracting(world.undone)
        let isWhole = world.logic == nil ? world.mark == .whole : world.isSuccess == true && !world.isAsked
        if isWhole {
            return left.count == world.steps.count && world.undone.isEmpty ? nil : "a whole group lacks a step"
        }
        if world.logic != nil, !world.hasEnded { return "the group does not end" }
        if !left.isSubset(of: world.failed) { return "\(left) are not undone" }
        let isOnce = world.undoCounts.allSatisfy { $0 <= 1 + (world.isAsked ? 1 : 0) }
        return isOnce ? nil : "a step is undone twice"
    }
}
