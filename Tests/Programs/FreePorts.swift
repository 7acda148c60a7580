#if os(Linux) || os(macOS)
import Foundation

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Finds free TCP ports for a program that cannot let the kernel choose.
///
/// Another program may take a port before it is used, so callers must retry.
package enum FreePorts {
    /// Whether the machine has the address ::1, which many containers lack.
    package static let hasIPv6: Bool = {
        guard let socket = try? bound(toIPv6: true, 0) else { return false }
        close(socket.descriptor)
        return true
    }()

    /// Returns ports that are free on 127.0.0.1 and, if it exists, on ::1.
    package static func find(_ count: Int) throws -> [UInt16] {
        var ports: [UInt16] = []
        // All ports stay bound until the last is found, so that no port is returned twice.
        var descriptors: [Int32] = []
        defer { for descriptor in descriptors { close(descriptor) } }
        for _ in 0..<count * 10 where ports.count < count {
            let socket = try bound(toIPv6: false, 0)
            descriptors.append(socket.descriptor)
            if hasIPv6 {
                guard let other = try? bound(toIPv6: true, socket.port) else { continue }
                descriptors.append(other.descriptor)
            }
            ports.append(socket.port)
        }
        guard ports.count == count else { throw POSIXError(.EADDRINUSE) }
        return ports
    }

    /// A TCP socket at this port of the loopback address, or at a free one for 0. The caller closes it.
    package static func bound(toIPv6 isIPv6: Bool, _ port: UInt16) throws -> (descriptor: Int32, port: UInt16) {
        let descriptor = socket(isIPv6 ? AF_INET6 : AF_INET, streamType, 0)
        guard descriptor >= 0 else { throw failure }
        do {
            if isIPv6 {
                var address = sockaddr_in6()
                address.sin6_family = sa_family_t(AF_INET6)
                address.sin6_addr = in6addr_loopback
                address.sin6_port = port.bigEndian
                try bind(descriptor, &address)
                return (descriptor, UInt16(bigEndian: address.sin6_port))
            }
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
            address.sin_port = port.bigEndian
            try bind(descriptor, &address)
            return (descriptor, UInt16(bigEndian: address.sin_port))
        } catch {
            close(descriptor)
            throw error
        }
    }

    /// Binds the socket, and updates `address` with the port that the kernel chose.
    private static func bind<Address>(_ descriptor: Int32, _ address: inout Address) throws {
        var length = socklen_t(MemoryLayout<Address>.size)
        try withUnsafeMutablePointer(to: &address) { pointer in
            try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                guard systemBind(descriptor, pointer, length) == 0, getsockname(descriptor, pointer, &length) == 0
                else {
                    throw failure
                }
            }
        }
    }

    private static var failure: POSIXError { POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }

    #if canImport(Glibc)
    private static let streamType = Int32(SOCK_STREAM.rawValue)
    #else
    private static let streamType = SOCK_STREAM
    #endif
}

// Calls libc's function, which a member of the same name shadows.
private func systemBind(_ descriptor: Int32, _ address: UnsafePointer<sockaddr>, _ length: socklen_t) -> Int32 {
    bind(descriptor, address, length)
}
#endif
