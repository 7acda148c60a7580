#if os(Linux)
import Dispatch
import Foundation

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A socket on which the kernel reports its network. The socket requests the tables at the start and after each change.
/// No thread waits.
final class KernelNetworkSocket: @unchecked Sendable {
    // The class is Sendable because its state is used only on its queue.

    /// A struct sockaddr_nl of linux/netlink.h. The kernel has port 0.
    private struct Address {
        var family = UInt16(AF_NETLINK)
        var padding: UInt16 = 0
        var port: UInt32 = 0
        var groups: UInt32 = 0
    }

    /// The delay before the tables are requested again, in seconds, because changes arrive in bursts.
    private static let pause: TimeInterval = 0.1

    private let descriptor: Int32
    /// The maximum time for a response, in seconds. A kernel responds at once or never.
    private let patience: TimeInterval
    private let tell: @Sendable (NetworkReachability.Status) -> Void
    private let queue = DispatchQueue(label: "EasyNetwork.NetworkReachability")
    private let source: any DispatchSourceRead
    private var network = KernelNetwork()
    /// The receive buffer. No datagram is longer: the kernel sends at most 32 KiB.
    private var buffer = [UInt8](repeating: 0, count: 65_536)
    private var askedAt: TimeInterval = 0
    /// The duration of the last response, in seconds.
    private var cost: TimeInterval = 0
    private var isPausing = false

    /// Creates a socket that observes the kernel's network.
    ///
    /// - Returns: Nil if the system does not allow the process to request the network's state.
    convenience init?(tell: @escaping @Sendable (NetworkReachability.Status) -> Void) {
        guard let descriptor = Self.open() else { return nil }
        self.init(descriptor, tell: tell)
    }

    /// Creates an observer on a socket.
    ///
    /// - Parameter descriptor: A datagram socket. The observer closes it.
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
        // The protocol 0 is NETLINK_ROUTE.
        let descriptor = socket(AF_NETLINK, type, 0)
        guard descriptor >= 0 else { return nil }
        // The groups are RTMGRP_LINK, RTMGRP_IPV4_IFADDR, RTMGRP_IPV4_ROUTE, RTMGRP_IPV6_IFADDR and RTMGRP_IPV6_ROUTE.
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
        // After the cancellation, the descriptor can already belong to another file.
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

    /// Reports an unknown status, and requests the tables again.
    private func giveUp() {
        network.lose()
        follow(network.fail())
        // The time of waiting does not count as work.
        cost = 0
        askAgain()
    }

    private func read() {
        while true {
            var sender = Address()
            var length = socklen_t(MemoryLayout<Address>.size)
            // With MSG_TRUNC the result is the datagram's complete length, even if the buffer is shorter.
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

    /// Requests the tables again after a pause, if something has changed. With a million routes a response takes
    /// seconds. The pause is then longer, so that requests take at most a tenth of the time.
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
