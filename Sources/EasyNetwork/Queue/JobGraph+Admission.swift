import Foundation

/// Admission: the choice of the next job to start, by priority, limits and rates.
///
/// A ready job waits in one line, together with the jobs of its priority that the same limits and rates can hold back.
/// Each line is in one lane, at first in the main lane. When the first job of a line has its turn and one of its keys
/// has no room, the line moves to the lane of that key.
///
/// ```
///                  veryHigh    high    normal     low    veryLow
/// main lane                            g ─ h ─ i   k
/// lane of host a                       b ─ e                       closed: as many jobs of the host run as may
/// lane of tag t                d       f                           open: the tag has room again
/// ```
///
/// The next job is the best among the first jobs in the open lanes, by priority and then by turn: here `d`. If another
/// key of `d` has no room, its line moves to the lane of that key, and the next best job is tried. The cost of a start
/// therefore depends on the number of open lanes and on the logarithm of the number of lines, but not on the number of
/// jobs.
///
/// Every row exists twice: for jobs that need a slot, and for jobs that need none. Jobs without a slot start even if
/// all slots are taken.
extension JobGraph {
    // MARK: - Jobs

    /// Adds a job to its line, after the others of its priority.
    mutating func enqueue(_ job: Job) {
        turns += 1
        job.turn = turns
        joinLine(job)
    }

    /// Returns the next job to start, which now has its slot; `nil` if no job can start.
    mutating func takeNext(at now: TimeInterval) -> Job? {
        guard !isSuspended, !openLanes.isEmpty else { return nil }
        if slotlessCount > 0, let job = takeNext(needsSlot: false, at: now) { return job }
        if isLongAbsentNext, !yielded.isEmpty, let job = takeLongAbsent(at: now) { return job }
        return takeNext(needsSlot: true, at: now)
    }

    /// Returns the job that has yielded for the longest time, if that is at least ``absenceLimit``.
    private mutating func takeLongAbsent(at now: TimeInterval) -> Job? {
        guard queueLane.isBelowLimit else { return nil }
        let job = yielded.filter { job in
            job.phase == .returning && job.yieldedAt ?? now <= now - Self.absenceLimit
                && firstFullLane(of: job, at: now) == nil
        }.min { $0.yieldedAt ?? now < $1.yieldedAt ?? now }
        guard let job else { return nil }
        isLongAbsentNext = false
        grant(job, at: now)
        return job
    }

    private mutating func takeNext(needsSlot: Bool, at now: TimeInterval) -> Job? {
        guard let job = next(needsSlot: needsSlot, at: now) else { return nil }
        if needsSlot { isLongAbsentNext = true }
        grant(job, at: now)
        return job
    }

    /// Returns the best job that can start.
    ///
    /// - Parameter priority: the priority above which a job must be. Defaults to `nil`: any.
    private mutating func next(needsSlot: Bool, above priority: JobPriority? = nil, at now: TimeInterval) -> Job? {
        while !needsSlot || queueLane.isBelowLimit, let job = best(needsSlot: needsSlot, above: priority, at: now) {
            guard let line = job.line, let full = firstFullLane(of: job, at: now) else { return job }
            let overtakenCount = line.lane?.rows[line.row].overtakenCount ?? 0
            move(line, to: full, at: now)
            // A search for an urgent job can move a line often, which must not reset the count.
            if priority != nil, overtakenCount > full.rows[line.row].overtakenCount {
                full.rows[line.row].overtakenCount = overtakenCount
            }
        }
        return nil
    }

