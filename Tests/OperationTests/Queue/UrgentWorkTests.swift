import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("Urgent jobs: the rule")
struct UrgentWorkTests {
    private typealias Graph = JobGraph<Int>
    private typealias Actions = JobGraph<Int>.Actions

    private func submit(
        _ payload: Int,
        _ priority: JobPriority,
        mayYield: Bool = false,
        keys: [LimitKey] = [],
        _ graph: inout Graph,
        _ actions: inout Actions
    ) -> Graph.Job {
        let job = Graph.Job(payload)
        graph.submit(job, priority: priority, keys: keys, JobTraits(mayYield: mayYield))
        graph.release(job, &actions)
        return job
    }

    @Test(
        "OPQ-11: a running job of low priority gives its slot to one that waits, and goes on before others of its own"
    )
    func yields() {
        var graph = Graph(limit: 1)
        var actions = Actions()
        let download = submit(1, .low, mayYield: true, &graph, &actions)
        _ = submit(2, .low, mayYield: true, &graph, &actions)
        expect(actions.start == [1] && actions.yield.isEmpty)
        let urgent = submit(3, .normal, &graph, &actions)
        expect(actions.start == [1, 3] && actions.yield == [1] && download.phase == .returning)
        graph.finish(urgent, succeeded: true, &actions)
        expect(actions.resume == [1] && actions.goOn == [1] && download.phase == .running)
        expect(graph.queueLane.runningCount == 1 && graph.yieldable.count == 1)
        graph.finish(download, succeeded: true, &actions)
        expect(actions.start, equals: [1, 3, 2])
    }

    @Test("OPQ-11, BEY-9: a waiting job whose priority a later one raises gets the slot of a running one")
    func lentPriority() {
        var graph = Graph(limit: 1)
        var actions = Actions()
        _ = submit(1, .low, mayYield: true, &graph, &actions)
        let shared = submit(2, .low, &graph, &actions)
        let urgent = Graph.Job(3)
        graph.submit(urgent, priority: .high, JobTraits(occupiesSlot: false))
        graph.release(urgent, &actions)
        expect(actions.start == [1, 3] && actions.yield.isEmpty)
        graph.lendPriority(of: urgent, to: shared, &actions)
        expect(actions.start == [1, 3, 2] && actions.yield == [1])
    }

    @Test(
        "OPQ-11: none yields for its own priority, above the highest that may, for a suspended queue, or when told not to"
    )
    func keeps() {
        for (own, other, ceiling, isSuspended, mayYield) in [
            (JobPriority.low, JobPriority.low, JobPriority?.some(.low), false, true),
            (.normal, .veryHigh, .low, false, true),
            (.low, .veryHigh, nil, false, true),
            (.low, .veryHigh, .low, true, true),
            (.low, .veryHigh, .low, false, false),
        ] {
            var graph = Graph(limit: 1)
            graph.yieldingPriority = ceiling
            var actions = Actions()
            _ = submit(1, own, mayYield: mayYield, &graph, &actions)
            graph.isSuspended = isSuspended
            let urgent = submit(2, other, &graph, &actions)
            expect(actions.yield.isEmpty && actions.start == [1])
            // What was not done then is done when the rule changes.
            guard mayYield else { continue }
            graph.yieldingPriority = .normal
            graph.isSuspended = false
            graph.setPriority(.veryHigh, of: urgent, &actions)
            expect(actions.yield == [1] && actions.start == [1, 2])
        }
    }

    @Test("OPQ-11: it yields only where its slot is the one that is missing")
    func rightSlot() {
        var graph = Graph(limit: 3)
        graph.hostLimit = 1
        var actions = Actions()
        _ = submit(1, .low, mayYield: true, keys: [.host("a")], &graph, &actions)
        _ = submit(2, .low, keys: [.host("b")], &graph, &actions)
        // The slot of host b is not a download's.
        _ = submit(3, .high, keys: [.host("b")], &graph, &actions)
        expect(actions.start == [1, 2] && actions.yield.isEmpty)
        _ = submit(4, .high, keys: [.host("a")], &graph, &actions)
        expect(actions.start == [1, 2, 4] && actions.yield == [1])
        // Behind those whose own host is full, one that needs any slot is found.
        var other = Graph(limit: 2)
        other.hostLimit = 1
        actions = Actions()
        _ = submit(1, .low, mayYield: true, &other, &actions)
        _ = submit(2, .normal, keys: [.host("b")], &other, &actions)
        for number in 3...40 { _ = submit(number, .high, keys: [.host("b")], &other, &actions) }
        expect(actions.yield.isEmpty)
        _ = submit(41, .high, &other, &actions)
        expect(actions.start == [1, 2, 41] && actions.yield == [1])
    }

