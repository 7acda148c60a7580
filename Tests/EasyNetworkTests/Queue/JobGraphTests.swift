import Testing

@testable import EasyNetwork

@Suite("JobGraph")
struct JobGraphTests {
    private typealias Graph = JobGraph<Int>
    private typealias Actions = JobGraph<Int>.Actions

    @Test("OPQ-3: within a priority first in, first out; the higher priority first")
    func order() {
        var graph = Graph(limit: 0)
        var actions = Actions()
        let priorities: [JobPriority] = [.low, .high, .normal, .high, .veryLow, .veryHigh]
        for (index, priority) in priorities.enumerated() {
            graph.release(graph.submit(index + 1, priority: priority), &actions)
        }
        #expect(actions.start.isEmpty)
        graph.setLimit(nil, &actions)
        #expect(actions.start == [6, 2, 4, 3, 1, 5])
    }

    @Test("OPQ-3: a change of priority of a waiting job takes effect, at the end of its new row")
    func priorityChange() {
        var graph = Graph(limit: 0)
        var actions = Actions()
        let jobs = (1...3).map { graph.submit($0, priority: .normal) }
        for job in jobs { graph.release(job, &actions) }
        graph.setPriority(.high, of: jobs[2])
        graph.setPriority(.low, of: jobs[0])
        graph.setPriority(.normal, of: jobs[0])
        graph.setLimit(nil, &actions)
        #expect(actions.start == [3, 2, 1])
    }

    @Test("OPQ-3: a suspended graph starts nothing, but ends what is cancelled")
    func suspended() {
        var graph = Graph(limit: nil)
        var actions = Actions()
        graph.setSuspended(true, &actions)
        let job = graph.submit(1, priority: .normal)
        graph.release(job, &actions)
        #expect(actions.start.isEmpty)
        graph.end(job, &actions)
        graph.end(job, &actions)
        #expect(actions.end == [1])
        graph.finish(job, succeeded: false, &actions)
        graph.setSuspended(false, &actions)
        #expect(actions.start.isEmpty)
        #expect(graph.count == 0)
    }

    @Test("BEY-1: a failed dependency ends its dependents at once, unless they allow failure")
    func failure() {
        var graph = Graph(limit: nil)
        var actions = Actions()
        let first = graph.submit(1, priority: .normal)
        let other = graph.submit(2, priority: .normal)
        let strict = graph.submit(3, priority: .normal)
        let lenient = graph.submit(4, priority: .normal)
        graph.addDependency(of: strict, on: first, policy: .requireSuccess)
        graph.addDependency(of: strict, on: other, policy: .requireSuccess)
        graph.addDependency(of: lenient, on: first, policy: .allowFailure)
        for job in [first, other, strict, lenient] { graph.release(job, &actions) }
        #expect(actions.start == [1, 2])
        actions = Actions()
        graph.finish(first, succeeded: false, &actions)
        #expect(actions.end == [3])
        #expect(actions.start == [4])
        #expect(graph.runningCount == 2)
    }

    @Test("OPQ-1: a job waits for what is outside the graph, and a number of an earlier tenant does nothing")
    func holds() {
        var graph = Graph(limit: nil)
        var actions = Actions()
        let old = graph.submit(1, priority: .normal)
        graph.release(old, &actions)
        graph.finish(old, succeeded: true, &actions)
        let job = graph.submit(2, priority: .normal)
        #expect(job.index == old.index)
        #expect(graph.addDependency(of: job, on: old, policy: .requireSuccess) == false)
        graph.hold(job)
        graph.release(job, &actions)
        graph.release(old, &actions)
        graph.end(old, &actions)
        #expect(actions.start == [1])
        graph.release(job, &actions)
        #expect(actions.start == [1, 2])
    }

    @Test("OPQ-3: a barrier waits for all before it, and all after it wait for the barrier")
    func barrier() {
        var graph = Graph(limit: nil)
        var actions = Actions()
        let jobs = [(1, false), (2, false), (3, true), (4, false), (5, true), (6, false)].map { payload, isBarrier in
            graph.submit(payload, priority: .normal, isBarrier: isBarrier)
        }
        for job in jobs { graph.release(job, &actions) }
        var started: [[Int]] = [actions.start]
        for job in jobs {
            actions = Actions()
            graph.finish(job, succeeded: false, &actions)
            started.append(actions.start)
        }
        #expect(started == [[1, 2], [], [3], [4], [5], [6], []])
    }

