import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork

@Suite("URLSessionTransport", .timeLimit(.minutes(10)))
struct URLSessionTransportTests {
    @Test("SEC-2: let go of, a transport closes its connections", arguments: ["/ok", "/stall", "/reset", "/moved"])
    func closes(path: String) async throws {
        let server = try MockServer()
        server.route("GET", "/ok") { _ in .text("ok") }
        server.route("GET", "/stall") { _ in .fault(.stall) }
        server.route("GET", "/reset") { _ in .fault(.reset) }
        server.route("GET", "/moved") { _ in .status(302, headers: ["Location": "/ok"]) }
        weak var released: URLSessionTransport?
        do {
            let transport = URLSessionTransport()
            released = transport
            let ended = Gate()
            let url = try #require(URL(string: server.baseURL.absoluteString + path))
            let exchange = transport.start(TransportRequest(url: url, deadlines: TransportDeadlines(idle: nil))) {
                if case .end = $0 { ended.open() }
            }
            await server.waitForRequests(1)
            if path == "/stall" { exchange.cancel() }
            await ended.opened()
        }
        #expect(await eventually { released == nil })
        #expect(await server.waitForConnections(0))
    }

    @Test("SEC-2, CBK-2: so does one whose exchanges were cancelled before they began")
    func closesAfterEarlyCancels() async throws {
        let server = try MockServer()
        server.route("GET", "/ok") { _ in .text("ok") }
        let url = try #require(URL(string: server.baseURL.absoluteString + "/ok"))
        do {
            let transport = URLSessionTransport(TransportConfiguration(maximumConnectionsPerHost: 2))
            let gates = (0..<200).map { index -> Gate in
                let ended = Gate()
                let exchange = transport.start(TransportRequest(url: url, deadlines: TransportDeadlines(idle: nil))) {
                    if case .end = $0 { ended.open() }
                }
                if index % 10 != 0 { exchange.cancel() }
                return ended
            }
            for gate in gates { await gate.opened() }
        }
        #expect(await server.waitForConnections(0))
    }

    @Test("SEC-2: the session's configuration can be changed before it is made")
    func hook() async throws {
        let server = try MockServer()
        server.route("GET", "/ok") { _ in .text("ok") }
        let transport = URLSessionTransport { $0.httpAdditionalHeaders = ["X-Session": "1"] }
        let service = EasyNetworkService(server.host(transport: transport))
        _ = try await service.send(Get(api: "ok"))
        #expect(server.requests.first?.headers["X-Session"] == "1")
    }
}
