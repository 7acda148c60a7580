import Foundation

/// The jobs of a queue: which of them wait for which, and which may run. A value that knows nothing of operations, threads
/// or clocks.
///
/// ```
///          submit         release         admission         finish
/// expected ─────▶ blocked ─────▶ ready ───────────▶ running ─────▶ its place is free
///                    ▲  hold       │                 │   ▲
///                    └─────────────┘            park ▼   │ admission
///                                                parked ─▶ returning
///                                                    unpark
/// ```
///
/// ``end(_:_:)`` makes a job that has not started `ending`: it is started without a slot, only to finish.
///
/// Each step returns in ``Actions`` which jobs are to be started or ended, and the owner of the graph does it. A job
/// costs the same whatever the number of others: places are numbers, and an edge is one entry at either end. A job that
/// others depend on has a place before it is submitted, in the phase `expected`, so every dependency is an edge, whether
/// that job is here, comes later, or runs elsewhere.
///
/// The graph accepts cycles, whose jobs stay blocked. ``DependencyCycleFinder`` finds them and ends one of the jobs.
struct JobGraph<Payload> {
    /// Jobs that have not finished, without the hidden ones.
    private(set) var count = 0
    private(set) var hiddenCount = 0
    /// Limits, rates and suspension. Call ``admit(_:)`` after a change.
    var admission = JobAdmission()

    var places: [Place] = []
    private var freePlaces: [Int32] = []
    private var takenCount = 0
    private var generations: UInt64 = 0
    private var submissions: UInt64 = 0
    /// The barrier submitted last, while its place is taken.
    private var barrier: JobID?
    /// The jobs submitted since then, including some that have finished.
    private var sinceBarrier: [JobID] = []

    init(limit: Int? = nil) {
        admission.limit = limit
    }

    var isEmpty: Bool { count == 0 && hiddenCount == 0 }

    // MARK: - Submitting

