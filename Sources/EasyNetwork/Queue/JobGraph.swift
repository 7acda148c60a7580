/// Which jobs wait, which may run, and for what they wait: the queue's mind, as a value.
///
/// It knows nothing of operations, threads or time. Each step returns, through ``Actions``, what is to be started and
/// what is to be ended; whoever holds the graph does it. A job costs the same whatever the number of others: places are
/// numbers, rows are linked lists through the places, and an edge is one entry in the list of the job waited for.
struct JobGraph<Payload> {
    /// What is to be done after a step, in this order.
    struct Actions {
        /// Jobs that will not run (cancelled, or a dependency failed): they are started without a slot, only to end.
        var end: [Payload] = []
        /// Jobs that have been given a slot.
        var start: [Payload] = []
    }

    /// How many jobs may have a slot at once; nil means no limit.
    private(set) var limit: Int?
    private(set) var isSuspended = false
    /// Jobs that have a slot.
    private(set) var runningCount = 0
    /// Jobs that have not finished.
    private(set) var count = 0

    private var places: [Place] = []
    private var freePlaces: [Int32] = []
    private var rows = [Row](repeating: Row(), count: JobPriority.allCases.count)
    private var submissions: UInt64 = 0
    /// The barrier submitted last, while its place is taken.
    private var barrier: JobID?
    /// The jobs submitted since then, some of them finished meanwhile.
    private var sinceBarrier: [JobID] = []

    private enum Phase {
        /// Waits for dependencies.
        case blocked
        /// Stands in the row of its priority.
        case ready
        /// Has a slot, or was started without one because it needs none.
        case running
        /// Was started, and has given its slot back.
        case parked
        /// Was handed over to be ended; has no slot.
        case ending
        /// A barrier that has finished before what it waited for: what comes after it goes on waiting for that.
        case passed
    }

    private struct Edge {
        var job: JobID
        var policy: DependencyPolicy
    }

    private struct Place {
        var isTaken = true
        /// Nil when the job has finished.
        var payload: Payload?
        var isBarrier = false
        var occupiesSlot = true
        var phase = Phase.blocked
        var priority = JobPriority.normal
        /// Dependencies that have not finished, and one for every ``hold(_:)``.
        var waitingFor = 0
        var dependents: [Edge] = []
        var previous: Int32 = -1
        var next: Int32 = -1
        /// The number of the job that has the place: its age, and what tells it from later tenants.
        var submission: UInt64 = 0
    }

    private struct Row {
        var first: Int32 = -1
        var last: Int32 = -1
    }

    init(limit: Int?) {
        self.limit = limit
    }

    // MARK: - Jobs

    /// Takes a job in. It is held until ``release(_:failed:_:)`` is called once for it, so that its dependencies can
    /// be declared first.
    ///
    /// It waits for the barrier submitted before it; a barrier waits for every job that is here.
    mutating func submit(
        _ payload: Payload,
        priority: JobPriority,
        isBarrier: Bool = false,
        occupiesSlot: Bool = true
    ) -> JobID {
        submissions += 1
        let place = Place(
            payload: payload,
            isBarrier: isBarrier,
            occupiesSlot: occupiesSlot,
            priority: priority,
            waitingFor: 1,
            submission: submissions
        )
        let index: Int
        if let free = freePlaces.popLast() {
            index = Int(free)
            places[index] = place
        } else {
            index = places.count
            places.append(place)
        }
        count += 1
        let job = id(index)
        if let barrier { addDependency(of: job, on: barrier, policy: .allowFailure) }
        if isBarrier {
            for other in sinceBarrier.take() { addDependency(of: job, on: other, policy: .allowFailure) }
            barrier = job
        } else {
            noteSinceBarrier(job)
        }
        return job
    }

    /// The finished ones are thrown out whenever they are more than half, so that it costs each job the same.
    private mutating func noteSinceBarrier(_ job: JobID) {
        sinceBarrier.append(job)
        if sinceBarrier.count > 2 * count + 16 { sinceBarrier = sinceBarrier.filter(isLive) }
    }

    /// Takes the slot back from a job that cannot run yet after all. It is held, as after
    /// ``submit(_:priority:isBarrier:)``.
    ///
    /// - Returns: false when it has no slot.
    mutating func takeSlot(from job: JobID) -> Bool {
        guard isLive(job), places[Int(job.index)].phase == .running else { return false }
        places[Int(job.index)].phase = .blocked
        places[Int(job.index)].waitingFor = 1
        runningCount -= 1
        return true
    }

    /// A job that has started gives its slot back.
    mutating func park(_ job: JobID, _ actions: inout Actions) {
        guard isLive(job), places[Int(job.index)].phase == .running, places[Int(job.index)].occupiesSlot else { return }
        places[Int(job.index)].phase = .parked
        runningCount -= 1
        admit(&actions)
    }

    /// A job that has given its slot back wants one again; it is started once more when its turn has come.
    ///
    /// - Returns: false when it has one.
    mutating func unpark(_ job: JobID, _ actions: inout Actions) -> Bool {
        guard isLive(job), places[Int(job.index)].phase == .parked else { return false }
        places[Int(job.index)].phase = .ready
        joinRow(Int(job.index))
        admit(&actions)
        return true
    }

    /// Makes a job that has not started wait for another one here.
    ///
    /// - Returns: false when that one is not here, or not any more; nothing has changed then.
    @discardableResult
    mutating func addDependency(of job: JobID, on other: JobID, policy: DependencyPolicy) -> Bool {
        guard isLive(other) else { return false }
        guard hold(job) else { return true }
        places[Int(other.index)].dependents.append(Edge(job: job, policy: policy))
        return true
    }

