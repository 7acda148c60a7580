import Foundation

/// Which jobs wait for which, and which may run: the queue's mind, as a value.
///
/// It knows nothing of operations, threads or clocks. Each step returns, through ``Actions``, what is to be started and
/// what is to be ended; whoever holds the graph does it. A job costs the same whatever the number of others: places are
/// numbers, rows are linked lists through the places, and an edge is one entry at either end.
///
/// A job that somebody depends on has a place before it is submitted: it is expected. So every dependency is an edge,
/// whether the job is here, comes later, or runs elsewhere.
struct JobGraph<Payload> {
    /// What is to be done after a step, in this order.
    struct Actions {
        /// The time of the step, in seconds on the clock of the queue.
        let now: TimeInterval
        /// Jobs that will not run (cancelled, or a dependency failed): they are started without a slot, only to end.
        var end: [Payload] = []
        /// Jobs that have been given a slot.
        var start: [Payload] = []
        /// Jobs that gave their slot back, and have one again.
        var resume: [Payload] = []
        /// Expected jobs that have finished elsewhere, or that nobody waits for any more.
        var forget: [Payload] = []
        /// When to call ``JobGraph/admit(_:)`` again, because a rate holds jobs back.
        var wake: TimeInterval?

        init(now: TimeInterval = 0) {
            self.now = now
        }
    }

    /// What a job is like, beside its priority.
    struct Traits {
        var keys: [LimitKey] = []
        var isBarrier = false
        /// Does not wait for a barrier: a job before the barrier waits for this one.
        var passesBarriers = false
        /// One that needs no slot is started when it is ready.
        var occupiesSlot = true
        /// It is started without a slot first, and counts in no limit then: what it counts by is known only when that is
        /// done, see ``JobGraph/endPreparing(_:priority:keys:occupiesSlot:_:)``.
        var isPreparing = false
        /// Not for the user's eyes: in no count or list.
        var isHidden = false
    }

    enum Phase: UInt8 {
        /// Not a job of this graph, or not yet: others wait for it.
        case expected
        /// Waits for dependencies.
        case blocked
        /// Waits for its turn.
        case ready
        /// Was started, and has its slot unless it needs none.
        case running
        /// Was started, and has given its slot back.
        case parked
        /// Waits for its turn to have its slot again.
        case returning
        /// Was handed over to be ended; has no slot.
        case ending
        /// A barrier that has finished before what it waited for: what comes after it goes on waiting for that.
        case passed
    }

    struct Edge {
        var job: JobID
        var policy: DependencyPolicy
    }

    struct Place {
        /// The number of the tenant: tells it from later ones.
        var tenant: UInt64 = 0
        /// When the job was submitted: its age.
        var submission: UInt64 = 0
        /// Nil when the place is free, and when the job has finished.
        var payload: Payload?
        var dependents: [Edge] = []
        /// What it waits for; emptied when it is ready.
        var dependencies: [JobID] = []
        var inherited = PriorityCounts()
        /// Dependencies that have not finished, and one for every ``JobGraph/hold(_:_:)``.
        var waitingFor: Int32 = 0
        /// Entries in `dependents` of jobs that have left.
        var departedCount: Int32 = 0
        var phase = Phase.expected
        var ownPriority = JobPriority.veryLow
        /// The highest of its own and of those that wait for it.
        var priority = JobPriority.veryLow
        var isTaken = true
        var isBarrier = false
        var occupiesSlot = true
        var isHidden = false

        /// Whether nothing has been started yet.
        var isWaiting: Bool { phase == .expected || phase == .blocked || phase == .ready }
    }

    /// Jobs that have not finished, without the hidden ones.
    private(set) var count = 0
    private(set) var hiddenCount = 0
    /// Limits, rates and suspension. Call ``admit(_:)`` after a change.
    var admission = JobAdmission()

    var places: [Place] = []
    private var freePlaces: [Int32] = []
    private var takenCount = 0
    private var tenants: UInt64 = 0
    private var submissions: UInt64 = 0
    /// The barrier submitted last, while its place is taken.
    private var barrier: JobID?
    /// The jobs submitted since then, some of them finished meanwhile.
    private var sinceBarrier: [JobID] = []

    init(limit: Int? = nil) {
        admission.limit = limit
    }

    var isEmpty: Bool { count == 0 && hiddenCount == 0 }

    // MARK: - Coming