    @Test(
        "OPQ-11: 100,000 urgent jobs that wait for something else hide none that needs a slot, and cost it nothing",
        arguments: Blocked.allCases
    )
    func behindMany(_ blocked: Blocked) {
        var graph = Graph(limit: 10)
        graph.hostLimit = 1
        for tag in ["t", "x"] { graph.setLimit(1, for: .tag(tag)) }
        var actions = Actions()
        _ = submit(0, .low, mayYield: true, keys: [.host("a"), .tag("x")], &graph, &actions)
        _ = submit(1, .low, mayYield: blocked == .byTwoThatMayYield, keys: [.tag("t")], &graph, &actions)
        let count = TestLoad.count(100_000)
        for number in 2..<count {
            let own = blocked == .byOneWithKeysOfTheirOwn ? [LimitKey.exclusion("\(number)")] : []
            _ = submit(number, .high, keys: [.host("a"), .tag("t")] + own, &graph, &actions)
        }
        expect(actions.start == [0, 1] && actions.yield.isEmpty)
        var ended = 0
        for round in 0..<count / 10 {
            actions = Actions(now: TimeInterval(round) * 2)
            let urgent = submit(count + round, .high, keys: [.host("a")], &graph, &actions)
            guard actions.yield == [0], actions.start == [count + round] else { break }
            graph.finish(urgent, succeeded: true, &actions)
            if actions.goOn == [0] { ended += 1 }
        }
        expect(ended, equals: count / 10)
    }

    /// What the jobs wait for that are in front of the one that needs only a slot.
    enum Blocked: CaseIterable {
        case byOne, byOneWithKeysOfTheirOwn
        /// Each could give one of the two slots that they lack.
        case byTwoThatMayYield
    }

    @Test("OPQ-11: with more running than a lowered limit allows, none yields for nothing")
    func loweredLimit() {
        var graph = Graph(limit: 3)
        var actions = Actions()
        let jobs = (1...3).map { submit($0, .low, mayYield: true, &graph, &actions) }
        graph.setLimit(1, &actions)
        _ = submit(4, .high, &graph, &actions)
        expect(actions.yield.isEmpty)
        for job in jobs.prefix(2) { graph.finish(job, succeeded: true, &actions) }
        expect(actions.yield == [3] && actions.start == [1, 2, 3, 4])
    }

    @Test("OPQ-11: one that excludes others keeps its slot, as it holds its categories")
    func exclusive() {
        var graph = Graph(limit: 1)
        var actions = Actions()
        _ = submit(1, .low, mayYield: true, keys: [.exclusion("x")], &graph, &actions)
        _ = submit(2, .high, &graph, &actions)
        expect(actions.yield.isEmpty)
    }

    @Test("OPQ-11: one that has yielded before it was started, and cannot run yet, takes no slot until it is released")
    func yieldsBeforeItsStart() {
        var graph = Graph(limit: 1)
        var actions = Actions()
        graph.setRate(RateLimit(1, per: 10), for: .queueLane)
        let download = submit(1, .low, mayYield: true, &graph, &actions)
        expect(actions.start, equals: [1])
        actions = Actions(now: 10)
        let urgent = submit(2, .high, &graph, &actions)
        expect(actions.start == [2] && actions.yield == [1])
        // What the start found out, for example that there is no network, is told only now.
        let isHeld = graph.takeSlot(from: download, &actions)
        expect(isHeld && download.phase == .blocked && actions.goOn == [1])
        graph.finish(urgent, succeeded: true, &actions)
        expect(actions.start == [2] && actions.resume.isEmpty && graph.queueLane.runningCount == 0)
        // It has its token of the rate, which gives the next one ten seconds later.
        graph.release(download, &actions)
        expect(actions.start == [2, 1] && graph.queueLane.runningCount == 1)
        graph.finish(download, succeeded: true, &actions)
        expect(graph.totalCount == 0 && graph.queueLane.runningCount == 0)
    }

