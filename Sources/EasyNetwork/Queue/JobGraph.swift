import Foundation

/// The jobs of a queue: which of them wait for which, and which may run. It knows nothing of operations, threads or
/// clocks.
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
/// ``end(_:_:)`` makes a job that has not started `ending`: it is started without a slot, only to finish.
///
/// Each step returns in ``Actions`` which jobs are to be started or ended, and the owner of the graph does it. A job
/// costs the same whatever the number of others: an edge is one entry at either end. A job that others depend on is in
/// the graph before it is submitted, in the phase `expected`, so every dependency is an edge, whether that job is here,
/// comes later, or runs elsewhere.
///
/// The graph accepts cycles, whose jobs stay blocked. ``DependencyCycleFinder`` finds them and ends one of the jobs.
struct JobGraph<Payload> {
    /// Jobs that have not finished, without the hidden ones.
    private(set) var count = 0
    private var hiddenCount = 0
    private var submissionCount = 0
    /// The jobs in the order in which they were submitted, and some that have finished.
    private(set) var submitted: [Job] = []
    /// The barrier submitted last, while it is here.
    private var barrier: Job?

    // Which job is next, see JobGraph+Admission.swift. Call ``admit(_:)`` after a change.

    /// Whether no job is started.
    var isSuspended = false { didSet { if oldValue, !isSuspended { isResuming = true } } }
    /// Whether this step ends the suspension.
    private(set) var isResuming = false
    /// Whether jobs note why they wait, for the listeners of the queue.
    var notesWaits = false
    /// The number of starts of higher priority in a row after which a lower one is next; nil means no such number.
    /// Without it a steady flow of urgent jobs would starve the others (OPQ-3).
    var overtakingLimit: Int?
    /// Running jobs of this priority and lower give their slots to waiting ones of higher priority, if they can; nil
    /// means that none does.
    var yieldingPriority: JobPriority? = .low
    /// The running jobs that can, mostly none: see ``Job/mayYield``.
    var yielding: [Job] = []
    /// The jobs that have, and have no slot again.
    var yielded: [Job] = []
    /// A job that has yielded runs at least so many seconds before it does so again.
    static var yieldingInterval: TimeInterval { 1 }
    /// A job that has yielded for so many seconds gets the next slot before any other. So among urgent jobs of up to
    /// five seconds it runs for at least one second in any ten.
    static var absenceLimit: TimeInterval { 4 }
    /// Whether the next slot may be for a job that has yielded for so long: they take turns with the others, which
    /// would wait forever behind many of them.
    var isLongAbsentNext = true
    /// The limit of each host that has none of its own.
    var hostLimit: Int? { didSet { refreshLimits() } }
    var limits: [LimitKey: Int] = [:]
    var turns = 0
    /// The jobs that need no slot and are in a line: mostly none, and then their rows need no look.
    var slotlessCount = 0
    /// The jobs that have a slot: their limit and their rate.
    let everything = Lane(.everything)
    /// The lane of the jobs that have just become ready.
    let mainLane = Lane(.everything)
    var lanes: [LimitKey: Lane]
    /// The lanes in which jobs wait and that are below their limit.
    var openLanes: [Lane] = []
    /// The lines of jobs that several keys can hold back.
    var lines: [LineKey: Line] = [:]

    init(limit: Int? = nil) {
        lanes = [.everything: everything]
        self.limit = limit
    }

    var isEmpty: Bool { count == 0 && hiddenCount == 0 }

    /// The jobs that have not finished, in the order in which they were submitted; hidden ones included.
    var allJobs: [Job] { submitted.filter { $0.payload != nil } }

    var jobs: [Job] { allJobs.filter { !$0.traits.isHidden } }

    /// Hidden jobs are left out: they end with the jobs that they are a part of.
    func jobs(with key: LimitKey) -> [Job] {
        jobs.filter { job in job.lanes.contains { $0.key == key } }
    }

    // MARK: - Submitting

