import Foundation

/// Admission: the choice of the next job to start, by priority, limits and rates.
///
/// A ready job stands in one lane. It joins the main lane. When its turn has come and one of its keys has no room, it
/// moves to the lane of that key.
///
/// ```
///                  veryHigh    high    normal     low    veryLow
/// main lane                            g ─ h ─ i   k
/// lane of host a                       b ─ e                       closed: as many jobs of the host run as may
/// lane of tag t                d       f                           open: the tag has room again
/// ```
///
/// The next job is the best head of a row in the open lanes, by priority and then by turn: here `d`. If another key of
/// it has no room, it moves to that lane, and the next best is tried. So the cost of a start depends on the number of
/// open lanes and not on the number of jobs.
///
/// Every row exists twice: for jobs that need a slot, and for jobs that need none, which also start when all slots are
/// taken.
extension JobGraph {
    // MARK: - Jobs

    /// Adds a job to the main lane, behind the others of its priority.
    mutating func enqueue(_ job: Job) {
        turns += 1
        job.turn = turns
        join(mainLane, job)
    }

    /// The next job to start, which now has its slot; nil when none may start.
    mutating func takeNext(at now: TimeInterval) -> Job? {
        guard !isSuspended, !openLanes.isEmpty else { return nil }
        let slotless = slotlessCount > 0 ? takeNext(needingSlot: false, at: now) : nil
        return slotless ?? takeLongAbsent(at: now) ?? takeNext(needingSlot: true, at: now)
    }

    /// The job that has yielded for the longest time, if that is long enough.
    private mutating func takeLongAbsent(at now: TimeInterval) -> Job? {
        guard isLongAbsentNext, !yielded.isEmpty, everything.isBelowLimit else { return nil }
        let job = yielded.filter { job in
            job.phase == .returning && job.yieldedAt ?? now <= now - Self.absenceLimit
                && firstFullLane(of: job, at: now) == nil
        }.min { $0.yieldedAt ?? now < $1.yieldedAt ?? now }
        guard let job else { return nil }
        isLongAbsentNext = false
        grant(job, at: now)
        return job
    }

    private mutating func takeNext(needingSlot: Bool, at now: TimeInterval) -> Job? {
        while !needingSlot || everything.isBelowLimit, let job = best(needingSlot: needingSlot, at: now) {
            if let full = firstFullLane(of: job, at: now) {
                if let wait = job.wait { job.wait = wait.held(by: obstacle(in: full, at: now)) }
                leaveLane(job)
                join(full, job)
            } else {
                if needingSlot { isLongAbsentNext = true }
                grant(job, at: now)
                return job
            }
        }
        return nil
    }

    private mutating func grant(_ job: Job, at now: TimeInterval) {
        noteOvertaking(by: job, at: now)
        noteEndOfWait(of: job, at: now)
        leaveLane(job)
        takeSlot(for: job, at: now)
    }

    /// The best head of a row in the open lanes.
    private func best(needingSlot: Bool, at now: TimeInterval) -> Job? {
        var best: (job: Job, rank: Int)?
        let lowest = Row.index(.veryLow, needsSlot: needingSlot)
        for lane in openLanes {
            for priority in 0..<JobPriority.count {
                let row = lane.rows[lowest + priority]
                guard let job = row.first, lane.hasRoom(for: job, at: now) else { continue }
                let rank = isDue(row) ? priority + JobPriority.count : priority
                if let best, (best.rank, job.turn) > (rank, best.job.turn) { continue }
                best = (job, rank)
            }
        }
        return best?.job
    }

    /// Counts the start of a job for those of lower priority that might have started instead.
    private func noteOvertaking(by job: Job, at now: TimeInterval) {
        let lowest = Row.index(.veryLow, needsSlot: job.needsSlot)
        let own = Row.index(job.priority, needsSlot: job.needsSlot)
        for lane in openLanes {
            for index in lowest..<own where lane.rows[index].first != nil { lane.rows[index].overtakenCount += 1 }
        }
        if let row = job.lane?.rows[own], isDue(row) {
            // It does not yield what it has waited for so long.
            job.wentOnAt = now
        }
        job.lane?.rows[own].overtakenCount = 0
    }

    /// Whether the first of a row has been overtaken so often that it comes before higher priorities.
    private func isDue(_ row: Row) -> Bool {
        overtakingLimit.map { row.overtakenCount >= $0 } ?? false
    }

    /// Whether a running job that yielded would get the slot itself, as its priority has been overtaken so often.
    func yieldsForNothing(_ job: Job) -> Bool {
        isDue(mainLane.rows[Row.index(job.priority, needsSlot: true)])
    }

