import Foundation

/// A property by which jobs are counted and limited together.
enum LimitKey: Hashable, Sendable {
    /// All jobs that need a slot: for the rate of the whole queue.
    case everything
    case host(String)
    case tag(String)
    /// Jobs of one category run one at a time.
    case exclusion(String)
    /// The children of one batch.
    case group(ObjectIdentifier)

    /// Whether a job that needs no slot, since it only waits for others, counts by this key too. Not where those others
    /// count as well: it would hold the room that they wait for.
    fileprivate var countsWithoutSlot: Bool {
        switch self {
        case .exclusion, .group: true
        case .everything, .host, .tag: false
        }
    }
}

/// Chooses the next job to start, by priority, limits and rates: a value that knows jobs by their place in the graph.
///
/// A ready job stands in one lane. It joins the main lane. When its turn has come and one of its keys has no room, it moves
/// to the lane of that key.
///
/// ```
///                  veryHigh    high    normal     low    veryLow
/// main lane                            g ─ h ─ i   k
/// lane of host a                       b ─ e                       closed: as many jobs of the host run as may
/// lane of tag t                d       f                           open: the tag has room again
/// ```
///
/// A bucket, one a priority and lane, is ordered by turn. The next job is the best head in the main lane and the open
/// lanes, by priority and then by turn: here `d`. If another key of it has no room, it moves to that lane, and the next
/// best is tried. So the cost of a start depends on the number of open lanes and not on the number of jobs.
///
/// Every lane exists twice: for jobs that need a slot, and for jobs that need none, which also start when all slots are
/// taken.
struct JobAdmission {
    /// The number of jobs that may have a slot at once; nil means no limit.
    var limit: Int?
    var isSuspended = false
    /// Jobs that have a slot.
    private(set) var runningCount = 0
    /// The number of starts of higher priority in a row after which a lower one is next; nil means no such number. Without
    /// it a steady flow of urgent jobs would starve the others (OPQ-3).
    var overtakingLimit: Int?

    private var limits: [LimitKey: Int] = [:]
    /// The limit of each host that has none of its own.
    private(set) var hostLimit: Int?

    private var entries: [Entry] = []
    private var counters: [Counter] = []
    private var freeCounters: [Int32] = []
    private var counterIndices: [LimitKey: Int32] = [:]
    /// The counters that are below their limit and in whose lane jobs wait.
    private var openCounters: Set<Int32> = []
    private var buckets: [Bucket] = []
    private var turns: UInt64 = 0

    private static let mainLane: Int32 = 0
    /// The counter that always exists.
    private static let everythingIndex: Int32 = 0

    /// The state of one job.
    private struct Entry {
        var keys: [Int32] = []
        /// The number that the job drew when it became ready: lower ones go first.
        var turn: UInt64 = 0
        var previous: Int32 = -1
        var next: Int32 = -1
        /// -1 when it stands in no lane.
        var lane: Int32 = -1
        var priority = JobPriority.normal
        var occupiesSlot = true
        /// It counts by no key yet, see ``JobGraph/Traits/isPreparing``.
        var isPreparing = false
        /// It has started before: rates do not apply to it.
        var isReturning = false
    }

    /// The jobs of one lane and priority, linked through their entries.
    private struct Bucket {
        var first: Int32 = -1
        var last: Int32 = -1
        /// The number of jobs of higher priority that have started since one of this bucket has.
        var overtaken: Int32 = 0
    }

    private struct Counter {
        var key: LimitKey
        var limit: Int?
        var gate: RateGate?
        var running = 0
        /// Jobs that have the key and have not finished.
        var users = 0
        /// Jobs in its lane.
        var waiting = 0

        var isBelowLimit: Bool { limit.map { running < $0 } ?? true }

        func hasRoom(at now: TimeInterval, isReturning: Bool) -> Bool {
            isBelowLimit && (isReturning || gate.map { $0.opens <= now } ?? true)
        }
    }

    init() {
        addLane()
        _ = counterIndex(of: .everything)
    }

    private var everything: Counter { counters[Int(Self.everythingIndex)] }

