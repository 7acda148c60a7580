#if os(Linux) && canImport(CCurl)
internal import CCurl
import Foundation

/// A connection of libcurl's, as far as callbacks tell of it; used on the loop's thread only.
final class CurlConnection {
    let descriptor: Int32
    /// Whether its answers are spoken in HTTP/2; nil before the first.
    var isHTTP2: Bool?
    /// Whether it has served others than the exchange that it was made for.
    var isReused = false

    init(_ descriptor: Int32) {
        self.descriptor = descriptor
    }

    /// Whether the next request may go out on it, although it was used before.
    ///
    /// Over HTTP/1 nothing comes in between two exchanges but an answer that nobody asked for, such as a 408, or the end:
    /// libcurl would take the one for the answer to the next request, and lose the request to the other. Tickets of TLS 1.3
    /// come before the first answer; a server that sends one later costs a connection. Over HTTP/2 frames may come any time.
    ///
    /// - Parameter hasPending: whether the TLS library has read more than was taken from it.
    func isFit(hasPending: () -> Bool) -> Bool {
        var byte: UInt8 = 0
        let count = recv(descriptor, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT))
        if count > 0 { return isHTTP2 != false }
        guard count < 0, errno == EAGAIN || errno == EINTR else { return false }
        return isHTTP2 != false || !hasPending()
    }
}

/// The connections of a loop. libcurl does not tell a callback which one a message takes, but its addresses.
final class CurlConnections {
    /// The two ends of a connection.
    struct Ends: Hashable {
        let remote: String
        let remotePort: Int32
        let local: String
        let localPort: Int32
    }

    /// Sockets that no message has gone out on.
    private var opened: Set<Int32> = []
    private var connections: [Ends: CurlConnection] = [:]
    private var ends: [Int32: Ends] = [:]

    func opened(_ descriptor: Int32) {
        forget(descriptor)
        opened.insert(descriptor)
    }

    func closeSocket(_ descriptor: Int32) {
        forget(descriptor)
        close(descriptor)
    }

    private func forget(_ descriptor: Int32) {
        opened.remove(descriptor)
        if let ends = ends.removeValue(forKey: descriptor) { connections[ends] = nil }
    }

    /// - Returns: nil for one that was not seen to be opened.
    func connection(_ ends: Ends) -> CurlConnection? {
        if let connection = connections[ends] { return connection }
        let found = opened.first { descriptor in
            Self.port(descriptor, getsockname) == ends.localPort
                && Self.port(descriptor, getpeername) == ends.remotePort
        }
        guard let found else { return nil }
        opened.remove(found)
        let connection = CurlConnection(found)
        connections[ends] = connection
        self.ends[found] = ends
        return connection
    }

    private typealias NameFunction = (Int32, UnsafeMutablePointer<sockaddr>?, UnsafeMutablePointer<socklen_t>?) -> Int32

    private static func port(_ descriptor: Int32, _ name: NameFunction) -> Int32? {
        // Of IPv4 and IPv6 the port is in the same place.
        var address = sockaddr_in6()
        var count = socklen_t(MemoryLayout<sockaddr_in6>.size)
        let result = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { name(descriptor, $0, &count) }
        }
        return result == 0 ? Int32(UInt16(bigEndian: address.sin6_port)) : nil
    }
}
#endif