    @Test("TRF-8: one that has gone on runs for a second before it yields again")
    func interval() {
        var graph = Graph(limit: 1)
        var actions = Actions(now: 10)
        _ = submit(1, .low, mayYield: true, &graph, &actions)
        let first = submit(2, .high, &graph, &actions)
        actions = Actions(now: 11)
        graph.finish(first, succeeded: true, &actions)
        expect(actions.goOn, equals: [1])
        actions = Actions(now: 11.125)
        _ = submit(3, .high, &graph, &actions)
        expect(actions.yield.isEmpty && actions.start.isEmpty && actions.wake == 12)
        actions = Actions(now: 12)
        graph.admit(&actions)
        expect(actions.yield == [1] && actions.start == [3])
    }

    @Test("OPQ-11: none yields to a job that a rate holds back, which is looked at again when the rate lets it start")
    func rate() {
        for key in [LimitKey.queueLane, .host("a")] {
            var graph = Graph(limit: key == .queueLane ? 1 : 3)
            graph.hostLimit = 1
            var actions = Actions()
            graph.setRate(RateLimit(1, per: 10), for: key)
            _ = submit(1, .low, mayYield: true, keys: [.host("a")], &graph, &actions)
            actions = Actions(now: 5)
            _ = submit(2, .normal, keys: [.host("a")], &graph, &actions)
            expect(actions.yield.isEmpty && actions.start.isEmpty && actions.wake == 10)
            actions = Actions(now: 10)
            graph.admit(&actions)
            expect(actions.yield == [1] && actions.start == [2] && actions.goOn.isEmpty)
        }
    }

    @Test("OPQ-11: behind a job that a rate holds back, one that has started before gets the slot of a download")
    func rateAndReturn() {
        var graph = Graph(limit: 2)
        graph.setRate(RateLimit(2, per: 20), for: .queueLane)
        var actions = Actions()
        let paused = submit(1, .high, &graph, &actions)
        graph.park(paused, &actions)
        actions = Actions(now: 10)
        _ = submit(2, .low, mayYield: true, &graph, &actions)
        graph.setLimit(1, &actions)
        actions = Actions(now: 11)
        _ = submit(3, .high, &graph, &actions)
        expect(actions.yield.isEmpty && actions.wake == 20)
        expect(graph.unpark(paused, &actions))
        expect(actions.yield == [2] && actions.resume == [1] && actions.start.isEmpty)
    }

    @Test("OPQ-11: one that has begun to wait for something else meanwhile takes no slot until that is over")
    func waitsMeanwhile() {
        var graph = Graph(limit: 1)
        var actions = Actions()
        let download = submit(1, .low, mayYield: true, &graph, &actions)
        let urgent = submit(2, .normal, &graph, &actions)
        graph.park(download, &actions)
        let other = submit(3, .veryLow, &graph, &actions)
        graph.finish(urgent, succeeded: true, &actions)
        expect(actions.start == [1, 2, 3] && actions.resume.isEmpty && download.phase == .parked)
        expect(graph.unpark(download, &actions))
        graph.finish(other, succeeded: true, &actions)
        expect(actions.resume == [1] && actions.goOn == [1] && download.phase == .running)
    }

    @Test("OPQ-11: of several the lowest yields, then the one that has run longest")
    func choice() {
        var graph = Graph(limit: 3)
        var actions = Actions()
        let priorities: [JobPriority] = [.low, .veryLow, .low]
        for (index, priority) in priorities.enumerated() {
            _ = submit(index + 1, priority, mayYield: true, &graph, &actions)
        }
        let urgent = submit(4, .normal, &graph, &actions)
        expect(actions.yield, equals: [2])
        graph.finish(urgent, succeeded: true, &actions)
        var yielded: [Int] = []
        for round in 1...3 {
            actions = Actions(now: TimeInterval(round) / 8)
            // The lowest has just gone on, and may not yet.
            let urgent = submit(4 + round, .normal, &graph, &actions)
            yielded += actions.yield
            graph.finish(urgent, succeeded: true, &actions)
        }
        expect(yielded, equals: [1, 3])
        actions = Actions(now: 2)
        for number in 10...12 { _ = submit(number, .normal, &graph, &actions) }
        expect(actions.yield, equals: [2, 1, 3])
    }