    // MARK: - Jobs

    mutating func register(_ place: Int32, keys: [LimitKey], occupiesSlot: Bool, isPreparing: Bool = false) {
        let place = Int(place)
        while entries.count <= place { entries.append(Entry()) }
        entries[place] = Entry(occupiesSlot: occupiesSlot && !isPreparing, isPreparing: isPreparing)
        entries[place].keys = use(keys)
    }

    /// Makes a job that has been prepared count by these keys, and by its group. It stands in no lane and has no slot.
    mutating func endPreparing(_ place: Int32, keys: [LimitKey], occupiesSlot: Bool) {
        let before = entries[Int(place)].keys
        let group = before.filter { if case .group = counters[Int($0)].key { true } else { false } }
        entries[Int(place)] = Entry(keys: use(keys) + group, occupiesSlot: occupiesSlot)
        drop(before.filter { !group.contains($0) })
    }

    /// Removes a job that stands in no lane and has no slot.
    mutating func unregister(_ place: Int32) {
        guard entries.indices.contains(Int(place)) else { return }
        drop(entries[Int(place)].keys.take())
    }

    /// Gives the memory of a burst back when no job is left.
    mutating func removeAllEntries() {
        entries = []
    }

    /// Adds a job that is ready to the main lane, behind the others of its priority.
    ///
    /// - Parameter isReturning: whether it has had a slot before; nil means as it was.
    mutating func enqueue(_ place: Int32, priority: JobPriority, isReturning: Bool? = nil) {
        turns += 1
        entries[Int(place)].turn = turns
        entries[Int(place)].priority = priority
        if let isReturning { entries[Int(place)].isReturning = isReturning }
        join(place, lane: Self.mainLane)
    }

    /// Removes a job from its lane, if it stands in one.
    mutating func dequeue(_ place: Int32) {
        if entries[Int(place)].lane >= 0 { leave(place) }
    }

    /// The next job to start, which now has its slot; nil when none may start.
    mutating func next(at now: TimeInterval) -> Int32? {
        guard !isSuspended else { return nil }
        return next(occupyingSlot: false, at: now) ?? next(occupyingSlot: true, at: now)
    }

    private mutating func next(occupyingSlot: Bool, at now: TimeInterval) -> Int32? {
        while !occupyingSlot || limit.map({ runningCount < $0 }) ?? true,
            let place = best(occupyingSlot: occupyingSlot, at: now)
        {
            if let full = firstFull(of: place, at: now) {
                leave(place)
                join(place, lane: full + 1)
            } else {
                noteOvertaking(by: place)
                leave(place)
                occupy(place, at: now)
                return place
            }
        }
        return nil
    }

    /// The best head of the main lane and the open lanes.
    private func best(occupyingSlot: Bool, at now: TimeInterval) -> Int32? {
        var best: (place: Int32, rank: Int, turn: UInt64)?
        func look(at lane: Int32) {
            for priority in JobPriority.allCases {
                let bucket = buckets[bucketIndex(lane, priority, occupyingSlot)]
                guard bucket.first >= 0 else { continue }
                let (turn, isReturning) = (entries[Int(bucket.first)].turn, entries[Int(bucket.first)].isReturning)
                guard lane == Self.mainLane || counters[Int(lane - 1)].hasRoom(at: now, isReturning: isReturning)
                else { continue }
                let isDue = overtakingLimit.map { bucket.overtaken >= $0 } ?? false
                let rank = Int(priority.rawValue) + (isDue ? JobPriority.allCases.count : 0)
                if let best, (best.rank, turn) > (rank, best.turn) { continue }
                best = (bucket.first, rank, turn)
            }
        }
        look(at: Self.mainLane)
        for index in openCounters { look(at: index + 1) }
        return best?.place
    }

    /// Counts the start of a job for those of lower priority that might have started instead.
    private mutating func noteOvertaking(by place: Int32) {
        noteOvertaking(by: place, in: Self.mainLane)
        for index in openCounters { noteOvertaking(by: place, in: index + 1) }
        buckets[bucketIndex(of: place)].overtaken = 0
    }

