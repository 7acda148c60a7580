import Foundation

/// The jobs of a queue: which jobs wait for which, and which can run. The graph knows nothing about operations, threads
/// or clocks.
///
/// ```
///          submit         release         admission         finish
/// expected ─────▶ blocked ─────▶ ready ───────────▶ running ─────▶ gone
///                    ▲  hold       │                 │   ▲
///                    └─────────────┘            park ▼   │ admission
///                                                parked ─▶ returning
///                                                    unpark
/// ```
///
/// A running job that yields its slot to an urgent one is `returning` at once.
///
/// ``end(_:_:)`` makes a job that has not started `ending`: the job is started without a slot, only to finish.
///
/// Each step lists in ``Actions`` the jobs to start or end, and the owner of the graph starts or ends them. The cost of
/// a job doesn't depend on the number of other jobs, because an edge is one entry at either end. A job that others
/// depend on is in the graph before it is submitted, in the phase `expected`. Every dependency is therefore an edge,
/// whether that job has been submitted, is submitted later, or runs elsewhere.
///
/// The graph accepts cycles. Their jobs stay blocked until ``DependencyCycleFinder`` finds the cycle and ends one of
/// them.
package struct JobGraph<Payload> {
    /// The number of submitted jobs that have not finished, including the hidden ones.
    private(set) var totalCount = 0
    private var hiddenCount = 0
    private var submissionCount = 0
    /// The submitted jobs in the order of submission, including some that have finished.
    private(set) var submitted: [Job] = []
    /// The barrier that was submitted last, until it leaves the graph.
    private var barrier: Job?

    // JobGraph+Admission.swift chooses the next job by these. Call ``admit(_:)`` after a change.

    /// Whether the graph starts no job.
    var isSuspended = false { didSet { if oldValue, !isSuspended { isResuming = true } } }
    /// Whether this step ends the suspension.
    private(set) var isResuming = false
    /// Whether jobs note why they wait, for the listeners of the queue.
    package var notesWaits = false
    /// The number of consecutive starts of higher priority after which a job of lower priority is next. `nil` means no
    /// limit; a steady flow of urgent jobs can then starve the others (OPQ-3).
    var overtakingLimit: Int?
    /// The highest priority of running jobs that give their slots to waiting jobs of higher priority, if they can
    /// yield. `nil` means that no job yields.
    var yieldingPriority: JobPriority? = .low
    /// The running jobs that can yield, usually none. See ``Job/mayYield``.
    var yieldable: [Job] = []
    /// The jobs that have yielded and have no slot yet.
    var yielded: [Job] = []
    /// The minimum time in seconds that a job runs between resuming and yielding again.
    static var yieldingInterval: TimeInterval { 1 }
    /// The time in seconds since it yielded after which a job gets the next slot before any other. Among urgent jobs
    /// that take up to five seconds each, such a job runs for at least one second in any ten.
    static var absenceLimit: TimeInterval { 4 }
    /// Whether the next slot can go to a job that yielded ``absenceLimit`` ago. Such jobs take turns with the others,
    /// because the others would otherwise wait forever if many jobs yield.
    var isLongAbsentNext = true
    /// The limit of each host that has no limit of its own.
    var hostLimit: Int? { didSet { refreshLimits(of: lanes.values.flatMap { $0 }) } }
    /// The limits by key, except those of batches.
    var limits: [LimitKey: Int] = [:]
    var batchLimits: [LimitKey: Int] = [:]
    var rates: [LimitKey: RateLimit] = [:]
    var turns = 0
    /// The number of jobs that need no slot and are in a line. It is usually zero, and their rows are then not
    /// searched.
    var slotlessCount = 0
    /// The lane of all jobs that need a slot, with their limit and their rate.
    let queueLane = Lane(.queueLane)
    /// The lane of the jobs that have just become ready.
    let mainLane = Lane(.queueLane)
    /// The lane of each key, as the list of the lanes of a job that has no other key.
    var lanes: [LimitKey: [Lane]]
    /// The lanes that contain waiting jobs and are below their limit.
    var openLanes: [Lane] = []
    /// The lines of jobs that several keys can hold back.
    var lines: [LineKey: Line] = [:]

    package init(limit: Int? = nil) {
        lanes = [.queueLane: [queueLane]]
        self.limit = limit
    }

    /// The number of submitted jobs that have not finished, without the hidden ones.
    var count: Int { totalCount - hiddenCount }

    /// The submitted jobs that have not finished, including hidden ones, in the order of submission.
    var allJobs: [Job] { submitted.filter { $0.payload != nil } }

    var jobs: [Job] { allJobs.filter { !$0.traits.isHidden } }

    /// Returns the jobs with a key. Hidden jobs are left out, because they end with the jobs that they are a part of.
    func jobs(with key: LimitKey) -> [Job] {
        jobs.filter { job in job.lanes.contains { $0.key == key } }
    }

    // MARK: - Submitting

    /// Submits an expected job. The job is held until ``release(_:_:)`` is called once for it, so that its dependencies
    /// can be declared first.
    ///
    /// The job waits for the barrier submitted before it, unless it passes barriers. A barrier waits for every
    /// submitted job that has not finished.
    package mutating func submit(
        _ job: Job,
        priority: JobPriority,
        host: String? = nil,
        keys: [LimitKey] = [],
        _ traits: JobTraits = .usual
    ) {
        guard job.phase == .expected else { return }
        submissionCount += 1
        job.submission = submissionCount
        job.phase = .blocked
        job.waitingFor = 1
        job.traits = traits
        job.lanes = use(host, keys)
        totalCount += 1
        if traits.isHidden { hiddenCount += 1 }
        job.ownPriority = priority
        job.priority = job.dependents.isEmpty ? priority : max(priority, job.inheritedPriority)

        let before = barrier
        if let before, !traits.passesBarriers { addDependency(of: job, on: before, .allowFailure) }
        if traits.isBarrier {
            for other in submitted.reversed().prefix(while: { $0.submission > before?.submission ?? 0 }) {
                addDependency(of: job, on: other, .allowFailure)
            }
            barrier = job
        }
        submitted.append(job)
        // Remove finished jobs when they are more than half, so the cost per job is constant.
        if submitted.count > 2 * totalCount + 16 { submitted = allJobs }
    }

    // MARK: - Waiting

    /// Makes a job wait for another job of the graph.
    ///
    /// - Returns: `false` if the job has started, or one of the two is not in the graph.
    @discardableResult
    package mutating func addDependency(of job: Job, on other: Job, _ policy: DependencyPolicy) -> Bool {
        guard other.phase != .gone, hold(job) else { return false }
        addEdge(from: job, to: other, policy)
        return true
    }

    /// Raises the priority of `other` at least to this job's. The job has started and waits for something that `other`
    /// does.
    mutating func lendPriority(of job: Job, to other: Job, _ actions: inout Actions) {
        guard job.phase != .gone, other.phase != .gone else { return }
        job.waitingFor += 1
        addEdge(from: job, to: other, .allowFailure)
        admit(&actions)
    }

    private mutating func addEdge(from job: Job, to other: Job, _ policy: DependencyPolicy) {
        other.dependents.append((job, policy))
        job.dependencies.append((other, policy))
        other.inherit(1, job.priority)
        refreshPriorities(of: [other])
    }

    /// Undoes one ``addDependency(of:on:_:)``. Linear in the dependents of the other job.
    mutating func removeDependency(of job: Job, on other: Job, _ actions: inout Actions) {
        guard let index = job.dependencies.firstIndex(where: { $0.job === other }),
            let edge = other.dependents.firstIndex(where: { $0.job === job })
        else { return }
        job.dependencies.remove(at: index)
        other.dependents.remove(at: edge)
        other.inherit(-1, job.priority)
        refreshPriorities(of: [other])
        forgetIfUnwanted(other, &actions)
        release(job, &actions)
    }

    /// Removes the job's dependencies on barriers, because a job before the barrier waits for this job.
    mutating func passBarriers(_ job: Job, _ actions: inout Actions) {
        guard job.phase == .blocked else { return }
        for edge in job.dependencies where edge.job.traits.isBarrier {
            removeDependency(of: job, on: edge.job, &actions)
        }
    }

    /// Makes a job that has not started wait until ``release(_:_:)``.
    ///
    /// - Returns: `false` if the job has started or is not in the graph. The caller must then not call `release`.
    @discardableResult
    mutating func hold(_ job: Job) -> Bool {
        guard job.phase == .ready || job.phase == .blocked else { return false }
        leaveLine(job)
        job.phase = .blocked
        job.waitingFor += 1
        return true
    }

    /// Removes one hold or dependency of a job.
    package mutating func release(_ job: Job, _ actions: inout Actions) {
        settle(job, &actions)
        admit(&actions)
    }

    /// Releases several jobs together, so that the one with the highest priority starts first.
    package mutating func release(_ jobs: [Job], _ actions: inout Actions) {
        for job in jobs { settle(job, &actions) }
        admit(&actions)
    }

    /// Releases a job without starting any job.
    mutating func settle(_ job: Job, _ actions: inout Actions) {
        if settles(job, failed: false, &actions) { leave(job, succeeded: true, &actions) }
    }

    /// Decrements the number of dependencies and holds that the job waits for.
    ///
    /// - Returns: whether the job is a passed barrier that has nothing left to wait for, so that it must leave the
    ///   graph.
    private mutating func settles(_ job: Job, failed: Bool, _ actions: inout Actions) -> Bool {
        guard job.phase != .gone else { return false }
        job.waitingFor -= 1
        if failed { end(job, &actions) }
        guard job.waitingFor == 0 else { return false }
        if job.phase == .blocked {
            job.phase = .ready
            if notesWaits || job.wait != nil {
                noteReady(job, at: actions.now, isAfterJobs: !job.dependencies.isEmpty)
            }
            job.dependencies = []
            enqueue(job)
        }
        return job.phase == .passed
    }

    // MARK: - Running

    /// Starts the jobs that can start. Every step that can let a job start calls this method, or its caller does.
    package mutating func admit(_ actions: inout Actions) {
        // Free the memory of a burst when the last job has left.
        if totalCount == 0 { submitted.removeAll(keepingCapacity: submitted.count < 64) }
        giveSlots(&actions)
        var wakeToYield: TimeInterval?
        while !yieldable.isEmpty, yieldSlot(&actions, &wakeToYield) { giveSlots(&actions) }
        isResuming = false
        actions.wake = rates.isEmpty ? nil : wake(after: actions.now)
        if let wakeToYield { actions.wake = min(actions.wake ?? wakeToYield, wakeToYield) }
    }

    private mutating func giveSlots(_ actions: inout Actions) {
        while let job = takeNext(at: actions.now) {
            guard let payload = job.payload else { continue }
            if job.phase == .returning {
                actions.resume.append(payload)
                actions.granted += job.slotActions.take()
                if job.hasYielded {
                    endYield(of: job)
                    job.resumedAt = actions.now
                    actions.goOn.append(payload)
                }
            } else {
                actions.start.append(payload)
            }
            job.phase = .running
        }
    }

    /// Takes the slot of a started job that waits for something else.
    ///
    /// - Parameter evenIfReturning: whether to withdraw a pending ``unpark(_:_:)`` too. Defaults to `false`.
    package mutating func park(_ job: Job, evenIfReturning: Bool = false, _ actions: inout Actions) {
        guard job.needsSlot else { return }
        switch job.phase {
        case .running: giveBackSlot(of: job)
        // A job that has yielded may have begun to wait for something else. It takes no slot until that wait ends.
        case .returning where evenIfReturning || job.hasYielded: leaveLine(job)
        default: return
        }
        job.phase = .parked
        admit(&actions)
    }

    /// Requests a slot for a job that has given up its slot. ``Actions/resume`` contains the job when its turn comes.
    ///
    /// - Returns: `false` if the job has a slot, or needs none.
    package mutating func unpark(_ job: Job, _ actions: inout Actions) -> Bool {
        guard job.phase == .parked else { return job.phase == .returning }
        job.phase = .returning
        job.hasGivenUpSlot = true
        // The job has waited for something else until now, so its absence begins now.
        if job.hasYielded { job.yieldedAt = actions.now }
        noteReady(job, at: actions.now)
        enqueue(job)
        admit(&actions)
        return true
    }

    /// Makes a job that was started to be prepared wait for its turn. ``Actions/resume`` contains the job when its turn
    /// comes.
    ///
    /// The job then counts by its host, by these keys, and by its group.
    ///
    /// - Returns: `false` if the job is not running.
    mutating func endPreparing(
        _ job: Job,
        _ priority: JobPriority,
        _ host: String?,
        _ keys: [LimitKey],
        occupiesSlot: Bool,
        _ actions: inout Actions
    ) -> Bool {
        guard job.phase == .running else { return false }
        let before = job.lanes
        let group = before.lazy.map(\.key).filter { if case .group = $0 { true } else { false } }
        job.lanes = use(host, keys + group)
        drop(before)
        (job.traits.needsPreparing, job.traits.occupiesSlot) = (false, occupiesSlot)
        job.phase = .returning
        job.ownPriority = priority
        refreshPriorities(of: [job])
        noteReady(job, at: actions.now, isAfterJobs: job.wait?.isAfterJobs == true)
        enqueue(job)
        admit(&actions)
        return true
    }

    /// Takes the slot from a job that was given one and cannot run yet. The job is held, as after
    /// ``submit(_:priority:host:keys:_:)``.
    ///
    /// - Returns: `false` if the job has no slot.
    mutating func takeSlot(from job: Job, _ actions: inout Actions) -> Bool {
        switch job.phase {
        case .running: giveBackSlot(of: job, withTokens: true)
        case .returning where job.hasYielded:
            // The job yielded before it was started, and keeps its rate tokens for later.
            leaveLine(job)
            endYield(of: job)
            if let payload = job.payload { actions.goOn.append(payload) }
        default: return false
        }
        job.phase = .blocked
        job.waitingFor = 1
        job.isStartUnreported = false
        return true
    }

    // MARK: - Ending

    /// Ends a job that has not started. The job no longer waits for dependencies, a slot, or a suspended queue.
    package mutating func end(_ job: Job, _ actions: inout Actions) {
        guard job.phase == .ready || job.phase == .blocked, let payload = job.payload else { return }
        if notesWaits, job.phase == .ready, let wait = job.wait {
            job.wait = wait.ended(at: actions.now, obstacle(of: job, at: actions.now))
        }
        leaveLine(job)
        job.phase = .ending
        actions.end.append(payload)
    }

    /// Removes a job that has finished, in this queue or, if it was expected, elsewhere. Its slot becomes free, and its
    /// dependents are released.
    package mutating func finish(_ job: Job, succeeded: Bool, _ actions: inout Actions) {
        guard let payload = job.payload else { return }
        let hasStarted = job.phase == .running || job.phase == .parked
        if job.phase == .running { giveBackSlot(of: job) }
        if job.yieldedAt != nil { endYield(of: job) }
        leaveLine(job)
        if job.phase == .expected {
            actions.forget.append(payload)
        } else {
            totalCount -= 1
            if job.traits.isHidden { hiddenCount -= 1 }
        }
        if !job.slotActions.isEmpty { actions.granted += job.slotActions.take() }
        job.payload = nil
        if job.traits.isBarrier, job.waitingFor > 0, !hasStarted {
            job.phase = .passed
        } else {
            leave(job, succeeded: succeeded, &actions)
        }
        // Admit jobs after all dependents were released, so that the one with the highest priority starts first.
        admit(&actions)
    }

    /// Removes an expected job that no job waits for.
    mutating func forgetIfUnwanted(_ job: Job, _ actions: inout Actions) {
        guard job.phase == .expected, job.dependents.count == Int(job.departedCount), let payload = job.payload else {
            return
        }
        actions.forget.append(payload)
        job.payload = nil
        leave(job, succeeded: true, &actions)
    }

    /// Releases the dependents of a leaving job, and of every passed barrier that can then leave.
    private mutating func leave(_ first: Job, succeeded: Bool, _ actions: inout Actions) {
        var leaving = first
        var others: [Job] = []
        while true {
            if barrier === leaving { barrier = nil }
            leaving.phase = .gone
            drop(leaving.lanes.take())
            if !leaving.dependencies.isEmpty { leaveDependencies(of: leaving, &actions) }
            for (dependent, policy) in leaving.dependents.take() {
                let hasFailed = !succeeded && leaving === first && policy == .requireSuccess
                if settles(dependent, failed: hasFailed, &actions) { others.append(dependent) }
            }
            guard let other = others.popLast() else { return }
            leaving = other
        }
    }

    /// Removes the dependencies that a leaving job still has.
    private mutating func leaveDependencies(of job: Job, _ actions: inout Actions) {
        let others = job.dependencies.take().map(\.job).filter { $0.phase != .gone }
        for other in others {
            other.departedCount += 1
            other.inherit(-1, job.priority)
        }
        refreshPriorities(of: others)
        for other in others {
            forgetIfUnwanted(other, &actions)
            // Remove entries of departed jobs when they are more than half, so the cost per job is constant.
            if other.departedCount > 16, 2 * Int(other.departedCount) > other.dependents.count {
                other.dependents.removeAll { $0.job.phase == .gone }
                other.departedCount = 0
            }
        }
    }

    // MARK: - Priorities

    /// Changes the job's own priority. A ready job whose effective priority changes goes to the end of its new row.
    mutating func setPriority(_ priority: JobPriority, of job: Job) {
        guard job.phase != .expected, job.phase != .gone, job.ownPriority != priority else { return }
        job.ownPriority = priority
        refreshPriorities(of: [job])
    }

    /// Recomputes the priorities of jobs, and of their dependencies as far as these change: a dependency has at least
    /// the priority of the jobs that wait for it.
    ///
    /// The ready jobs that move join their new rows in their previous order.
    private mutating func refreshPriorities(of jobs: [Job]) {
        var pending = jobs
        var moved: [Job] = []
        while let job = pending.popLast() {
            let old = job.priority
            let new = max(job.ownPriority, job.inheritedPriority)
            guard new != old else { continue }
            if job.line != nil {
                leaveLine(job)
                moved.append(job)
            }
            job.priority = new
            for (other, _) in job.dependencies where other.phase != .gone {
                other.inherit(-1, old)
                other.inherit(1, new)
                pending.append(other)
            }
        }
        for job in moved.sorted(by: { $0.turn < $1.turn }) { enqueue(job) }
    }

    // MARK: - Edges, for the search for cycles

    enum Direction { case dependencies, dependents }

    /// Returns the edges of a job that has not started. The copy takes constant time.
    func edges(of job: Job, _ direction: Direction) -> [Edge] {
        switch direction {
        case .dependencies: job.phase == .blocked || job.phase == .passed || job.isEndingBarrier ? job.dependencies : []
        case .dependents: job.dependents
        }
    }

    /// Returns the job at the other end of an edge. Instead of a passed barrier, returns the jobs beyond it. For a
    /// barrier that is being ended, returns both.
    func payloads(at job: Job, _ direction: Direction) -> [Payload] {
        var payloads: [Payload] = []
        var seen: Set<ObjectIdentifier> = [ObjectIdentifier(job)]
        var pending = [job]
        while let job = pending.popLast() {
            if let payload = job.payload { payloads.append(payload) }
            if job.payload == nil || job.isEndingBarrier {
                let others = edges(of: job, direction).map(\.job).filter { seen.insert(ObjectIdentifier($0)).inserted }
                pending += others.reversed()
            }
        }
        return payloads
    }
}