    /// Makes a place for something that jobs wait for, or that is about to be submitted.
    mutating func expect(_ payload: Payload) -> JobID {
        tenants += 1
        takenCount += 1
        let place = Place(tenant: tenants, payload: payload)
        if let free = freePlaces.popLast() {
            places[Int(free)] = place
            return id(Int(free))
        }
        places.append(place)
        return id(places.count - 1)
    }

    /// Makes a job of an expected one. It is held until ``release(_:failed:_:)`` is called once for it, so that its
    /// dependencies can be declared first.
    ///
    /// It waits for the barrier submitted before it, unless it passes barriers; a barrier waits for every job that is here.
    ///
    /// - Returns: the circle that the job would close by waiting for that barrier; nil when there is none.
    mutating func submit(_ job: JobID, priority: JobPriority, _ traits: Traits, _ actions: inout Actions) -> [Payload]?
    {
        guard isLive(job), places[Int(job.index)].phase == .expected else { return nil }
        submissions += 1
        let index = Int(job.index)
        places[index].submission = submissions
        places[index].phase = .blocked
        places[index].waitingFor = 1
        places[index].isBarrier = traits.isBarrier
        places[index].occupiesSlot = traits.occupiesSlot && !traits.isPreparing
        places[index].isHidden = traits.isHidden
        admission.register(
            job.index,
            keys: traits.keys,
            occupiesSlot: traits.occupiesSlot,
            isPreparing: traits.isPreparing
        )
        if traits.isHidden { hiddenCount += 1 } else { count += 1 }
        places[index].ownPriority = priority
        refreshPriorities(of: [index], &actions)

        var cycle: [Payload]?
        if let barrier, !traits.passesBarriers,
            case .cycle(let path) = addDependency(of: job, on: barrier, .allowFailure, &actions)
        {
            cycle = path
        }
        if traits.isBarrier {
            for other in sinceBarrier.take() {
                if case .cycle(let path) = addDependency(of: job, on: other, .allowFailure, &actions) { cycle = path }
            }
            barrier = job
        } else {
            noteSinceBarrier(job)
        }
        return cycle
    }

    /// The finished ones are thrown out whenever they are more than half, so that it costs each job the same.
    private mutating func noteSinceBarrier(_ job: JobID) {
        sinceBarrier.append(job)
        if sinceBarrier.count > 2 * takenCount + 16 { sinceBarrier = sinceBarrier.filter(isLive) }
    }

    // MARK: - Waiting

    enum Linking {
        case added
        /// The other one is not here, or not any more.
        case gone
        /// The job has started.
        case late
        /// The other one waits for the job: from the job over the other one back to it. Nothing has changed.
        case cycle([Payload])
    }

    /// Makes a job that has not started wait for another one here.
    @discardableResult
    mutating func addDependency(
        of job: JobID,
        on other: JobID,
        _ policy: DependencyPolicy,
        _ actions: inout Actions
    ) -> Linking {
        guard isLive(other) else { return .gone }
        if let path = path(from: other, to: job) { return .cycle(path) }
        guard hold(job, &actions) else { return .late }
        places[Int(other.index)].dependents.append(Edge(job: job, policy: policy))
        places[Int(job.index)].dependencies.append(other)
        inherit(1, places[Int(job.index)].priority, by: other, &actions)
        return .added
    }

    /// Takes back one ``addDependency(of:on:_:_:)``. Linear in the dependents of the other one.
    mutating func removeDependency(of job: JobID, on other: JobID, _ actions: inout Actions) {
        guard isLive(job), isLive(other),
            let index = places[Int(job.index)].dependencies.firstIndex(of: other),
            let edge = places[Int(other.index)].dependents.firstIndex(where: { $0.job == job })
        else { return }
        places[Int(job.index)].dependencies.remove(at: index)
        places[Int(other.index)].dependents.remove(at: edge)
        inherit(-1, places[Int(job.index)].priority, by: other, &actions)
        forgetIfUnwanted(other, &actions)
        release(job, &actions)
    }

    /// Makes a job that has not started wait until ``release(_:failed:_:)``.
    ///
    /// - Returns: false when it is too late, or the job is not here; there is nothing to release then.
    @discardableResult
    mutating func hold(_ job: JobID, _ actions: inout Actions) -> Bool {
        guard isLive(job) else { return false }
        switch places[Int(job.index)].phase {
        case .expected, .running, .parked, .returning, .ending, .passed:
            return false
        case .ready:
            admission.dequeue(job.index, at: actions.now)
            places[Int(job.index)].phase = .blocked
        case .blocked:
            break
        }
        places[Int(job.index)].waitingFor += 1
        return true
    }

