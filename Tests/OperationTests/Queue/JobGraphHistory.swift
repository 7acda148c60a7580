@testable import EasyNetwork
@testable import TestSupport

/// A random history that is applied to a graph and to a slow, simple model at the same time.
struct JobGraphHistory {
    private typealias Actions = JobGraph<Int>.Actions

    private enum Phase { case expected, held, blocked, ready, running, parked, returning, ending, gone }

    private struct Job {
        var id: JobGraph<Int>.Job
        var phase = Phase.expected
        var ownPriority = JobPriority.veryLow
        var priority = JobPriority.veryLow
        var keys: [LimitKey] = []
        var occupiesSlot = true
        /// The order in which it joined its bucket.
        var turn = 0
    }

    private struct Edge {
        var job: Int
        var other: Int
        var policy: DependencyPolicy
    }

    private static let keys: [LimitKey] = [.host("a"), .host("b"), .tag("t"), .exclusion("x")]

    private var random: SeededGenerator
    private var graph = JobGraph<Int>(limit: 2)
    private var jobs: [Job] = []
    /// The dependencies between unfinished jobs, in the order of their creation.
    private var edges: [Edge] = []
    private var limit: Int? = 2
    private var hostLimit: Int?
    private var limits: [LimitKey: Int] = [:]
    private var isSuspended = false
    private var turns = 0
    private var ended: Set<Int> = []
    private var forgotten: Set<Int> = []
    private var fault: String?

    init(seed: UInt64) {
        random = SeededGenerator(seed: seed)
    }

    /// - Returns: The difference between graph and model, or nil if they agree and every job has finished.
    mutating func run() -> String? {
        for _ in 0..<60 where fault == nil {
            perform { $0.step(&$1) }
        }
        perform { history, actions in
            history.isSuspended = false
            history.limit = nil
            history.hostLimit = nil
            history.limits = [:]
            history.graph.isSuspended = false
            history.graph.hostLimit = nil
            for key in Self.keys { history.graph.setLimit(nil, for: key) }
            history.graph.setLimit(nil, &actions)
        }
        for index in jobs.indices {
            if jobs[index].phase == .held { perform { $0.release(index, &$1) } }
            if jobs[index].phase == .parked { perform { $0.unpark(index, &$1) } }
        }
        while fault == nil, let index = pick(.running, .ending, .expected) {
            if jobs[index].phase == .running || jobs[index].phase == .ending || !edges.isEmpty {
                perform { $0.finish(index, &$1) }
            }
        }
        if fault == nil, graph.totalCount != 0 || graph.queueLane.runningCount != 0 { fault = "jobs never finished" }
        if fault == nil, let lost = jobs.firstIndex(where: { $0.phase != .gone }) { fault = "job \(lost) was lost" }
        if fault == nil, !graph.submitted.isEmpty { fault = "jobs were left behind" }
        return fault
    }

    private mutating func perform(_ step: (inout JobGraphHistory, inout JobGraph<Int>.Actions) -> Void) {
        guard fault == nil else { return }
        var actions = Actions()
        ended = []
        forgotten = []
        step(&self, &actions)
        check(actions)
    }

    private mutating func step(_ actions: inout JobGraph<Int>.Actions) {
        switch Int.random(in: 0..<20, using: &random) {
        case 0...4: submit(&actions)
        case 5...8: if let index = pick(.running, .ending) { finish(index, &actions) }
        case 9: if let index = pick(.expected) { finish(index, &actions) }
        case 10: if let index = jobs.indices.randomElement(using: &random) { cancel(index, &actions) }
        case 11: changeLimit(&actions)
        case 12:
            isSuspended.toggle()
            graph.setSuspended(isSuspended, &actions)
        case 13: if let index = jobs.indices.randomElement(using: &random) { changePriority(index, &actions) }
        case 14, 15: if let index = pick(.held) { release(index, &actions) }
        case 16: if let index = pick(.running) { park(index, &actions) }
        case 17: if let index = pick(.parked) { unpark(index, &actions) }
        case 18:
            if let index = pick(.held, .blocked, .ready), let other = jobs.indices.randomElement(using: &random) {
                addDependency(of: index, on: other, &actions)
            }
        default: if let edge = edges.randomElement(using: &random) { removeDependency(edge, &actions) }
        }
    }

    private mutating func pick(_ phases: Phase...) -> Int? {
        jobs.indices.filter { phases.contains(jobs[$0].phase) }.randomElement(using: &random)
    }

    // MARK: - Steps

