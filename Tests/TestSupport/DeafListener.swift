import Foundation

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A reserved local port whose connections are never served.
final class DeafListener: Sendable {
    enum Kind {
        /// The system completes connections, but they are never accepted.
        case open
        /// Connection attempts get no answer.
        case full
        /// Connection attempts are refused.
        case closed
    }

    struct Failure: Error {
        var number = errno
    }

    let url: URL
    private let descriptors: [Int32]

    init(_ kind: Kind) throws {
        let listener = try Self.socket()
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let port = try withUnsafeMutablePointer(to: &address) { pointer in
            try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                guard bind(listener, address, length) == 0, getsockname(listener, address, &length) == 0,
                    kind == .closed || listen(listener, kind == .full ? 1 : 8) == 0
                else { throw Failure() }
            }
            return UInt16(bigEndian: pointer.pointee.sin_port)
        }
        var descriptors = [listener]
        // Fills the backlog, which has room for one or two. (One of 0 means the system's maximum on Darwin.)
        for _ in 0..<(kind == .full ? 8 : 0) {
            let client = try Self.socket()
            let flags = fcntl(client, F_GETFL)
            _ = fcntl(client, F_SETFL, flags | O_NONBLOCK)
            withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { _ = connect(client, $0, length) }
            }
            descriptors.append(client)
        }
        self.descriptors = descriptors
        guard let url = URL(string: "http://127.0.0.1:\(port)/") else { throw Failure() }
        self.url = url
    }

    /// Waits for a connection and takes it from ``Kind/open``. The caller closes it.
    func accept() -> Int32 {
        #if canImport(Glibc)
        Glibc.accept(descriptors[0], nil, nil)
        #elseif canImport(Musl)
        Musl.accept(descriptors[0], nil, nil)
        #else
        Darwin.accept(descriptors[0], nil, nil)
        #endif
    }

    deinit {
        for descriptor in descriptors { close(descriptor) }
    }

    private static func socket() throws -> Int32 {
        #if canImport(Glibc)
        let descriptor = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        #elseif canImport(Musl)
        let descriptor = Musl.socket(AF_INET, SOCK_STREAM, 0)
        #else
        let descriptor = Darwin.socket(AF_INET, SOCK_STREAM, 0)
        #endif
        guard descriptor >= 0 else { throw Failure() }
        return descriptor
    }
}
