import EasyNetwork
import Foundation

/// The entries that are to be delivered: which of them comes next.
///
/// The entries of a lane are delivered one after the other, in their order; lanes side by side, those with an entry of
/// a higher priority at their head first. An entry without a lane is alone in one. An entry waits for those that it
/// depends on, as long as they are here.
struct OutboxIndex: Hashable, Sendable {
    private enum LaneKey: Hashable {
        case named(String)
        case alone(UUID)
    }

    /// Why, and how long, a lane waits.
    struct Wait: Hashable, Sendable {
        enum Reason: Hashable, Sendable {
            case failure
            /// A failure that was told before, in another process.
            case oldFailure
            /// Its time has not come, or a condition is not met.
            case early
        }

        var delay: TimeInterval
        var reason = Reason.failure
        /// Whether it waits that long also when the network is back.
        var isFirm = false
        /// Whether those behind it in its lane may go first from now on.
        var leavesLane = false
    }

    private struct Entry: Hashable {
        let name: OutboxName
        /// The entries that it waits for; those that are not here have left.
        var after: [UUID]
        var lane: LaneKey
        /// The lanes whose head waits for this entry.
        var blocked: Set<LaneKey> = []
        /// The entry need not be sent again, and could not leave the directory yet.
        var verdict: OutboxState.Verdict?
    }

    private struct Lane: Hashable {
        enum Phase: Hashable {
            /// Nothing happens: the head waits for another entry.
            case blocked
            /// The lane is among the ready ones.
            case ready
            /// The entry is under way. It is not the head if an older one has come back since.
            case delivering(UUID)
            case waiting(Wait, until: TimeInterval)
        }

        /// By sequence. The ones before `first` have left.
        var names: [OutboxName] = []
        var first = 0
        var phase = Phase.blocked

        var head: OutboxName? { first < names.count ? names[first] : nil }
    }

    private var lanes: [LaneKey: Lane] = [:]
    private var entries: [UUID: Entry] = [:]
    /// Lanes that may deliver, in the order in which they became ready. The ones before `first` have been taken.
    private struct Row: Hashable {
        var lanes: [LaneKey] = []
        var first = 0
    }

    /// By the priority of the lane's head.
    private var ready = Array(repeating: Row(), count: JobPriority.count)
    /// The lanes that wait.
    private var postponed: Set<LaneKey> = []
    /// No wait ends earlier; nil without waits.
    private(set) var nextWake: TimeInterval?

    var count: Int { entries.count }
    /// In any order.
    var all: some Collection<OutboxName> { entries.values.lazy.map(\.name) }

    /// Whether a lane may deliver; not all of them need have an entry left.
    var hasReady: Bool { ready.contains { $0.first < $0.lanes.count } }

    /// Whether nothing is left but what waits for its time or a condition, and what comes after it.
    var isIdle: Bool {
        !hasReady
            && postponed.allSatisfy { lane in
                if case .waiting(let wait, _)? = lanes[lane]?.phase { wait.reason == .early } else { false }
            }
    }

    /// Whether there are entries that need not be sent again.
    var hasVerdict: Bool { entries.values.contains { $0.verdict != nil } }

    func contains(_ id: UUID) -> Bool { entries[id] != nil }

    func name(of id: UUID) -> OutboxName? { entries[id]?.name }

    /// The fate of an entry that need not be sent again, and could not leave the directory yet. An entry that is not
    /// here has none.
    subscript(verdict id: UUID) -> OutboxState.Verdict? {
        get { entries[id]?.verdict }
        set { entries[id]?.verdict = newValue }
    }

    /// - Parameter dependencies: the entries that it waits for; those that are not here have left.
    mutating func insert(_ name: OutboxName, after dependencies: [UUID] = []) {
        guard entries[name.id] == nil else { return }
        insert(Entry(name: name, after: dependencies, lane: name.lane.map(LaneKey.named) ?? .alone(name.id)))
    }

    private mutating func insert(_ entry: Entry) {
        entries[entry.name.id] = entry
        var lane = lanes.removeValue(forKey: entry.lane) ?? Lane()
        // Nearly always the last one.
        var index = lane.names.count
        while index > lane.first, lane.names[index - 1].sequence > entry.name.sequence { index -= 1 }
        lane.names.insert(entry.name, at: index)
        lanes[entry.lane] = lane
        // The wait was that of the one behind it.
        if index == lane.first { endWait(entry.lane) }
        makeReady(entry.lane)
    }