    @Test("OPQ-11: a flow of urgent jobs does not starve it")
    func starvation() {
        var graph = Graph(limit: 1)
        graph.overtakingLimit = 3
        var actions = Actions()
        _ = submit(0, .low, mayYield: true, &graph, &actions)
        var running: [Int: Graph.Job] = [:]
        for number in 1...10 { running[number] = submit(number, .high, &graph, &actions) }
        for number in [1, 2, 3] {
            actions = Actions()
            if let job = running[number] { graph.finish(job, succeeded: true, &actions) }
        }
        expect(actions.goOn, equals: [0], "it was overtaken three times")
    }

    @Test("TRF-8: one that cannot be resumed keeps its slot; one that can again needs a second for its first bytes")
    func changesItsMind() {
        var graph = Graph(limit: 1)
        var actions = Actions(now: 1)
        let download = submit(1, .low, mayYield: true, &graph, &actions)
        let keepsSlot = graph.setMayYield(false, of: download, &actions)
        let first = submit(2, .high, &graph, &actions)
        expect(keepsSlot && actions.start == [1] && actions.yield.isEmpty)
        // The first time it yields at once.
        let hasSlot = graph.setMayYield(true, of: download, &actions)
        expect(!hasSlot && actions.yield == [1] && actions.start == [1, 2])
        // What it finds out now counts when it goes on.
        let hasNone = graph.setMayYield(false, of: download, &actions)
        expect(!hasNone && graph.yieldable.isEmpty)
        actions = Actions(now: 2)
        graph.finish(first, succeeded: true, &actions)
        _ = submit(3, .high, &graph, &actions)
        expect(actions.goOn == [1] && actions.start.isEmpty && actions.wake == nil)
        actions = Actions(now: 7)
        let keepsIt = graph.setMayYield(true, of: download, &actions)
        expect(keepsIt && actions.yield.isEmpty && actions.wake == 8)
        actions = Actions(now: 8)
        graph.admit(&actions)
        expect(actions.yield == [1] && actions.start == [3])
    }

    /// Runs urgent jobs one after another for a minute, and downloads that yield to them.
    ///
    /// - Parameter limit: the number of slots once all downloads have yielded.
    /// - Returns: when each download had a slot, and when an urgent job had one.
    private func slots(
        of downloads: Int,
        limit: Int,
        among durations: [TimeInterval]
    ) -> (downloads: [[Range<TimeInterval>]], urgentTime: TimeInterval) {
        var graph = Graph(limit: downloads)
        var actions = Actions()
        for number in 0..<downloads { _ = submit(number, .low, mayYield: true, &graph, &actions) }
        var began = [TimeInterval?](repeating: 0, count: downloads)
        var slots = [[Range<TimeInterval>]](repeating: [], count: downloads)
        var running: [(job: Graph.Job, number: Int, end: TimeInterval)] = []
        var urgent: [Int: Graph.Job] = [:]
        var urgentTime: TimeInterval = 0
        for number in 100..<1_000 { urgent[number] = submit(number, .high, &graph, &actions) }
        graph.setLimit(limit, &actions)
        var now: TimeInterval = 0
        while true {
            for number in actions.yield {
                if let start = began[number] { slots[number].append(start..<now) }
                began[number] = nil
            }
            for number in actions.goOn { began[number] = now }
            for number in actions.start {
                guard let job = urgent[number] else { continue }
                let duration = durations[number % durations.count]
                urgentTime += duration
                running.append((job, number, now + duration))
            }
            let next = min(running.map(\.end).min() ?? .infinity, actions.wake ?? .infinity)
            guard next < 60 else { break }
            now = max(now, next)
            actions = Actions(now: now)
            let ended = running.filter { $0.end <= now }
            running.removeAll { $0.end <= now }
            for one in ended { graph.finish(one.job, succeeded: true, &actions) }
            graph.admit(&actions)
        }
        for number in 0..<downloads { if let start = began[number] { slots[number].append(start..<60) } }
        return (slots, urgentTime)
    }

    @Test(
        "TRF-8: among urgent jobs of up to nine seconds without a gap, it runs for a second in any ten",
        arguments: [[0.1], [2.5], [3], [0.5, 5], [5], [9]]
    )
    func secondInTen(durations: [TimeInterval]) {
        let (downloads, urgentTime) = slots(of: 1, limit: 1, among: durations)
        let inAnyTen = stride(from: 0, through: 50.0, by: 0.25).map { start in
            downloads[0].map { $0.clamped(to: start..<start + 10) }.map { $0.upperBound - $0.lowerBound }.reduce(0, +)
        }
        expect(inAnyTen.allSatisfy { $0 > 0.99 }, "\(downloads)")
        expect(urgentTime > 40)
    }

