import EasyNetworkTesting
import Foundation

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A blocking socket for raw bytes, used inside ``onThread(_:)``.
final class RawClient: @unchecked Sendable {
    // Sendable because each test uses it from one thread at a time.
    struct Failure: Error {
        var what: String
        var number = errno
    }

    private let descriptor: Int32
    private var isOpen = true
    /// Bytes that have been received and not yet consumed.
    private var input = Data()
    private var scratch = [UInt8](repeating: 0, count: 262_144)

    init(_ server: MockServer) throws {
        #if canImport(Glibc)
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        #else
        descriptor = socket(AF_INET, SOCK_STREAM, 0)
        #endif
        guard descriptor >= 0 else { throw Failure(what: "socket") }
        #if canImport(Darwin)
        // Without MSG_NOSIGNAL, sending to a closed server would kill the process.
        var isOn: Int32 = 1
        setsockopt(descriptor, SOL_SOCKET, SO_NOSIGPIPE, &isOn, socklen_t(MemoryLayout<Int32>.size))
        #endif
        // A broken server fails the test instead of hanging it.
        var limit = timeval(tv_sec: 60, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        address.sin_port = UInt16(server.baseURL.port ?? 0).bigEndian
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                connect(descriptor, pointer, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard result == 0 else {
            let failure = Failure(what: "connect")
            close()
            throw failure
        }
    }

    deinit {
        close()
    }

    func close() {
        guard isOpen else { return }
        isOpen = false
        #if canImport(Darwin)
        _ = Darwin.close(descriptor)
        #elseif canImport(Glibc)
        _ = Glibc.close(descriptor)
        #elseif canImport(Musl)
        _ = Musl.close(descriptor)
        #endif
    }

    func finishWriting() {
        _ = shutdown(descriptor, Int32(SHUT_WR))
    }

    func send(_ text: String) throws {
        try send(Data(text.utf8))
    }

    func send(_ data: Data) throws {
        #if canImport(Darwin)
        let flags: Int32 = 0
        #else
        let flags = Int32(MSG_NOSIGNAL)
        #endif
        var sent = 0
        while sent < data.count {
            let count = data.withUnsafeBytes { bytes in
                systemSend(descriptor, UnsafeRawBufferPointer(rebasing: bytes[sent...]), flags)
            }
            guard count > 0 else { throw Failure(what: "send") }
            sent += count
        }
    }

    /// Reads the next bytes.
    ///
    /// - Returns: `false` at the end of the stream.
    private func fill() throws -> Bool {
        let count = recv(descriptor, &scratch, scratch.count, 0)
        guard count >= 0 else { throw Failure(what: "recv") }
        input.append(contentsOf: scratch[..<count])
        return count > 0
    }

    /// Receives exactly that many bytes.
    func receive(_ count: Int) throws -> Data {
        while input.count < count {
            guard try fill() else { throw Failure(what: "the stream ended after \(input.count) of \(count) bytes") }
        }
        defer { input = Data(input.dropFirst(count)) }
        return Data(input.prefix(count))
    }

    /// Receives everything up to the end of the stream.
    func receiveToEnd() throws -> String {
        while try fill() {}
        defer { input = Data() }
        return String(bytes: input, encoding: .utf8) ?? "no text"
    }

    /// Receives everything until the stream ends or breaks.
    func receiveAll() -> Sight {
        defer { input = Data() }
        do {
            while try fill() {}
            return Sight(bytes: input, ending: .end)
        } catch let failure as Failure where failure.number == ECONNRESET {
            return Sight(bytes: input, ending: .reset)
        } catch {
            return Sight(bytes: input, ending: .failed("\(error)"))
        }
    }

    /// Reads and discards that many bytes.
    ///
    /// - Returns: Whether all of them equal `byte`.
    func receive(_ count: Int, of byte: UInt8) throws -> Bool {
        var isEqual = input.prefix(count).allSatisfy { $0 == byte }
        var left = count - min(count, input.count)
        input = Data(input.dropFirst(count))
        let expected = [UInt8](repeating: byte, count: scratch.count)
        while left > 0 {
            let received = recv(descriptor, &scratch, min(left, scratch.count), 0)
            guard received > 0 else { throw Failure(what: "the stream ended \(left) bytes early") }
            // Uses memcmp, because a loop is slow without optimization.
            isEqual = isEqual && memcmp(scratch, expected, received) == 0
            left -= received
        }
        return isEqual
    }

    /// Limits the time that a send may block, in seconds.
    func limitSending(to seconds: Double) {
        var limit = timeval()
        limit.tv_usec = .init(seconds * 1_000_000)
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    }

    /// Receives the next head, including the empty line at its end.
    func receiveHead() throws -> String {
        let end = Data("\r\n\r\n".utf8)
        while true {
            if let found = input.range(of: end) {
                return String(bytes: try receive(found.upperBound - input.startIndex), encoding: .utf8) ?? "no text"
            }
            guard try fill() else { throw Failure(what: "the stream ended in a head") }
        }
    }

    /// Receives the next answer, which must have a `Content-Length`.
    func receiveAnswer() throws -> (head: String, body: Data) {
        let head = try receiveHead()
        let length = head.split(separator: "\r\n").first { $0.hasPrefix("Content-Length: ") }
        let count = length.flatMap { Int($0.dropFirst(16)) } ?? 0
        return (head, try receive(count))
    }

    /// Sends GET on the open connection and returns the body.
    func get(_ path: String) throws -> String {
        try send("GET \(path) HTTP/1.1\r\nHost: a\r\n\r\n")
        return String(bytes: try receiveAnswer().body, encoding: .utf8) ?? "no text"
    }
}

private func systemSend(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer, _ flags: Int32) -> Int {
    send(descriptor, bytes.baseAddress, bytes.count, flags)
}

/// Runs a blocking closure on a separate thread, off the cooperative pool.
func onThread<Result: Sendable>(_ body: @escaping @Sendable () throws -> Result) async throws -> Result {
    try await withCheckedThrowingContinuation { continuation in
        Thread { continuation.resume(with: Swift.Result(catching: body)) }.start()
    }
}

/// The part of an answer that a client received.
struct Sight: Equatable, Sendable, CustomStringConvertible {
    enum Ending: Equatable {
        case end
        case reset
        case failed(String)
    }

    var bytes: Data
    var ending: Ending

    init(bytes: Data, ending: Ending) {
        self.bytes = bytes
        self.ending = ending
    }

    init(_ text: String, _ ending: Ending = .end) {
        self.init(bytes: Data(text.utf8), ending: ending)
    }

    var text: String { String(bytes: bytes, encoding: .utf8) ?? "no text" }

    var description: String { "\(text.debugDescription), then \(ending)" }
}

extension MockServer {
    /// Receives the answer to GET `/` up to the end of the connection.
    static func sight(
        of response: MockResponse,
        request: String = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
    ) async throws -> Sight {
        let server = try MockServer()
        server.route("*", "/") { _ in response }
        return try await onThread {
            let client = try RawClient(server)
            try client.send(request)
            return client.receiveAll()
        }
    }
}