    private mutating func submit(_ actions: inout JobGraph<Int>.Actions) {
        var index: Int
        if let expected = pick(.expected), Bool.random(using: &random) {
            index = expected
        } else {
            index = expect()
        }
        let priority = JobPriority.allCases.randomElement(using: &random) ?? .normal
        jobs[index].keys = Self.keys.filter { _ in Int.random(in: 0..<4, using: &random) == 0 }
        jobs[index].occupiesSlot = Int.random(in: 0..<8, using: &random) > 0
        let traits = JobTraits(occupiesSlot: jobs[index].occupiesSlot)
        graph.submit(jobs[index].id, priority: priority, keys: jobs[index].keys, traits)
        jobs[index].phase = .held
        jobs[index].ownPriority = priority
        refreshPriorities()
        for other in jobs.indices where Int.random(in: 0..<5, using: &random) == 0 {
            addDependency(of: index, on: other, &actions)
        }
        if Int.random(in: 0..<4, using: &random) == 0 {
            let other = expect()
            addDependency(of: index, on: other, &actions)
        }
        if Bool.random(using: &random) { release(index, &actions) }
    }

    private mutating func expect() -> Int {
        jobs.append(Job(id: JobGraph.Job(jobs.count)))
        return jobs.count - 1
    }

    private mutating func addDependency(of index: Int, on other: Int, _ actions: inout JobGraph<Int>.Actions) {
        let policy: DependencyPolicy = Bool.random(using: &random) ? .requireSuccess : .allowFailure
        // The graph leaves cycles to the finder.
        guard !reaches(from: other, to: index) else { return }
        guard graph.addDependency(of: jobs[index].id, on: jobs[other].id, policy) else {
            if jobs[other].phase != .gone { fault = "job \(index) does not wait for \(other)" }
            return
        }
        if jobs[other].phase == .gone { fault = "job \(other) has finished" }
        edges.append(Edge(job: index, other: other, policy: policy))
        if jobs[index].phase == .ready { jobs[index].phase = .blocked }
        refreshPriorities()
    }

    private func reaches(from start: Int, to end: Int) -> Bool {
        start == end || edges.contains { $0.job == start && reaches(from: $0.other, to: end) }
    }

    private mutating func removeDependency(_ edge: Edge, _ actions: inout JobGraph<Int>.Actions) {
        guard [.held, .blocked].contains(jobs[edge.job].phase) else { return }
        graph.removeDependency(of: jobs[edge.job].id, on: jobs[edge.other].id, &actions)
        if let index = edges.firstIndex(where: { $0.job == edge.job && $0.other == edge.other }) {
            edges.remove(at: index)
        }
        refreshPriorities()
        forgetUnwanted()
        makeReady(edge.job)
    }

    private mutating func release(_ index: Int, _ actions: inout JobGraph<Int>.Actions) {
        graph.release(jobs[index].id, &actions)
        jobs[index].phase = .blocked
        makeReady(index)
    }

    private mutating func makeReady(_ index: Int) {
        guard jobs[index].phase == .blocked, !edges.contains(where: { $0.job == index }) else { return }
        jobs[index].phase = .ready
        takeTurn(index)
    }

    private mutating func takeTurn(_ index: Int) {
        turns += 1
        jobs[index].turn = turns
    }

    private mutating func cancel(_ index: Int, _ actions: inout JobGraph<Int>.Actions) {
        graph.end(jobs[index].id, &actions)
        guard [.held, .blocked, .ready].contains(jobs[index].phase) else { return }
        jobs[index].phase = .ending
        ended.insert(index)
    }

    private mutating func changeLimit(_ actions: inout JobGraph<Int>.Actions) {
        let count = [nil, 0, 1, 2, 5].randomElement(using: &random) ?? nil
        switch Int.random(in: 0..<4, using: &random) {
        case 0:
            hostLimit = count
            graph.hostLimit = count
        case 1:
            let key = Self.keys[Int.random(in: 0..<3, using: &random)]
            limits[key] = count
            graph.setLimit(count, for: key)
        default:
            limit = count
            graph.limit = count
        }
        graph.admit(&actions)
    }

    private mutating func changePriority(_ index: Int, _ actions: inout JobGraph<Int>.Actions) {
        let priority = JobPriority.allCases.randomElement(using: &random) ?? .normal
        graph.setPriority(priority, of: jobs[index].id, &actions)
        guard jobs[index].phase != .gone, jobs[index].phase != .expected else { return }
        jobs[index].ownPriority = priority
        refreshPriorities()
    }

    private mutating func park(_ index: Int, _ actions: inout JobGraph<Int>.Actions) {
        graph.park(jobs[index].id, &actions)
        if jobs[index].occupiesSlot { jobs[index].phase = .parked }
    }

    private mutating func unpark(_ index: Int, _ actions: inout JobGraph<Int>.Actions) {
        if !graph.unpark(jobs[index].id, &actions) { fault = "job \(index) has a slot" }
        jobs[index].phase = .returning
        takeTurn(index)
    }

