#if os(Linux)
/// Determines whether there is a network, from the links, addresses and routes that Linux reports (rtnetlink(7),
/// netlink(7)). It takes messages and returns a status, and does no I/O. Messages can contain anything; a malformed one
/// makes the status unknown.
///
/// There is a network if two things hold. A unicast route to destinations that are not link-local uses an interface
/// that is up and running and is not the loopback. And some interface has an address of the route's family. This
/// corresponds to networkd's "routable" with a route. NetworkManager requires a default route; with that rule, a host
/// in a closed network would wait forever. The route of a container bridge, which leads nowhere, counts as well, and
/// costs an attempt that fails.
///
/// Changes are not applied, only noted. The kernel reports some of them only as the change of a link, and drops
/// messages that do not fit its buffer. After a change, all tables are requested again.
struct KernelNetwork {
    /// The result of a datagram.
    enum Outcome: Equatable {
        case nothing
        /// A table is complete. This message requests the next one.
        case ask([UInt8])
        /// All tables are complete, or the kernel does not send them.
        case status(NetworkReachability.Status)
    }

    /// The tables in the order of the requests. The raw value is the type of their messages: RTM_NEWLINK, RTM_NEWADDR
    /// and RTM_NEWROUTE of linux/rtnetlink.h. The type plus one is a deletion, the type plus two is a request.
    private enum Table: UInt16 {
        case links = 16
        case addresses = 20
        case routes = 24

        /// The size of ifinfomsg, ifaddrmsg or rtmsg, in bytes.
        var entryCount: Int {
            switch self {
            case .links: 16
            case .addresses: 8
            case .routes: 12
            }
        }
    }

    /// Whether something has changed, or might have changed, since the last request.
    private(set) var isOutdated = true

    /// The requested table; nil if no request is pending.
    private var table: Table?
    /// The number of the last request.
    private var number: UInt32 = 0
    /// Whether the tables have changed during the response, so that it might be incomplete.
    private var isInterrupted = false
    private var hasLinks = false
    private var running: Set<UInt32> = []
    /// The address families of the known addresses.
    private var families: Set<UInt8> = []
    private var isReachable = false

    var isAsking: Bool { table != nil }

    /// Starts again with the first table.
    ///
    /// - Returns: The first request.
    mutating func ask() -> [UInt8] {
        let number = number
        self = KernelNetwork()
        (isOutdated, self.number) = (false, number)
        return question(.links)
    }

    /// Notes that messages were lost (ENOBUFS).
    mutating func lose() { isOutdated = true }

    /// Ends the current response. Its content does not determine a status.
    mutating func fail() -> Outcome {
        table = nil
        return .status(.unknown)
    }

    mutating func read(_ datagram: ArraySlice<UInt8>) -> Outcome {
        var rest = datagram
        var outcome = Outcome.nothing
        while !rest.isEmpty {
            // Each message begins with struct nlmsghdr of linux/netlink.h: length, type, flags, number of the request,
            // port of the requester.
            guard let message = rest.takeRecord(UInt32.self, header: 16) else {
                isOutdated = true
                return isAsking ? fail() : outcome
            }
            let isAnswer = isAsking && message.number(at: 8) == number
            let next = read(message.dropFirst(16), message.number(at: 4), message.number(at: 6), isAnswer: isAnswer)
            if next != .nothing { outcome = next }
        }
        return outcome
    }

