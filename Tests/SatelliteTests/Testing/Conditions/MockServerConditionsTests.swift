import EasyNetwork
import EasyNetworkTesting
import Foundation
import Testing

@testable import TestSupport

/// Times have lower bounds only, since a slow machine takes longer; their margin is for rounding.
@Suite("NetworkConditions of MockServer", .timeLimit(.minutes(10)))
struct MockServerConditionsTests {
    /// A server that answers PUT with nothing, GET with 2,000 bytes.
    private func server(_ conditions: NetworkConditions) throws -> MockServer {
        let server = try MockServer(conditions: conditions)
        server.route("GET", "/*") { _ in MockResponse(body: .repeating(0x61, count: 2_000)) }
        server.route("PUT", "/") { _ in .status(204) }
        return server
    }

    private static let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
    private static let put = "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 2000\r\n\r\n"

    private func seconds(_ body: @escaping @Sendable () throws -> Void) async throws -> TimeInterval {
        let begin = SystemClock().now
        try await onThread(body)
        return SystemClock().now - begin
    }

    @Test("BEY-24: the latency delays each request and each response of a connection")
    func latency() async throws {
        let server = try server(NetworkConditions(latency: 0.1))
        let seconds = try await seconds {
            let client = try RawClient(server)
            for _ in 0..<2 { _ = try client.get("/") }
        }
        expect(seconds >= 0.39, "\(seconds)")
        expect(server.requests.map(\.connection), equals: [1, 1])
    }

    @Test("BEY-24: the connections of a server share its bandwidth, and a route may be slower")
    func download() async throws {
        let server = try server(NetworkConditions(bandwidth: 20_000))
        server.route("GET", "/slow") { _ in MockResponse(body: .repeating(0x61, count: 2_000), bytesPerSecond: 10_000) }
        let seconds = try await seconds {
            let clients = try (0..<2).map { _ in try RawClient(server) }
            for client in clients { try client.send(Self.get) }
            for client in clients {
                expect(try client.receiveAnswer().body, equals: Data(repeating: 0x61, count: 2_000))
            }
        }
        expect(seconds >= 0.19, "\(seconds)")
        let slow = try await self.seconds { expect(try RawClient(server).get("/slow").utf8.count, equals: 2_000) }
        expect(slow >= 0.19, "\(slow)")
    }

    @Test("BEY-24: requests take the bandwidth of their direction, also when they come byte by byte")
    func upload() async throws {
        let server = try server(NetworkConditions(bandwidth: 20_000))
        let seconds = try await seconds {
            let clients = try (0..<2).map { _ in try RawClient(server) }
            for client in clients { try client.send(Self.put) }
            for _ in 0..<2_000 { for client in clients { try client.send("b") } }
            for client in clients { expect(try client.receiveHead().hasPrefix("HTTP/1.1 204 ")) }
        }
        expect(seconds >= 0.19, "\(seconds)")
        expect(server.requests.map(\.body), equals: Array(repeating: Data(repeating: 0x62, count: 2_000), count: 2))
    }

    @Test("BEY-24: a client that ends its side after its request gets the response, however slow its bytes are")
    func halfClosed() async throws {
        let server = try server(NetworkConditions(bandwidth: 20_000))
        let head = try await onThread {
            let client = try RawClient(server)
            try client.send(Data(Self.put.utf8) + Data(count: 2_000))
            client.finishWriting()
            return try client.receiveHead()
        }
        expect(head.hasPrefix("HTTP/1.1 204 "), "\(head)")
    }

    @Test("BEY-24: the server loses the same requests as the transport with the same seed, and counts them as faults")
    func losses() async throws {
        let seed = UInt64.random(in: 0 ... .max)
        let conditions = NetworkConditions(lossOfConnections: 0.5, seed: seed)
        let server = try server(conditions)
        let lost = try await onThread {
            try (0..<60).map { _ in
                do {
                    _ = try RawClient(server).get("/")
                    return false
                } catch is RawClient.Failure {
                    return true
                }
            }
        }
        let transport = InMemoryTransport(conditions: conditions)
        transport.route("GET", "/") { _ in MockResponse(body: .repeating(0x61, count: 2_000)) }
        var lostInMemory: [Bool] = []
        for _ in 0..<60 {
            let recorder = Recorder()
            recorder.start(TransportRequest(url: server.baseURL.appendingPathComponent("/")), on: transport)
            lostInMemory.append(await recorder.ended().hasSuffix("end:connectionLost"))
        }
        expect(lost, equals: lostInMemory, "seed \(seed)")
        expect(server.requests.count, equals: transport.requests.count, "seed \(seed)")
        await expect(server.waitForFaults(lost.count { $0 }))
    }

    @Test("BEY-24: a client sees a lost connection as such, and a scripted fault comes before a loss")
    func client() async throws {
        let server = try server(NetworkConditions(lossOfConnections: 1))
        let host = HostConfiguration(baseURL: server.baseURL) { $0.retry.baseDelay = 0 }
        let service = EasyNetworkService(host)
        let error = await #expect(throws: NetworkError.self) { try await service.send(TextRequest()) }
        expect(error?.code == .connectionLost && error?.attempts == 3, "\(String(describing: error))")
        server.failNextRequests(with: .statusLine("HTTP/1.1 404 Not Found"))
        let scripted = try await onThread {
            let client = try RawClient(server)
            try client.send(Self.get)
            return try client.receiveHead()
        }
        expect(scripted.hasPrefix("HTTP/1.1 404 Not Found"))
    }

    private struct TextRequest: BaseAPIRequest {
        let api = "/"
    }

    static let slow = [
        NetworkConditions(latency: .infinity), NetworkConditions(bandwidth: 0), NetworkConditions(bandwidth: 50),
        NetworkConditions(jitter: .infinity, seed: 1),
    ]

    @Test("BEY-24: a client that leaves and a server that stops end what is on its way", arguments: slow)
    func away(conditions: NetworkConditions) async throws {
        let server = try server(conditions)
        let clients = try (0..<4).map { _ in try RawClient(server) }
        for (client, request) in zip(clients, [Self.get, Self.put, Self.get, Self.put]) { try client.send(request) }
        await expect(server.waitForConnections(4))
        for client in clients.prefix(2) { client.close() }
        if conditions.bandwidth ?? 50 > 1 { await expect(server.waitForConnections(2)) }
        server.stop()
        expect(server.connectionCount, equals: 0)
        let sights = try await onThread { clients.suffix(2).map { $0.receiveAll().ending } }
        // With unread bytes the system resets a connection that is closed.
        expect(sights.allSatisfy { $0 == .end || $0 == .reset }, "\(sights)")
    }

    @Test("BEY-24: many connections over a slow network get their own responses, also of pipelined requests")
    func many() async throws {
        let conditions = NetworkConditions(latency: 0.01, bandwidth: 400_000, jitter: 0.05)
        let server = try server(conditions)
        server.route("GET", "/*") { request in .text(request.path) }
        let wrong = try await onThread {
            let clients = try (0..<100).map { _ in try RawClient(server) }
            for (index, client) in clients.enumerated() {
                let requests = (0..<3).map { "GET /\(index)/\($0) HTTP/1.1\r\nHost: a\r\n\r\n" }
                try client.send(requests.joined())
            }
            return try clients.enumerated().reduce(0) { wrong, item in
                let bodies = try (0..<3).map { _ in try item.element.receiveAnswer().body }
                return wrong + (bodies == (0..<3).map { Data("/\(item.offset)/\($0)".utf8) } ? 0 : 1)
            }
        }
        expect(wrong, equals: 0)
        expect(server.requests.count, equals: 300)
    }
}