    private mutating func finish(_ index: Int, _ actions: inout JobGraph<Int>.Actions) {
        let succeeded = jobs[index].phase != .ending && Int.random(in: 0..<4, using: &random) > 0
        graph.finish(jobs[index].id, succeeded: succeeded, &actions)
        if jobs[index].phase == .expected { forgotten.insert(index) }
        jobs[index].phase = .gone
        edges.removeAll { $0.job == index }
        refreshPriorities()
        forgetUnwanted()
        let waiting = edges.filter { $0.other == index }
        for edge in waiting {
            if let place = edges.firstIndex(where: { $0.job == edge.job && $0.other == index }) {
                edges.remove(at: place)
            }
            guard [.held, .blocked].contains(jobs[edge.job].phase) else { continue }
            if !succeeded, edge.policy == .requireSuccess {
                jobs[edge.job].phase = .ending
                ended.insert(edge.job)
            } else {
                makeReady(edge.job)
            }
        }
    }

    // MARK: - The model

    /// Sets each priority to the highest of the job's own and its dependents'.
    private mutating func refreshPriorities() {
        let old = jobs.map(\.priority)
        for index in jobs.indices { jobs[index].priority = jobs[index].ownPriority }
        var changed = true
        while changed {
            changed = false
            for edge in edges where jobs[edge.other].priority < jobs[edge.job].priority {
                jobs[edge.other].priority = jobs[edge.job].priority
                changed = true
            }
        }
        let moved = jobs.indices.filter {
            jobs[$0].priority != old[$0] && [.ready, .returning].contains(jobs[$0].phase)
        }
        for index in moved.sorted(by: { jobs[$0].turn < jobs[$1].turn }) { takeTurn(index) }
    }

    /// Removes expected jobs without dependents.
    private mutating func forgetUnwanted() {
        for index in jobs.indices where jobs[index].phase == .expected && !edges.contains(where: { $0.other == index })
        {
            jobs[index].phase = .gone
            forgotten.insert(index)
        }
    }

    private func limit(of key: LimitKey) -> Int? {
        switch key {
        case .host: limits[key] ?? hostLimit
        case .exclusion: 1
        case .queueLane: nil
        case .tag, .group: limits[key]
        }
    }

    /// A job that needs no slot counts for mutual exclusion only.
    private func counts(_ job: Job, _ key: LimitKey) -> Bool {
        if case .exclusion = key { true } else { job.occupiesSlot }
    }

    private func runningCount(_ key: LimitKey? = nil) -> Int {
        jobs.count { job in
            guard job.phase == .running else { return false }
            return key.map { job.keys.contains($0) && counts(job, $0) } ?? job.occupiesSlot
        }
    }

    private func firstStartable(occupiesSlot: Bool) -> Int? {
        guard !occupiesSlot || limit.map({ runningCount() < $0 }) ?? true else { return nil }
        let startable = jobs.indices.filter { index in
            jobs[index].occupiesSlot == occupiesSlot && [.ready, .returning].contains(jobs[index].phase)
                && jobs[index].keys.allSatisfy { key in
                    !counts(jobs[index], key) || limit(of: key).map { runningCount(key) < $0 } ?? true
                }
        }
        return startable.min { (jobs[$1].priority, jobs[$0].turn) < (jobs[$0].priority, jobs[$1].turn) }
    }

    /// Checks that the graph starts the same jobs as the model in the same order, within all limits.
    ///
    /// Jobs that need a slot and jobs that need none are ordered separately.
    private mutating func check(_ actions: JobGraph<Int>.Actions) {
        guard fault == nil else { return }
        var started = actions.start[...]
        var resumed = actions.resume[...]
        while !isSuspended {
            let next = [true, false].compactMap { firstStartable(occupiesSlot: $0) }
            if next.isEmpty { break }
            if let index = started.first, next.contains(index), jobs[index].phase == .ready {
                started.removeFirst()
                jobs[index].phase = .running
            } else if let index = resumed.first, next.contains(index), jobs[index].phase == .returning {
                resumed.removeFirst()
                jobs[index].phase = .running
            } else {
                fault = "started \(started) and resumed \(resumed), expected one of \(next)"
                return
            }
        }
        if !started.isEmpty || !resumed.isEmpty { fault = "started \(started) and resumed \(resumed) too much" }
        if Set(actions.end) != ended || actions.end.count != ended.count {
            fault = "\(actions.end) ended, not \(ended)"
        }
        if Set(actions.forget) != forgotten { fault = "\(actions.forget) forgotten, not \(forgotten)" }
        if graph.queueLane.runningCount != runningCount() { fault = "\(graph.queueLane.runningCount) run" }
        for key in Self.keys where graph.lanes[key]?.first?.runningCount ?? 0 != runningCount(key) {
            fault = "\(key) counts"
        }
        let live = jobs.count { $0.phase != .gone && $0.phase != .expected }
        if graph.count != live { fault = "\(graph.count) jobs, expected \(live)" }
        for job in jobs where job.phase != .gone && job.id.priority != job.priority {
            fault = "a priority was not inherited"
        }
    }
}