    /// Gives a slot to a job in a line, and counts its start in the rows of lower priority whose jobs might have started
    /// instead.
    private mutating func grant(_ job: Job, at now: TimeInterval) {
        guard let line = job.line, let own = line.lane else { return }
        let lowest = job.needsSlot ? JobPriority.count : 0
        for lane in openLanes where lane !== own || lane.lineCount > 1 {
            for row in lowest..<line.row where lane.rows[row].lineCount > 0 { lane.rows[row].overtakenCount += 1 }
        }
        // A job that was overtaken for so long must not yield its slot at once.
        if isDue(own, line.row) { job.resumedAt = now }
        own.rows[line.row].overtakenCount = 0
        if job.wait != nil { noteEndOfWait(of: job, at: now) }
        leaveLine(job)
        if job.traits.mayYield, job.mayYield { yieldable.append(job) }
        changeCounts(of: job, by: 1)
        guard !rates.isEmpty, !job.hasGivenUpSlot else { return }
        for lane in job.lanes + [queueLane] where job.counts(in: lane) { lane.gate?.take(at: now) }
    }

    /// Returns the best among the first jobs in the open lanes.
    private func best(needsSlot: Bool, above floor: JobPriority?, at now: TimeInterval) -> Job? {
        var best: (job: Job, rank: Int)?
        let lowest = needsSlot ? JobPriority.count : 0
        let first = floor.map { Int($0.rawValue) + 1 } ?? 0
        for lane in openLanes {
            for priority in first..<JobPriority.count where lane.rows[lowest + priority].lineCount > 0 {
                guard let job = lane.first(lowest + priority, at: now) else { continue }
                let rank = isDue(lane, lowest + priority) ? priority + JobPriority.count : priority
                if let best, (best.rank, job.turn) > (rank, best.job.turn) { continue }
                best = (job, rank)
            }
        }
        return best?.job
    }

    /// Whether the first job of a row has been overtaken so often that it comes before higher priorities.
    private func isDue(_ lane: Lane, _ row: Int) -> Bool {
        lane.rows[row].overtakenCount >= overtakingLimit ?? .max
    }

    /// Returns whether a job that yields would get the slot itself, because its priority has been overtaken so often.
    func wouldRegainSlot(_ job: Job) -> Bool {
        isDue(mainLane, job.row)
    }

    private func firstFullLane(of job: Job, at now: TimeInterval) -> Lane? {
        for lane in job.lanes where job.counts(in: lane) && !lane.hasRoom(for: job, at: now) { return lane }
        return job.needsSlot && !queueLane.hasRoom(for: job, at: now) ? queueLane : nil
    }

    /// - Parameter withTokens: whether to give back the tokens of the rates too, because the job did not start.
    ///   Defaults to `false`.
    mutating func giveBackSlot(of job: Job, withTokens: Bool = false) {
        if job.traits.mayYield { yieldable.removeAll { $0 === job } }
        changeCounts(of: job, by: -1)
        guard withTokens, !job.hasGivenUpSlot else { return }
        for lane in job.lanes + [queueLane] where job.counts(in: lane) { lane.gate?.giveBack() }
    }

    private mutating func changeCounts(of job: Job, by change: Int) {
        if job.needsSlot { queueLane.runningCount += change }
        for lane in job.lanes where job.counts(in: lane) {
            lane.runningCount += change
            refresh(lane)
        }
        refresh(queueLane)
    }

    // MARK: - Urgent jobs

    /// Gives the slot of a running job to a job of higher priority that waits only for a slot. The yielding job returns
    /// to its row, before all jobs of its priority that have not started.
    ///
    /// - Parameter wake: set to the time at which a job can yield that cannot yet.
    /// - Returns: `false` if no urgent job could start.
    mutating func yieldSlot(_ actions: inout Actions, _ wake: inout TimeInterval?) -> Bool {
        let now = actions.now
        guard let yieldingPriority, !isSuspended else { return false }
        var pairs: [(urgent: Job, giver: Job)] = []
        var times: [TimeInterval] = []
        for giver in yieldable where giver.priority <= yieldingPriority && !wouldRegainSlot(giver) {
            // Without a full lane, the slot is not what the other jobs wait for.
            guard (giver.lanes + [queueLane]).contains(where: { $0.runningCount == $0.limit }) else { continue }
            changeCounts(of: giver, by: -1)
            if let urgent = next(needsSlot: true, above: giver.priority, at: now) {
                let time = giver.resumedAt + Self.yieldingInterval
                if time <= now { pairs.append((urgent, giver)) } else { times.append(time) }
            } else if let time = self.wake(after: now) {
                times.append(time)
            }
            changeCounts(of: giver, by: 1)
        }
        // The lowest priority yields, and among equals the job that has run longest.
        let best = pairs.min { one, other in
            (other.urgent.priority, one.urgent.turn, one.giver.priority, one.giver.resumedAt)
                < (one.urgent.priority, other.urgent.turn, other.giver.priority, other.giver.resumedAt)
        }
        guard let job = best?.giver, let payload = job.payload else {
            wake = times.min()
            return false
        }
        giveBackSlot(of: job)
        (job.phase, job.hasGivenUpSlot, job.yieldedAt) = (.returning, true, now)
        yielded.append(job)
        // The slot is for the urgent job, not for one that yielded earlier.
        isLongAbsentNext = false
        noteReady(job, at: now)
        joinLine(job)
        actions.yield.append(payload)
        return true
    }

