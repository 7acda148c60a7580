import Foundation
import Testing

@testable import EasyNetwork
@testable import EasyNetworkOutbox
@testable import TestSupport

/// Walks all orders in which the steps of up to three outboxes of one directory may come, with crashes, refusals, lost
/// answers and faults of the disk between any two of them.
///
/// The directory is a value; each effect and each event of an ``OutboxState`` comes at any time after it was asked for.
/// The walk ends when no new world is found. From each of them one must be reachable in which everything is delivered.
@Suite("The outbox in all orders", .timeLimit(.minutes(10)))
struct OutboxExplorationTests {
    /// What a user does, one after the other.
    enum Order: Hashable {
        case start(Int)
        case drain(Int)
        case stop(Int)
        case add(Int, Int)
        case retry(Int, Int)
        case remove(Int, Int)

        var outbox: Int {
            switch self {
            case .start(let outbox), .drain(let outbox), .stop(let outbox): outbox
            case .add(let outbox, _), .retry(let outbox, _), .remove(let outbox, _): outbox
            }
        }
    }

    struct Scenario: CustomTestStringConvertible {
        var testDescription: String
        var orders: [Order]
        /// Entries that are there at first.
        var first: [Int] = []
        /// Dead letters that are there at first.
        var dead: [Int] = []
        /// By entry; one lane for all that are not here.
        var lanes: [Int: String] = [:]
        var after: [Int: Int] = [:]
        var outboxes = 2
        var budget = Budget()
        var releasesLock = false
        /// Whether an outbox looks only after a sign of a change, in place of at any time.
        var isTold = false
        /// Whether the next order may come while another outbox carries out the last one.
        var overlaps = false
    }

    /// How often something happens that need not.
    struct Budget: Hashable {
        var crashes = 0
        var refusals = 0
        var failures = 0
        var lostAnswers = 0
        var faults = 0
        /// Failures after which the entry lets those behind it pass, and tries before its time.
        var passes = 0
        var early = 0
    }

    /// One step of what a user does, on the disk or to the outbox.
    enum Step: Hashable {
        case place(Int)
        case announce(Int)
        case revive(Int)
        case forget(Int)
        case reviveDependents(of: Int)
        case buryDependents(of: Int)
        case giveReason(Int)
        case bury(Int)
        case take(Int)
        case announceRemoved(Int)
        /// The lock of the moves between the two places of entries.
        case lockMoves
        case unlockMoves
    }

    /// What an outbox has begun.
    enum Pending: Hashable {
        case effect(OutboxState.Effect)
        case event(OutboxState.Input)
        /// Before the second half of a step that is not one on the disk.
        case listing(changes: Int)
        case checking(Int, isHere: Bool, hasReason: Bool)
        case burying(Int)
    }

    struct Box: Hashable {
        var state: OutboxState?
        var pending: [Pending: Int] = [:]
        var steps: [Step] = []
        /// The entries whose acceptance this process has seen.
        var seen: Set<Int> = []
        /// What was there when a drain began; nil without one.
        var drained: Set<Int>?
        var isStopped = true
        /// Whether the last order of its user was a start.
        var mustDeliver = false
        /// Whether there was a sign of a change that it has not heard of.
        var hasNews = false
    }

    struct World: Hashable {
        var entries: Set<Int> = []
        var dead: Set<Int> = []
        var reasons: Set<Int> = []
        var changes = 0
        var holder: Int?
        /// The outbox that has the lock of the moves.
        var mover: Int?
        /// The entries whose removal has returned.
        var removed: Set<Int> = []
        var accepted: Set<Int> = []
        var revived: Set<Int> = []
        /// The entries that let others of their lane pass, and those that were found to be before their time.
        var passed: Set<Int> = []
        var early: Set<Int> = []
        /// The entries whose addition a crash has cut short: they may come late.
        var interrupted: Set<Int> = []
        var boxes: [Box]
        var orderCount = 0
        var budget: Budget

        /// Tells all that listen of a change.
        mutating func signal(in scenario: Scenario) {
            guard scenario.isTold else { return }
            for number in boxes.indices where boxes[number].state?.isStarted == true { boxes[number].hasNews = true }
        }

        mutating func unlock(in scenario: Scenario) {
            holder = nil
            signal(in: scenario)
        }
    }

    struct Walk {
        let scenario: Scenario
        var worlds: [World: Int] = [:]
        /// The worlds from which each one was reached.
        var origins: [[Int]] = []
        var first: [(from: Int, by: String)] = []
        var violation: String?
    }