    /// Something that the job waited for is over.
    ///
    /// - Parameter failed: it ended in a way that the job cannot go on from, so that the job ends at once.
    mutating func release(_ job: JobID, failed: Bool = false, _ actions: inout Actions) {
        if settle(job, failed: failed, &actions) { vacate(Int(job.index), succeeded: true, &actions) }
        admit(&actions)
    }

    /// Releases several jobs at once, so that the highest of them goes first.
    mutating func release(_ jobs: [JobID], _ actions: inout Actions) {
        settle(jobs, &actions)
        admit(&actions)
    }

    /// The same without starting any.
    mutating func settle(_ jobs: [JobID], _ actions: inout Actions) {
        for job in jobs where settle(job, failed: false, &actions) {
            vacate(Int(job.index), succeeded: true, &actions)
        }
    }

    /// The job waits for one less.
    ///
    /// - Returns: whether it is a barrier that was passed and now waits for nothing, so that its place is to be freed.
    private mutating func settle(_ job: JobID, failed: Bool, _ actions: inout Actions) -> Bool {
        guard isLive(job) else { return false }
        let index = Int(job.index)
        places[index].waitingFor -= 1
        if failed { end(job, &actions) }
        guard places[index].waitingFor == 0 else { return false }
        if places[index].phase == .blocked {
            places[index].phase = .ready
            places[index].dependencies = []
            admission.enqueue(job.index, priority: places[index].priority)
        }
        return places[index].phase == .passed
    }

    // MARK: - Running

    /// Starts what may start. Every step that changes what that is does so itself, except for changes of
    /// ``admission``.
    mutating func admit(_ actions: inout Actions) {
        // A burst of jobs leaves no room behind that nobody uses.
        if takenCount == 0, !places.isEmpty {
            places = []
            freePlaces = []
            sinceBarrier = []
            admission.removeAllStandings()
        }
        while let place = admission.next(at: actions.now) {
            let index = Int(place)
            guard let payload = places[index].payload else { continue }
            if places[index].phase == .returning {
                actions.resume.append(payload)
            } else {
                actions.start.append(payload)
            }
            places[index].phase = .running
        }
        actions.wake = admission.wake(after: actions.now)
    }

    /// A job that has started gives its slot back.
    ///
    /// - Parameter evenIfReturning: whether it also takes back that it wants one again. Default false.
    mutating func park(_ job: JobID, evenIfReturning: Bool = false, _ actions: inout Actions) {
        guard isLive(job), places[Int(job.index)].occupiesSlot else { return }
        switch places[Int(job.index)].phase {
        case .running: admission.vacate(job.index, at: actions.now)
        case .returning where evenIfReturning: admission.dequeue(job.index, at: actions.now)
        default: return
        }
        places[Int(job.index)].phase = .parked
        admit(&actions)
    }

    /// A job that has given its slot back wants one again: ``Actions/resume`` names it when its turn has come.
    ///
    /// - Returns: false when it has one, or needs none.
    mutating func unpark(_ job: JobID, _ actions: inout Actions) -> Bool {
        guard isLive(job) else { return false }
        guard places[Int(job.index)].phase == .parked else { return places[Int(job.index)].phase == .returning }
        places[Int(job.index)].phase = .returning
        admission.enqueue(job.index, priority: places[Int(job.index)].priority, isReturning: true)
        admit(&actions)
        return true
    }

    /// A job that was started to be prepared waits for its turn from now on: ``Actions/resume`` names it then.
    ///
    /// - Returns: false when the job is not here.
    mutating func endPreparing(
        _ job: JobID,
        priority: JobPriority,
        keys: [LimitKey],
        occupiesSlot: Bool,
        _ actions: inout Actions
    ) -> Bool {
        guard isLive(job), places[Int(job.index)].phase == .running else { return false }
        let index = Int(job.index)
        places[index].phase = .returning
        places[index].occupiesSlot = occupiesSlot
        admission.vacate(job.index, at: actions.now)
        admission.endPreparing(job.index, keys: keys, occupiesSlot: occupiesSlot)
        places[index].ownPriority = priority
        refreshPriorities(of: [index], &actions)
        admission.enqueue(job.index, priority: places[index].priority, isReturning: false)
        admit(&actions)
        return true
    }

    /// Whether the job is here and nothing has been started yet.
    func isWaiting(_ job: JobID) -> Bool {
        isLive(job) && places[Int(job.index)].isWaiting
    }