    /// Makes a place for a job that others wait for, or that is about to be submitted.
    mutating func expect(_ payload: Payload) -> JobID {
        generations += 1
        takenCount += 1
        let place = Place(generation: generations, payload: payload)
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
    mutating func submit(_ job: JobID, priority: JobPriority, _ traits: Traits, _ actions: inout Actions) {
        guard isLive(job), places[Int(job.index)].phase == .expected else { return }
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

        if let barrier, !traits.passesBarriers { addDependency(of: job, on: barrier, .allowFailure, &actions) }
        if traits.isBarrier {
            for other in sinceBarrier.take() { addDependency(of: job, on: other, .allowFailure, &actions) }
            barrier = job
        } else {
            noteSinceBarrier(job)
        }
    }

    /// Removes the finished jobs whenever they are more than half, so the cost per job is constant.
    private mutating func noteSinceBarrier(_ job: JobID) {
        sinceBarrier.append(job)
        if sinceBarrier.count > 2 * takenCount + 16 { sinceBarrier = sinceBarrier.filter(isLive) }
    }

    // MARK: - Waiting

    /// Makes a job wait for another one here.
    ///
    /// - Returns: false when the job has started, or one of them is not here.
    @discardableResult
    mutating func addDependency(
        of job: JobID,
        on other: JobID,
        _ policy: DependencyPolicy,
        _ actions: inout Actions
    ) -> Bool {
        guard isLive(other), hold(job, &actions) else { return false }
        places[Int(other.index)].dependents.append(Edge(job, policy))
        places[Int(job.index)].dependencies.append(Edge(other, policy))
        inherit(1, places[Int(job.index)].priority, by: other, &actions)
        return true
    }

    /// Takes back one ``addDependency(of:on:_:_:)``. Linear in the dependents of the other job.
    mutating func removeDependency(of job: JobID, on other: JobID, _ actions: inout Actions) {
        guard isLive(job), isLive(other),
            let index = places[Int(job.index)].dependencies.firstIndex(where: { $0.job == other }),
            let edge = places[Int(other.index)].dependents.firstIndex(where: { $0.job == job })
        else { return }
        places[Int(job.index)].dependencies.remove(at: index)
        places[Int(other.index)].dependents.remove(at: edge)
        inherit(-1, places[Int(job.index)].priority, by: other, &actions)
        forgetIfUnwanted(other, &actions)
        release(job, &actions)
    }

    /// Removes the job's dependencies on barriers: a job before the barrier waits for this one.
    mutating func passBarriers(_ job: JobID, _ actions: inout Actions) {
        guard isLive(job), places[Int(job.index)].phase == .blocked else { return }
        for edge in places[Int(job.index)].dependencies where isLive(edge.job) && places[Int(edge.job.index)].isBarrier
        {
            removeDependency(of: job, on: edge.job, &actions)
        }
    }

    /// Makes a job that has not started wait until ``release(_:failed:_:)``.
    ///
    /// - Returns: false when the job has started or is not here; there is nothing to release then.
    @discardableResult
    mutating func hold(_ job: JobID, _ actions: inout Actions) -> Bool {
        guard isLive(job) else { return false }
        switch places[Int(job.index)].phase {
        case .expected, .running, .parked, .returning, .ending, .passed:
            return false
        case .ready:
            admission.dequeue(job.index)
            places[Int(job.index)].phase = .blocked
        case .blocked:
            break
        }
        places[Int(job.index)].waitingFor += 1
        return true
    }

    /// Tells that something the job waited for is over.
    ///
    /// - Parameter failed: whether it failed, so that the job ends at once.
    mutating func release(_ job: JobID, failed: Bool = false, _ actions: inout Actions) {
        if settle(job, failed: failed, &actions) { vacate(Int(job.index), succeeded: true, &actions) }
        admit(&actions)
    }

    /// Releases several jobs together, so that the one with the highest priority goes first.
    mutating func release(_ jobs: [JobID], _ actions: inout Actions) {
        settle(jobs, &actions)
        admit(&actions)
    }

    /// Releases jobs without starting any.
    mutating func settle(_ jobs: [JobID], _ actions: inout Actions) {
        for job in jobs where settle(job, failed: false, &actions) {
            vacate(Int(job.index), succeeded: true, &actions)
        }
    }

    /// Counts one dependency or hold less.
    ///
    /// - Returns: whether the job is a passed barrier that now waits for nothing, so that its place is to be freed.
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

    /// Starts the jobs that may start. Every step does so itself, except for changes of ``admission``.
    mutating func admit(_ actions: inout Actions) {
        // The memory of a burst is given back when the last job has left.
        if takenCount == 0, !places.isEmpty {
            places = []
            freePlaces = []
            sinceBarrier = []
            admission.removeAllEntries()
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

    /// Takes the slot of a job that has started and waits for something else.
    ///
    /// - Parameter evenIfReturning: whether to withdraw a pending ``unpark(_:_:)`` too. Default false.
    mutating func park(_ job: JobID, evenIfReturning: Bool = false, _ actions: inout Actions) {
        guard isLive(job), places[Int(job.index)].occupiesSlot else { return }
        switch places[Int(job.index)].phase {
        case .running: admission.vacate(job.index)
        case .returning where evenIfReturning: admission.dequeue(job.index)
        default: return
        }
        places[Int(job.index)].phase = .parked
        admit(&actions)
    }

    /// Asks for a slot for a job that has given its own back: ``Actions/resume`` names it when its turn has come.
    ///
    /// - Returns: false when the job has a slot, or needs none.
    mutating func unpark(_ job: JobID, _ actions: inout Actions) -> Bool {
        guard isLive(job) else { return false }
        guard places[Int(job.index)].phase == .parked else { return places[Int(job.index)].phase == .returning }
        places[Int(job.index)].phase = .returning
        admission.enqueue(job.index, priority: places[Int(job.index)].priority, isReturning: true)
        admit(&actions)
        return true
    }

    /// Makes a job that was started to be prepared wait for its turn: ``Actions/resume`` names it then.
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
        admission.vacate(job.index)
        admission.endPreparing(job.index, keys: keys, occupiesSlot: occupiesSlot)
        places[index].ownPriority = priority
        refreshPriorities(of: [index], &actions)
        admission.enqueue(job.index, priority: places[index].priority, isReturning: false)
        admit(&actions)
        return true
    }

    /// Whether the job is here and has not been started.
    func isWaiting(_ job: JobID) -> Bool {
        isLive(job) && places[Int(job.index)].isWaiting
    }

    /// Takes the slot back from a job that was given one and cannot run yet. The job is held, as after
    /// ``submit(_:priority:_:_:)``.
    ///
    /// - Returns: false when the job has no slot.
    mutating func takeSlot(from job: JobID, _ actions: inout Actions) -> Bool {
        guard isLive(job), places[Int(job.index)].phase == .running else { return false }
        places[Int(job.index)].phase = .blocked
        places[Int(job.index)].waitingFor = 1
        admission.withdraw(job.index)
        return true
    }

    // MARK: - Ending

    /// Ends a job that has not started: it waits for no dependency, no slot, and no suspended queue any more.
    mutating func end(_ job: JobID, _ actions: inout Actions) {
        guard isLive(job) else { return }
        let index = Int(job.index)
        switch places[index].phase {
        case .expected, .running, .parked, .returning, .ending, .passed: return
        case .ready: admission.dequeue(job.index)
        case .blocked: break
        }
        places[index].phase = .ending
        if let payload = places[index].payload { actions.end.append(payload) }
    }

    /// Removes a job that has finished, here or, if it was expected, elsewhere: frees its slot and releases its dependents.
    mutating func finish(_ job: JobID, succeeded: Bool, _ actions: inout Actions) {
        let index = Int(job.index)
        guard isLive(job), places[index].payload != nil else { return }
        var isWaiting = places[index].waitingFor > 0
        switch places[index].phase {
        case .running:
            admission.vacate(job.index)
            isWaiting = false
        case .parked: isWaiting = false
        case .ready, .returning: admission.dequeue(job.index)
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
        // After all dependents were released, so that the one with the highest priority goes first.
        admit(&actions)
    }

    /// Removes an expected job that no job waits for.
    mutating func forgetIfUnwanted(_ job: JobID, _ actions: inout Actions) {
        let index = Int(job.index)
        guard isLive(job), places[index].phase == .expected,
            places[index].dependents.count == Int(places[index].departedCount)
        else { return }
        if let payload = places[index].payload { actions.forget.append(payload) }
        places[index].payload = nil
        vacate(index, succeeded: true, &actions)
    }

    /// Frees the place and releases the dependents, and does the same for every passed barrier among them.
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

    /// Removes the dependencies that a leaving job still has.
    private mutating func leaveDependencies(of index: Int, _ actions: inout Actions) {
        guard !places[index].dependencies.isEmpty else { return }
        let others = places[index].dependencies.take().map(\.job).filter(isLive)
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

    /// Removes the entries of departed jobs when they are more than half, so the cost per job is constant.
    private mutating func sweepDependents(of index: Int) {
        let departed = Int(places[index].departedCount)
        guard departed > 16, 2 * departed > places[index].dependents.count else { return }
        let dependents = places[index].dependents.take().filter { isLive($0.job) }
        places[index].dependents = dependents
        places[index].departedCount = 0
    }

    // MARK: - Places

    func id(_ index: Int) -> JobID {
        JobID(index: Int32(index), generation: places[index].generation)
    }

    func isLive(_ job: JobID) -> Bool {
        places.indices.contains(Int(job.index)) && places[Int(job.index)].generation == job.generation
            && places[Int(job.index)].isTaken
    }
}
