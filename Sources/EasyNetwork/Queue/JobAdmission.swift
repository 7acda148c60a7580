import Foundation

/// What jobs are counted by, beside all together.
enum LimitKey: Hashable, Sendable {
    /// What every job counts by that needs a slot: the rate of the whole queue.
    case everything
    case host(String)
    case tag(String)
    /// Jobs of one category run one at a time.
    case exclusion(String)
    /// The children of one batch.
    case group(ObjectIdentifier)

    /// Whether a job that needs no slot, since it only waits for others, counts by this key all the same. Not where
    /// those others count too: it would hold what they wait for.
    fileprivate var countsWithoutSlot: Bool {
        switch self {
        case .exclusion, .group: true
        case .everything, .host, .tag: false
        }
    }
}

/// Which of the jobs that are ready may start: rows by priority, limits, rates. A value; it knows jobs by their place.
///
/// A job stands in one lane. It joins the main one. When its turn has come but one of its keys is at its limit, it
/// steps over to the lane of that key, and comes back, to where it stood, when the key has room: so a job is looked at
/// when something has changed for it, and not whenever anything has.
struct JobAdmission {
    /// How many jobs may have a slot at once; nil means no limit.
    var limit: Int?
    var isSuspended = false
    /// Jobs that have a slot.
    private(set) var runningCount = 0
    /// After how many starts of higher priority in a row a lower one has its turn, so that it is not starved; nil
    /// means never.
    var overtakingLimit: Int?

    private var limits: [LimitKey: Int] = [:]
    /// For each host that has no limit of its own.
    private(set) var hostLimit: Int?

    private var standings: [Standing] = []
    private var counters: [Counter] = []
    private var freeCounters: [Int32] = []
    private var counterIndices: [LimitKey: Int32] = [:]
    /// The counters that have a rate, and jobs that wait for it.
    private var awaitedGates: Set<Int32> = []
    private var rows = [Row](repeating: Row(), count: 2 * JobPriority.allCases.count)
    private var turns: UInt64 = 0

    private static let mainLane: Int32 = 0
    /// For jobs that need no slot.
    private static let freeLane: Int32 = 1
    private static let firstKeyLane: Int32 = 2
    /// The counter that is always there.
    private static let everythingIndex: Int32 = 0

    /// Where a job stands.
    private struct Standing {
        var keys: [Int32] = []
        /// When it joined its row: those with a lower number are before it.
        var turn: UInt64 = 0
        var previous: Int32 = -1
        var next: Int32 = -1
        /// Nil (-1) when it stands nowhere.
        var lane: Int32 = -1
        /// The counter whose lane it came back from, and whose room is meant for it.
        var promisedBy: Int32 = -1
        var priority = JobPriority.normal
        var occupiesSlot = true
        /// It counts by no key yet, see ``JobGraph/Traits/isPreparing``.
        var isPreparing = false
        /// It has started before: rates concern it no more.
        var isReturning = false
    }

    private struct Row {
        var first: Int32 = -1
        var last: Int32 = -1
        /// How many of a higher row have gone since one of this row has.
        var overtaken: Int32 = 0
    }

    private struct Counter {
        var key: LimitKey
        var limit: Int?
        var gate: RateGate?
        var running = 0
        /// Jobs that came back from its lane and have not started.
        var promised = 0
        /// Jobs that have the key and have not finished.
        var users = 0
        /// Jobs in its lane.
        var waiting = 0

        func hasRoom(at now: TimeInterval, isReturning: Bool) -> Bool {
            limit.map { running < $0 } ?? true && (isReturning || gate.map { $0.opens <= now } ?? true)
        }

        /// Whether one more job may come back from the lane.
        func isInviting(at now: TimeInterval) -> Bool {
            limit.map { running + promised < $0 } ?? true && gate.map { $0.opens <= now && promised == 0 } ?? true
        }
    }

    init() {
        _ = counterIndex(of: .everything)
    }

    private var everything: Counter { counters[Int(Self.everythingIndex)] }

    // MARK: - Jobs

    mutating func register(_ place: Int32, keys: [LimitKey], occupiesSlot: Bool, isPreparing: Bool = false) {
        let place = Int(place)
        while standings.count <= place { standings.append(Standing()) }
        standings[place] = Standing(occupiesSlot: occupiesSlot && !isPreparing, isPreparing: isPreparing)
        standings[place].keys = use(keys)
    }