    /// Takes the slot back from a job that was given one and cannot run yet after all. It is held, as after
    /// ``submit(_:priority:_:_:)``.
    ///
    /// - Returns: false when it has no slot.
    mutating func takeSlot(from job: JobID, _ actions: inout Actions) -> Bool {
        guard isLive(job), places[Int(job.index)].phase == .running else { return false }
        places[Int(job.index)].phase = .blocked
        places[Int(job.index)].waitingFor = 1
        admission.withdraw(job.index, at: actions.now)
        return true
    }

    // MARK: - Ending

    /// Ends a job that has not started: it waits for nothing more, no slot, and no suspended queue.
    mutating func end(_ job: JobID, _ actions: inout Actions) {
        guard isLive(job) else { return }
        let index = Int(job.index)
        switch places[index].phase {
        case .expected, .running, .parked, .returning, .ending, .passed: return
        case .ready: admission.dequeue(job.index, at: actions.now)
        case .blocked: break
        }
        places[index].phase = .ending
        if let payload = places[index].payload { actions.end.append(payload) }
    }

    /// A job has finished, or an expected one has elsewhere: its slot is free and its dependents wait for one less.
    mutating func finish(_ job: JobID, succeeded: Bool, _ actions: inout Actions) {
        let index = Int(job.index)
        guard isLive(job), places[index].payload != nil else { return }
        var isWaiting = places[index].waitingFor > 0
        switch places[index].phase {
        case .running:
            admission.vacate(job.index, at: actions.now)
            isWaiting = false
        case .parked: isWaiting = false
        case .ready, .returning: admission.dequeue(job.index, at: actions.now)
        case .expected, .blocked, .ending, .passed: break
        }
        if places[index].phase == .expected, let payload = places[index].payload {
            actions.forget.append(payload)
        } else if places[index].isHidden {
            hiddenCount -= 1
        } else {
            count -= 1
        }
        places[index].payload = nil
        if places[index].isBarrier, isWaiting {
            places[index].phase = .passed
        } else {
            vacate(index, succeeded: succeeded, &actions)
        }
        // Only now, so that the highest of those that have become ready goes first.
        admit(&actions)
    }

    /// Gives up an expected job that nobody waits for.
    mutating func forgetIfUnwanted(_ job: JobID, _ actions: inout Actions) {
        let index = Int(job.index)
        guard isLive(job), places[index].phase == .expected,
            places[index].dependents.count == Int(places[index].departedCount)
        else { return }
        if let payload = places[index].payload { actions.forget.append(payload) }
        places[index].payload = nil
        vacate(index, succeeded: true, &actions)
    }

    /// Frees the place and lets the dependents wait for one less, and the same for every passed barrier among them.
    private mutating func vacate(_ first: Int, succeeded: Bool, _ actions: inout Actions) {
        var indices = [first]
        while let index = indices.popLast() {
            if barrier?.index == Int32(index) { barrier = nil }
            places[index].isTaken = false
            takenCount -= 1
            freePlaces.append(Int32(index))
            admission.unregister(Int32(index))
            leaveDependencies(of: index, &actions)
            for edge in places[index].dependents.take() {
                let hasFailed = !succeeded && index == first && edge.policy == .requireSuccess
                if settle(edge.job, failed: hasFailed, &actions) { indices.append(Int(edge.job.index)) }
            }
        }
    }

    /// What a job that has left still waited for hears that it does not any more.
    private mutating func leaveDependencies(of index: Int, _ actions: inout Actions) {
        guard !places[index].dependencies.isEmpty else { return }
        let others = places[index].dependencies.take().filter(isLive)
        for other in others {
            places[Int(other.index)].departedCount += 1
            places[Int(other.index)].inherited.add(-1, places[index].priority)
        }
        refreshPriorities(of: others.map { Int($0.index) }, &actions)
        for other in others {
            forgetIfUnwanted(other, &actions)
            sweepDependents(of: Int(other.index))
        }
    }

    /// Throws the entries of those that have left out when they are more than half, so that it costs each the same.
    private mutating func sweepDependents(of index: Int) {
        let departed = Int(places[index].departedCount)
        guard departed > 16, 2 * departed > places[index].dependents.count else { return }
        let dependents = places[index].dependents.take().filter { isLive($0.job) }
        places[index].dependents = dependents
        places[index].departedCount = 0
    }

    // MARK: - Places

    func id(_ index: Int) -> JobID {
        JobID(index: Int32(index), tenant: places[index].tenant)
    }

    func isLive(_ job: JobID) -> Bool {
        places.indices.contains(Int(job.index)) && places[Int(job.index)].tenant == job.tenant
            && places[Int(job.index)].isTaken
    }
}