    /// Makes a job that has not started wait for something outside, until ``release(_:failed:_:)``.
    ///
    /// - Returns: false when it is too late, or the job is not here; there is nothing to release then.
    @discardableResult
    mutating func hold(_ job: JobID) -> Bool {
        guard isLive(job) else { return false }
        switch places[Int(job.index)].phase {
        case .running, .parked, .ending, .passed:
            return false
        case .ready:
            leaveRow(Int(job.index))
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

    /// Ends a job that has not started: it waits for nothing more, no slot, and no suspended queue.
    mutating func end(_ job: JobID, _ actions: inout Actions) {
        guard isLive(job) else { return }
        let index = Int(job.index)
        switch places[index].phase {
        case .running, .parked, .ending, .passed: return
        case .ready: leaveRow(index)
        case .blocked: break
        }
        places[index].phase = .ending
        if let payload = places[index].payload { actions.end.append(payload) }
    }

    /// Ends every job that has not started.
    mutating func endAllWaiting(_ actions: inout Actions) {
        for index in jobPlaces { end(id(index), &actions) }
    }

    /// A job has finished: its slot is free and its dependents wait for one less.
    mutating func finish(_ job: JobID, succeeded: Bool, _ actions: inout Actions) {
        let index = Int(job.index)
        guard isLive(job), places[index].payload != nil else { return }
        var isWaiting = places[index].waitingFor > 0
        switch places[index].phase {
        case .running:
            if places[index].occupiesSlot { runningCount -= 1 }
            isWaiting = false
        case .parked: isWaiting = false
        case .ready: leaveRow(index)
        case .blocked, .ending, .passed: break
        }
        places[index].payload = nil
        count -= 1
        if places[index].isBarrier, isWaiting {
            places[index].phase = .passed
        } else {
            vacate(index, succeeded: succeeded, &actions)
        }
        // Only now, so that the highest of those that have become ready goes first.
        admit(&actions)
    }

    /// Moves a job to the end of the row of another priority.
    mutating func setPriority(_ priority: JobPriority, of job: JobID) {
        guard isLive(job), places[Int(job.index)].priority != priority else { return }
        let index = Int(job.index)
        let isReady = places[index].phase == .ready
        if isReady { leaveRow(index) }
        places[index].priority = priority
        if isReady { joinRow(index) }
    }

    // MARK: - The whole

    mutating func setLimit(_ limit: Int?, _ actions: inout Actions) {
        self.limit = limit
        admit(&actions)
    }

    mutating func setSuspended(_ isSuspended: Bool, _ actions: inout Actions) {
        self.isSuspended = isSuspended
        admit(&actions)
    }

    /// The jobs that have not finished, in the order in which they were submitted.
    var payloads: [Payload] {
        jobPlaces.sorted { places[$0].submission < places[$1].submission }.compactMap { places[$0].payload }
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
            joinRow(index)
        }
        return places[index].phase == .passed
    }

    private mutating func admit(_ actions: inout Actions) {
        guard !isSuspended else { return }
        for row in rows.indices.reversed() {
            while rows[row].first >= 0,
                !places[Int(rows[row].first)].occupiesSlot || limit.map({ runningCount < $0 }) ?? true
            {
                let index = Int(rows[row].first)
                leaveRow(index)
                places[index].phase = .running
                if places[index].occupiesSlot { runningCount += 1 }
                if let payload = places[index].payload { actions.start.append(payload) }
            }
        }
    }

    // MARK: - Places

    private var jobPlaces: [Int] {
        places.indices.filter { places[$0].payload != nil }
    }

    private func id(_ index: Int) -> JobID {
        JobID(index: Int32(index), submission: places[index].submission)
    }

    private func isLive(_ job: JobID) -> Bool {
        places.indices.contains(Int(job.index)) && places[Int(job.index)].submission == job.submission
            && places[Int(job.index)].isTaken
    }

    /// Frees the place and lets the dependents wait for one less, and the same for every passed barrier among them.
    private mutating func vacate(_ first: Int, succeeded: Bool, _ actions: inout Actions) {
        var indices = [first]
        while let index = indices.popLast() {
            if barrier?.index == Int32(index) { barrier = nil }
            places[index].isTaken = false
            freePlaces.append(Int32(index))
            for edge in places[index].dependents.take() {
                let hasFailed = !succeeded && index == first && edge.policy == .requireSuccess
                if settle(edge.job, failed: hasFailed, &actions) { indices.append(Int(edge.job.index)) }
            }
        }
        // A burst of jobs leaves no room behind that nobody uses.
        if freePlaces.count == places.count {
            places = []
            freePlaces = []
            sinceBarrier = []
        }
    }

    // MARK: - Rows

    private mutating func joinRow(_ index: Int) {
        let row = places[index].priority.rawValue
        places[index].previous = rows[row].last
        places[index].next = -1
        let last = rows[row].last
        if last >= 0 { places[Int(last)].next = Int32(index) } else { rows[row].first = Int32(index) }
        rows[row].last = Int32(index)
    }

    private mutating func leaveRow(_ index: Int) {
        let row = places[index].priority.rawValue
        let (previous, next) = (places[index].previous, places[index].next)
        if previous >= 0 { places[Int(previous)].next = next } else { rows[row].first = next }
        if next >= 0 { places[Int(next)].previous = previous } else { rows[row].last = previous }
    }
}

/// The rows of a ``JobGraph``, the one that goes last first.
enum JobPriority: Int, CaseIterable {
    case veryLow, low, normal, high, veryHigh
}