    private mutating func noteOvertaking(by place: Int32, in lane: Int32) {
        let first = bucketIndex(lane, .veryLow, entries[Int(place)].occupiesSlot)
        for bucket in first..<first + Int(entries[Int(place)].priority.rawValue) where buckets[bucket].first >= 0 {
            buckets[bucket].overtaken &+= 1
        }
    }

    /// The first key of the job that has no room.
    private func firstFull(of place: Int32, at now: TimeInterval) -> Int32? {
        let entry = entries[Int(place)]
        if entry.occupiesSlot, !everything.hasRoom(at: now, isReturning: entry.isReturning) {
            return Self.everythingIndex
        }
        return entry.keys.first { index in
            counts(place, index) && !counters[Int(index)].hasRoom(at: now, isReturning: entry.isReturning)
        }
    }

    private mutating func occupy(_ place: Int32, at now: TimeInterval) {
        let entry = entries[Int(place)]
        if entry.occupiesSlot {
            runningCount += 1
            if !entry.isReturning { counters[Int(Self.everythingIndex)].gate?.take(at: now) }
        }
        for index in entry.keys where counts(place, index) {
            counters[Int(index)].running += 1
            if !entry.isReturning { counters[Int(index)].gate?.take(at: now) }
            refreshOpen(index)
        }
    }

    /// Takes the slot from a job.
    mutating func vacate(_ place: Int32) {
        if entries[Int(place)].occupiesSlot { runningCount -= 1 }
        for index in entries[Int(place)].keys where counts(place, index) {
            counters[Int(index)].running -= 1
            refreshOpen(index)
        }
    }

    /// Takes the slot from a job that could not use it, and returns its tokens to the rates.
    mutating func withdraw(_ place: Int32) {
        let entry = entries[Int(place)]
        if !entry.isReturning {
            if entry.occupiesSlot { counters[Int(Self.everythingIndex)].gate?.giveBack() }
            for index in entry.keys where counts(place, index) { counters[Int(index)].gate?.giveBack() }
        }
        vacate(place)
    }

    private func counts(_ place: Int32, _ index: Int32) -> Bool {
        entries[Int(place)].occupiesSlot
            || (!entries[Int(place)].isPreparing && counters[Int(index)].key.countsWithoutSlot)
    }

    // MARK: - Limits

    mutating func setHostLimit(_ limit: Int?) {
        hostLimit = limit
        for index in counterIndices.values { refreshLimit(index) }
    }

    /// - Parameter limit: nil removes the limit of this key.
    mutating func setLimit(_ limit: Int?, for key: LimitKey) {
        limits[key] = limit
        if let index = counterIndices[key] { refreshLimit(index) }
    }

    /// The rate of the whole queue.
    var rate: RateLimit? { everything.gate?.limit }

    /// - Parameter rate: nil for none. Tokens that were taken stay taken when it changes.
    mutating func setRate(_ rate: RateLimit?, for key: LimitKey) {
        guard rate != nil || counterIndices[key] != nil else { return }
        // The counter is kept while it has a rate, also without users.
        let index = counterIndex(of: key)
        if let rate, counters[Int(index)].gate != nil {
            counters[Int(index)].gate?.limit = rate
        } else {
            counters[Int(index)].gate = rate.map(RateGate.init)
        }
        if rate == nil, counters[Int(index)].users == 0 { freeCounter(index) }
    }

    private mutating func refreshLimit(_ index: Int32) {
        counters[Int(index)].limit = effectiveLimit(of: counters[Int(index)].key)
        refreshOpen(index)
    }

    private func effectiveLimit(of key: LimitKey) -> Int? {
        switch key {
        case .exclusion: 1
        case .host: limits[key] ?? hostLimit
        case .everything: nil
        case .tag, .group: limits[key]
        }
    }

    private mutating func refreshOpen(_ index: Int32) {
        if counters[Int(index)].waiting > 0, counters[Int(index)].isBelowLimit {
            openCounters.insert(index)
        } else if !openCounters.isEmpty {
            openCounters.remove(index)
        }
    }

    // MARK: - Counters

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
            addLane()
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