    @Test("OPQ-3: a barrier that is cancelled lets nothing past that it waited for")
    func cancelledBarrier() throws {
        var graph = Graph(limit: nil)
        var actions = Actions()
        let jobs = [(1, false), (2, true), (3, true), (4, true), (5, false)].map { payload, isBarrier in
            graph.submit(payload, priority: .normal, isBarrier: isBarrier)
        }
        for job in jobs { graph.release(job, &actions) }
        for job in jobs[2...3] {
            graph.end(job, &actions)
            graph.finish(job, succeeded: false, &actions)
        }
        #expect(actions.start == [1] && actions.end == [3, 4] && graph.count == 3)
        let late = graph.submit(6, priority: .normal)
        graph.release(late, &actions)
        graph.finish(jobs[0], succeeded: true, &actions)
        #expect(actions.start == [1, 2])
        graph.finish(jobs[1], succeeded: true, &actions)
        #expect(actions.start == [1, 2, 5, 6])
        graph.finish(jobs[4], succeeded: true, &actions)
        graph.finish(late, succeeded: true, &actions)
        #expect(graph.count == 0)
    }

    @Test("BEY-4: a hundred thousand cancelled barriers behind one job are not gone through deeply")
    func manyCancelledBarriers() {
        var graph = Graph(limit: nil)
        var actions = Actions()
        let first = graph.submit(0, priority: .normal)
        graph.release(first, &actions)
        for number in 1...100_000 {
            let barrier = graph.submit(number, priority: .normal, isBarrier: true)
            graph.release(barrier, &actions)
            graph.end(barrier, &actions)
            graph.finish(barrier, succeeded: false, &actions)
        }
        let last = graph.submit(-1, priority: .normal)
        graph.release(last, &actions)
        #expect(actions.start == [0])
        graph.finish(first, succeeded: true, &actions)
        #expect(actions.start == [0, -1])
    }

    @Test("OPQ-3: a slot taken back goes to the next, and the job comes again in its turn")
    func slotTakenBack() {
        var graph = Graph(limit: 1)
        var actions = Actions()
        let jobs = (1...3).map { graph.submit($0, priority: .normal) }
        for job in jobs { graph.release(job, &actions) }
        let wasRunning = graph.takeSlot(from: jobs[0])
        let wasReady = graph.takeSlot(from: jobs[1])
        #expect(wasRunning && !wasReady)
        graph.addDependency(of: jobs[0], on: jobs[2], policy: .allowFailure)
        graph.release(jobs[0], &actions)
        #expect(actions.start == [1, 2])
        graph.finish(jobs[1], succeeded: true, &actions)
        graph.finish(jobs[2], succeeded: true, &actions)
        #expect(actions.start == [1, 2, 3, 1])
    }

    /// Everything that DESIGN asks of the queue, checked after every step against a slow and obvious model.
    @Test("OPQ-3, BEY-5: random graphs, cancels, limits, suspensions and priorities", arguments: 0..<40)
    func randomSteps(batch: UInt64) {
        for seed in (batch * 250)..<(batch * 250 + 250) {
            var run = RandomRun(seed: seed)
            if let fault = run.run() {
                Issue.record("seed \(seed): \(fault)")
                return
            }
        }
    }
}

/// One random history of a graph, told to the graph and to a model at the same time.
private struct RandomRun {
    private enum Phase { case held, blocked, ready, running, ending, finished }

    private struct Model {
        var id: JobID
        var dependencies: [(job: Int, policy: DependencyPolicy)] = []
        var openDependencies: Int = 0
        var phase = Phase.held
        var priority: JobPriority
        /// When it became ready, or joined its row again.
        var turn = 0
    }

    private var random: SeededGenerator
    private var graph = JobGraph<Int>(limit: 2)
    private var jobs: [Model] = []
    private var limit: Int? = 2
    private var isSuspended = false
    private var turns = 0
    private var fault: String?

    init(seed: UInt64) {
        random = SeededGenerator(seed: seed)
    }

    mutating func run() -> String? {
        for _ in 0..<60 where fault == nil { step() }
        perform { run, actions in
            run.isSuspended = false
            run.graph.setSuspended(false, &actions)
        }
        perform { run, actions in
            run.limit = nil
            run.graph.setLimit(nil, &actions)
        }
        for index in jobs.indices where jobs[index].phase == .held { perform { $0.release(index, &$1) } }
        while fault == nil, let index = jobs.indices.first(where: { [.running, .ending].contains(jobs[$0].phase) }) {
            finish(index)
        }
        if fault == nil, graph.count != 0 || graph.runningCount != 0 { fault = "\(graph.count) jobs never finished" }
        if fault == nil, !jobs.allSatisfy({ $0.phase == .finished }) { fault = "a job was lost" }
        return fault
    }

    private mutating func perform(_ step: (inout RandomRun, inout JobGraph<Int>.Actions) -> Void) {
        var actions = JobGraph<Int>.Actions()
        step(&self, &actions)
        check(actions)
    }