    /// - Returns: the entry; nil when it is not here.
    @discardableResult
    mutating func remove(_ id: UUID) -> OutboxName? {
        guard let entry = entries.removeValue(forKey: id), var lane = lanes.removeValue(forKey: entry.lane) else {
            return nil
        }
        // Not always the head: an older one may have come back.
        if lane.phase == .delivering(id) { lane.phase = .blocked }
        if lane.head?.id == id {
            // A wait ends with the entry that failed.
            if postponed.remove(entry.lane) != nil { lane.phase = .blocked }
            lane.first += 1
            if lane.first > 32, lane.first > lane.names.count / 2 {
                lane.names.removeFirst(lane.first)
                lane.first = 0
            }
        } else if let index = lane.names.lastIndex(of: entry.name) {
            lane.names.remove(at: index)
        }
        if lane.head != nil {
            lanes[entry.lane] = lane
            makeReady(entry.lane)
        }
        for lane in inOrder(entry.blocked) { makeReady(lane) }
        return entry.name
    }

    /// The entry to deliver next, which is under way from then on.
    mutating func next() -> OutboxName? {
        for priority in JobPriority.allCases.reversed() {
            let rank = Int(priority.rawValue)
            while ready[rank].first < ready[rank].lanes.count {
                let lane = ready[rank].lanes[ready[rank].first]
                ready[rank].first += 1
                if ready[rank].first > 1_000, ready[rank].first > ready[rank].lanes.count / 2 {
                    ready[rank] = Row(lanes: Array(ready[rank].lanes[ready[rank].first...]))
                }
                // Since then all its entries may have left, or others may have come.
                guard lanes[lane]?.phase == .ready else { continue }
                lanes[lane]?.phase = .blocked
                guard let head = freeHead(of: lane) else { continue }
                guard head.priority == priority else {
                    makeReady(lane)
                    continue
                }
                lanes[lane]?.phase = .delivering(head.id)
                return head
            }
            ready[rank] = Row()
        }
        return nil
    }

    /// Takes an entry back that was to be delivered.
    ///
    /// - Parameter dependencies: the entries that it waits for, nil when they are as they were.
    mutating func putBack(_ id: UUID, after dependencies: [UUID]? = nil) {
        guard let entry = entries[id], lanes[entry.lane]?.phase == .delivering(id) else { return }
        if let dependencies { entries[id]?.after = dependencies }
        lanes[entry.lane]?.phase = .blocked
        makeReady(entry.lane)
    }

    /// Has the lane of an entry that was under way wait.
    mutating func postpone(_ id: UUID, _ wait: Wait, at now: TimeInterval) {
        guard var entry = entries[id], lanes[entry.lane]?.phase == .delivering(id) else { return }
        if wait.leavesLane, entry.lane != .alone(id) {
            remove(id)
            entry.lane = .alone(id)
            insert(entry)
        }
        let time = now + wait.delay
        lanes[entry.lane]?.phase = .waiting(wait, until: time)
        postponed.insert(entry.lane)
        nextWake = min(nextWake ?? time, time)
    }

    /// Ends the wait of an entry.
    mutating func wake(_ id: UUID) {
        if let lane = entries[id]?.lane, lanes[lane]?.head?.id == id { endWait(lane) }
    }

    /// Ends the waits that are over.
    mutating func wake(at now: TimeInterval, isReachableAgain: Bool = false) {
        guard isReachableAgain || nextWake ?? .infinity <= now else { return }
        nextWake = nil
        var over: Set<LaneKey> = []
        for lane in postponed {
            if case .waiting(let wait, let time)? = lanes[lane]?.phase, time > now, wait.isFirm || !isReachableAgain {
                nextWake = min(nextWake ?? time, time)
            } else {
                over.insert(lane)
            }
        }
        for lane in inOrder(over) { endWait(lane) }
    }

    /// By the order of their heads, so that those which become ready together are sent in it.
    private func inOrder(_ keys: Set<LaneKey>) -> [LaneKey] {
        keys.sorted { lanes[$0]?.head?.sequence ?? 0 < lanes[$1]?.head?.sequence ?? 0 }
    }

    /// Ends the wait of a lane, if it waits.
    private mutating func endWait(_ lane: LaneKey) {
        guard postponed.remove(lane) != nil else { return }
        lanes[lane]?.phase = .blocked
        makeReady(lane)
    }

    /// - Returns: the head of a lane if it waits for nothing.
    private mutating func freeHead(of lane: LaneKey) -> OutboxName? {
        guard let state = lanes[lane], state.phase == .blocked, let head = state.head else { return nil }
        guard let dependency = entries[head.id]?.after.first(where: { entries[$0] != nil }) else { return head }
        entries[dependency]?.blocked.insert(lane)
        return nil
    }

    private mutating func makeReady(_ lane: LaneKey) {
        guard let head = freeHead(of: lane) else { return }
        lanes[lane]?.phase = .ready
        ready[Int(head.priority.rawValue)].lanes.append(lane)
    }
}
