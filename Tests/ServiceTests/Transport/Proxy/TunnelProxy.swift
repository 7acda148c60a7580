#if os(Linux)
import EasyNetwork
import Foundation

@testable import EasyNetworkTesting

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A proxy on 127.0.0.1 that only opens tunnels for CONNECT (RFC 9110, section 9.3.6).
///
/// The tunnel goes to the requested port at 127.0.0.1, regardless of the host. A single thread owns all sockets and
/// waits for them with poll(2).
final class TunnelProxy: Sendable {
    /// The handling of the server's bytes.
    enum Course: Hashable, Sendable {
        /// Forwards all bytes to the client.
        case whole
        /// Ends every tunnel after forwarding that many bytes.
        case end(after: Int)
        /// Resets the client's connection after forwarding that many bytes.
        case reset(after: Int)
    }

    let port: UInt16
    private let asked = Locked<[String]>([])
    /// A byte written to the pipe ends the thread; nil once stopped.
    private let pipe: Locked<(reading: Int32, writing: Int32)?>
    private let finished = DispatchGroup()

    init(_ course: Course = .whole) throws {
        let ends = try Socket.makePipe()
        pipe = Locked(ends)
        do {
            let (listener, port) = try Socket.listen()
            self.port = port
            let thread = Thread { [asked, finished] in
                var relay = Relay(listener: listener, signal: ends.reading, course: course) { target in
                    asked.withLock { $0.append(target) }
                }
                relay.run()
                finished.leave()
            }
            finished.enter()
            thread.start()
        } catch {
            Socket.close(ends.reading)
            Socket.close(ends.writing)
            throw error
        }
    }

    deinit {
        stop()
    }

    /// Closes all sockets, and returns when that is done. Further calls have no effect.
    func stop() {
        guard let pipe = pipe.exchange(nil) else { return }
        Socket.wake(pipe.writing)
        // Waits for one round of the loop, which runs no code of the test.
        finished.wait()
        Socket.close(pipe.reading)
        Socket.close(pipe.writing)
    }

    /// The address in the form of the metrics.
    var address: String { "127.0.0.1:\(port)" }

    var url: URL {
        // An invalid URL fails every exchange with an error that names it.
        URL(string: "http://\(address)") ?? URL(fileURLWithPath: address)
    }

    /// The targets of all CONNECT requests in order, such as `127.0.0.1:443`.
    var targets: [String] { asked.withLock { $0 } }
}

/// The loop of the proxy's thread.
private struct Relay {
    let listener: Int32
    /// Readable when the thread must end.
    let signal: Int32
    let course: TunnelProxy.Course
    let note: (String) -> Void
    private var tunnels: [Tunnel] = []
    private var buffer = [UInt8](repeating: 0, count: Tunnel.limit)

    init(listener: Int32, signal: Int32, course: TunnelProxy.Course, note: @escaping (String) -> Void) {
        self.listener = listener
        self.signal = signal
        self.course = course
        self.note = note
    }

    mutating func run() {
        while waitIsOver() {
            tunnels = tunnels.compactMap { tunnel in
                var tunnel = tunnel
                return tunnel.goesOn(with: &buffer, note) ? tunnel : nil
            }
            while case .connection(let client) = Socket.accept(listener) {
                tunnels.append(Tunnel(client: client, course: course))
            }
        }
        for tunnel in tunnels { tunnel.close() }
        Socket.close(listener)
    }

    /// - Returns: `false` if the thread must end.
    private func waitIsOver() -> Bool {
        var entries = [signal, listener].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        for tunnel in tunnels { entries += tunnel.entries }
        guard poll(&entries, nfds_t(entries.count), -1) > 0 else { return errno == EINTR }
        return entries[0].revents == 0
    }
}

/// A connection with a client and, after its CONNECT, with a server.
private struct Tunnel {
    /// One end of the tunnel.
    private struct End {
        let descriptor: Int32
        /// The bytes still to be sent to this end.
        var output: [UInt8] = []
        /// Whether this end has finished sending.
        var isOver = false
        /// Whether this end has been told that the other one has finished.
        var isTold = false
    }

    /// The most bytes that are buffered for a slow end.
    static let limit = 65_536

    private let course: TunnelProxy.Course
    private var client: End
    private var server: End?
    private var head: [UInt8] = []
    /// The number of the server's bytes that may still be forwarded; nil means all.
    private var left: Int?
    /// Whether the limit was exceeded, so that the client gets no more.
    private var isCut = false