    private static func id(_ entry: Int) -> UUID {
        UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, UInt8(entry)))
    }
    private static func entry(_ id: UUID) -> Int { Int(id.uuid.15) }

    static let scenarios: [Scenario] = [
        Scenario(
            testDescription: "two add, one stops, the other goes on",
            orders: [.start(0), .add(0, 1), .start(1), .add(1, 2), .add(0, 3), .stop(0)],
            budget: Budget(failures: 1)
        ),
        Scenario(
            testDescription: "crashes and lost answers",
            orders: [.start(0), .add(0, 1), .add(1, 2), .start(1), .add(0, 3)],
            budget: Budget(crashes: 1, lostAnswers: 1)
        ),
        Scenario(
            testDescription: "a drain and a start while the directory is read",
            orders: [.start(0), .stop(0), .drain(0), .start(0), .add(0, 3)],
            first: [1, 2],
            outboxes: 1,
            budget: Budget(failures: 1)
        ),
        Scenario(
            testDescription: "a drain, and entries that another process adds",
            orders: [.start(0), .add(0, 1), .add(1, 2), .drain(0), .add(1, 3)],
            lanes: [2: "b"]
        ),
        Scenario(
            testDescription: "a drain without the lock",
            orders: [.start(0), .drain(1), .add(0, 2), .stop(0)],
            first: [1]
        ),
        Scenario(
            testDescription: "a drain without the lock that a start ends",
            orders: [.start(0), .drain(1), .add(0, 2), .start(1), .stop(0)],
            first: [1]
        ),
        Scenario(
            testDescription: "a refused entry with a dependent, retried by the other process",
            orders: [.start(0), .add(0, 1), .add(0, 2), .retry(1, 1)],
            lanes: [1: "a", 2: "b"],
            after: [2: 1],
            budget: Budget(refusals: 1)
        ),
        Scenario(
            testDescription: "a retry of an older entry while a newer one is sent",
            orders: [.start(0), .add(0, 1), .add(0, 2), .retry(0, 1), .add(0, 3)],
            outboxes: 1,
            budget: Budget(refusals: 1, failures: 1)
        ),
        Scenario(
            testDescription: "a removal with a dependent, by the other process",
            orders: [.start(0), .remove(1, 1), .add(1, 3)],
            first: [1, 2],
            lanes: [1: "a", 2: "b"],
            after: [2: 1],
            budget: Budget(crashes: 1)
        ),
        Scenario(
            testDescription: "a removal of a dead letter with a dependent while the other process retries it",
            orders: [.retry(1, 1), .remove(0, 1), .start(0)],
            dead: [1, 2],
            lanes: [1: "a", 2: "b"],
            after: [2: 1],
            budget: Budget(refusals: 1),
            overlaps: true
        ),
        Scenario(
            testDescription: "a retry of a dead letter with a dependent while the other process removes it",
            orders: [.start(0), .remove(1, 1), .retry(0, 1)],
            dead: [1, 2],
            lanes: [1: "a", 2: "b"],
            after: [2: 1],
            budget: Budget(crashes: 1, refusals: 1),
            overlaps: true
        ),
        Scenario(
            testDescription: "a disk that fails after success and refusal",
            orders: [.start(0), .add(0, 1), .add(0, 2), .stop(0), .start(0)],
            outboxes: 1,
            budget: Budget(refusals: 1, faults: 2)
        ),
        Scenario(
            testDescription: "an entry that fails, and lets those behind it pass",
            orders: [.start(0), .add(0, 1), .add(1, 2), .add(0, 3)],
            budget: Budget(failures: 1, passes: 1)
        ),
        Scenario(
            testDescription: "an entry before its time, one that waits for it, and a drain",
            orders: [.start(0), .add(0, 1), .add(1, 2), .stop(0), .drain(0)],
            lanes: [1: "a", 2: "b"],
            after: [2: 1],
            budget: Budget(failures: 1, early: 2)
        ),
        Scenario(
            testDescription: "locks that are given back when there is nothing to do",
            orders: [.start(0), .start(1), .add(0, 1), .add(1, 2)],
            budget: Budget(failures: 1),
            releasesLock: true
        ),
        Scenario(
            testDescription: "two that look only when they are told",
            orders: [.start(0), .start(1), .add(1, 1), .stop(0), .add(0, 2)],
            isTold: true
        ),
        Scenario(
            testDescription: "a crash and a drain of those that look only when they are told",
            orders: [.start(0), .drain(1), .add(1, 1), .start(1), .add(0, 2)],
            budget: Budget(crashes: 1),
            isTold: true
        ),
        Scenario(
            testDescription: "three processes",
            orders: [.start(0), .start(1), .start(2), .add(2, 1), .add(1, 2)],
            outboxes: 3,
            budget: Budget(crashes: 1)
        ),
    ]

    @Test(
        "BEY-13: whatever the order, nothing is lost, overtaken, or sent again after its success was seen",
        arguments: scenarios
    )
    func explore(_ scenario: Scenario) {
        let (count, violation) = Self.walk(scenario, limit: TestLoad.count(5_000, part: 500, huge: 100_000))
        if TestLoad.isHuge { print("\(scenario.testDescription): \(count) worlds") }
        expect(violation == nil, "\(violation ?? "")")
    }

    // MARK: - The walk

    private static func walk(_ scenario: Scenario, limit: Int) -> (count: Int, violation: String?) {
        var world = World(
            boxes: (0..<scenario.outboxes).map { _ in
                Box(state: OutboxState(window: 4, releasesLock: scenario.releasesLock))
            },
            budget: scenario.budget
        )
        world.entries = Set(scenario.first)
        (world.dead, world.reasons) = (Set(scenario.dead), Set(scenario.dead))
        var walk = Walk(scenario: scenario)
        walk.worlds[world] = 0
        walk.origins.append([])
        walk.first.append((0, ""))
        var found = [world]
        var next = 0
        while next < found.count, found.count < limit {
            let from = next
            next += 1
            for (what, other) in moves(from: found[from], &walk) {
                if let number = walk.worlds[other] {
                    walk.origins[number].append(from)
                } else {
                    walk.worlds[other] = found.count
                    walk.origins.append([from])
                    walk.first.append((from, what))
                    found.append(other)
                }
            }
            if let violation = walk.violation { return (found.count, violation + way(to: from, walk)) }
        }
        // Worlds that were not walked from may have any end.
        var reaches = Array(repeating: false, count: found.count)
        var rest = found.indices.filter { $0 >= next || isDone(found[$0], scenario) }
        while let number = rest.popLast() {
            guard !reaches[number] else { continue }
            reaches[number] = true
            rest += walk.origins[number]
        }
        if let stuck = reaches.firstIndex(of: false) {
            return (found.count, "nothing is delivered any more: \(found[stuck])" + way(to: stuck, walk))
        }
        return (found.count, nil)
    }

    private static func way(to number: Int, _ walk: Walk) -> String {
        var (number, lines) = (number, [String]())
        while number > 0 {
            lines.append(walk.first[number].by)
            number = walk.first[number].from
        }
        return "\n" + lines.reversed().joined(separator: "\n")
    }

    /// Whether all is delivered that can be: where no outbox is left that has started, nothing can.
    private static func isDone(_ world: World, _ scenario: Scenario) -> Bool {
        guard world.orderCount == scenario.orders.count, world.boxes.allSatisfy(\.steps.isEmpty) else { return false }
        return world.entries.isEmpty || !world.boxes.contains { $0.state?.isStarted ?? true }
    }

    private static func name(_ entry: Int, _ scenario: Scenario) -> OutboxName {
        OutboxName(
            sequence: UInt64(entry),
            id: id(entry),
            priority: .normal,
            hasDependencies: scenario.after[entry] != nil,
            type: "",
            lane: scenario.lanes[entry] ?? ""
        )
    }

    private static func moves(from world: World, _ walk: inout Walk) -> [(String, World)] {
        var moves: [(String, World)] = []
        for number in world.boxes.indices {
            let box = world.boxes[number]
            guard box.state != nil else {
                var other = world
                other.boxes[number].state = OutboxState(window: 4, releasesLock: walk.scenario.releasesLock)
                other.boxes[number].isStopped = false
                post(.start, number, &other, &walk)
                other.boxes[number].hasNews = walk.scenario.isTold
                moves.append(("\(number) restarts", other))
                continue
            }
            for pending in box.pending.keys {
                // An entry becomes a dead letter within the lock.
                if case .effect(.settle(_, .dead)) = pending, world.mover != nil { continue }
                var other = world
                let left = (box.pending[pending] ?? 0) - 1
                other.boxes[number].pending[pending] = left > 0 ? left : nil
                for (what, result) in carryOut(pending, number, other, &walk) {
                    moves.append(("\(number) \(what)", result))
                }
            }
            // What an event asks of the user's own thread is done before the next step.
            if let step = box.steps.first, box.pending[.effect(.signalChange)] == nil,
                step != .lockMoves || world.mover == nil
            {
                var other = world
                other.boxes[number].steps.removeFirst()
                take(step, number, &other, &walk)
                moves.append(("\(number) \(step)", other))
            }
            let isSoon = box.state?.nextLook(at: 0, isTold: true).map(\.isFinite) ?? false
            var looks = !walk.scenario.isTold || box.hasNews || isSoon ? [false] : []
            if world.budget.crashes < walk.scenario.budget.crashes { looks.append(true) }
            for isDue in looks {
                var other = world
                other.boxes[number].hasNews = false
                let look = OutboxState.Input.looked(changes: world.changes, isDue: isDue, isReachableAgain: false)
                post(look, number, &other, &walk)
                moves.append(("\(number) looks", other))
            }
            if world.budget.crashes > 0 {
                var other = world
                other.budget.crashes -= 1
                let isBusy =
                    !world.boxes[number].steps.isEmpty || world.boxes[number].pending[.effect(.signalChange)] != nil
                if isBusy, case .add(_, let entry) = walk.scenario.orders[max(0, world.orderCount - 1)] {
                    other.interrupted.insert(entry)
                }
                other.boxes[number] = Box()
                if other.holder == number { other.unlock(in: walk.scenario) }
                if other.mover == number { other.mover = nil }
                moves.append(("\(number) crashes", other))
            }
        }
        if world.orderCount < walk.scenario.orders.count {
            let order = walk.scenario.orders[world.orderCount]
            let isBusy = world.boxes.indices.contains { number in
                let box = world.boxes[number]
                guard !walk.scenario.overlaps || number == order.outbox else { return false }
                return !box.steps.isEmpty || box.pending[.effect(.signalChange)] != nil
            }
            guard !isBusy else { return moves }
            var other = world
            other.orderCount += 1
            begin(order, &other, &walk)
            moves.append(("\(order)", other))
        }
        return moves
    }

    private static func post(_ event: OutboxState.Input, _ number: Int, _ world: inout World, _ walk: inout Walk) {
        for effect in world.boxes[number].state?.handle(event, at: 0) ?? [] {
            switch effect {
            case .tellFailed, .tellLeft, .cancel: break
            case .drained(let drain):
                // The deadline or the end of the drain stops the outbox, at any time from now on.
                world.boxes[number].pending[.event(.stop(3, after: drain)), default: 0] += 1
                let early = world.early.intersection(world.entries)
                let left = world.boxes[number].drained.take()?.intersection(world.entries)
                    .subtracting(world.revived.union(early))
                    .filter { entry in !(walk.scenario.after[entry].map(early.contains) ?? false) }
                switch event {
                // These end it, too.
                case .start, .stop: break
                default: if left?.isEmpty == false { walk.violation = "a drain ends with \(left ?? [])" }
                }
            case .stopped: world.boxes[number].isStopped = world.boxes[number].state?.isStarted == false
            default: world.boxes[number].pending[.effect(effect), default: 0] += 1
            }
        }
        if world.boxes[number].mustDeliver, world.boxes[number].state?.isStarted == false {
            walk.violation = "the end of a drain stops an outbox that was started since"
        }
    }

    // MARK: - The user

    private static func begin(_ order: Order, _ world: inout World, _ walk: inout Walk) {
        switch order {
        case .start(let number):
            (world.boxes[number].isStopped, world.boxes[number].mustDeliver) = (false, true)
            post(.start, number, &world, &walk)
            world.boxes[number].hasNews = walk.scenario.isTold
        case .drain(let number):
            world.boxes[number].isStopped = false
            world.boxes[number].drained = world.entries
            world.boxes[number].mustDeliver = false
            post(.drain(1), number, &world, &walk)
            world.boxes[number].hasNews = walk.scenario.isTold
        case .stop(let number):
            world.boxes[number].mustDeliver = false
            post(.stop(2), number, &world, &walk)
        case .add(let number, let entry):
            // What comes before must not be a dead letter.
            if let other = walk.scenario.after[entry], world.dead.contains(other) { return }
            world.boxes[number].steps = [.place(entry), .announce(entry)]
        case .retry(let number, let entry):
            world.boxes[number].steps = [.lockMoves, .revive(entry)]
        case .remove(let number, let entry):
            world.boxes[number].steps = [.lockMoves, .buryDependents(of: entry)]
        }
    }

    private static func take(_ step: Step, _ number: Int, _ world: inout World, _ walk: inout Walk) {
        let after = walk.scenario.after
        let dependents = { (entry: Int) in after.filter { $0.value == entry }.keys.sorted() }
        switch step {
        case .place(let entry): world.entries.insert(entry)
        case .announce(let entry):
            let after = walk.scenario.after[entry].map { [id($0)] } ?? []
            post(.added(name(entry, walk.scenario), after: after, changes: world.changes), number, &world, &walk)
        case .lockMoves: world.mover = number
        case .unlockMoves: world.mover = nil
        case .revive(let entry):
            guard world.dead.remove(entry) != nil else {
                world.boxes[number].steps = [.unlockMoves]
                post(.retryRequested(id(entry)), number, &world, &walk)
                return
            }
            world.entries.insert(entry)
            world.revived.insert(entry)
            world.boxes[number].steps = [.reviveDependents(of: entry)]
        case .forget(let entry): if world.entries.contains(entry) { world.reasons.remove(entry) }
        case .reviveDependents(let entry):
            let revived = dependents(entry).filter(world.dead.contains)
            for one in revived {
                world.dead.remove(one)
                world.entries.insert(one)
                world.revived.insert(one)
            }
            let all = [entry] + revived
            world.boxes[number].steps =
                [.unlockMoves] + all.map { .announce($0) } + [.lockMoves] + all.map { .forget($0) } + [.unlockMoves]
        case .buryDependents(let entry):
            let buried = dependents(entry).filter(world.entries.contains)
            world.boxes[number].steps =
                buried.flatMap { [.giveReason($0), .bury($0)] } + [.take(entry), .unlockMoves]
                + (buried + [entry]).map { .announceRemoved($0) }
        case .giveReason(let entry): world.reasons.insert(entry)
        case .bury(let entry): if world.entries.remove(entry) != nil { world.dead.insert(entry) }
        case .take(let entry):
            world.entries.remove(entry)
            world.dead.remove(entry)
            world.reasons.remove(entry)
        case .announceRemoved(let entry):
            // The last step, before the call returns.
            if world.boxes[number].steps.isEmpty { world.removed.insert(entry) }
            post(.removed(id(entry)), number, &world, &walk)
        }
        if let entry = world.removed.first(where: { world.entries.contains($0) || world.dead.contains($0) }) {
            walk.violation = "\(entry) is back after it was removed"
        }
    }

    // MARK: - The shell, the disk and the server

    private static func carryOut(
        _ pending: Pending,
        _ number: Int,
        _ world: World,
        _ walk: inout Walk
    ) -> [(String, World)] {
        var world = world
        var results: [(String, World)] = []
        func answer(_ event: OutboxState.Input, in world: World, _ what: String) {
            var world = world
            world.boxes[number].pending[.event(event), default: 0] += 1
            results.append((what, world))
        }
        func then(_ pending: Pending, _ what: String) {
            world.boxes[number].pending[pending, default: 0] += 1
            results.append((what, world))
        }
        switch pending {
        case .event(let event):
            if case .ended(let id, .verdict(.delivered)) = event { world.boxes[number].seen.insert(entry(id)) }
            post(event, number, &world, &walk)
            results.append(("hears \(event)", world))
        case .listing(let changes):
            let found = world.entries.map { entry in
                (name(entry, walk.scenario), walk.scenario.after[entry].map { [id($0)] } ?? [])
            }
            let names = Dictionary(found) { first, _ in first }
            answer(.listed(names, changes: changes), in: world, "lists \(world.entries.sorted())")
        case .checking(let entry, let isHere, let hasReason):
            let after = walk.scenario.after[entry].map { [id($0)] } ?? []
            let event = OutboxState.Input.checked(
                id(entry),
                after: isHere ? after : nil,
                hasDeadLetter: hasReason,
                changes: world.changes
            )
            answer(event, in: world, "has checked \(entry)")
        case .burying(let entry):
            if world.entries.remove(entry) != nil {
                world.dead.insert(entry)
            } else if !world.dead.contains(entry) {
                world.reasons.remove(entry)
            }
            world.mover = nil
            answer(.settled(id(entry), retryDelay: nil), in: world, "buries \(entry)")
        case .effect(.lock):
            let isFree = world.holder == nil
            if isFree { world.holder = number }
            answer(.locked(isFree), in: world, "asks for the lock: \(isFree)")
        case .effect(.unlock):
            if world.holder == number { world.unlock(in: walk.scenario) }
            results.append(("unlocks", world))
        case .effect(.signalChange):
            world.changes += 1
            world.signal(in: walk.scenario)
            results.append(("rings", world))
        case .effect(.list): then(.listing(changes: world.changes), "begins to list")
        case .effect(.check(let name)):
            let entry = entry(name.id)
            let hasReason = walk.scenario.after[entry].map(world.reasons.contains) ?? false
            let isHere = world.entries.contains(entry)
            then(.checking(entry, isHere: isHere, hasReason: hasReason), "checks \(entry)")
        case .effect(.settle(let name, let verdict)):
            let entry = entry(name.id)
            if world.budget.faults > 0 {
                var other = world
                other.budget.faults -= 1
                answer(.settled(name.id, retryDelay: 0), in: other, "cannot settle \(entry)")
            }
            if verdict == .dead {
                world.mover = number
                world.reasons.insert(entry)
                then(.burying(entry), "gives the reason of \(entry)")
            } else {
                world.reasons.remove(entry)
                world.entries.remove(entry)
                answer(.settled(name.id, retryDelay: nil), in: world, "removes \(entry)")
            }
        case .effect(.send(let name)):
            let entry = entry(name.id)
            guard world.entries.contains(entry) else {
                answer(.ended(name.id, .gone), in: world, "finds no \(entry)")
                break
            }
            guard world.boxes[number].state?.wants(name.id) == true else {
                answer(.ended(name.id, .postponed(OutboxIndex.Wait(delay: 0))), in: world, "sends \(entry) no more")
                break
            }
            guard world.boxes[number].state?.index.isOvertaken(name.id) == false else {
                answer(.ended(name.id, .overtaken), in: world, "finds an older one than \(entry)")
                break
            }
            if world.budget.early > 0 {
                var other = world
                other.budget.early -= 1
                other.early.insert(entry)
                let wait = OutboxIndex.Wait(delay: 0, reason: .early, isFirm: true)
                answer(.ended(name.id, .postponed(wait)), in: other, "finds \(entry) too early")
            }
            if let problem = problem(entry, number, world, walk.scenario) { walk.violation = problem }
            func reply(_ end: OutboxState.End, _ what: String, _ change: (inout World) -> Void) {
                var other = world
                change(&other)
                answer(.ended(name.id, end), in: other, "sends \(entry): \(what)")
            }
            reply(.verdict(.delivered), "accepted") { $0.accepted.insert(entry) }
            let soon = OutboxIndex.Wait(delay: 0)
            if world.budget.failures > 0 { reply(.postponed(soon), "failed") { $0.budget.failures -= 1 } }
            if world.budget.passes > 0 {
                var wait = soon
                wait.leavesLane = true
                reply(.postponed(wait), "failed, the others may pass") {
                    $0.passed.insert(entry)
                    $0.budget.passes -= 1
                }
            }
            if world.budget.refusals > 0, !world.accepted.contains(entry) {
                reply(.verdict(.dead), "refused") { $0.budget.refusals -= 1 }
            }
            if world.budget.lostAnswers > 0 {
                reply(.postponed(soon), "accepted, the answer is lost") {
                    $0.accepted.insert(entry)
                    $0.budget.lostAnswers -= 1
                }
            }
        case .effect(.cancel), .effect(.tellFailed), .effect(.tellLeft), .effect(.drained), .effect(.stopped): break
        }
        return results
    }

    /// The law that is broken by sending an entry now.
    private static func problem(_ entry: Int, _ number: Int, _ world: World, _ scenario: Scenario) -> String? {
        if world.boxes[number].isStopped { return "\(entry) is sent after a stop" }
        if world.boxes[number].seen.contains(entry), !world.revived.contains(entry) {
            return "\(entry) is sent again after its success was seen"
        }
        if world.holder != number { return "\(entry) is sent without the lock" }
        func isOpen(_ other: Int) -> Bool {
            world.accepted.union(world.revived).union(world.interrupted).union(world.passed).isDisjoint(with: [other])
        }
        let lane = scenario.lanes[entry] ?? ""
        let overtaken = world.entries.first { $0 < entry && (scenario.lanes[$0] ?? "") == lane && isOpen($0) }
        if let overtaken { return "\(entry) is sent before \(overtaken)" }
        if let other = scenario.after[entry], !world.accepted.contains(other),
            world.entries.contains(other) || world.dead.contains(other) || world.removed.contains(other)
        {
            return "\(entry) is sent before \(other), which it comes after"
        }
        return nil
    }
}
