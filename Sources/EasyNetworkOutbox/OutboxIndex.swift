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

    private struct Lane: Hashable {
        /// By sequence. The ones before `first` have left.
        var names: [OutboxName] = []
        var first = 0
        /// The entry of the lane that is being delivered.
        var current: UUID?
        /// The lane waits until then.
        var notBefore: TimeInterval?
        var isFirm = false
        /// Whether the lane is among the ready ones.
        var isReady = false

        var head: OutboxName? { first < names.count ? names[first] : nil }
    }

    private var lanes: [LaneKey: Lane] = [:]
    private var names: [UUID: OutboxName] = [:]
    /// The entries that have left their lane.
    private var strays: Set<UUID> = []
    private var dependencies: [UUID: [UUID]] = [:]
    /// The lanes whose head waits for an entry.
    private var blocked: [UUID: Set<LaneKey>] = [:]
    /// Lanes that may deliver, in the order in which they became ready. The ones before `first` have been taken.
    private struct Row: Hashable {
        var lanes: [LaneKey] = []
        var first = 0
    }

    /// By the priority of the lane's head.
    private var ready = Array(repeating: Row(), count: JobPriority.count)
    private var postponed: Set<LaneKey> = []
    /// The entries among them that wait for their time or a condition.
    private var early: Set<LaneKey> = []
    /// No wait ends earlier; nil without waits.
    private(set) var nextWake: TimeInterval?

    var count: Int { names.count }
    /// In any order.
    var all: some Collection<OutboxName> { names.values }

    /// Whether a lane may deliver; not all of them need have an entry left.
    var hasReady: Bool { ready.contains { $0.first < $0.lanes.count } }

    /// Whether nothing is left but what waits for its time or a condition, and what comes after it.
    var isIdle: Bool { !hasReady && postponed.count == early.count }

    func contains(_ id: UUID) -> Bool { names[id] != nil }

    func name(of id: UUID) -> OutboxName? { names[id] }

    private func key(of name: OutboxName) -> LaneKey {
        guard let lane = name.lane, !strays.contains(name.id) else { return .alone(name.id) }
        return .named(lane)
    }

    /// - Parameter dependencies: the entries that it waits for; those that are not here have left.
    mutating func insert(_ name: OutboxName, after dependencies: [UUID] = []) {
        guard names[name.id] == nil else { return }
        names[name.id] = name
        if !dependencies.isEmpty { self.dependencies[name.id] = dependencies }
        let key = key(of: name)
        var lane = lanes.removeValue(forKey: key) ?? Lane()
        // Nearly always the last one.
        var index = lane.names.count
        while index > lane.first, lane.names[index - 1].sequence > name.sequence { index -= 1 }
        lane.names.insert(name, at: index)
        // The wait was that of the one behind it.
        let endsWait = index == lane.first && lane.notBefore != nil
        lanes[key] = lane
        if endsWait { endWait(key) }
        makeReady(key)
    }

    /// - Returns: the entry; nil when it is not here.
    @discardableResult
    mutating func remove(_ id: UUID) -> OutboxName? {
        guard let name = names.removeValue(forKey: id) else { return nil }
        let key = key(of: name)
        strays.remove(id)
        dependencies[id] = nil
        guard var lane = lanes.removeValue(forKey: key) else { return nil }
        // Not always the head: an older one may have come back.
        if lane.current == id { lane.current = nil }
        if lane.head?.id == id {
            // A wait ends with the entry that failed.
            lane.notBefore = nil
            lane.first += 1
            if lane.first > 32, lane.first > lane.names.count / 2 {
                lane.names.removeFirst(lane.first)
                lane.first = 0
            }
        } else if let index = lane.names.lastIndex(of: name) {
            lane.names.remove(at: index)
        }
        if lane.notBefore == nil { endWait(key) }
        if lane.head != nil {
            lanes[key] = lane
            makeReady(key)
        }
        for lane in blocked.removeValue(forKey: id) ?? [] { makeReady(lane) }
        return name
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
                lanes[lane]?.isReady = false
                guard isFree(lane), let head = lanes[lane]?.head else { continue }
                guard head.priority == priority else {
                    makeReady(lane)
                    continue
                }
                lanes[lane]?.current = head.id
                return head
            }
            ready[rank] = Row()
        }
        return nil
    }

    /// Takes an entry back that was to be delivered, as entries that it depends on are here again.
    mutating func putBack(_ id: UUID, after dependencies: [UUID]) {
        guard let lane = names[id].map(key), lanes[lane]?.current == id else { return }
        self.dependencies[id] = dependencies
        lanes[lane]?.current = nil
        makeReady(lane)
    }

    /// Has the lane of an entry that was under way wait.
    mutating func postpone(_ id: UUID, _ wait: Wait, at now: TimeInterval) {
        guard let name = names[id], lanes[key(of: name)]?.current == id else { return }
        lanes[key(of: name)]?.current = nil
        if wait.leavesLane, name.lane != nil, !strays.contains(id) {
            let dependencies = dependencies[id] ?? []
            remove(id)
            strays.insert(id)
            insert(name, after: dependencies)
        }
        let (lane, time) = (key(of: name), now + wait.delay)
        lanes[lane]?.notBefore = time
        lanes[lane]?.isFirm = wait.isFirm
        postponed.insert(lane)
        if wait.reason == .early { early.insert(lane) }
        nextWake = min(nextWake ?? time, time)
    }

    /// Ends the wait of an entry.
    mutating func wake(_ id: UUID) {
        guard let lane = names[id].map(key), lanes[lane]?.head?.id == id, postponed.contains(lane) else { return }
        endWait(lane)
        makeReady(lane)
    }

    /// Ends the waits that are over.
    mutating func wake(at now: TimeInterval, isReachableAgain: Bool = false) {
        guard isReachableAgain || nextWake ?? .infinity <= now else { return }
        nextWake = nil
        for lane in postponed {
            let time = lanes[lane]?.notBefore ?? now
            guard time <= now || isReachableAgain && lanes[lane]?.isFirm == false else {
                nextWake = min(nextWake ?? time, time)
                continue
            }
            endWait(lane)
            makeReady(lane)
        }
    }

    private mutating func endWait(_ lane: LaneKey) {
        postponed.remove(lane)
        early.remove(lane)
        lanes[lane]?.notBefore = nil
    }

    private mutating func isFree(_ lane: LaneKey) -> Bool {
        guard let state = lanes[lane], state.current == nil, state.notBefore == nil, let head = state.head else {
            return false
        }
        guard let dependency = dependencies[head.id]?.first(where: { names[$0] != nil }) else { return true }
        blocked[dependency, default: []].insert(lane)
        return false
    }

    private mutating func makeReady(_ lane: LaneKey) {
        guard lanes[lane]?.isReady == false, isFree(lane), let head = lanes[lane]?.head else { return }
        lanes[lane]?.isReady = true
        ready[Int(head.priority.rawValue)].lanes.append(lane)
    }
}
