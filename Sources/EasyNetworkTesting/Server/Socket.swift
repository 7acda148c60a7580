import EasyNetwork
import Foundation

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The system calls of the server, with the differences between platforms. All sockets are non-blocking, and child
/// processes close them.
enum Socket {
    enum Transfer {
        case count(Int)
        case wouldBlock
        /// The end of the stream.
        case end
        case failed
    }

    enum Acceptance {
        case connection(Int32)
        case none
        /// The process has no descriptor left.
        case exhausted
    }

    /// Listens on 127.0.0.1, on a port that the system chooses.
    static func listen() throws -> (descriptor: Int32, port: UInt16) {
        let descriptor = socket(AF_INET, streamType, 0)
        guard descriptor >= 0 else { throw failure("no socket") }
        do {
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            try withUnsafeMutablePointer(to: &address) { pointer in
                try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                    guard bind(descriptor, pointer, length) == 0 else { throw failure("no port") }
                    guard systemListen(descriptor, 1024) == 0 else { throw failure("cannot listen") }
                    guard getsockname(descriptor, pointer, &length) == 0 else { throw failure("no port") }
                }
            }
            prepare(descriptor)
            return (descriptor, UInt16(bigEndian: address.sin_port))
        } catch {
            close(descriptor)
            throw error
        }
    }

    static func accept(_ listener: Int32) -> Acceptance {
        while true {
            let descriptor = systemAccept(listener, nil, nil)
            if descriptor >= 0 {
                prepare(descriptor)
                setOption(descriptor, level: Int32(IPPROTO_TCP), TCP_NODELAY, Int32(1))
                return .connection(descriptor)
            }
            switch errno {
            case EINTR, ECONNABORTED: continue
            case EMFILE, ENFILE, ENOBUFS, ENOMEM: return .exhausted
            default: return .none
            }
        }
    }

    static func receive(_ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer) -> Transfer {
        while true {
            let count = recv(descriptor, buffer.baseAddress, buffer.count, 0)
            if count > 0 { return .count(count) }
            if count == 0 { return .end }
            if errno != EINTR { return errno == EAGAIN || errno == EWOULDBLOCK ? .wouldBlock : .failed }
        }
    }

    /// Returns whether bytes have arrived. They are not consumed.
    static func hasBytes(_ descriptor: Int32) -> Bool {
        var byte: UInt8 = 0
        return recv(descriptor, &byte, 1, peekFlag) > 0
    }

    static func send(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> Transfer {
        while true {
            let count = systemSend(descriptor, bytes.baseAddress, bytes.count, sendFlags)
            if count >= 0 { return .count(count) }
            if errno != EINTR { return errno == EAGAIN || errno == EWOULDBLOCK ? .wouldBlock : .failed }
        }
    }

    /// Ends the sending side of the connection.
    static func finishWriting(_ descriptor: Int32) {
        _ = shutdown(descriptor, Int32(SHUT_WR))
    }

    static func close(_ descriptor: Int32) {
        _ = systemClose(descriptor)
    }

    /// Closes the connection with a TCP reset, which a linger time of 0 seconds causes.
    static func reset(_ descriptor: Int32) {
        setOption(descriptor, level: SOL_SOCKET, SO_LINGER, linger(l_onoff: 1, l_linger: 0))
        close(descriptor)
    }

    /// Creates a pipe with which other threads wake the polling thread.
    static func makePipe() throws -> (reading: Int32, writing: Int32) {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw failure("no pipe") }
        for end in ends { setFlags(end) }
        return (ends[0], ends[1])
    }

    static func wake(_ pipe: Int32) {
        // If the pipe is full, the write fails, but the thread wakes anyway.
        _ = write(pipe, [1], 1)
    }

    static func drain(_ pipe: Int32) {
        var bytes = [UInt8](repeating: 0, count: 64)
        while read(pipe, &bytes, bytes.count) > 0 {}
    }

    private static func prepare(_ descriptor: Int32) {
        setFlags(descriptor)
        #if canImport(Darwin)
        setOption(descriptor, level: SOL_SOCKET, SO_NOSIGPIPE, Int32(1))
        #endif
    }

    private static func setFlags(_ descriptor: Int32) {
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    }

    private static func setOption<Value: BitwiseCopyable>(
        _ descriptor: Int32,
        level: Int32,
        _ name: Int32,
        _ value: Value
    ) {
        var value = value
        _ = setsockopt(descriptor, level, name, &value, socklen_t(MemoryLayout<Value>.size))
    }

    private static func failure(_ what: String) -> NetworkError {
        let error = POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO)
        return NetworkError(code: .cannotConnect, message: "the mock server has \(what)", underlying: error)
    }

    #if canImport(Glibc)
    private static let streamType = Int32(SOCK_STREAM.rawValue)
    #else
    private static let streamType = SOCK_STREAM
    #endif

    private static let peekFlag = Int32(MSG_PEEK)

    #if canImport(Darwin)
    private static let sendFlags: Int32 = 0
    #else
    private static let sendFlags = Int32(MSG_NOSIGNAL)
    #endif
}

// The libc functions that have the same names as members of `Socket`.
private func systemListen(_ descriptor: Int32, _ backlog: Int32) -> Int32 {
    listen(descriptor, backlog)
}

private func systemAccept(
    _ descriptor: Int32,
    _ address: UnsafeMutablePointer<sockaddr>?,
    _ length: UnsafeMutablePointer<socklen_t>?
) -> Int32 {
    accept(descriptor, address, length)
}

private func systemSend(_ descriptor: Int32, _ bytes: UnsafeRawPointer?, _ count: Int, _ flags: Int32) -> Int {
    send(descriptor, bytes, count, flags)
}

private func systemClose(_ descriptor: Int32) -> Int32 {
    close(descriptor)
}