    @Test("TRF-8: of many that have yielded each has its turn, and urgent jobs have theirs between")
    func manyHaveYielded() {
        let (downloads, urgentTime) = slots(of: 6, limit: 1, among: [1])
        expect(downloads.allSatisfy { $0.count > 2 } && urgentTime > 20, "\(downloads), \(urgentTime)")
    }

    @Test("OPQ-11: it does not yield when others of its priority were overtaken so often that it would go on at once")
    func overtaken() {
        var graph = Graph(limit: 2)
        graph.overtakingLimit = 2
        graph.yieldingPriority = nil
        var actions = Actions()
        _ = submit(1, .low, mayYield: true, &graph, &actions)
        let first = submit(2, .normal, &graph, &actions)
        _ = submit(3, .low, &graph, &actions)
        let second = submit(4, .high, &graph, &actions)
        let third = submit(5, .high, &graph, &actions)
        _ = submit(6, .high, &graph, &actions)
        for job in [first, second] { graph.finish(job, succeeded: true, &actions) }
        expect(actions.start, equals: [1, 2, 4, 5])
        graph.yieldingPriority = .low
        graph.admit(&actions)
        expect(actions.yield.isEmpty)
        graph.finish(third, succeeded: true, &actions)
        expect(actions.yield == [1] && actions.start == [1, 2, 4, 5, 3, 6] && actions.goOn.isEmpty)
    }

    @Test("OPQ-11: paused, resumed and ended meanwhile, it takes no slot twice and gives none twice")
    func parkedMeanwhile() {
        var graph = Graph(limit: 1)
        var actions = Actions()
        let download = submit(1, .low, mayYield: true, &graph, &actions)
        let urgent = submit(2, .high, &graph, &actions)
        graph.park(download, evenIfReturning: true, &actions)
        graph.finish(urgent, succeeded: true, &actions)
        expect(actions.goOn.isEmpty && graph.queueLane.runningCount == 0)
        expect(graph.unpark(download, &actions) && actions.goOn == [1] && actions.resume == [1])
        graph.finish(download, succeeded: true, &actions)
        expect(graph.queueLane.runningCount == 0 && graph.yieldable.isEmpty && graph.totalCount == 0)
        // Ended while another has its slot.
        let second = submit(3, .low, mayYield: true, &graph, &actions)
        let other = submit(4, .high, &graph, &actions)
        graph.finish(second, succeeded: false, &actions)
        expect(graph.queueLane.runningCount, equals: 1)
        graph.finish(other, succeeded: true, &actions)
        expect(graph.queueLane.runningCount == 0 && graph.yieldable.isEmpty && graph.totalCount == 0)
    }

    @Test("OPQ-11: laws with random jobs, limits, priorities and times", arguments: [UInt64.random(in: 0...UInt64.max)])
    func laws(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<300 {
            let failure = failureOfRandomRun(&random)
            expect(failure == nil, "seed \(seed)")
            if failure != nil { return }
        }
    }

