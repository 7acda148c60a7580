#if os(Linux)
import Foundation
import Testing

@testable import EasyNetwork
@testable import EasyNetworkTesting
@testable import TestSupport

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

@Suite("CurlTransport: a connection that is lost after a message was sent", .timeLimit(.minutes(10)))
struct CurlResendTests {
    private struct Order: APIRequest {
        typealias Item = NetworkResponse
        var api = "orders"
        var method = NetworkService.Method.post
        var body: RequestBody? { .data(Data("one".utf8)) }
    }

    // libcurl connects again for a message whose reused connection was closed before a response.
    @Test("BEY-1, BEY-17: a POST whose server has gone may have been processed, and is not sent again")
    func serverHasGone() async throws {
        let server = try LeavingServer()
        let url = try #require(URL(string: "http://127.0.0.1:\(server.port)"))
        let host = HostConfiguration(baseURL: url, transport: CurlTransport()) {
            $0.retry = RetryPolicy(baseDelay: 0)
        }
        let service = EasyNetworkService(host)
        try await expect(service.send(Order()).statusCode, equals: 200)
        let error = await #expect(throws: NetworkError.self) { try await service.send(Order()) }
        expect(error?.code == .connectionLost && error?.mayHaveReachedServer == true, "\(String(describing: error))")
        expect(error?.history.count == 1 && error?.history.first?.mayHaveActed == true)
        expect(server.count, equals: 2)
    }
}

/// A server that answers one message, reads another one, and then closes its port and the connection.
private final class LeavingServer: Sendable {
    let port: UInt16
    private let received = Locked(0)

    init() throws {
        let (listener, port) = try Socket.listen()
        self.port = port
        Thread { [received] in
            Self.wait(listener)
            guard case .connection(let client) = Socket.accept(listener) else { return Socket.close(listener) }
            Self.read(client)
            received.withLock { $0 += 1 }
            _ = Array("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".utf8).withUnsafeBytes { Socket.send(client, $0) }
            Self.read(client)
            received.withLock { $0 += 1 }
            Socket.close(listener)
            Socket.close(client)
        }.start()
    }

    /// The number of messages that have arrived.
    var count: Int { received.withLock { $0 } }

    private static func wait(_ descriptor: Int32) {
        var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        _ = poll(&entry, 1, -1)
    }

    /// Reads a message to the end of its body.
    private static func read(_ client: Int32) {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        var text = ""
        while !text.hasSuffix("\r\n\r\none") {
            wait(client)
            let transfer = buffer.withUnsafeMutableBytes { Socket.receive(client, into: $0) }
            guard case .count(let count) = transfer, count > 0 else { return }
            text += String(decoding: buffer[..<count], as: UTF8.self)
        }
    }
}
#endif