    /// Makes a job of an expected one. It is held until ``release(_:_:)`` is called once for it, so that its
    /// dependencies can be declared first.
    ///
    /// It waits for the barrier submitted before it, unless it passes barriers; a barrier waits for every job that is
    /// here.
    mutating func submit(_ job: Job, priority: JobPriority, keys: [LimitKey] = [], _ traits: JobTraits = JobTraits()) {
        guard job.phase == .expected else { return }
        submissionCount += 1
        job.submission = submissionCount
        job.phase = .blocked
        job.waitingFor = 1
        job.traits = traits
        job.lanes = use(keys)
        if traits.isHidden { hiddenCount += 1 } else { count += 1 }
        job.ownPriority = priority
        job.priority = max(priority, job.inherited.highest)

        let before = barrier
        if let before, !traits.passesBarriers { addDependency(of: job, on: before, .allowFailure) }
        if traits.isBarrier {
            for other in submitted.reversed().prefix(while: { $0.submission > before?.submission ?? 0 }) {
                addDependency(of: job, on: other, .allowFailure)
            }
            barrier = job
        }
        submitted.append(job)
        // The finished ones go when they are more than half, so the cost per job is constant.
        if submitted.count > 2 * (count + hiddenCount) + 16 { submitted = allJobs }
    }

    // MARK: - Waiting

    /// Makes a job wait for another one here.
    ///
    /// - Returns: false when the job has started, or one of them is not here.
    @discardableResult
    mutating func addDependency(of job: Job, on other: Job, _ policy: DependencyPolicy) -> Bool {
        guard other.phase != .gone, hold(job) else { return false }
        addEdge(from: job, to: other, policy)
        return true
    }

    /// Makes another job go as early as this one, which has started and waits for something that the other one does.
    mutating func lendPriority(of job: Job, to other: Job) {
        guard job.phase != .gone, other.phase != .gone else { return }
        job.waitingFor += 1
        addEdge(from: job, to: other, .allowFailure)
    }

    private mutating func addEdge(from job: Job, to other: Job, _ policy: DependencyPolicy) {
        other.dependents.append((job, policy))
        job.dependencies.append((other, policy))
        other.inherited.add(1, job.priority)
        refreshPriorities(of: [other])
    }

    /// Takes back one ``addDependency(of:on:_:)``. Linear in the dependents of the other job.
    mutating func removeDependency(of job: Job, on other: Job, _ actions: inout Actions) {
        guard let index = job.dependencies.firstIndex(where: { $0.job === other }),
            let edge = other.dependents.firstIndex(where: { $0.job === job })
        else { return }
        job.dependencies.remove(at: index)
        other.dependents.remove(at: edge)
        other.inherited.add(-1, job.priority)
        refreshPriorities(of: [other])
        forgetIfUnwanted(other, &actions)
        release(job, &actions)
    }

    /// Removes the job's dependencies on barriers: a job before the barrier waits for this one.
    mutating func passBarriers(_ job: Job, _ actions: inout Actions) {
        guard job.phase == .blocked else { return }
        for edge in job.dependencies where edge.job.traits.isBarrier {
            removeDependency(of: job, on: edge.job, &actions)
        }
    }

    /// Makes a job that has not started wait until ``release(_:_:)``.
    ///
    /// - Returns: false when the job has started or is not here; there is nothing to release then.
    @discardableResult
    mutating func hold(_ job: Job) -> Bool {
        guard job.phase == .ready || job.phase == .blocked else { return false }
        leaveLine(job)
        job.phase = .blocked
        job.waitingFor += 1
        return true
    }

    /// Tells that something the job waited for is over.
    mutating func release(_ job: Job, _ actions: inout Actions) {
        settle(job, &actions)
        admit(&actions)
    }

    /// Releases several jobs together, so that the one with the highest priority goes first.
    mutating func release(_ jobs: [Job], _ actions: inout Actions) {
        for job in jobs { settle(job, &actions) }
        admit(&actions)
    }

    /// Releases a job without starting any.
    mutating func settle(_ job: Job, _ actions: inout Actions) {
        if settles(job, failed: false, &actions) { leave(job, succeeded: true, &actions) }
    }

