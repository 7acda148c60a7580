import EasyNetwork
import Foundation

/// Runs the jobs of a recording again under changed rules, through the graph that admits the jobs of a queue. Time is
/// simulated: the next event is always the earliest one that is known, so that a replay takes no real time.
struct TimelineReplay {
    typealias Graph = JobGraph<Int>

    /// A time with a slot.
    struct Slot {
        /// The index of the part.
        let part: Int
        let requested: TimeInterval
        let start: TimeInterval
        var end: TimeInterval?
        let reason: WaitReason?
    }

    /// What has become of a job.
    struct Progress {
        var added, released, started, ended: TimeInterval?
        var slots: [Slot] = []
        /// The number of dependencies that have not ended.
        fileprivate var waitingFor = 0
        fileprivate var part = 0
        /// The number of the current run, which tells its end from the ends of interrupted runs.
        fileprivate var run = 0
        fileprivate var runEnd: TimeInterval?
        /// The time that is left of a run whose slot was given to an urgent job.
        fileprivate var rest: TimeInterval?
        fileprivate var childCount = 0
    }

    private enum Event {
        case add(Int)
        /// Nothing but the graph keeps the job from its slot.
        case release(Int)
        case endRun(Int, run: Int)
        case request(Int)
        case end(Int)
        /// The job ends, whatever it waits for.
        case cancel(Int)
        case rules(queue: Int, Int)
        case wake(queue: Int)
    }

    let plan: TimelinePlan
    private let changes: Timeline.Changes
    private var factors: [String: Double] = [:]
    private var removed: Set<[String]> = []
    private var withoutDelays: [String: Bool] = [:]
    private var priorities: [String: JobPriority] = [:]
    private var batchLimits: [String: Int] = [:]

    private var graphs: [Graph]
    private var nodes: [Graph.Job]
    /// The nodes that stand for a job in the graphs of other queues.
    private var proxies: [Int: [(queue: Int, node: Graph.Job)]] = [:]
    /// The keys of the groups, by objects that stay alive.
    private let groupKeys: [Int: LimitKey]
    private let tokens: [Graph.Job]
    private var dependents: [[Int]]
    /// The rows that come when a row starts or ends.
    private var followers: [[Int]]
    private var wakes: [TimeInterval?]
    private var heap = TimerHeap<Event>()
    private var now: TimeInterval = 0
    private(set) var progress: [Progress]

    init(_ plan: TimelinePlan, _ changes: Timeline.Changes) {
        (self.plan, self.changes) = (plan, changes)
        graphs = plan.queues.map { _ in Graph() }
        nodes = plan.jobs.indices.map { Graph.Job($0) }
        var (keys, tokens): ([Int: LimitKey], [Graph.Job]) = ([:], [])
        for index in plan.jobs.indices where plan.jobs[index].childCount > 0 {
            tokens.append(Graph.Job(index))
            keys[index] = .group(ObjectIdentifier(tokens[tokens.count - 1]))
        }
        (groupKeys, self.tokens) = (keys, tokens)
        dependents = Array(repeating: [], count: plan.jobs.count)
        followers = dependents
        wakes = Array(repeating: nil, count: plan.queues.count)
        progress = plan.jobs.map { _ in Progress() }
        for change in changes.list {
            switch change {
            case .limit(.batch(let name), let count): batchLimits[name] = count
            case .priority(let name, let priority): priorities[name] = priority
            case .duration(let name, let factor): factors[name] = min(factors[name, default: 1] * factor, 1_000)
            case .dependency(let name, let other): removed.insert([name, other])
            case .retryDelays(let name): withoutDelays[name] = true
            case .limit, .rate: break
            }
        }
    }

    /// Returns the factor of the duration of a job.
    func factor(of index: Int) -> Double { change(index, factors) ?? 1 }

    func priority(of index: Int) -> JobPriority { change(index, priorities) ?? plan.jobs[index].row.priority }