    /// The job has been prepared, and counts by these keys from now on, and by its group. It stands nowhere and has no
    /// slot.
    mutating func endPreparing(_ place: Int32, keys: [LimitKey], occupiesSlot: Bool) {
        let before = standings[Int(place)].keys
        let group = before.filter { if case .group = counters[Int($0)].key { true } else { false } }
        standings[Int(place)] = Standing(keys: use(keys) + group, occupiesSlot: occupiesSlot)
        drop(before.filter { !group.contains($0) })
    }

    private mutating func use(_ keys: [LimitKey]) -> [Int32] {
        keys.map { key in
            let index = counterIndex(of: key)
            counters[Int(index)].users += 1
            return index
        }
    }

    private mutating func drop(_ indices: [Int32]) {
        for index in indices {
            counters[Int(index)].users -= 1
            if counters[Int(index)].users == 0 { freeCounter(index) }
        }
    }

    /// The job has left; it stands nowhere and has no slot.
    mutating func unregister(_ place: Int32) {
        guard standings.indices.contains(Int(place)) else { return }
        drop(standings[Int(place)].keys.take())
    }

    /// The job is ready: it joins the end of its row.
    ///
    /// - Parameter isReturning: whether it has had a slot before; nil means as it was.
    mutating func enqueue(_ place: Int32, priority: JobPriority, isReturning: Bool? = nil) {
        turns += 1
        standings[Int(place)].turn = turns
        standings[Int(place)].priority = priority
        if let isReturning { standings[Int(place)].isReturning = isReturning }
        join(place, lane: baseLane(of: place))
    }

    /// The job is not ready any more. Does nothing when it stands nowhere.
    mutating func dequeue(_ place: Int32, at now: TimeInterval) {
        guard standings[Int(place)].lane >= 0 else { return }
        leave(place)
        breakPromise(to: place, at: now)
    }

    /// The next job to start, which now has its slot; nil when none may.
    mutating func next(at now: TimeInterval) -> Int32? {
        guard !isSuspended else { return nil }
        if !awaitedGates.isEmpty { for index in Array(awaitedGates) { invite(index, at: now) } }
        repeat {
            if let place = next(in: Self.freeLane, at: now) ?? next(in: Self.mainLane, at: now) { return place }
            // One that needs no slot may have come back while the main lane was looked at, in the place of another.
        } while head(of: Self.freeLane) != nil
        return nil
    }

    private mutating func next(in lane: Int32, at now: TimeInterval) -> Int32? {
        while lane == Self.freeLane || limit.map({ runningCount < $0 }) ?? true, let place = head(of: lane) {
            leave(place)
            if let full = firstFull(of: place, at: now) {
                join(place, lane: Self.firstKeyLane + full)
                breakPromise(to: place, at: now)
            } else {
                noteOvertaking(by: standings[Int(place)].priority, in: lane)
                occupy(place, at: now)
                return place
            }
        }
        return nil
    }

    private func firstFull(of place: Int32, at now: TimeInterval) -> Int32? {
        let standing = standings[Int(place)]
        if standing.occupiesSlot, !everything.hasRoom(at: now, isReturning: standing.isReturning) {
            return Self.everythingIndex
        }
        return standing.keys.first { index in
            counts(place, index) && !counters[Int(index)].hasRoom(at: now, isReturning: standing.isReturning)
        }
    }

    /// The job has no slot any more.
    mutating func vacate(_ place: Int32, at now: TimeInterval) {
        if standings[Int(place)].occupiesSlot { runningCount -= 1 }
        for index in standings[Int(place)].keys where counts(place, index) {
            counters[Int(index)].running -= 1
            invite(index, at: now)
        }
    }

    /// The job gives back the slot that it was given and could not use, and with it what it took from rates.
    mutating func withdraw(_ place: Int32, at now: TimeInterval) {
        if !standings[Int(place)].isReturning {
            if standings[Int(place)].occupiesSlot { counters[Int(Self.everythingIndex)].gate?.giveBack() }
            for index in standings[Int(place)].keys where counts(place, index) {
                counters[Int(index)].gate?.giveBack()
            }
        }
        vacate(place, at: now)
    }

    private mutating func occupy(_ place: Int32, at now: TimeInterval) {
        let isFresh = !standings[Int(place)].isReturning
        if standings[Int(place)].occupiesSlot {
            runningCount += 1
            if isFresh { counters[Int(Self.everythingIndex)].gate?.take(at: now) }
        }
        for index in standings[Int(place)].keys where counts(place, index) {
            counters[Int(index)].running += 1
            if isFresh { counters[Int(index)].gate?.take(at: now) }
        }
        let promise = standings[Int(place)].promisedBy
        standings[Int(place)].promisedBy = -1
        if promise >= 0 { counters[Int(promise)].promised -= 1 }
    }

