import EasyNetwork
import Foundation

/// The entries to deliver, and which of them is next.
///
/// The entries of a lane are delivered one after another, in their order. Lanes are delivered concurrently; lanes whose
/// head has a higher priority come first. An entry without a lane has a lane of its own. An entry waits for the entries
/// that it depends on as long as they are in the index.
struct OutboxIndex: Hashable, Sendable {
    private enum LaneKey: Hashable {
        case named(String)
        case alone(UUID)
    }

    /// Why a lane waits, and for how long.
    struct Wait: Hashable, Sendable {
        enum Reason: Hashable, Sendable {
            case failure
            /// A failure that another process has already reported.
            case oldFailure
            /// The entry's time has not come, or a condition is not met.
            case early
        }

        var delay: TimeInterval
        var reason = Reason.failure
        /// Whether the wait continues when the network returns.
        var isFirm = false
        /// Whether later entries of the lane can overtake the entry from now on.
        var leavesLane = false
    }

    private struct Entry: Hashable {
        let name: OutboxName
        /// The entries that this one waits for. An id that is not in the index belongs to an entry that has left.
        var after: [UUID]
        var lane: LaneKey
        /// The lanes whose head waits for this entry.
        var blocked: Set<LaneKey> = []
        /// The final result, if the entry need not be sent again but could not leave the directory yet.
        var verdict: OutboxState.Verdict?
    }

    private struct Lane: Hashable {
        enum Phase: Hashable {
            /// The head waits for another entry.
            case blocked
            case ready
            /// The entry is under way. If an older entry has been revived since, the entry is not the head.
            case delivering(UUID)
            case waiting(Wait, until: TimeInterval)
        }

        /// The entries in their order. The ones before `first` have left.
        var names: [OutboxName] = []
        var first = 0
        var phase = Phase.blocked

        var head: OutboxName? { first < names.count ? names[first] : nil }
    }

    private var lanes: [LaneKey: Lane] = [:]
    private var entries: [UUID: Entry] = [:]
    /// Lanes that can deliver, in the order in which they became ready. The ones before `first` have been taken.
    private struct Row: Hashable {
        var lanes: [LaneKey] = []
        var first = 0
    }

    /// The ready lanes, by the priority of the lane's head.
    private var ready = Array(repeating: Row(), count: JobPriority.count)
    /// The lanes that wait.
    private var postponed: Set<LaneKey> = []
    /// The earliest end of a wait, or a time before it; `nil` if no lane waits.
    private(set) var nextWake: TimeInterval?

    var count: Int { entries.count }
    /// All entries in any order.
    var all: some Collection<OutboxName> { entries.values.lazy.map(\.name) }

    /// Whether a lane is in `ready`. Such a lane may have no entry left.
    var hasReady: Bool { ready.contains { $0.first < $0.lanes.count } }

    /// Whether the only entries left wait for their time or a condition, or for such an entry.
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

    /// The final result of an entry that need not be sent again but could not leave the directory yet. `nil` if the
    /// entry is not in the index.
    subscript(verdict id: UUID) -> OutboxState.Verdict? {
        get { entries[id]?.verdict }
        set { entries[id]?.verdict = newValue }
    }

    /// Returns whether an older entry of the lane was added again after this one was chosen.
    func isOvertaken(_ id: UUID) -> Bool {
        guard let lane = entries[id]?.lane, let head = lanes[lane]?.head else { return false }
        return head.id != id
    }

    /// - Parameter dependencies: the entries that it waits for. An id that is not in the index belongs to an entry that
    ///   has left.
    mutating func insert(_ name: OutboxName, after dependencies: [UUID] = []) {
        guard entries[name.id] == nil else { return }
        insert(Entry(name: name, after: dependencies, lane: name.lane.map(LaneKey.named) ?? .alone(name.id)))
    }

    private mutating func insert(_ entry: Entry) {
        entries[entry.name.id] = entry
        var lane = lanes.removeValue(forKey: entry.lane) ?? Lane()
        // The new entry is nearly always the last one.
        var index = lane.names.count
        while index > lane.first, lane.names[index - 1].sequence > entry.name.sequence { index -= 1 }
        lane.names.insert(entry.name, at: index)
        lanes[entry.lane] = lane
        // The wait belonged to the previous head.
        if index == lane.first { endWait(entry.lane) }
        makeReady(entry.lane)
    }

    /// - Returns: the name of the entry; `nil` if it is not in the index.
    @discardableResult
    mutating func remove(_ id: UUID) -> OutboxName? {
        guard let entry = entries.removeValue(forKey: id), var lane = lanes.removeValue(forKey: entry.lane) else {
            return nil
        }
        // The entry is not always the head, because an older one can have been revived.
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

    /// Returns the entry to deliver next, and marks it as under way.
    mutating func next() -> OutboxName? {
        for priority in JobPriority.allCases.reversed() {
            let rank = Int(priority.rawValue)
            while ready[rank].first < ready[rank].lanes.count {
                let lane = ready[rank].lanes[ready[rank].first]
                ready[rank].first += 1
                if ready[rank].first > 1_000, ready[rank].first > ready[rank].lanes.count / 2 {
                    ready[rank] = Row(lanes: Array(ready[rank].lanes[ready[rank].first...]))
                }
                // The lane's entries may have left since it became ready, and others may have been added.
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

    /// Puts an entry that was to be delivered back into its lane.
    ///
    /// - Parameter dependencies: the entries that it waits for. Defaults to `nil`: they have not changed.
    mutating func putBack(_ id: UUID, after dependencies: [UUID]? = nil) {
        guard let entry = entries[id], lanes[entry.lane]?.phase == .delivering(id) else { return }
        if let dependencies { entries[id]?.after = dependencies }
        lanes[entry.lane]?.phase = .blocked
        makeReady(entry.lane)
    }

    /// Makes the lane of an entry that was under way wait.
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

    /// Ends the waits whose time has passed. If the network is back, ends all waits that aren't firm.
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

    /// Returns lanes in the order of their heads, so that lanes that become ready together are sent in it.
    private func inOrder(_ keys: Set<LaneKey>) -> [LaneKey] {
        keys.sorted { lanes[$0]?.head?.sequence ?? 0 < lanes[$1]?.head?.sequence ?? 0 }
    }

    private mutating func endWait(_ lane: LaneKey) {
        guard postponed.remove(lane) != nil else { return }
        lanes[lane]?.phase = .blocked
        makeReady(lane)
    }

    /// - Returns: the head of a lane if the head does not wait for another entry.
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