    /// Returns whether a dependency is removed.
    func isRemoved(_ index: Int, on other: Int) -> Bool {
        guard !removed.isEmpty else { return false }
        let names = { (index: Int) in Set([plan.jobs[index].name, plan.jobs[index].row.name]) }
        return names(index).contains { name in names(other).contains { removed.contains([name, $0]) } }
    }

    /// Returns the value for the name of a job, as it was given or as it is shown.
    private func change<Value>(_ index: Int, _ values: [String: Value]) -> Value? {
        values.isEmpty ? nil : values[plan.jobs[index].row.name] ?? values[plan.jobs[index].name]
    }

    // MARK: - Running

    /// Runs until nothing is left to happen. A job that waits for something that never comes has no end then.
    mutating func run() {
        for queue in graphs.indices {
            graphs[queue].notesWaits = true
            graphs[queue].rules = (plan.rules[queue].first?.rules ?? QueueRules()).with(changes)
            for (number, entry) in plan.rules[queue].enumerated().dropFirst() {
                heap.add(.rules(queue: queue, number), at: entry.time)
            }
        }
        for index in plan.jobs.indices {
            for other in plan.jobs[index].dependencies where !isRemoved(index, on: other) {
                dependents[other].append(index)
            }
            switch plan.jobs[index].origin {
            case .time: heap.add(.add(index), at: plan.jobs[index].added)
            case .start(let other), .end(let other): followers[other].append(index)
            }
            progress[index].childCount = plan.jobs[index].childCount
        }
        // Each start, end and yield is an event, and each yield makes a waiting job start. The limit ends the replay of a
        // recording whose times make no sense.
        var limit =
            1_000 + plan.jobs.reduce(0) { $0 + 50 * (1 + $1.parts.count) } + plan.rules.reduce(0) { $0 + $1.count }
        while let time = heap.earliest, let event = heap.takeDue(now: time), limit > 0 {
            limit -= 1
            now = max(now, time)
            handle(event)
        }
    }

    private mutating func handle(_ event: Event) {
        switch event {
        case .add(let index): add(index)
        case .release(let index):
            guard progress[index].ended == nil else { return }
            guard let queue = plan.jobs[index].queue else { return start(index, nil) }
            var released = [nodes[index]]
            // Jobs that were added together are released together.
            while let time = heap.earliest, time < now + 1e-6, case .release(let other) = heap.first,
                plan.jobs[other].queue == queue, heap.takeDue(now: time) != nil
            {
                if progress[other].ended == nil { released.append(nodes[other]) }
            }
            step(in: queue) { $0.release(released, &$1) }
        case .endRun(let index, let run):
            if progress[index].run == run, progress[index].ended == nil { endRun(index) }
        case .request(let index):
            guard progress[index].ended == nil else { return }
            var hasSlot = false
            if plan.jobs[index].queue != nil { step(index) { hasSlot = !$0.unpark($1, &$2) } }
            if hasSlot || plan.jobs[index].queue == nil { start(index, nil) }
        case .end(let index): end(index)
        case .cancel(let index):
            guard progress[index].ended == nil else { return }
            if plan.jobs[index].queue == nil { return end(index) }
            step(index) { $0.end($1, &$2) }
        case .rules(let queue, let number):
            let rules = plan.rules[queue][number].rules.with(changes)
            step(in: queue) { graph, actions in
                graph.rules = rules
                graph.admit(&actions)
            }
        case .wake(let queue):
            wakes[queue] = nil
            step(in: queue) { $0.admit(&$1) }
        }
    }

    private mutating func step(_ index: Int, _ body: (inout Graph, Graph.Job, inout Graph.Actions) -> Void) {
        guard let queue = plan.jobs[index].queue else { return }
        let node = nodes[index]
        step(in: queue) { body(&$0, node, &$1) }
    }