    private func failureOfRandomRun(_ random: inout SeededGenerator) -> String? {
        var graph = Graph(limit: Int.random(in: 1...4, using: &random))
        graph.hostLimit = Bool.random(using: &random) ? Int.random(in: 1...2, using: &random) : nil
        graph.overtakingLimit = 5
        for key in [LimitKey.queueLane, .host("a")] where Int.random(in: 0..<3, using: &random) == 0 {
            graph.setRate(RateLimit(Int.random(in: 1...3, using: &random), per: 2), for: key)
        }
        var now: TimeInterval = 0
        var jobs: [Int: Graph.Job] = [:]
        var (holdsSlot, resumedAfterYield, ended) = (Set<Int>(), [Int: TimeInterval](), 0)
        let keys: [LimitKey] = [.host("a"), .host("b"), .tag("t"), .exclusion("x")]
        for number in 0..<60 {
            now += Double(Int.random(in: 0...4, using: &random)) / 8
            var actions = Actions(now: now)
            let known = jobs.keys.sorted()
            let pick = known.randomElement(using: &random)
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<4:
                let job = Graph.Job(number)
                let priority = JobPriority.allCases.randomElement(using: &random) ?? .normal
                let own = keys.filter { _ in Int.random(in: 0..<3, using: &random) == 0 }
                graph.submit(job, priority: priority, keys: own, JobTraits(mayYield: Bool.random(using: &random)))
                jobs[number] = job
                graph.release(job, &actions)
            case 4..<7:
                guard let pick, let job = jobs[pick], [.running, .parked, .returning].contains(job.phase) else { break }
                jobs[pick] = nil
                holdsSlot.remove(pick)
                graph.finish(job, succeeded: true, &actions)
                ended += 1
            case 7:
                guard let pick, let job = jobs[pick] else { break }
                if job.phase == .running || job.phase == .returning && job.hasYielded {
                    holdsSlot.remove(pick)
                    graph.park(job, &actions)
                } else if job.phase == .parked {
                    _ = graph.unpark(job, &actions)
                }
            case 8 where Bool.random(using: &random):
                guard let pick, let job = jobs[pick], !job.isWaiting else { break }
                let hasSlot = graph.setMayYield(Bool.random(using: &random), of: job, &actions)
                if hasSlot != (job.phase == .running) { return "\(pick) is told a wrong slot" }
            case 8:
                guard let pick, let job = jobs[pick] else { break }
                graph.setPriority(JobPriority.allCases.randomElement(using: &random) ?? .low, of: job, &actions)
            default:
                graph.setLimit(Int.random(in: 1...4, using: &random), &actions)
            }
            // As the queue does it at the time of a wake.
            graph.admit(&actions)
            holdsSlot.formUnion(actions.start + actions.resume)
            for payload in actions.yield {
                if let time = resumedAfterYield[payload], now - time < Graph.yieldingInterval {
                    return "\(payload) is too early"
                }
                if actions.start.contains(payload) { return "\(payload) was started to yield" }
                // It may have the slot of a lower one in the same step.
                if !actions.goOn.contains(payload) { holdsSlot.remove(payload) }
            }
            for payload in actions.goOn { resumedAfterYield[payload] = now }
            // Of those that have a slot now, one at least had none before.
            let new = Set(actions.start + actions.resume).subtracting(actions.yield)
            if !actions.yield.isEmpty, new.isEmpty { return "\(actions.yield) yielded for nothing" }
            let running = Set(jobs.filter { $0.value.phase == .running }.keys)
            if running != holdsSlot { return "\(running) run, and \(holdsSlot) were told" }
            if graph.queueLane.runningCount != running.count { return "the count is wrong" }
            if Set(graph.yieldable.compactMap(\.payload)) != running.filter({ jobs[$0]?.mayYield == true }) {
                return "the list of those that may yield is wrong"
            }
            if Set(graph.yielded.compactMap(\.payload)) != Set(jobs.filter { $0.value.hasYielded }.keys) {
                return "the list of those that have yielded is wrong"
            }
            if let waits = urgentJobThatWaits(Array(jobs.values), graph, now) { return "\(waits) waits for nothing" }
            if actions.wake == nil, let young = urgentJobThatWaits(Array(jobs.values), graph, now + 10) {
                return "nobody looks again for \(young)"
            }
        }
        return nil
    }

    /// A job that could start if another gave its slot.
    private func urgentJobThatWaits(_ jobs: [Graph.Job], _ graph: Graph, _ now: TimeInterval) -> Int? {
        jobs.first { job in
            guard job.phase == .ready || job.phase == .returning else { return false }
            let lanes = job.lanes + [graph.queueLane]
            let full = lanes.filter { !$0.isBelowLimit }
            guard full.allSatisfy({ $0.runningCount == $0.limit }) else { return false }
            let ratesAllow = job.hasGivenUpSlot || lanes.allSatisfy { $0.gate.map { $0.opens <= now } ?? true }
            guard ratesAllow else { return false }
            return jobs.contains { other in
                other.phase == .running && other.mayYield && other.priority < job.priority && other.priority <= .low
                    && now - other.resumedAt >= Graph.yieldingInterval && !graph.wouldRegainSlot(other)
                    && full.allSatisfy { lane in lane === graph.queueLane || other.lanes.contains { $0 === lane } }
            }
        }?.payload
    }
}
