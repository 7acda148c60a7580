import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork

@Suite("Requests with cookies", .timeLimit(.minutes(10)))
struct CookieRequestTests {
    private let server: MockServer

    init() throws {
        server = try MockServer()
        server.route("GET", "/sign-in") { _ in
            .status(302, headers: ["Location": "/home", "Set-Cookie": "session=1; Path=/", "Set-Cookie": "theme=dark"])
        }
        server.route("GET", "/home") { _ in .text("home") }
    }

    private struct Call: BaseAPIRequest {
        var api: String
        var headers: [String: String]?
    }

    @Test("SEC-3: a jar keeps the cookies of redirects and sends them; without a jar none are kept")
    func jar() async throws {
        let jar = CookieJar()
        let service = EasyNetworkService(
            server.host(transport: TransportConfiguration.sharedTransport) { $0.cookies = jar }
        )
        _ = try await service.send(Call(api: "sign-in"))
        _ = try await service.send(Call(api: "home", headers: ["Cookie": "own=1"]))
        let plain = EasyNetworkService(server.host(transport: TransportConfiguration.sharedTransport))
        _ = try await plain.send(Call(api: "sign-in"))
        #expect(
            server.requests.map { $0.headers["Cookie"] } == [nil, "session=1; theme=dark", "own=1", nil, nil]
        )
        #expect(Set(jar.cookies.map(\.name)) == ["session", "theme"])
    }
}