    /// Performs one step of a graph, and what the step leaves to its owner.
    private mutating func step(in queue: Int, _ body: (inout Graph, inout Graph.Actions) -> Void) {
        var actions = Graph.Actions(now: now)
        body(&graphs[queue], &actions)
        if let wake = actions.wake, wake < wakes[queue] ?? .infinity {
            wakes[queue] = wake
            heap.add(.wake(queue: queue), at: wake)
        }
        // The end is an event of its own, since a long chain of failures would otherwise be a deep recursion.
        for index in actions.end { heap.add(.end(index), at: now) }
        for index in actions.yield {
            closeSlot(of: index)
            progress[index].rest = max(0, (progress[index].runEnd ?? now) - now)
            progress[index].run += 1
        }
        for index in actions.start + actions.resume {
            start(index, nodes[index].wait)
            nodes[index].wait = nil
        }
    }

    private mutating func add(_ index: Int) {
        let job = plan.jobs[index]
        progress[index].added = now
        var hasFailed = false
        if let queue = job.queue {
            // The graph forgets a job that others no longer wait for.
            if nodes[index].phase != .expected { nodes[index] = Graph.Job(index) }
            var traits = JobTraits.usual
            traits.occupiesSlot = job.hasSlot
            traits.mayYield = job.row.slots.contains(where: \.isYielded)
            traits.isBarrier = job.row.admission.isBarrier
            traits.passesBarriers = job.parent != nil
            let keys = keys(of: job)
            if let parent = job.parent, let key = groupKeys[parent] {
                graphs[queue].setLimit(batchLimit(parent), for: key)
            }
            graphs[queue].submit(nodes[index], priority: priority(of: index), keys: keys, traits)
        }
        for other in job.dependencies where !isRemoved(index, on: other) {
            guard progress[other].ended == nil else {
                if needsSuccess(job), plan.jobs[other].row.outcome != .succeeded { hasFailed = true }
                continue
            }
            progress[index].waitingFor += 1
            guard let queue = job.queue else { continue }
            graphs[queue].addDependency(
                of: nodes[index],
                on: node(of: other, in: queue),
                needsSuccess(job) ? .requireSuccess : .allowFailure
            )
        }
        if hasFailed {
            heap.add(.cancel(index), at: now)
        } else if job.neverStarts {
            // The job ends at the recorded time, because what ended it is not known.
            heap.add(.cancel(index), at: max(now, job.ended))
        } else {
            if job.queue != nil, job.lead == 0 { step(index) { $0.release($1, &$2) } }
            if progress[index].waitingFor == 0 { release(index) }
        }
    }

    /// Whether a job ends if one of its dependencies fails. The recording does not contain the policies, but a job that
    /// ran after a failure has shown that it does not need the success.
    private func needsSuccess(_ job: TimelinePlan.Job) -> Bool { job.row.outcome == .dependencyFailed }

    private func keys(of job: TimelinePlan.Job) -> [LimitKey] {
        var keys = job.row.countedHost.map { [LimitKey.host($0)] } ?? []
        keys += job.row.tags.sorted().map { LimitKey.tag($0) }
        keys += job.row.admission.categories.map { LimitKey.exclusion($0) }
        if let group = job.parent.flatMap({ groupKeys[$0] }) { keys.append(group) }
        return keys
    }

    private func batchLimit(_ group: Int) -> Int? {
        let limit = change(group, batchLimits) ?? plan.jobs[group].row.group?.limit ?? 0
        return limit > 0 ? limit : nil
    }

    /// Returns the node at which jobs of a queue wait for a job.
    private mutating func node(of index: Int, in queue: Int) -> Graph.Job {
        if plan.jobs[index].queue == queue {
            if nodes[index].phase == .gone { nodes[index] = Graph.Job(index) }
            return nodes[index]
        }
        if let known = proxies[index]?.first(where: { $0.queue == queue }), known.node.phase != .gone {
            return known.node
        }
        proxies[index]?.removeAll { $0.queue == queue }
        let proxy = Graph.Job(index)
        proxies[index, default: []].append((queue, proxy))
        return proxy
    }

