#if os(Linux) || os(macOS)
import Foundation
import Programs

/// A port that leads to another port of this machine as over a distance: it delays what the connections carry.
///
/// One thread serves all connections until ``stop()``. It writes without waiting for room, because they carry little.
final class Relay {
    let port: UInt16
    /// The thread ends when this end of a pipe closes.
    private let lifeline = Pipe()

    /// - Parameter delay: The nanoseconds in each direction, half a round trip.
    init(to target: UInt16, delay: UInt64) throws {
        let (listener, port) = try FreePorts.bound(toIPv6: false, 0)
        self.port = port
        let loop = Loop(
            listener: Descriptor(listener),
            target: target,
            delay: delay,
            lifeline: lifeline.fileHandleForReading
        )
        guard listen(listener, 511) == 0 else { throw ChildProcess.Failure(description: "the relay cannot listen") }
        // A connection whose other side has closed would otherwise end the process.
        signal(SIGPIPE, SIG_IGN)
        Thread { loop.run() }.start()
    }

    func stop() {
        try? lifeline.fileHandleForWriting.close()
    }
}

/// A descriptor that closes with its last owner.
private final class Descriptor: Sendable {
    let number: Int32

    init(_ number: Int32) {
        self.number = number
        _ = fcntl(number, F_SETFD, FD_CLOEXEC)
    }

    deinit { close(number) }
}

/// One direction of a connection.
private struct Flow {
    let source: Descriptor
    let target: Descriptor
    /// When TCP's handshake would end. What comes before was sent too early, as there was none with the distance.
    let opening: UInt64
    /// What is on its way, and when it arrives. Empty bytes are the end.
    var chunks: ArraySlice<(arrival: UInt64, bytes: ArraySlice<UInt8>)> = []
    var hasRead = false
    var hasEnded = false

    mutating func receive(at now: UInt64, delay: UInt64) {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        let count = max(read(source.number, &buffer, buffer.count), 0)
        hasRead = count == 0
        chunks.append((max(now, opening) + delay, buffer.prefix(count)))
    }

    mutating func deliver(until now: UInt64) {
        while let chunk = chunks.first, chunk.arrival <= now {
            chunks.removeFirst()
            var rest = chunk.bytes
            while !rest.isEmpty {
                let count = rest.withUnsafeBytes { write(target.number, $0.baseAddress, $0.count) }
                guard count > 0 else { break }
                rest.removeFirst(count)
            }
            guard chunk.bytes.isEmpty || !rest.isEmpty else { continue }
            shutdown(target.number, Int32(SHUT_WR))
            hasEnded = true
        }
    }
}

private struct Loop {
    let listener: Descriptor
    let target: UInt16
    let delay: UInt64
    let lifeline: FileHandle

    /// Half a millisecond, as `poll` counts milliseconds. What arrives is rounded, so that many waits are not longer.
    private static let precision: UInt64 = 500_000

    func run() {
        var flows: [Flow] = []
        while true {
            var looks = [lifeline.fileDescriptor, listener.number].map(Self.look)
            looks += flows.map { Self.look($0.hasRead ? -1 : $0.source.number) }
            poll(&looks, nfds_t(looks.count), timeout(flows))
            guard looks[0].revents == 0 else { return }
            let now = DispatchTime.now().uptimeNanoseconds
            for index in flows.indices {
                if looks[index + 2].revents != 0 { flows[index].receive(at: now, delay: delay) }
                flows[index].deliver(until: now + Self.precision)
            }
            flows.removeAll { $0.hasEnded }
            if looks[1].revents != 0 { flows += open(at: now) }
        }
    }

    private static func look(_ descriptor: Int32) -> pollfd {
        pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    }

    /// Milliseconds until the next chunk arrives; -1 for none.
    private func timeout(_ flows: [Flow]) -> Int32 {
        guard let next = flows.compactMap({ $0.chunks.first?.arrival }).min() else { return -1 }
        let now = DispatchTime.now().uptimeNanoseconds
        return next > now ? Int32((next - now + Self.precision) / 1_000_000) : 0
    }

    /// Accepts a connection, and connects to the target.
    private func open(at now: UInt64) -> [Flow] {
        let client = Descriptor(accept(listener.number, nil, nil))
        guard let free = try? FreePorts.bound(toIPv6: false, 0) else { return [] }
        let server = Descriptor(free.descriptor)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        address.sin_port = target.bigEndian
        let length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(server.number, $0, length) }
        }
        guard result == 0 else { return [] }
        for descriptor in [client, server] {
            // The system would otherwise hold a write back until the one before has been acknowledged.
            var yes: Int32 = 1
            setsockopt(descriptor.number, Int32(IPPROTO_TCP), TCP_NODELAY, &yes, socklen_t(MemoryLayout<Int32>.size))
        }
        return [
            Flow(source: client, target: server, opening: now + 2 * delay),
            Flow(source: server, target: client, opening: 0),
        ]
    }
}
#endif
