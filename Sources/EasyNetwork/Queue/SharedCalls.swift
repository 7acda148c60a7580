/// The operations that share a message and its answer, as a value.
///
/// The first to join opens a call, with a carrier that sends the message. The call closes when its answer has come or
/// the last member has left; a later one opens another call. A step costs the same whatever the number of members.
struct SharedCalls<Carrier, Joiner> {
    typealias Number = UInt64

    /// The result of leaving a call.
    struct Departure {
        /// The one that left.
        let joiner: Joiner
        let call: Number
        /// Its priority may be another one now.
        let carrier: Carrier
        /// The last member has left: the call is closed, and its carrier is to be cancelled.
        let wasLast: Bool
    }

    private struct Member {
        let joiner: Joiner
        let call: Number
        /// When it came.
        let number: Number
        var priority: JobPriority
    }

    private struct Row {
        let key: SharingKey
        let carrier: Carrier
        var members: Set<ObjectIdentifier> = []
        var priorities = PriorityCounts()
    }

    private var lastNumber: Number = 0
    private var open: [SharingKey: Number] = [:]
    private var rows: [Number: Row] = [:]
    private var members: [ObjectIdentifier: Member] = [:]

    /// How many calls are open.
    var count: Int { rows.count }
    /// How many have joined and not left.
    var memberCount: Int { members.count }

    /// Adds an operation, once.
    ///
    /// - Parameter makeCarrier: called when there is no open call of this key.
    /// - Returns: the call and its carrier, and whether that is new, so that it is to be set going.
    mutating func join(
        _ id: ObjectIdentifier,
        _ joiner: Joiner,
        key: SharingKey,
        priority: JobPriority,
        makeCarrier: (Number) -> Carrier
    ) -> (call: Number, carrier: Carrier, isNew: Bool) {
        lastNumber += 1
        let call: Number
        let carrier: Carrier
        let isNew: Bool
        if let number = open[key], let there = rows[number]?.carrier {
            (call, carrier, isNew) = (number, there, false)
        } else {
            (call, carrier, isNew) = (lastNumber, makeCarrier(lastNumber), true)
            open[key] = call
            rows[call] = Row(key: key, carrier: carrier)
        }
        members[id] = Member(joiner: joiner, call: call, number: lastNumber, priority: priority)
        rows[call]?.members.insert(id)
        rows[call]?.priorities.add(1, priority)
        return (call, carrier, isNew)
    }

    /// - Returns: nil when it is not there, or not any more.
    mutating func leave(_ id: ObjectIdentifier) -> Departure? {
        guard let member = members.removeValue(forKey: id), let carrier = rows[member.call]?.carrier else {
            return nil
        }
        rows[member.call]?.members.remove(id)
        rows[member.call]?.priorities.add(-1, member.priority)
        let wasLast = rows[member.call]?.members.isEmpty == true
        if wasLast { _ = close(member.call) }
        return Departure(joiner: member.joiner, call: member.call, carrier: carrier, wasLast: wasLast)
    }

    /// The answer is there, or none will come.
    ///
    /// - Returns: those who get it, in the order in which they came, and which of them opened the call.
    mutating func close(_ call: Number) -> [(joiner: Joiner, isOpener: Bool)] {
        guard let row = rows.removeValue(forKey: call) else { return [] }
        open[row.key] = nil
        return row.members.compactMap { members.removeValue(forKey: $0) }
            .sorted { $0.number < $1.number }
            // The call has the number of the one that opened it.
            .map { ($0.joiner, $0.number == call) }
    }

    /// - Returns: the call whose priority may have changed, and its carrier.
    mutating func setPriority(_ priority: JobPriority, of id: ObjectIdentifier) -> (call: Number, carrier: Carrier)? {
        guard let member = members[id], let carrier = rows[member.call]?.carrier else { return nil }
        members[id]?.priority = priority
        rows[member.call]?.priorities.add(-1, member.priority)
        rows[member.call]?.priorities.add(1, priority)
        return (member.call, carrier)
    }

    /// The highest priority of those that share the call; nil when it is closed.
    func priority(of call: Number) -> JobPriority? {
        rows[call]?.priorities.highest
    }
}