    init(client: Int32, course: TunnelProxy.Course) {
        self.client = End(descriptor: client)
        self.course = course
        switch course {
        case .whole: left = nil
        case .end(let count), .reset(let count): left = count
        }
    }

    /// The descriptors to wait for. An idle end is left out, because its hang-up would be reported again and again.
    var entries: [pollfd] {
        var entries = [entry(client, other: server)]
        if let server { entries.append(entry(server, other: client)) }
        return entries
    }

    private func entry(_ end: End, other: End?) -> pollfd {
        let events = (isRead(end, other: other) ? POLLIN : 0) | (end.output.isEmpty ? 0 : POLLOUT)
        return pollfd(fd: events == 0 ? -1 : end.descriptor, events: Int16(events), revents: 0)
    }

    private func isRead(_ end: End, other: End?) -> Bool {
        !end.isOver && (other?.output.count ?? 0) < Self.limit
    }

    func close() {
        Socket.close(client.descriptor)
        if let server { Socket.close(server.descriptor) }
    }

    /// Forwards bytes without blocking, and closes the tunnel at its end.
    mutating func goesOn(with buffer: inout [UInt8], _ note: (String) -> Void) -> Bool {
        guard readClient(&buffer, note), readServer(&buffer), send() else {
            close()
            return false
        }
        if isCut, case .reset = course, client.output.isEmpty {
            Socket.reset(client.descriptor)
            if let server { Socket.close(server.descriptor) }
            return false
        }
        return true
    }

    private mutating func readClient(_ buffer: inout [UInt8], _ note: (String) -> Void) -> Bool {
        guard isRead(client, other: server) else { return true }
        guard let bytes = Self.read(&client, &buffer) else { return false }
        if server != nil {
            server?.output += bytes
            return true
        }
        head += bytes
        guard head.suffix(4) == Array("\r\n\r\n".utf8)[...] else { return !client.isOver }
        let words = String(decoding: head, as: UTF8.self).split(separator: " ")
        guard words.count > 2, words[0] == "CONNECT" else { return false }
        note(String(words[1]))
        guard let port = words[1].split(separator: ":").last.flatMap({ UInt16($0) }),
            let descriptor = Socket.connected(toPort: port)
        else { return false }
        server = End(descriptor: descriptor)
        client.output += Array("HTTP/1.1 200 Connection established\r\n\r\n".utf8)
        return true
    }

    private mutating func readServer(_ buffer: inout [UInt8]) -> Bool {
        guard var server, !isCut, isRead(server, other: client) else { return true }
        guard let bytes = Self.read(&server, &buffer) else { return false }
        client.output += bytes.prefix(left ?? .max)
        if let count = left, !bytes.isEmpty {
            left = max(count - bytes.count, 0)
            isCut = left == 0
            if isCut, case .end = course { server.isOver = true }
        }
        self.server = server
        return true
    }

    /// - Returns: The received bytes; nil if the connection is broken.
    private static func read(_ end: inout End, _ buffer: inout [UInt8]) -> [UInt8]? {
        switch buffer.withUnsafeMutableBytes({ Socket.receive(end.descriptor, into: $0) }) {
        case .count(let count): return Array(buffer[..<count])
        case .wouldBlock: return []
        case .end:
            end.isOver = true
            return []
        case .failed: return nil
        }
    }

    /// - Returns: `false` if a connection is broken, or both ends have finished.
    private mutating func send() -> Bool {
        guard Self.send(&client, isLast: server?.isOver ?? false) else { return false }
        guard var end = server else { return true }
        defer { server = end }
        return Self.send(&end, isLast: client.isOver) && !(end.isTold && client.isTold)
    }

    private static func send(_ end: inout End, isLast: Bool) -> Bool {
        while !end.output.isEmpty {
            switch end.output.withUnsafeBytes({ Socket.send(end.descriptor, $0) }) {
            case .count(let count): end.output.removeFirst(count)
            case .wouldBlock: return true
            case .end, .failed: return false
            }
        }
        if isLast && !end.isTold {
            end.isTold = true
            Socket.finishWriting(end.descriptor)
        }
        return true
    }
}

extension Socket {
    /// Connects to a port of 127.0.0.1, which succeeds or fails immediately.
    fileprivate static func connected(toPort port: UInt16) -> Int32? {
        #if canImport(Glibc)
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        #else
        let descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)
        #endif
        guard descriptor >= 0 else { return nil }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        address.sin_port = port.bigEndian
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                connect(descriptor, pointer, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard result == 0 else {
            close(descriptor)
            return nil
        }
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
        return descriptor
    }
}
#endif