    /// Sets whether a started job can yield, because it could later continue from its current position. A job that has
    /// resumed after a yield can yield again only ``yieldingInterval`` later: a resumed transfer first needs time for
    /// its first bytes.
    ///
    /// - Returns: whether the job has its slot.
    mutating func setMayYield(_ mayYield: Bool, of job: Job, _ actions: inout Actions) -> Bool {
        let isRunning = job.phase == .running
        guard job.traits.mayYield != mayYield else { return isRunning }
        job.traits.mayYield = mayYield
        guard isRunning else { return false }
        if job.mayYield {
            if job.resumedAt > -.infinity { job.resumedAt = actions.now }
            yieldable.append(job)
            admit(&actions)
        } else {
            yieldable.removeAll { $0 === job }
        }
        return job.phase == .running
    }

    /// Notes that a job that yielded has a slot again, or will not get one.
    mutating func endYield(of job: Job) {
        job.yieldedAt = nil
        yielded.removeAll { $0 === job }
    }

    // MARK: - Limits

    /// The number of jobs that can have a slot at once. `nil` means no limit.
    var limit: Int? {
        get { queueLane.limit }
        set { setLimit(newValue, for: .queueLane) }
    }

    /// - Parameter limit: the limit of this key; `nil` removes it.
    package mutating func setLimit(_ limit: Int?, for key: LimitKey) {
        if case .group = key { batchLimits[key] = limit } else { limits[key] = limit }
        if let lane = lanes[key] { refreshLimits(of: lane) }
    }

    mutating func refreshLimits(of lanes: [Lane]) {
        let wereBounded = lanes.map(\.isBounded)
        for lane in lanes {
            lane.limit = limit(of: lane.key)
            refresh(lane)
        }
        if lanes.map(\.isBounded) != wereBounded { formLines() }
    }

    /// Rebuilds the lines after a key has become able, or unable, to hold jobs back.
    private mutating func formLines() {
        let waiting = allJobs.filter { $0.line != nil }.sorted { $0.turn < $1.turn }
        for job in waiting { leaveLine(job) }
        for job in waiting { joinLine(job) }
    }

    private func limit(of key: LimitKey) -> Int? {
        switch key {
        case .exclusion: 1
        case .host: limits[key] ?? hostLimit
        case .queueLane, .tag: limits[key]
        case .group: batchLimits[key]
        }
    }

    /// - Parameter rate: the rate of this key; `nil` removes it. Tokens that were taken stay taken when the rate
    ///   changes.
    mutating func setRate(_ rate: RateLimit?, for key: LimitKey) {
        rates[key] = rate
        guard rate != nil || lanes[key] != nil else { return }
        let lane = lane(of: key)[0]
        let wasBounded = lane.isBounded
        if let rate, lane.gate != nil {
            lane.gate?.limit = rate
        } else {
            lane.gate = rate.map(RateGate.init)
        }
        if lane.isBounded != wasBounded { formLines() }
        removeIfUnused(lane)
    }