    private func firstFullLane(of job: Job, at now: TimeInterval) -> Lane? {
        job.lanes.first { job.counts(in: $0) && !$0.hasRoom(for: job, at: now) }
            ?? (job.needsSlot && !everything.hasRoom(for: job, at: now) ? everything : nil)
    }

    private mutating func takeSlot(for job: Job, at now: TimeInterval) {
        if job.mayYield { yielding.append(job) }
        changeCounts(of: job) { lane in
            lane.runningCount += 1
            if !job.isReturning { lane.gate?.take(at: now) }
        }
    }

    /// - Parameter withTokens: whether the tokens of the rates are given back too, since the job did not start.
    mutating func giveBackSlot(of job: Job, withTokens: Bool = false) {
        if job.traits.mayYield { yielding.removeAll { $0 === job } }
        changeCounts(of: job) { lane in
            lane.runningCount -= 1
            if withTokens, !job.isReturning { lane.gate?.giveBack() }
        }
    }

    private mutating func changeCounts(of job: Job, _ change: (Lane) -> Void) {
        if job.needsSlot { change(everything) }
        for lane in job.lanes where job.counts(in: lane) {
            change(lane)
            refresh(lane)
        }
        refresh(everything)
    }

    // MARK: - Urgent jobs

    /// Gives the slot of a running job to one of higher priority that waits for nothing but a slot. The job that yields
    /// is in its row again, before all others of its priority that have not started.
    ///
    /// - Parameter wake: becomes the time at which a job may yield that may not yet.
    /// - Returns: false when no urgent job could start instead.
    mutating func yieldSlot(_ actions: inout Actions, _ wake: inout TimeInterval?) -> Bool {
        let now = actions.now
        guard !yielding.isEmpty, let ceiling = yieldingPriority, !isSuspended,
            let lowest = yielding.lazy.map(\.priority).min(), lowest <= ceiling
        else { return false }
        var best: (urgent: Job, job: Job)?
        var tooYoung: TimeInterval?
        var hasMoved = false
        for lane in lanesOfUrgentJobs {
            for priority in (Int(lowest.rawValue) + 1..<JobPriority.count).reversed() {
                for urgent in firstJobs(of: lane, priority, &hasMoved, at: now) {
                    if let best, (best.urgent.priority, -best.urgent.turn) > (urgent.priority, -urgent.turn) { break }
                    let (jobs, opens) = jobs(yieldingTo: urgent, ceiling, at: now)
                    let times = jobs.map { max(opens, $0.wentOnAt + Self.yieldingInterval) }
                    guard let first = times.min() else { continue }
                    // The lowest priority yields, and among equals the job that has run longest.
                    let job = zip(jobs, times).filter { $0.1 <= now }.map(\.0)
                        .min { ($0.priority, $0.wentOnAt) < ($1.priority, $1.wentOnAt) }
                    if let job {
                        best = (urgent, job)
                        break
                    }
                    tooYoung = min(tooYoung ?? first, first)
                }
            }
        }
        guard let job = best?.job, let payload = job.payload else {
            if hasMoved { return yieldSlot(&actions, &wake) }
            wake = tooYoung
            return false
        }
        giveBackSlot(of: job)
        (job.phase, job.isReturning, job.yieldedAt) = (.returning, true, now)
        yielded.append(job)
        // The slot is the urgent job's.
        isLongAbsentNext = false
        noteReady(job, at: now)
        join(mainLane, job)
        actions.yield.append(payload)
        return true
    }

    /// Tells whether a job that was started could go on later where it stopped now, so that it may yield. If it has
    /// yielded before, it does so a while later: what begins again first needs time for its first bytes.
    ///
    /// - Returns: whether it has its slot.
    mutating func setMayYield(_ mayYield: Bool, of job: Job, _ actions: inout Actions) -> Bool {
        let isRunning = job.phase == .running
        guard job.traits.mayYield != mayYield else { return isRunning }
        job.traits.mayYield = mayYield
        guard isRunning else { return false }
        if job.mayYield {
            if job.wentOnAt > -.infinity { job.wentOnAt = actions.now }
            yielding.append(job)
            admit(&actions)
        } else {
            yielding.removeAll { $0 === job }
        }
        return job.phase == .running
    }

    /// The job has a slot again after it has yielded, or will not have one.
    mutating func endYield(of job: Job) {
        job.yieldedAt = nil
        yielded.removeAll { $0 === job }
    }

    /// The lanes in which jobs wait that could start if one of ``yielding`` gave its slot.
    private var lanesOfUrgentJobs: [Lane] {
        var lanes = openLanes
        // Its jobs have waited for the rate of the queue, and then all slots were taken.
        if everything.waitingCount > 0, !everything.isOpen { lanes.append(everything) }
        for lane in yielding.lazy.flatMap(\.lanes) where !lanes.contains(where: { $0 === lane }) { lanes.append(lane) }
        return lanes
    }