    private func counts(_ place: Int32, _ index: Int32) -> Bool {
        standings[Int(place)].occupiesSlot
            || (!standings[Int(place)].isPreparing && counters[Int(index)].key.countsWithoutSlot)
    }

    private func baseLane(of place: Int32) -> Int32 {
        standings[Int(place)].occupiesSlot ? Self.mainLane : Self.freeLane
    }

    /// The room that was meant for the job is somebody else's.
    private mutating func breakPromise(to place: Int32, at now: TimeInterval) {
        let promise = standings[Int(place)].promisedBy
        guard promise >= 0 else { return }
        standings[Int(place)].promisedBy = -1
        counters[Int(promise)].promised -= 1
        invite(promise, at: now)
    }

    /// As many come back from the lane of the key as there is room for.
    private mutating func invite(_ index: Int32, at now: TimeInterval) {
        let lane = Self.firstKeyLane + index
        var last: Int32 = -1
        while counters[Int(index)].waiting > 0, counters[Int(index)].isInviting(at: now), let place = head(of: lane) {
            leave(place)
            noteOvertaking(by: standings[Int(place)].priority, in: lane)
            standings[Int(place)].promisedBy = index
            counters[Int(index)].promised += 1
            join(place, lane: baseLane(of: place), notBefore: last)
            last = place
        }
    }

    // MARK: - Limits

    mutating func setHostLimit(_ limit: Int?, at now: TimeInterval) {
        hostLimit = limit
        for index in counterIndices.values { refresh(index, at: now) }
    }

    /// - Parameter limit: nil for none of its own.
    mutating func setLimit(_ limit: Int?, for key: LimitKey, at now: TimeInterval) {
        limits[key] = limit
        if let index = counterIndices[key] { refresh(index, at: now) }
    }

    /// The rate of the whole queue.
    var rate: RateLimit? { everything.gate?.limit }

    /// - Parameter rate: nil for none. What has been taken from the bucket stays taken when it changes.
    mutating func setRate(_ rate: RateLimit?, for key: LimitKey, at now: TimeInterval) {
        guard rate != nil || counterIndices[key] != nil else { return }
        // Kept while nobody uses it.
        let index = counterIndex(of: key)
        if let rate, counters[Int(index)].gate != nil {
            counters[Int(index)].gate?.limit = rate
        } else {
            counters[Int(index)].gate = rate.map(RateGate.init)
        }
        noteWaiting(index, 0)
        refresh(index, at: now)
        if rate == nil, counters[Int(index)].users == 0 { freeCounter(index) }
    }

    private mutating func refresh(_ index: Int32, at now: TimeInterval) {
        counters[Int(index)].limit = effectiveLimit(of: counters[Int(index)].key)
        invite(index, at: now)
    }

    private func effectiveLimit(of key: LimitKey) -> Int? {
        switch key {
        case .exclusion: 1
        case .host: limits[key] ?? hostLimit
        case .everything: nil
        case .tag, .group: limits[key]
        }
    }

    private mutating func counterIndex(of key: LimitKey) -> Int32 {
        if let index = counterIndices[key] { return index }
        let counter = Counter(key: key, limit: effectiveLimit(of: key))
        let index: Int32
        if let free = freeCounters.popLast() {
            index = free
            counters[Int(free)] = counter
        } else {
            index = Int32(counters.count)
            counters.append(counter)
            rows.append(contentsOf: repeatElement(Row(), count: JobPriority.allCases.count))
        }
        counterIndices[key] = index
        return index
    }

    private mutating func freeCounter(_ index: Int32) {
        let key = counters[Int(index)].key
        // The limit of a batch goes with its last child.
        if case .group = key { limits[key] = nil }
        guard counters[Int(index)].gate == nil, index != Self.everythingIndex else { return }
        counterIndices[key] = nil
        freeCounters.append(index)
    }

    // MARK: - Looking

    /// When a job that waits for nothing but time may start; nil when there is none.
    func wake(after now: TimeInterval) -> TimeInterval? {
        guard !isSuspended else { return nil }
        return awaitedGates.compactMap { counters[Int($0)].gate?.opens }.filter { $0 > now }.min()
    }

    /// What holds a job that is ready.
    enum Obstacle: Hashable {
        case suspended
        /// All slots are taken.
        case limit(Int)
        case key(LimitKey, limit: Int)
        /// Until when, on the clock of the queue.
        case rate(until: TimeInterval)
        /// Others are before it.
        case turn
    }