    /// The rules of admission. Reading them takes constant time, because a timeline reads them at many events.
    package var rules: QueueRules {
        get {
            var rules = QueueRules()
            (rules.limits, rules.hostLimit, rules.rates) = (limits, hostLimit, rates)
            (rules.yieldingPriority, rules.overtakingLimit) = (yieldingPriority, overtakingLimit)
            rules.isSuspended = isSuspended
            return rules
        }
        set {
            limits = newValue.limits
            // This refreshes the lanes of all limits.
            hostLimit = newValue.hostLimit
            for key in Set(rates.keys).union(newValue.rates.keys) { setRate(newValue.rates[key], for: key) }
            (yieldingPriority, overtakingLimit) = (newValue.yieldingPriority, newValue.overtakingLimit)
            isSuspended = newValue.isSuspended
        }
    }

    /// Returns the time at which a job that waits only for a rate can start; `nil` if there is no such job.
    func wake(after now: TimeInterval) -> TimeInterval? {
        isSuspended ? nil : openLanes.lazy.compactMap { $0.gate?.opens }.filter { $0 > now }.min()
    }

    /// Returns the reason why a ready job has not started.
    func obstacle(of job: Job, at now: TimeInterval) -> WaitReason {
        if isSuspended { return .suspended }
        guard let lane = firstFullLane(of: job, at: now) else { return .turn }
        return obstacle(in: lane, at: now)
    }

    private func obstacle(in lane: Lane, at now: TimeInterval) -> WaitReason {
        if lane.isBelowLimit, let gate = lane.gate { return .rate(seconds: gate.opens - now) }
        let limit = lane.limit ?? 0
        switch lane.key {
        case .queueLane: return .limit(limit)
        case .host(let host): return .hostLimit(host: host, limit)
        case .tag(let tag): return .tagLimit(tag: tag, limit)
        case .exclusion(let category): return .mutualExclusion(category: category)
        case .group: return .batchLimit(limit)
        }
    }

    // MARK: - Notes of waits

    /// Notes that the job has started to wait for its slot.
    ///
    /// - Parameter isAfterJobs: whether the job has waited for other jobs. Defaults to `false`.
    func noteReady(_ job: Job, at now: TimeInterval, isAfterJobs: Bool = false) {
        job.wait = notesWaits ? WaitNote(since: now, before: job.wait?.before, isAfterJobs: isAfterJobs) : nil
    }

    /// Notes what the job waited for last, now that its turn has come. The job is still in its line.
    private func noteEndOfWait(of job: Job, at now: TimeInterval) {
        guard let wait = job.wait, let line = job.line, let lane = line.lane, wait.since < now else { return }
        let last: WaitReason?
        if isResuming {
            last = .suspended
        } else if job.hasYielded {
            last = .slotYielded
        } else if lane === mainLane {
            // The main lane's first jobs are examined whenever a slot is free, so they waited for a slot.
            last = queueLane.limit.map { .limit($0) }
        } else if lane.limit == nil {
            last = .rate(seconds: 0)
        } else if lane.gate == nil {
            last = obstacle(in: lane, at: now)
        } else {
            last = nil
        }
        job.wait = wait.ended(at: now, last ?? line.reason)
    }

    // MARK: - Lanes

    /// Returns the lanes of a host and of other keys, and counts one more user of each.
    mutating func use(_ host: String?, _ keys: [LimitKey]) -> [Lane] {
        // Most jobs count by their host alone, and share the list of its lane.
        var lanes = host.map { use(.host($0)) } ?? []
        for key in keys { lanes += use(key) }
        return lanes
    }

    private mutating func use(_ key: LimitKey) -> [Lane] {
        let lane = lane(of: key)
        lane[0].userCount += 1
        return lane
    }

    private mutating func lane(of key: LimitKey) -> [Lane] {
        if let lane = lanes[key] { return lane }
        let lane = [Lane(key, limit: limit(of: key))]
        lanes[key] = lane
        return lane
    }