    // MARK: - Queries

    /// When a job that waits only for a rate may start; nil when there is none.
    func wake(after now: TimeInterval) -> TimeInterval? {
        guard !isSuspended else { return nil }
        return openCounters.compactMap { counters[Int($0)].gate?.opens }.filter { $0 > now }.min()
    }

    /// The reason why a ready job has not started.
    enum Obstacle: Hashable {
        case suspended
        /// All slots are taken.
        case limit(Int)
        case key(LimitKey, limit: Int)
        /// Until then, on the clock of the queue.
        case rate(until: TimeInterval)
        /// Other jobs are before it.
        case turn
    }

    func obstacle(of place: Int32, at now: TimeInterval) -> Obstacle {
        if isSuspended { return .suspended }
        if let index = firstFull(of: place, at: now) {
            let counter = counters[Int(index)]
            if let limit = counter.limit, counter.running >= limit { return .key(counter.key, limit: limit) }
            if let gate = counter.gate { return .rate(until: gate.opens) }
        }
        if let limit, runningCount >= limit, entries[Int(place)].occupiesSlot { return .limit(limit) }
        return .turn
    }

    /// The job's turn; nil when it stands in no lane.
    func turn(of place: Int32) -> UInt64? {
        let place = Int(place)
        return entries.indices.contains(place) && entries[place].lane >= 0 ? entries[place].turn : nil
    }

    func has(_ place: Int32, _ key: LimitKey) -> Bool {
        counterIndices[key].map { entries[Int(place)].keys.contains($0) } ?? false
    }

    func runningCount(of key: LimitKey) -> Int {
        counterIndices[key].map { counters[Int($0)].running } ?? 0
    }

    // MARK: - Lanes

    private mutating func addLane() {
        buckets.append(contentsOf: repeatElement(Bucket(), count: 2 * JobPriority.allCases.count))
    }

    private func bucketIndex(_ lane: Int32, _ priority: JobPriority, _ occupiesSlot: Bool) -> Int {
        (2 * Int(lane) + (occupiesSlot ? 0 : 1)) * JobPriority.allCases.count + Int(priority.rawValue)
    }

    private func bucketIndex(of place: Int32) -> Int {
        let entry = entries[Int(place)]
        return bucketIndex(entry.lane, entry.priority, entry.occupiesSlot)
    }

    /// Inserts the job by its turn. A job that has just become ready is last; one from another lane was a head there, so
    /// few are before it.
    private mutating func join(_ place: Int32, lane: Int32) {
        entries[Int(place)].lane = lane
        let bucket = bucketIndex(of: place)
        let turn = entries[Int(place)].turn
        var next: Int32 = -1
        var previous = buckets[bucket].last
        if previous >= 0, entries[Int(previous)].turn > turn {
            previous = -1
            next = buckets[bucket].first
            while entries[Int(next)].turn < turn {
                previous = next
                next = entries[Int(next)].next
            }
        }
        entries[Int(place)].previous = previous
        entries[Int(place)].next = next
        if previous >= 0 { entries[Int(previous)].next = place } else { buckets[bucket].first = place }
        if next >= 0 { entries[Int(next)].previous = place } else { buckets[bucket].last = place }
        noteWaiting(in: lane, 1)
    }

    private mutating func leave(_ place: Int32) {
        let entry = entries[Int(place)]
        let bucket = bucketIndex(of: place)
        if entry.previous >= 0 {
            entries[Int(entry.previous)].next = entry.next
        } else {
            buckets[bucket].first = entry.next
        }
        if entry.next >= 0 {
            entries[Int(entry.next)].previous = entry.previous
        } else {
            buckets[bucket].last = entry.previous
        }
        if buckets[bucket].first < 0 { buckets[bucket].overtaken = 0 }
        entries[Int(place)].lane = -1
        noteWaiting(in: entry.lane, -1)
    }

    private mutating func noteWaiting(in lane: Int32, _ change: Int) {
        guard lane != Self.mainLane else { return }
        counters[Int(lane - 1)].waiting += change
        refreshOpen(lane - 1)
    }
}