    /// Counts one dependency or hold less.
    ///
    /// - Returns: whether the job is a passed barrier that now waits for nothing, so that it is to leave.
    private mutating func settles(_ job: Job, failed: Bool, _ actions: inout Actions) -> Bool {
        guard job.phase != .gone else { return false }
        job.waitingFor -= 1
        if failed { end(job, &actions) }
        guard job.waitingFor == 0 else { return false }
        if job.phase == .blocked {
            job.phase = .ready
            noteReady(job, at: actions.now, isAfterJobs: !job.dependencies.isEmpty)
            job.dependencies = []
            enqueue(job)
        }
        return job.phase == .passed
    }

    // MARK: - Running

    /// Starts the jobs that may start. Every step does so itself, except for changes of limits, rates and suspension.
    mutating func admit(_ actions: inout Actions) {
        // The memory of a burst is given back when the last job has left.
        if isEmpty { submitted.removeAll(keepingCapacity: submitted.count < 64) }
        var wakeToYield: TimeInterval?
        repeat { giveSlots(&actions) } while yieldSlot(&actions, &wakeToYield)
        isResuming = false
        actions.wake = wake(after: actions.now)
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
                    job.wentOnAt = actions.now
                    actions.goOn.append(payload)
                }
            } else {
                actions.start.append(payload)
            }
            job.phase = .running
        }
    }

    /// Takes the slot of a job that has started and waits for something else.
    ///
    /// - Parameter evenIfReturning: whether to withdraw a pending ``unpark(_:_:)`` too. Default false.
    mutating func park(_ job: Job, evenIfReturning: Bool = false, _ actions: inout Actions) {
        guard job.needsSlot else { return }
        switch job.phase {
        case .running: giveBackSlot(of: job)
        // A job that has yielded may have begun to wait for something else: it takes no slot until that is over.
        case .returning where evenIfReturning || job.hasYielded: leaveLine(job)
        default: return
        }
        job.phase = .parked
        admit(&actions)
    }

    /// Asks for a slot for a job that has given its own back: ``Actions/resume`` names it when its turn has come.
    ///
    /// - Returns: false when the job has a slot, or needs none.
    mutating func unpark(_ job: Job, _ actions: inout Actions) -> Bool {
        guard job.phase == .parked else { return job.phase == .returning }
        job.phase = .returning
        job.isReturning = true
        // It has waited for something else until now.
        if job.hasYielded { job.yieldedAt = actions.now }
        noteReady(job, at: actions.now)
        enqueue(job)
        admit(&actions)
        return true
    }

    /// Makes a job that was started to be prepared wait for its turn: ``Actions/resume`` names it then.
    ///
    /// It counts by these keys from now on, and by its group.
    ///
    /// - Returns: false when the job is not here.
    mutating func endPreparing(
        _ job: Job,
        _ priority: JobPriority,
        _ keys: [LimitKey],
        occupiesSlot: Bool,
        _ actions: inout Actions
    ) -> Bool {
        guard job.phase == .running else { return false }
        let before = job.lanes
        let group = before.lazy.map(\.key).filter { if case .group = $0 { true } else { false } }
        job.lanes = use(keys + group)
        drop(before)
        (job.traits.needsPreparing, job.traits.occupiesSlot) = (false, occupiesSlot)
        job.phase = .returning
        job.ownPriority = priority
        refreshPriorities(of: [job])
        noteReady(job, at: actions.now)
        enqueue(job)
        admit(&actions)
        return true
    }

    /// Takes the slot back from a job that was given one and cannot run yet. The job is held, as after
    /// ``submit(_:priority:keys:_:)``.
    ///
    /// - Returns: false when the job has no slot.
    mutating func takeSlot(from job: Job, _ actions: inout Actions) -> Bool {
        switch job.phase {
        case .running: giveBackSlot(of: job, withTokens: true)
        case .returning where job.hasYielded:
            // It yielded before it was started; it has its tokens for later.
            leaveLine(job)
            endYield(of: job)
            if let payload = job.payload { actions.goOn.append(payload) }
        default: return false
        }
        job.phase = .blocked
        job.waitingFor = 1
        job.isStartUntold = false
        return true
    }

    // MARK: - Ending

    /// Ends a job that has not started: it waits for no dependency, no slot, and no suspended queue any more.
    mutating func end(_ job: Job, _ actions: inout Actions) {
        guard job.phase == .ready || job.phase == .blocked, let payload = job.payload else { return }
        if notesWaits, job.phase == .ready, let wait = job.wait {
            job.wait = wait.ended(at: actions.now, obstacle(of: job, at: actions.now))
        }
        leaveLine(job)
        job.phase = .ending
        actions.end.append(payload)
    }

    /// Removes a job that has finished, here or, if it was expected, elsewhere: frees its slot and releases its
    /// dependents.
    mutating func finish(_ job: Job, succeeded: Bool, _ actions: inout Actions) {
        guard let payload = job.payload else { return }
        let hasStarted = job.phase == .running || job.phase == .parked
        if job.phase == .running { giveBackSlot(of: job) }
        if job.hasYielded { endYield(of: job) }
        leaveLine(job)
        if job.phase == .expected {
            actions.forget.append(payload)
        } else if job.traits.isHidden {
            hiddenCount -= 1
        } else {
            count -= 1
        }
        actions.granted += job.slotActions.take()
        job.payload = nil
        if job.traits.isBarrier, job.waitingFor > 0, !hasStarted {
            job.phase = .passed
        } else {
            leave(job, succeeded: succeeded, &actions)
        }
        // After all dependents were released, so that the one with the highest priority goes first.
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

    /// Releases the dependents of a job that leaves, and does the same for every passed barrier among them.
    private mutating func leave(_ first: Job, succeeded: Bool, _ actions: inout Actions) {
        var leaving = first
        var others: [Job] = []
        while true {
            if barrier === leaving { barrier = nil }
            leaving.phase = .gone
            drop(leaving.lanes.take())
            leaveDependencies(of: leaving, &actions)
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
        guard !job.dependencies.isEmpty else { return }
        let others = job.dependencies.take().map(\.job).filter { $0.phase != .gone }
        for other in others {
            other.departedCount += 1
            other.inherited.add(-1, job.priority)
        }
        refreshPriorities(of: others)
        for other in others {
            forgetIfUnwanted(other, &actions)
            // Entries of departed jobs go when they are more than half, so the cost per job is constant.
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

    /// Recomputes the priorities of jobs, and of their dependencies as far as they change: a dependency goes as early
    /// as the jobs that wait for it.
    ///
    /// The ready jobs that move join their new rows in the order in which they stood before.
    private mutating func refreshPriorities(of jobs: [Job]) {
        var pending = jobs
        var moved: [Job] = []
        while let job = pending.popLast() {
            let old = job.priority
            let new = max(job.ownPriority, job.inherited.highest)
            guard new != old else { continue }
            if job.line != nil {
                leaveLine(job)
                moved.append(job)
            }
            job.priority = new
            for (other, _) in job.dependencies where other.phase != .gone {
                other.inherited.add(-1, old)
                other.inherited.add(1, new)
                pending.append(other)
            }
        }
        for job in moved.sorted(by: { $0.turn < $1.turn }) { enqueue(job) }
    }

    // MARK: - Edges, for the search for cycles

    enum Direction { case dependencies, dependents }

    /// The edges of a job that has not started. A copy in constant time.
    func edges(of job: Job, _ direction: Direction) -> [Edge] {
        switch direction {
        case .dependencies: job.phase == .blocked || job.phase == .passed ? job.dependencies : []
        case .dependents: job.dependents
        }
    }

    /// The job at the other end of an edge; in place of a passed barrier, the jobs beyond it.
    func payloads(at job: Job, _ direction: Direction) -> [Payload] {
        var payloads: [Payload] = []
        var seen: Set<ObjectIdentifier> = [ObjectIdentifier(job)]
        var pending = [job]
        while let job = pending.popLast() {
            if let payload = job.payload {
                payloads.append(payload)
            } else {
                pending += edges(of: job, direction).map(\.job).filter { seen.insert(ObjectIdentifier($0)).inserted }
            }
        }
        return payloads
    }
}