    mutating func drop(_ lanes: [Lane]) {
        for lane in lanes {
            lane.userCount -= 1
            if lane.userCount == 0 { removeIfUnused(lane) }
        }
    }

    /// Removes a lane without jobs. A lane is kept while it has a rate, and while there are few lanes, because the next
    /// request usually goes to the same host.
    private mutating func removeIfUnused(_ lane: Lane) {
        guard lane.userCount == 0, lane !== queueLane else { return }
        if case .group = lane.key {
            // The limit of a batch is removed with its last child.
            batchLimits[lane.key] = nil
        } else if lane.gate != nil || lanes.count < 64 {
            return
        }
        lanes[lane.key] = nil
    }

    // MARK: - Lines

    /// Returns the line of the jobs of this priority that the same keys can hold back.
    private mutating func line(of job: Job) -> Line {
        var bounding: Set<ObjectIdentifier> = []
        var last: Lane?
        for lane in job.lanes where lane.isBounded && job.counts(in: lane) {
            // Fill the set only if there are several lanes.
            if let last { bounding.formUnion([ObjectIdentifier(last), ObjectIdentifier(lane)]) }
            last = lane
        }
        let own = (last ?? queueLane).ownLine(job.row, isFreeOfRates: job.hasGivenUpSlot)
        if bounding.isEmpty { return own }
        let key = LineKey(lanes: bounding, heap: own.heap)
        if let line = lines[key] { return line }
        let line = Line(own.row, heap: own.heap, key: key)
        lines[key] = line
        return line
    }

    /// Inserts the job by its turn. A job that has just become ready is last. A job that keeps its earlier turn is
    /// among the first.
    private mutating func joinLine(_ job: Job) {
        let line = line(of: job)
        var next: Job?
        if let last = line.last, job.turn < last.turn {
            next = line.first
            while let other = next, other.turn < job.turn { next = other.next }
        }
        let previous = next == nil ? line.last : next?.previous
        (job.line, job.previous, job.next) = (line, previous, next)
        if let next { next.previous = job } else { line.last = job }
        if !job.needsSlot { slotlessCount += 1 }
        if let previous {
            previous.next = job
            return
        }
        line.first = job
        if let lane = line.lane { return lane.heaps[line.heap].reorder(line) }
        line.reason = nil
        insert(line, mainLane)
    }

    /// Removes a job from its line, if it is in one.
    mutating func leaveLine(_ job: Job) {
        guard let line = job.line, let lane = line.lane else { return }
        if let previous = job.previous { previous.next = job.next } else { line.first = job.next }
        if let next = job.next { next.previous = job.previous } else { line.last = job.previous }
        if !job.needsSlot { slotlessCount -= 1 }
        if line.first == nil {
            remove(line)
            if let key = line.key { lines[key] = nil }
        } else if job.previous == nil {
            lane.heaps[line.heap].reorder(line)
        }
        (job.line, job.previous, job.next) = (nil, nil, nil)
    }

    private mutating func move(_ line: Line, to lane: Lane, at now: TimeInterval) {
        if notesWaits { line.reason = obstacle(in: lane, at: now) }
        remove(line)
        insert(line, lane)
    }

    private mutating func insert(_ line: Line, _ lane: Lane) {
        line.lane = lane
        lane.lineCount += 1
        lane.rows[line.row].lineCount += 1
        lane.heaps[line.heap].insert(line)
        refresh(lane)
    }

    private mutating func remove(_ line: Line) {
        guard let lane = line.lane.take() else { return }
        lane.lineCount -= 1
        lane.heaps[line.heap].remove(line)
        lane.rows[line.row].lineCount -= 1
        if lane.rows[line.row].lineCount == 0 { lane.rows[line.row].overtakenCount = 0 }
        refresh(lane)
    }

    private mutating func refresh(_ lane: Lane) {
        let isOpen = lane.lineCount > 0 && lane.isBelowLimit
        guard isOpen != lane.isOpen else { return }
        lane.isOpen = isOpen
        if isOpen { openLanes.append(lane) } else { openLanes.removeAll { $0 === lane } }
    }
}