    private mutating func read(_ body: ArraySlice<UInt8>, _ type: UInt16, _ flags: UInt16, isAnswer: Bool) -> Outcome {
        // The flag 0x10 is NLM_F_DUMP_INTR.
        if isAnswer, flags & 0x10 != 0 { isInterrupted = true }
        switch type {
        case 2 where isAnswer:  // NLMSG_ERROR: the kernel rejects the request.
            return fail()
        case 3 where isAnswer:  // NLMSG_DONE, with an error if the response is incomplete.
            return body.number(at: 0) == UInt32(0) ? endTable() : fail()
        case 4:  // NLMSG_OVERRUN
            isOutdated = true
        case 16...26:
            // The flag 2 is NLM_F_MULTI. A message about a change never has it, and can have the number of any
            // process's request.
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
            // Every network namespace has a loopback link, even an empty one.
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

    /// Returns a message that requests a complete table: a header and an entry of zeros.
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
    /// The families of IPv4 and IPv6: AF_INET and AF_INET6 of linux/socket.h.
    private static let (inet, inet6): (UInt8, UInt8) = (2, 10)

    /// Reads an entry of the requested table.
    ///
    /// - Returns: False if the entry is too short.
    private mutating func readEntry(_ entry: ArraySlice<UInt8>) -> Bool {
        guard let table, entry.count >= table.entryCount else { return false }
        switch table {
        case .links: readLink(entry)
        case .addresses: readAddress(entry)
        case .routes: readRoute(entry)
        }
        return true
    }

    /// Reads a struct ifinfomsg: family, type, index at 4, flags at 8.
    private mutating func readLink(_ link: ArraySlice<UInt8>) {
        hasLinks = true
        let flags: UInt32 = link.number(at: 8)
        // The flags are IFF_UP, IFF_RUNNING, and IFF_LOOPBACK of linux/if.h. The last one must not be set.
        if flags & (0x1 | 0x40 | 0x8) == 0x1 | 0x40 { running.insert(link.number(at: 4)) }
    }

    /// Reads a struct ifaddrmsg: family, length of the prefix, flags, scope, index of the link at 4. The address can
    /// belong to any link, including the loopback, because routes over links without an address use it.
    private mutating func readAddress(_ address: ArraySlice<UInt8>) {
        let family: UInt8 = address.number(at: 0)
        let flags: UInt8 = address.number(at: 2)
        let scope: UInt8 = address.number(at: 3)
        // An address with IFA_F_TENTATIVE and without IFA_F_OPTIMISTIC must not be used yet.
        let isUsable = flags & (0x40 | 0x04) != 0x40
        // RT_SCOPE_HOST is 254, RT_SCOPE_LINK 253. A link-local IPv4 address with a route can be the only address of a
        // virtual machine (AWS Lambda). A link-local IPv6 address is never routed to another link.
        if isUsable, scope < (family == Self.inet6 ? 253 : 254) { families.insert(family) }
    }

    /// Reads a struct rtmsg: family, length of the destination, …, type at 7; attributes from 12.
    private mutating func readRoute(_ route: ArraySlice<UInt8>) {
        let family: UInt8 = route.number(at: 0)
        // Type 1 is RTN_UNICAST.
        guard route.number(at: 7) == UInt8(1), family == Self.inet || family == Self.inet6, families.contains(family)
        else { return }
        var destination = ArraySlice<UInt8>()
        var interfaces: [UInt32] = []
        var attributes = route.dropFirst(12)
        // Each attribute begins with struct rtattr: length, type.
        while let attribute = attributes.takeRecord(UInt16.self, header: 4) {
            let kind: UInt16 = attribute.number(at: 2)
            let value = attribute.dropFirst(4)
            switch kind {
            case 1: destination = value  // RTA_DST
            case 4: interfaces.append(value.number(at: 0))  // RTA_OIF
            case 9:  // RTA_MULTIPATH
                var hops = value
                // Each hop begins with struct rtnexthop: length, flags, weight, index of the link at 4.
                while let hop = hops.takeRecord(UInt16.self, header: 8) { interfaces.append(hop.number(at: 4)) }
            default: break
            }
        }
        guard !Self.isLocal(destination, route.number(at: 1), family) else { return }
        // A route with a nexthop object might name no interface.
        let leadsOut = interfaces.isEmpty ? !running.isEmpty : interfaces.contains(where: running.contains)
        if leadsOut { isReachable = true }
    }

    /// Returns whether a destination is within 169.254.0.0/16 or fe80::/10, or within the multicast addresses of IPv6,
    /// whose routes are unicast before Linux 5.6.
    private static func isLocal(_ destination: ArraySlice<UInt8>, _ length: UInt8, _ family: UInt8) -> Bool {
        let prefix = UInt16(bigEndian: destination.number(at: 0))
        if family == inet { return length >= 16 && prefix == 0xA9FE }
        return length >= 10 && prefix & 0xFFC0 == 0xFE80 || length >= 8 && prefix >= 0xFF00
    }
}

extension ArraySlice<UInt8> {
    /// Returns a number in the machine's byte order; 0 if it is incomplete.
    fileprivate func number<Number: FixedWidthInteger>(at offset: Int) -> Number {
        guard count - offset >= MemoryLayout<Number>.size else { return 0 }
        return withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: Number.self) }
    }

    /// Removes and returns a record that begins with its length. Also removes the padding that aligns the next record
    /// to four bytes.
    ///
    /// - Returns: Nil if the record is incomplete.
    fileprivate mutating func takeRecord<Length: FixedWidthInteger>(_: Length.Type, header: Int) -> Self? {
        let number: Length = number(at: 0)
        guard let length = Int(exactly: number), length >= header, length <= count else { return nil }
        defer { self = dropFirst((length + 3) & ~3) }
        return prefix(length)
    }
}
#endif