    private mutating func step() {
        var actions = JobGraph<Int>.Actions()
        switch Int.random(in: 0..<12, using: &random) {
        case 0...3:
            submit(&actions)
        case 4...6:
            let candidates = jobs.indices.filter { [.running, .ending].contains(jobs[$0].phase) }
            if let index = candidates.randomElement(using: &random) { return finish(index) }
        case 7:
            if let index = jobs.indices.randomElement(using: &random) { cancel(index, &actions) }
        case 8:
            limit = [nil, 0, 1, 2, 5].randomElement(using: &random) ?? nil
            graph.setLimit(limit, &actions)
        case 9:
            isSuspended.toggle()
            graph.setSuspended(isSuspended, &actions)
        case 10:
            if let index = jobs.indices.randomElement(using: &random) { changePriority(index) }
        default:
            let candidates = jobs.indices.filter { jobs[$0].phase == .held }
            if let index = candidates.randomElement(using: &random) { release(index, &actions) }
        }
        check(actions)
    }

    private mutating func submit(_ actions: inout JobGraph<Int>.Actions) {
        let priority = JobPriority.allCases.randomElement(using: &random) ?? .normal
        let index = jobs.count
        jobs.append(Model(id: graph.submit(index, priority: priority), priority: priority))
        for other in 0..<index where Int.random(in: 0..<4, using: &random) == 0 {
            let policy: DependencyPolicy = Bool.random(using: &random) ? .requireSuccess : .allowFailure
            let isLive = graph.addDependency(of: jobs[index].id, on: jobs[other].id, policy: policy)
            if isLive != (jobs[other].phase != .finished) { fault = "job \(other) is taken for finished, or not" }
            guard isLive else { continue }
            jobs[index].dependencies.append((other, policy))
            jobs[index].openDependencies += 1
        }
        if Bool.random(using: &random) { release(index, &actions) }
    }

    private mutating func release(_ index: Int, _ actions: inout JobGraph<Int>.Actions) {
        graph.release(jobs[index].id, &actions)
        jobs[index].phase = .blocked
        makeReady(index)
    }

    private mutating func makeReady(_ index: Int) {
        guard jobs[index].phase == .blocked, jobs[index].openDependencies == 0 else { return }
        jobs[index].phase = .ready
        turns += 1
        jobs[index].turn = turns
    }

    private mutating func cancel(_ index: Int, _ actions: inout JobGraph<Int>.Actions) {
        graph.end(jobs[index].id, &actions)
        if [.held, .blocked, .ready].contains(jobs[index].phase) {
            jobs[index].phase = .ending
            if actions.end != [index] { fault = "cancelled job \(index) was not ended" }
        }
        actions.end = []
    }

    private mutating func changePriority(_ index: Int) {
        let priority = JobPriority.allCases.randomElement(using: &random) ?? .normal
        graph.setPriority(priority, of: jobs[index].id)
        guard jobs[index].priority != priority else { return }
        jobs[index].priority = priority
        turns += 1
        jobs[index].turn = turns
    }

    private mutating func finish(_ index: Int) {
        var actions = JobGraph<Int>.Actions()
        let succeeded = jobs[index].phase == .running && Int.random(in: 0..<4, using: &random) > 0
        graph.finish(jobs[index].id, succeeded: succeeded, &actions)
        jobs[index].phase = .finished
        var ended: Set<Int> = []
        for dependent in jobs.indices {
            for dependency in jobs[dependent].dependencies where dependency.job == index {
                jobs[dependent].openDependencies -= 1
                guard [.held, .blocked].contains(jobs[dependent].phase) else { continue }
                if !succeeded, dependency.policy == .requireSuccess {
                    jobs[dependent].phase = .ending
                    ended.insert(dependent)
                } else {
                    makeReady(dependent)
                }
            }
        }
        if Set(actions.end) != ended || actions.end.count != ended.count {
            fault = "after \(index): ended \(actions.end), expected \(ended)"
        }
        actions.end = []
        check(actions)
    }

    /// What has just been started is what the model would start, in that order, and no limit is passed.
    private mutating func check(_ actions: JobGraph<Int>.Actions) {
        guard fault == nil else { return }
        if !actions.end.isEmpty { fault = "\(actions.end) ended without a reason" }
        var running = jobs.count { $0.phase == .running }
        var expected: [Int] = []
        while !isSuspended, limit.map({ running < $0 }) ?? true {
            let ready = jobs.indices.filter { jobs[$0].phase == .ready }
            guard
                let next = ready.min(by: {
                    (-jobs[$0].priority.rawValue, jobs[$0].turn) < (-jobs[$1].priority.rawValue, jobs[$1].turn)
                })
            else { break }
            jobs[next].phase = .running
            running += 1
            expected.append(next)
        }
        if actions.start != expected { fault = "started \(actions.start), expected \(expected)" }
        if graph.runningCount != running { fault = "\(graph.runningCount) run, expected \(running)" }
        let live = jobs.count { $0.phase != .finished }
        if graph.count != live { fault = "\(graph.count) jobs, expected \(live)" }
    }
}
