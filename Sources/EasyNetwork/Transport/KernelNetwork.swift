#if os(Linux)
/// Whether there is a network, by what Linux says of its links, addresses and routes (rtnetlink(7), netlink(7)):
/// messages in, a status out. It does no I/O. Messages may be anything; what is not as it should be makes the status
/// unknown.
///
/// There is a network when a unicast route to other than link-local addresses leads over an interface that is up and
/// running and not the loopback, and some interface has an address of the route's family. That is networkd's "routable"
/// and a route for it. NetworkManager asks for a default route, without which a host in a closed network would wait for
/// ever; that of a bridge of containers, which leads nowhere, costs an attempt that fails.
///
/// Changes are not applied, only noted: the kernel tells some of them but by the change of a link, and drops what does
/// not fit. After them everything is asked again.
struct KernelNetwork {
    /// The consequence of a datagram.
    enum Outcome: Equatable {
        case nothing
        /// A part of the answer is whole; this asks for the next one.
        case ask([UInt8])
        /// The answer is whole, or there is none.
        case status(NetworkReachability.Status)
    }

    /// The tables in the order of the questions, by the type of their messages: RTM_NEWLINK, RTM_NEWADDR and
    /// RTM_NEWROUTE of linux/rtnetlink.h. One more is the deletion, two more the question.
    private enum Table: UInt16 {
        case links = 16
        case addresses = 20
        case routes = 24

        /// The size of ifinfomsg, ifaddrmsg or rtmsg.
        var entryCount: Int {
            switch self {
            case .links: 16
            case .addresses: 8
            case .routes: 12
            }
        }
    }

    /// Whether something has changed, or may have, since the last question.
    private(set) var isOutdated = true

    /// The table of which messages are awaited; nil when nothing is.
    private var table: Table?
    /// The number of the last question.
    private var number: UInt32 = 0
    /// Whether the tables have changed under the answer, so that it may miss some of them.
    private var isInterrupted = false
    private var hasLinks = false
    private var running: Set<UInt32> = []
    /// The families of which there is an address.
    private var families: Set<UInt8> = []
    private var isReachable = false

    var isAsking: Bool { table != nil }

    /// Begins from the start.
    ///
    /// - Returns: the first question.
    mutating func ask() -> [UInt8] {
        self = KernelNetwork(isOutdated: false, number: number)
        return question(.links)
    }

    init() {}

    private init(isOutdated: Bool, number: UInt32) {
        self.isOutdated = isOutdated
        self.number = number
    }

    /// Notes that messages are lost (ENOBUFS).
    mutating func lose() { isOutdated = true }

    /// Ends the answer under way: what is known of it says nothing.
    mutating func fail() -> Outcome {
        table = nil
        return .status(.unknown)
    }

    mutating func read(_ datagram: ArraySlice<UInt8>) -> Outcome {
        var rest = datagram
        var outcome = Outcome.nothing
        while !rest.isEmpty {
            // struct nlmsghdr of linux/netlink.h: length, type, flags, number of the question, port of the asker.
            guard let message = rest.takeRecord(UInt32.self, header: 16) else {
                isOutdated = true
                return isAsking ? fail() : outcome
            }
            guard let type: UInt16 = message.number(at: 4), let flags: UInt16 = message.number(at: 6),
                let number: UInt32 = message.number(at: 8)
            else { continue }
            let next = read(message.dropFirst(16), type, flags, isAnswer: isAsking && number == self.number)
            if next != .nothing { outcome = next }
        }
        return outcome
    }

    private mutating func read(_ body: ArraySlice<UInt8>, _ type: UInt16, _ flags: UInt16, isAnswer: Bool) -> Outcome {
        // NLM_F_DUMP_INTR.
        if isAnswer, flags & 0x10 != 0 { isInterrupted = true }
        switch type {
        case 2 where isAnswer:  // NLMSG_ERROR, which the kernel sends for a question that it refuses.
            return fail()
        case 3 where isAnswer:  // NLMSG_DONE, with an error if the answer is not whole.
            let error: UInt32 = body.number(at: 0) ?? 0
            return error == 0 ? endTable() : fail()
        case 4:  // NLMSG_OVERRUN
            isOutdated = true
        case 16...26:
            // NLM_F_MULTI, which no message of a change has: those have the number of a question of anybody's.
            if flags & 2 == 0 {
                isOutdated = true
            } else if isAnswer, type != table?.rawValue || !readEntry(body) {
                return fail()
            }
        default: break
        }
        return .nothing
    }

    private mutating func endTable() -> Outcome {
        switch table {
        case .links:
            // Even an empty namespace has its loopback.
            return hasLinks ? .ask(question(.addresses)) : fail()
        case .addresses: return .ask(question(.routes))
        case .routes:
            table = nil
            if !isInterrupted { return .status(isReachable ? .reachable : .unreachable) }
            isOutdated = true
        case nil: break
        }
        return .nothing
    }

    /// A message that asks for a whole table: a header and an entry of zeros.
    private mutating func question(_ table: Table) -> [UInt8] {
        self.table = table
        number &+= 1
        var message: [UInt8] = []
        func add(_ number: some FixedWidthInteger) {
            withUnsafeBytes(of: number) { message.append(contentsOf: $0) }
        }
        add(UInt32(16 + table.entryCount))
        add(table.rawValue + 2)
        add(UInt16(0x301))  // NLM_F_REQUEST and NLM_F_DUMP
        add(number)
        add(UInt32(0))
        return message + [UInt8](repeating: 0, count: table.entryCount)
    }
}