    /// The first jobs of a row, of which one may start when another job yields.
    ///
    /// - Parameter hasMoved: becomes true when a job has gone to another lane, so that all are to be looked at again.
    private mutating func firstJobs(
        of lane: Lane,
        _ priority: Int,
        _ hasMoved: inout Bool,
        at now: TimeInterval
    ) -> [Job] {
        let index = Row.index(.veryLow, needsSlot: true) + priority
        guard lane.isOpen else {
            // Each waits for this lane; of those that wait for others as well, a few are looked at.
            return Array(sequence(first: lane.rows[index].first) { $0?.next }.lazy.compactMap(\.self).prefix(16))
        }
        while let job = lane.rows[index].first {
            // As when slots are free, but that there is none.
            let full =
                job.lanes.first { $0 !== lane && job.counts(in: $0) && !$0.hasRoom(for: job, at: now) }
                ?? (!everything.isBelowLimit && lane !== everything && everything.rateOpens(for: job) > now
                    ? everything : nil)
            guard let full else { return [job] }
            if let wait = job.wait { job.wait = wait.held(by: obstacle(in: full, at: now)) }
            leaveLane(job)
            join(full, job)
            // No job comes back to the first, and no job leaves the second while it is full, so that this ends.
            if lane === mainLane || full === everything { hasMoved = true }
        }
        return []
    }

    /// The jobs of which each could give its slot to this one, and when the rates let this one start.
    private func jobs(
        yieldingTo urgent: Job,
        _ ceiling: JobPriority,
        at now: TimeInterval
    ) -> (jobs: [Job], opens: TimeInterval) {
        let lanes = (urgent.lanes + [everything]).filter { urgent.counts(in: $0) }
        let full = lanes.filter { !$0.isBelowLimit }
        // A single slot must be enough.
        guard full.allSatisfy({ $0.runningCount == $0.limit }) else { return ([], now) }
        let jobs = yielding.filter { job in
            job.priority < urgent.priority && job.priority <= ceiling && !yieldsForNothing(job)
                && full.allSatisfy { lane in lane === everything || job.lanes.contains { $0 === lane } }
        }
        return (jobs, lanes.map { $0.rateOpens(for: urgent) }.max() ?? now)
    }

    // MARK: - Limits

    /// The number of jobs that may have a slot at once; nil means no limit.
    var limit: Int? {
        get { everything.limit }
        set { setLimit(newValue, for: .everything) }
    }

    /// - Parameter limit: nil removes the limit of this key.
    mutating func setLimit(_ limit: Int?, for key: LimitKey) {
        limits[key] = limit
        if let lane = lanes[key] { refreshLimit(of: lane) }
    }

    mutating func refreshLimits() {
        for lane in lanes.values { refreshLimit(of: lane) }
    }

    private mutating func refreshLimit(of lane: Lane) {
        lane.limit = limit(of: lane.key)
        refresh(lane)
    }

    private func limit(of key: LimitKey) -> Int? {
        switch key {
        case .exclusion: 1
        case .host: limits[key] ?? hostLimit
        case .everything, .tag, .group: limits[key]
        }
    }

    /// The rate of the whole queue.
    var rate: RateLimit? { everything.gate?.limit }

    /// - Parameter rate: nil for none. Tokens that were taken stay taken when it changes.
    mutating func setRate(_ rate: RateLimit?, for key: LimitKey) {
        guard rate != nil || lanes[key] != nil else { return }
        let lane = lane(of: key)
        if let rate, lane.gate != nil {
            lane.gate?.limit = rate
        } else {
            lane.gate = rate.map(RateGate.init)
        }
        removeIfUnused(lane)
    }

    /// When a job that waits only for a rate may start; nil when there is none.
    func wake(after now: TimeInterval) -> TimeInterval? {
        isSuspended ? nil : openLanes.lazy.compactMap { $0.gate?.opens }.filter { $0 > now }.min()
    }

    /// The reason why a ready job has not started.
    func obstacle(of job: Job, at now: TimeInterval) -> WaitReason {
        if isSuspended { return .suspended }
        guard let lane = firstFullLane(of: job, at: now) else { return .turn }
        return obstacle(in: lane, at: now)
    }

    private func obstacle(in lane: Lane, at now: TimeInterval) -> WaitReason {
        if lane.isBelowLimit, let gate = lane.gate { return .rate(seconds: gate.opens - now) }
        return obstacle(ofFull: lane)
    }

