import Foundation

/// What jobs are counted by, beside all together.
enum LimitKey: Hashable, Sendable {
    case host(String)
    case tag(String)
    /// Jobs of one category run one at a time.
    case exclusion(String)
    /// The children of one batch.
    case group(ObjectIdentifier)
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
    var gate: RateGate?

    private var limits: [LimitKey: Int] = [:]
    /// For each host that has no limit of its own.
    private(set) var hostLimit: Int?

    private var standings: [Standing] = []
    private var counters: [Counter] = []
    private var freeCounters: [Int32] = []
    private var counterIndices: [LimitKey: Int32] = [:]
    /// The counters that have a rate.
    private var gated: [Int32] = []
    private var rows = [Row](repeating: Row(), count: 2 * JobPriority.allCases.count)
    private var turns: UInt64 = 0

    private static let mainLane: Int32 = 0
    /// For jobs that need no slot.
    private static let freeLane: Int32 = 1
    private static let firstKeyLane: Int32 = 2

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

        func hasRoom(at now: TimeInterval) -> Bool {
            limit.map { running < $0 } ?? true && gate.map { $0.opens <= now } ?? true
        }

        /// Whether one more job may come back from the lane.
        func isInviting(at now: TimeInterval) -> Bool {
            limit.map { running + promised < $0 } ?? true && gate.map { $0.opens <= now && promised == 0 } ?? true
        }
    }

    // MARK: - Jobs

    mutating func register(_ place: Int32, keys: [LimitKey], occupiesSlot: Bool) {
        let place = Int(place)
        while standings.count <= place { standings.append(Standing()) }
        standings[place] = Standing(occupiesSlot: occupiesSlot)
        guard !keys.isEmpty else { return }
        standings[place].keys = keys.map { key in
            let index = counterIndex(of: key)
            counters[Int(index)].users += 1
            return index
        }
    }

    /// The job has left; it stands nowhere and has no slot.
    mutating func unregister(_ place: Int32) {
        guard standings.indices.contains(Int(place)) else { return }
        for index in standings[Int(place)].keys.take() {
            counters[Int(index)].users -= 1
            if counters[Int(index)].users == 0 { freeCounter(index) }
        }
    }

    /// The job is ready: it joins the end of its row.
    mutating func enqueue(_ place: Int32, priority: JobPriority) {
        turns += 1
        standings[Int(place)].turn = turns
        standings[Int(place)].priority = priority
        join(place, lane: standings[Int(place)].occupiesSlot ? Self.mainLane : Self.freeLane)
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
        if let place = head(of: Self.freeLane) {
            leave(place)
            return place
        }
        for index in gated { invite(index, at: now) }
        while limit.map({ runningCount < $0 }) ?? true, gate.map({ $0.opens <= now }) ?? true,
            let place = head(of: Self.mainLane)
        {
            leave(place)
            if let full = standings[Int(place)].keys.first(where: { !counters[Int($0)].hasRoom(at: now) }) {
                join(place, lane: Self.firstKeyLane + full)
                breakPromise(to: place, at: now)
            } else {
                noteOvertaking(by: standings[Int(place)].priority, in: Self.mainLane)
                occupy(place, at: now)
                return place
            }
        }
        return nil
    }

    /// The job has no slot any more.
    mutating func vacate(_ place: Int32, at now: TimeInterval) {
        guard standings[Int(place)].occupiesSlot else { return }
        runningCount -= 1
        for index in standings[Int(place)].keys {
            counters[Int(index)].running -= 1
            invite(index, at: now)
        }
    }

    private mutating func occupy(_ place: Int32, at now: TimeInterval) {
        runningCount += 1
        gate?.take(at: now)
        for index in standings[Int(place)].keys {
            counters[Int(index)].running += 1
            counters[Int(index)].gate?.take(at: now)
        }
        let promise = standings[Int(place)].promisedBy
        standings[Int(place)].promisedBy = -1
        if promise >= 0 { counters[Int(promise)].promised -= 1 }
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
        while counters[Int(index)].isInviting(at: now), let place = head(of: lane) {
            leave(place)
            noteOvertaking(by: standings[Int(place)].priority, in: lane)
            standings[Int(place)].promisedBy = index
            counters[Int(index)].promised += 1
            join(place, lane: Self.mainLane)
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

    mutating func setRate(_ rate: RateLimit?, for key: LimitKey, at now: TimeInterval) {
        // Kept while nobody uses it: what has been taken from the bucket stays taken.
        if rate != nil { _ = counterIndex(of: key) }
        if let index = counterIndices[key] {
            counters[Int(index)].gate = rate.map(RateGate.init)
            gated.removeAll { $0 == index }
            if rate != nil { gated.append(index) } else if counters[Int(index)].users == 0 { freeCounter(index) }
            refresh(index, at: now)
        }
    }

    private mutating func refresh(_ index: Int32, at now: TimeInterval) {
        counters[Int(index)].limit = effectiveLimit(of: counters[Int(index)].key)
        invite(index, at: now)
    }

    private func effectiveLimit(of key: LimitKey) -> Int? {
        switch key {
        case .exclusion: 1
        case .host: limits[key] ?? hostLimit
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
        guard counters[Int(index)].gate == nil else { return }
        counterIndices[key] = nil
        freeCounters.append(index)
    }

    // MARK: - Looking

    /// When a job that waits for nothing but time may start; nil when there is none.
    func wake(after now: TimeInterval) -> TimeInterval? {
        guard !isSuspended else { return nil }
        var earliest: TimeInterval?
        func consider(_ time: TimeInterval?) {
            if let time, time > now { earliest = min(earliest ?? time, time) }
        }
        if limit.map({ runningCount < $0 }) ?? true, head(of: Self.mainLane) != nil { consider(gate?.opens) }
        for index in gated where head(of: Self.firstKeyLane + index) != nil {
            consider(counters[Int(index)].gate?.opens)
        }
        return earliest
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
        for index in standings[Int(place)].keys where !counters[Int(index)].hasRoom(at: now) {
            let counter = counters[Int(index)]
            if let limit = counter.limit, counter.running >= limit { return .key(counter.key, limit: limit) }
            if let gate = counter.gate { return .rate(until: gate.opens) }
        }
        if let limit, runningCount >= limit { return .limit(limit) }
        if let gate, gate.opens > now { return .rate(until: gate.opens) }
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
    private mutating func join(_ place: Int32, lane: Int32) {
        let row = row(lane, standings[Int(place)].priority)
        var next: Int32 = -1
        var previous = rows[row].last
        if previous >= 0, standings[Int(previous)].turn > standings[Int(place)].turn {
            previous = -1
            next = rows[row].first
            while standings[Int(next)].turn < standings[Int(place)].turn {
                previous = next
                next = standings[Int(next)].next
            }
        }
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
        // An empty row has nobody who was overtaken.
        if rows[row].first < 0 { rows[row].overtaken = 0 }
    }

    /// No job is left: nothing of a burst stays behind.
    mutating func removeAllStandings() {
        standings = []
    }
}
