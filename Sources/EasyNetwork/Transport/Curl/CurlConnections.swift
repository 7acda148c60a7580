#if os(Linux) && canImport(CCurl)
internal import CCurl
import Foundation

/// The connections of a loop. libcurl passes the addresses of a message's connection to a callback, but not its socket.
final class CurlConnections {
    /// The addresses and ports of the two ends of a connection, as libcurl passes them to a callback.
    struct Ends {
        let remote: UnsafePointer<CChar>
        let remotePort: Int32
        let local: UnsafePointer<CChar>
        let localPort: Int32
    }

    /// The known state of a libcurl connection, as callbacks report it. It is used only on the loop's thread.
    final class Connection {
        fileprivate let descriptor: Int32
        /// The addresses of the two ends, as libcurl reports them; nil before the first message.
        fileprivate var ends: (remote: [CChar], local: [CChar], ports: UInt64)?
        /// The address of the remote end, such as `192.0.2.1:443` or `[2001:db8::1]:443`.
        fileprivate(set) var remoteAddress = ""
        /// Whether the connection uses HTTP/2; nil before its first response.
        var isHTTP2: Bool?
        /// Whether the connection has served other exchanges than its first one.
        var isReused = false
        /// The maximum number of concurrent streams that the server accepts; nil if the server has not reported it.
        var streamLimit: Int?

        /// Whether the connection is sending a request's body as plain HTTP/1, and the response has not begun.
        var isSendingBody = false
        /// The bytes that had arrived in this state, and had not been read, when libcurl closed the connection.
        fileprivate(set) var unread: [UInt8] = []

        fileprivate init(_ descriptor: Int32) {
            self.descriptor = descriptor
        }

        /// Reads the bytes that have arrived, up to a limit.
        fileprivate func readRest() {
            var buffer = [UInt8](repeating: 0, count: 65_536)
            while unread.count < 8 * buffer.count {
                let count = recv(descriptor, &buffer, buffer.count, Int32(MSG_DONTWAIT))
                guard count > 0 else { return }
                unread += buffer[..<count]
            }
        }

        /// Returns whether the next request can be sent on the connection although it was used before.
        ///
        /// Over HTTP/1, input between two exchanges is an unsolicited response, such as a 408, or the end of the
        /// connection. libcurl would take an unsolicited response for the response to the next request, and would lose the
        /// request if the connection has ended. TLS 1.3 tickets arrive before the first response; a server that sends one
        /// later costs a connection. Over HTTP/2, frames can arrive at any time, and libcurl reports what they mean for the
        /// next request.
        ///
        /// - Parameter tls: libcurl's handle, whose TLS library can hold unread input; nil without TLS.
        func isFit(tls: UnsafeMutableRawPointer?) -> Bool {
            var byte: UInt8 = 0
            let count = recv(descriptor, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT))
            if count > 0 { return isHTTP2 != false }
            guard count < 0, errno == EAGAIN || errno == EINTR else { return false }
            guard isHTTP2 == false, let tls else { return true }
            return !ccurl_tls_has_pending(tls)
        }
    }

    private var sockets: [Int32: Connection] = [:]
    /// Connections that have carried a message, by their two ports.
    private var byPorts: [UInt64: [Connection]] = [:]

    func opened(_ descriptor: Int32) {
        forget(descriptor)
        sockets[descriptor] = Connection(descriptor)
    }

    func closeSocket(_ descriptor: Int32) {
        // After a failure to send, libcurl no longer reads. But the server can have responded before it closed its end.
        if let connection = sockets[descriptor], connection.isSendingBody { connection.readRest() }
        forget(descriptor)
        close(descriptor)
    }

    private func forget(_ descriptor: Int32) {
        guard let connection = sockets.removeValue(forKey: descriptor), let ports = connection.ends?.ports else {
            return
        }
        byPorts[ports]?.removeAll { $0 === connection }
        if byPorts[ports]?.isEmpty == true { byPorts[ports] = nil }
    }

    /// Returns the connection between two ends.
    ///
    /// - Returns: Nil if no callback has reported its opening.
    func connection(_ ends: Ends) -> Connection? {
        let ports = UInt64(UInt32(bitPattern: ends.remotePort)) << 32 | UInt64(UInt32(bitPattern: ends.localPort))
        for connection in byPorts[ports] ?? [] {
            guard let known = connection.ends, strcmp(known.remote, ends.remote) == 0,
                strcmp(known.local, ends.local) == 0
            else { continue }
            return connection
        }
        let found = sockets.values.first { connection in
            connection.ends == nil && Self.port(connection.descriptor, getsockname) == ends.localPort
                && Self.port(connection.descriptor, getpeername) == ends.remotePort
        }
        guard let found else { return nil }
        found.ends = (Self.bytes(ends.remote), Self.bytes(ends.local), ports)
        found.remoteAddress = Self.address(ends.remote, ends.remotePort)
        byPorts[ports, default: []].append(found)
        return found
    }

    static func address(_ host: UnsafePointer<CChar>, _ port: Int32) -> String {
        let host = String(cString: host)
        return host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]:\(port)" : "\(host):\(port)"
    }

    private static func bytes(_ text: UnsafePointer<CChar>) -> [CChar] {
        Array(UnsafeBufferPointer(start: text, count: strlen(text) + 1))
    }

    private typealias NameFunction = (Int32, UnsafeMutablePointer<sockaddr>?, UnsafeMutablePointer<socklen_t>?) -> Int32

    private static func port(_ descriptor: Int32, _ name: NameFunction) -> Int32? {
        // The port has the same position for IPv4 and IPv6.
        var address = sockaddr_in6()
        var count = socklen_t(MemoryLayout<sockaddr_in6>.size)
        let result = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { name(descriptor, $0, &count) }
        }
        return result == 0 ? Int32(UInt16(bigEndian: address.sin6_port)) : nil
    }
}
#endif