    /// Notes that a job no longer waits for others. The graph has released it if it needs no time in between.
    private mutating func release(_ index: Int) {
        progress[index].released = now
        let job = plan.jobs[index]
        if job.queue == nil || job.lead > 0 { heap.add(.release(index), at: now + job.lead) }
    }

    /// - Parameter wait: what the job waited for.
    private mutating func start(_ index: Int, _ wait: WaitNote?) {
        guard progress[index].ended == nil else { return }
        let job = plan.jobs[index]
        if progress[index].started == nil { progress[index].started = now }
        let part = progress[index].part
        progress[index].slots.append(
            Slot(part: part, requested: now - (wait?.seconds ?? 0), start: now, end: nil, reason: wait?.reason)
        )
        if job.row.group != nil, part == 0 {
            follow(index) { if case .start = $0 { true } else { false } }
            if progress[index].childCount == 0 { heap.add(.end(index), at: now + job.tail + run(of: index, part: 0)) }
            return
        }
        let length = progress[index].rest.take() ?? run(of: index, part: part)
        progress[index].run += 1
        progress[index].runEnd = now + length
        heap.add(.endRun(index, run: progress[index].run), at: now + length)
    }

    private func run(of index: Int, part: Int) -> TimeInterval {
        let job = plan.jobs[index]
        guard job.parts.indices.contains(part), job.childCount == 0 else { return 0 }
        let delay = job.parts[part].runDelay
        let work = (job.parts[part].run - delay) * factor(of: index)
        return work + (change(index, withoutDelays) == nil ? delay : 0)
    }

    private mutating func endRun(_ index: Int) {
        let job = plan.jobs[index]
        progress[index].part += 1
        let part = progress[index].part
        guard part < job.parts.count || job.tail > 0 else { return end(index) }
        closeSlot(of: index)
        step(index) { $0.park($1, &$2) }
        guard part < job.parts.count else { return heap.add(.end(index), at: now + job.tail) }
        let delay = change(index, withoutDelays) == nil ? 0 : job.parts[part].waitDelay
        heap.add(.request(index), at: now + job.parts[part].wait - delay)
    }

    private mutating func closeSlot(of index: Int) {
        if let last = progress[index].slots.indices.last, progress[index].slots[last].end == nil {
            progress[index].slots[last].end = now
        }
    }

    private mutating func end(_ index: Int) {
        guard progress[index].ended == nil else { return }
        let job = plan.jobs[index]
        progress[index].ended = now
        closeSlot(of: index)
        let succeeded = job.row.outcome == .succeeded
        step(index) { $0.finish($1, succeeded: succeeded, &$2) }
        for (queue, node) in proxies.removeValue(forKey: index) ?? [] {
            step(in: queue) { $0.finish(node, succeeded: succeeded, &$1) }
        }
        for dependent in dependents[index] where progress[dependent].added != nil {
            progress[dependent].waitingFor -= 1
            if progress[dependent].waitingFor == 0, !plan.jobs[dependent].neverStarts { release(dependent) }
        }
        follow(index) { if case .end = $0 { true } else { false } }
        guard let parent = job.parent, plan.jobs.indices.contains(parent), isFollower(job) else { return }
        progress[parent].childCount -= 1
        if progress[parent].childCount == 0 { heap.add(.end(parent), at: now + plan.jobs[parent].tail) }
    }

    private func isFollower(_ job: TimelinePlan.Job) -> Bool { if case .time = job.origin { false } else { true } }

    private mutating func follow(_ index: Int, _ isWanted: (TimelinePlan.Origin) -> Bool) {
        for follower in followers[index] where isWanted(plan.jobs[follower].origin) {
            heap.add(.add(follower), at: now + plan.jobs[follower].offset)
        }
    }
}