    func obstacle(of place: Int32, at now: TimeInterval) -> Obstacle {
        if isSuspended { return .suspended }
        if let index = firstFull(of: place, at: now) {
            let counter = counters[Int(index)]
            if let limit = counter.limit, counter.running >= limit { return .key(counter.key, limit: limit) }
            if let gate = counter.gate { return .rate(until: gate.opens) }
        }
        if let limit, runningCount >= limit, standings[Int(place)].occupiesSlot { return .limit(limit) }
        return .turn
    }

    /// The number of the job's turn; nil when it stands nowhere.
    func turn(of place: Int32) -> UInt64? {
        let place = Int(place)
        return standings.indices.contains(place) && standings[place].lane >= 0 ? standings[place].turn : nil
    }

    /// Whether the job has the key.
    func has(_ place: Int32, _ key: LimitKey) -> Bool {
        counterIndices[key].map { standings[Int(place)].keys.contains($0) } ?? false
    }

    func runningCount(of key: LimitKey) -> Int {
        counterIndices[key].map { counters[Int($0)].running } ?? 0
    }

    // MARK: - Rows

    /// The first of the highest row, or of one that has been overtaken often enough.
    private func head(of lane: Int32) -> Int32? {
        let base = Int(lane) * JobPriority.allCases.count
        var head: Int32?
        for row in (base..<base + JobPriority.allCases.count).reversed() where rows[row].first >= 0 {
            if head == nil {
                head = rows[row].first
            } else if let overtakingLimit, rows[row].overtaken >= overtakingLimit {
                return rows[row].first
            }
        }
        return head
    }

    private mutating func noteOvertaking(by priority: JobPriority, in lane: Int32) {
        let base = Int(lane) * JobPriority.allCases.count
        rows[base + Int(priority.rawValue)].overtaken = 0
        for row in base..<base + Int(priority.rawValue) where rows[row].first >= 0 { rows[row].overtaken &+= 1 }
    }

    private func row(_ lane: Int32, _ priority: JobPriority) -> Int {
        Int(lane) * JobPriority.allCases.count + Int(priority.rawValue)
    }

    /// By turn. Who joins for the first time is last; who comes back stood at the head, so that few are before it.
    ///
    /// - Parameter notBefore: one that joined just before, and whose turn is earlier if it stands in the same row.
    private mutating func join(_ place: Int32, lane: Int32, notBefore: Int32 = -1) {
        let row = row(lane, standings[Int(place)].priority)
        let turn = standings[Int(place)].turn
        var next: Int32 = -1
        var previous = rows[row].last
        if previous >= 0, standings[Int(previous)].turn > turn {
            previous = -1
            next = rows[row].first
            if notBefore >= 0, standings[Int(notBefore)].lane == lane, standings[Int(notBefore)].turn < turn,
                standings[Int(notBefore)].priority == standings[Int(place)].priority
            {
                previous = notBefore
                next = standings[Int(notBefore)].next
            }
            while standings[Int(next)].turn < turn {
                previous = next
                next = standings[Int(next)].next
            }
        }
        if lane >= Self.firstKeyLane { noteWaiting(lane - Self.firstKeyLane, 1) }
        standings[Int(place)].lane = lane
        standings[Int(place)].previous = previous
        standings[Int(place)].next = next
        if previous >= 0 { standings[Int(previous)].next = place } else { rows[row].first = place }
        if next >= 0 { standings[Int(next)].previous = place } else { rows[row].last = place }
    }

    private mutating func leave(_ place: Int32) {
        let standing = standings[Int(place)]
        let row = row(standing.lane, standing.priority)
        if standing.previous >= 0 {
            standings[Int(standing.previous)].next = standing.next
        } else {
            rows[row].first = standing.next
        }
        if standing.next >= 0 {
            standings[Int(standing.next)].previous = standing.previous
        } else {
            rows[row].last = standing.previous
        }
        standings[Int(place)].lane = -1
        if standing.lane >= Self.firstKeyLane { noteWaiting(standing.lane - Self.firstKeyLane, -1) }
        // An empty row has nobody who was overtaken.
        if rows[row].first < 0 { rows[row].overtaken = 0 }
    }

    private mutating func noteWaiting(_ index: Int32, _ change: Int) {
        counters[Int(index)].waiting += change
        let isAwaited = counters[Int(index)].waiting > 0 && counters[Int(index)].gate != nil
        if isAwaited { awaitedGates.insert(index) } else if !awaitedGates.isEmpty { awaitedGates.remove(index) }
    }

    /// No job is left: nothing of a burst stays behind.
    mutating func removeAllStandings() {
        standings = []
    }
}