// MARK: - Entries
extension KernelNetwork {
    /// IPv4 and IPv6: AF_INET and AF_INET6 of linux/socket.h.
    private static let (inet, inet6): (UInt8, UInt8) = (2, 10)

    /// - Returns: false when it is too short.
    private mutating func readEntry(_ entry: ArraySlice<UInt8>) -> Bool {
        switch table {
        case .links: readLink(entry)
        case .addresses: readAddress(entry)
        case .routes: readRoute(entry)
        case nil: false
        }
    }

    /// struct ifinfomsg: family, type, index at 4, flags at 8.
    private mutating func readLink(_ link: ArraySlice<UInt8>) -> Bool {
        guard let index: UInt32 = link.number(at: 4), let flags: UInt32 = link.number(at: 8) else { return false }
        hasLinks = true
        // IFF_UP, IFF_RUNNING, and not IFF_LOOPBACK, of linux/if.h.
        if flags & (0x1 | 0x40 | 0x8) == 0x1 | 0x40 { running.insert(index) }
        return true
    }

    /// struct ifaddrmsg: family, length of the prefix, flags, scope, index of the link at 4. The address may belong to
    /// any link, the loopback too, since routes over links without one use it.
    private mutating func readAddress(_ address: ArraySlice<UInt8>) -> Bool {
        guard let family: UInt8 = address.number(at: 0), let flags: UInt8 = address.number(at: 2),
            let scope: UInt8 = address.number(at: 3)
        else { return false }
        // IFA_F_TENTATIVE without IFA_F_OPTIMISTIC: not to be used yet.
        let isUsable = flags & (0x40 | 0x04) != 0x40
        // RT_SCOPE_HOST is 254, RT_SCOPE_LINK 253. A link-local IPv4 address with a route may be all that a virtual
        // machine has (AWS Lambda); an IPv6 one is sent to no other link.
        if isUsable, scope < (family == Self.inet6 ? 253 : 254) { families.insert(family) }
        return true
    }

    /// struct rtmsg: family, length of the destination, …, type at 7; attributes from 12.
    private mutating func readRoute(_ route: ArraySlice<UInt8>) -> Bool {
        guard let family: UInt8 = route.number(at: 0), let length: UInt8 = route.number(at: 1),
            let type: UInt8 = route.number(at: 7), route.count >= 12
        else { return false }
        // RTN_UNICAST
        guard type == 1, family == Self.inet || family == Self.inet6, families.contains(family) else { return true }
        var destination = ArraySlice<UInt8>()
        var interfaces: [UInt32?] = []
        var attributes = route.dropFirst(12)
        // struct rtattr: length, type.
        while let attribute = attributes.takeRecord(UInt16.self, header: 4) {
            let kind: UInt16? = attribute.number(at: 2)
            let value = attribute.dropFirst(4)
            switch kind {
            case 1: destination = value  // RTA_DST
            case 4: interfaces.append(value.number(at: 0))  // RTA_OIF
            case 9:  // RTA_MULTIPATH
                var hops = value
                // struct rtnexthop: length, flags, weight, index of the link at 4.
                while let hop = hops.takeRecord(UInt16.self, header: 8) { interfaces.append(hop.number(at: 4)) }
            default: break
            }
        }
        guard !Self.isLocal(destination, length, family) else { return true }
        // A route by a nexthop object may name no interface.
        let leadsOut = interfaces.isEmpty ? !running.isEmpty : interfaces.contains { $0.map(running.contains) ?? false }
        if leadsOut { isReachable = true }
        return true
    }

    /// Whether a destination is within 169.254.0.0/16 or fe80::/10, or of IPv6's multicast, whose routes are unicast
    /// before Linux 5.6.
    private static func isLocal(_ destination: ArraySlice<UInt8>, _ length: UInt8, _ family: UInt8) -> Bool {
        guard let start: UInt16 = destination.number(at: 0) else { return false }
        let prefix = UInt16(bigEndian: start)
        if family == inet { return length >= 16 && prefix == 0xA9FE }
        return length >= 10 && prefix & 0xFFC0 == 0xFE80 || length >= 8 && prefix >= 0xFF00
    }
}

extension ArraySlice<UInt8> {
    /// A number in the machine's byte order; nil when it is not whole.
    fileprivate func number<Number: FixedWidthInteger>(at offset: Int) -> Number? {
        guard count - offset >= MemoryLayout<Number>.size else { return nil }
        return withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: Number.self) }
    }

    /// Takes off what begins with its length, and what aligns the next one to four bytes.
    ///
    /// - Returns: nil when it is not whole.
    fileprivate mutating func takeRecord<Length: FixedWidthInteger>(_: Length.Type, header: Int) -> Self? {
        guard let length: Length = number(at: 0), let length = Int(exactly: length), length >= header, length <= count
        else { return nil }
        defer { self = dropFirst((length + 3) & ~3) }
        return prefix(length)
    }
}
#endif
