#if os(Linux)
import Dispatch
import Foundation

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The socket on which the kernel tells of its network. It asks at the start and after each change; no thread waits.
final class KernelNetworkSocket: @unchecked Sendable {
    // Sendable because its state is used on its queue only.

    /// struct sockaddr_nl of linux/netlink.h. Port 0 is the kernel's.
    private struct Address {
        var family = UInt16(AF_NETLINK)
        var padding: UInt16 = 0
        var port: UInt32 = 0
        var groups: UInt32 = 0
    }

    /// Changes come in swarms: they are awaited for so long before all is asked again.
    private static let pause: TimeInterval = 0.1

    private let descriptor: Int32
    /// The seconds that an answer may take. A kernel answers at once or never.
    private let patience: TimeInterval
    private let tell: @Sendable (NetworkReachability.Status) -> Void
    private let queue = DispatchQueue(label: "EasyNetwork.NetworkReachability")
    private let source: any DispatchSourceRead
    private var network = KernelNetwork()
    /// No datagram is longer: the kernel fills 32 KiB at most.
    private var buffer = [UInt8](repeating: 0, count: 65_536)
    private var askedAt: TimeInterval = 0
    /// The seconds that the last answer took.
    private var cost: TimeInterval = 0
    private var isPausing = false

    /// Watches the network of the kernel.
    ///
    /// - Returns: nil when the system does not let the process ask.
    convenience init?(tell: @escaping @Sendable (NetworkReachability.Status) -> Void) {
        guard let descriptor = Self.open() else { return nil }
        self.init(descriptor, tell: tell)
    }

    /// - Parameter descriptor: a socket of datagrams, which it closes.
    init(
        _ descriptor: Int32,
        patience: TimeInterval = 30,
        tell: @escaping @Sendable (NetworkReachability.Status) -> Void
    ) {
        self.descriptor = descriptor
        self.patience = patience
        self.tell = tell
        source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: queue)
        source.setEventHandler { [weak self] in self?.read() }
        source.setCancelHandler { close(descriptor) }
        source.activate()
        queue.async { [weak self] in self?.ask() }
    }

    deinit { source.cancel() }

    private static func open() -> Int32? {
        #if canImport(Glibc)
        let type = Int32(SOCK_RAW.rawValue | SOCK_CLOEXEC.rawValue)
        #else
        let type = SOCK_RAW | SOCK_CLOEXEC
        #endif
        // NETLINK_ROUTE is 0.
        let descriptor = socket(AF_NETLINK, type, 0)
        guard descriptor >= 0 else { return nil }
        // RTMGRP_LINK, RTMGRP_IPV4_IFADDR, RTMGRP_IPV4_ROUTE, RTMGRP_IPV6_IFADDR and RTMGRP_IPV6_ROUTE.
        var address = Address(groups: 0x1 | 0x10 | 0x40 | 0x100 | 0x400)
        let length = socklen_t(MemoryLayout<Address>.size)
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, length) }
        }
        if result == 0 { return descriptor }
        close(descriptor)
        return nil
    }

    private func ask() {
        // Then the descriptor may be another's already.
        guard !source.isCancelled else { return }
        let now = ProcessInfo.processInfo.systemUptime
        askedAt = now
        send(network.ask())
        queue.asyncAfter(deadline: .now() + patience) { [weak self] in
            guard let self, network.isAsking, askedAt == now else { return }
            giveUp()
        }
    }

    private func send(_ question: [UInt8]) {
        let count = Foundation.send(descriptor, question, question.count, Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL))
        if count != question.count { follow(network.fail()) }
    }

    /// Tells that nothing is known, and asks again.
    private func giveUp() {
        network.lose()
        follow(network.fail())
        // To wait is no work.
        cost = 0
        askAgain()
    }

    private func read() {
        while true {
            var sender = Address()
            var length = socklen_t(MemoryLayout<Address>.size)
            // The length that a datagram would have in a larger buffer.
            let flags = Int32(MSG_DONTWAIT) | Int32(MSG_TRUNC)
            let count = withUnsafeMutablePointer(to: &sender) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { sender in
                    recvfrom(descriptor, &buffer, buffer.count, flags, sender, &length)
                }
            }
            if count < 0 {
                switch errno {
                case EINTR: continue
                case ENOBUFS: network.lose()
                case EAGAIN: return askAgain()
                default:
                    source.cancel()
                    return tell(.unknown)
                }
            } else if count > buffer.count {
                giveUp()
            } else if sender.port == 0 {
                follow(network.read(buffer.prefix(count)))
            }
        }
    }

    private func follow(_ outcome: KernelNetwork.Outcome) {
        switch outcome {
        case .nothing: break
        case .ask(let question): send(question)
        case .status(let status):
            cost = ProcessInfo.processInfo.systemUptime - askedAt
            tell(status)
        }
    }

    /// Asks again after a pause if something has changed. With a million routes the answer takes seconds: then the
    /// pause is longer, so that no more than a tenth of the time goes into it.
    private func askAgain() {
        guard network.isOutdated, !network.isAsking, !isPausing else { return }
        isPausing = true
        queue.asyncAfter(deadline: .now() + max(Self.pause, cost * 9)) { [weak self] in
            guard let self else { return }
            isPausing = false
            ask()
        }
    }
}
#endif