    private func obstacle(ofFull lane: Lane) -> WaitReason {
        let limit = lane.limit ?? 0
        switch lane.key {
        case .everything: return .limit(limit)
        case .host(let host): return .hostLimit(host: host, limit)
        case .tag(let tag): return .tagLimit(tag: tag, limit)
        case .exclusion(let category): return .mutualExclusion(category: category)
        case .group: return .batchLimit(limit)
        }
    }

    // MARK: - Notes of waits

    /// Notes that the job has begun to wait for its slot.
    ///
    /// - Parameter isAfterJobs: whether it has waited for others. Default false.
    func noteReady(_ job: Job, at now: TimeInterval, isAfterJobs: Bool = false) {
        job.wait = notesWaits ? WaitNote(since: now, before: job.wait?.before, isAfterJobs: isAfterJobs) : nil
    }

    /// Notes what the job waited for at last, now that its turn has come. It stands in its lane still.
    private func noteEndOfWait(of job: Job, at now: TimeInterval) {
        guard let wait = job.wait, let lane = job.lane, wait.since < now else { return }
        let last: WaitReason?
        if isResuming {
            last = .suspended
        } else if job.hasYielded {
            last = .slotYielded
        } else if lane === mainLane {
            // Its heads are looked at whenever a slot is free.
            last = everything.limit.map { .limit($0) }
        } else if lane.limit == nil {
            last = .rate(seconds: 0)
        } else if lane.gate == nil {
            last = obstacle(ofFull: lane)
        } else {
            last = nil
        }
        job.wait = wait.ended(at: now, last)
    }

    // MARK: - Lanes

    /// The lanes of the keys, with one more user each.
    mutating func use(_ keys: [LimitKey]) -> [Lane] {
        keys.map { key in
            let lane = lane(of: key)
            lane.userCount += 1
            return lane
        }
    }

    mutating func drop(_ lanes: [Lane]) {
        for lane in lanes {
            lane.userCount -= 1
            removeIfUnused(lane)
        }
    }

    private mutating func lane(of key: LimitKey) -> Lane {
        if let lane = lanes[key] { return lane }
        let lane = Lane(key, limit: limit(of: key))
        lanes[key] = lane
        return lane
    }

    /// Removes a lane without jobs. It is kept while it has a rate, and while there are few lanes, since the next
    /// request mostly goes to the same host.
    private mutating func removeIfUnused(_ lane: Lane) {
        guard lane.userCount == 0, lane !== everything else { return }
        if case .group = lane.key {
            // The limit of a batch goes with its last child.
            limits[lane.key] = nil
        } else if lane.gate != nil || lanes.count < 64 {
            return
        }
        lanes[lane.key] = nil
    }

    /// Inserts the job by its turn. A job that has just become ready is last; one from another lane was a head there,
    /// so few are before it. Where there is a rate, one that has started before is in front of those that it holds
    /// back.
    private mutating func join(_ lane: Lane, _ job: Job) {
        let index = Row.index(job.priority, needsSlot: job.needsSlot)
        func precedes(_ one: Job, _ other: Job) -> Bool {
            if lane.gate != nil, one.isReturning != other.isReturning { return one.isReturning }
            return one.turn < other.turn
        }
        var next: Job?
        if let last = lane.rows[index].last, precedes(job, last) {
            next = lane.rows[index].first
            while let other = next, precedes(other, job) { next = other.next }
        }
        let previous = next == nil ? lane.rows[index].last : next?.previous
        (job.lane, job.previous, job.next) = (lane, previous, next)
        if let previous { previous.next = job } else { lane.rows[index].first = job }
        if let next { next.previous = job } else { lane.rows[index].last = job }
        lane.waitingCount += 1
        if !job.needsSlot { slotlessCount += 1 }
        refresh(lane)
    }

    /// Removes a job from its lane, if it stands in one.
    mutating func leaveLane(_ job: Job) {
        guard let lane = job.lane else { return }
        let index = Row.index(job.priority, needsSlot: job.needsSlot)
        if let previous = job.previous { previous.next = job.next } else { lane.rows[index].first = job.next }
        if let next = job.next { next.previous = job.previous } else { lane.rows[index].last = job.previous }
        if lane.rows[index].first == nil { lane.rows[index].overtakenCount = 0 }
        (job.lane, job.previous, job.next) = (nil, nil, nil)
        lane.waitingCount -= 1
        if !job.needsSlot { slotlessCount -= 1 }
        refresh(lane)
    }

    private mutating func refresh(_ lane: Lane) {
        let isOpen = lane.waitingCount > 0 && lane.isBelowLimit
        guard isOpen != lane.isOpen else { return }
        lane.isOpen = isOpen
        if isOpen { openLanes.append(lane) } else { openLanes.removeAll { $0 === lane } }
    }
}
