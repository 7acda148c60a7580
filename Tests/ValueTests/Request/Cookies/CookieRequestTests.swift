import EasyNetworkTesting
import Foundation
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@testable import EasyNetwork
@testable import EasyNetworkDiagnostics
@testable import TestSupport

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
        var customURLRequest: URLRequest?
        var options: RequestOptions { RequestOptions(customURLRequest: customURLRequest) }
    }

    @Test("SEC-3, REQ-6: a finished message neither sends the jar's cookies nor stores those of its answer")
    func finishedMessage() async throws {
        let jar = CookieJar()
        let service = EasyNetworkService(server.host { $0.cookies = jar })
        let url = server.baseURL.appendingPathComponent("sign-in")
        _ = try await service.send(Call(api: "", customURLRequest: URLRequest(url: url)))
        expect(jar.cookies.isEmpty && server.requests.count == 2)
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
        expect(server.requests.map { $0.headers["Cookie"] }, equals: [nil, "session=1; theme=dark", "own=1", nil, nil])
        expect(Set(jar.cookies.map(\.name)), equals: ["session", "theme"])
    }

    @Test("SEC-3, CBK-7: a response to the message of a user who has signed out since sets no cookie")
    func signedOut() async throws {
        let (jar, session) = (CookieJar(), AuthenticationSession(TestTokens { _ in "new" }, credential: "old"))
        let service = EasyNetworkService(server.host { ($0.cookies, $0.authentication) = (jar, session) })
        server.route("GET", "/mine") { _ in
            session.signOut()
            jar.removeAll()
            return .status(200, headers: ["Set-Cookie": "session=1; Path=/"])
        }
        _ = try await service.send(Call(api: "mine"))
        expect(jar.cookies.isEmpty)
        session.signIn("next")
        _ = try await service.send(Call(api: "sign-in"))
        expect(jar.cookies.count, equals: 2)
    }

    @Test("BEY-21: attempts and events show the message as it was sent, with cookies and the host's credential")
    func shown() async throws {
        server.route("GET", "/mine") { request in
            request.headers["Authorization"] == nil
                ? .status(401, headers: ["WWW-Authenticate": "Basic realm=a"]) : .text("mine")
        }
        let password = try RequestAuthentication.password(user: "ada", password: "s3cret", allowsBasicWithoutTLS: true)
        let host = server.host(transport: TransportConfiguration.sharedTransport) { host in
            host.cookies = CookieJar()
            host.authentication = password
        }
        let told = Locked<[HTTPHeaders]>([])
        let listener = host.subscribe { event in
            guard case .attemptStarted(let attempt, let message) = event.kind else { return }
            expect(attempt.request.headers, equals: message.headers)
            told.withLock { $0.append(attempt.request.headers) }
        }
        let service = EasyNetworkService(host)
        _ = try await service.send(Call(api: "sign-in"))
        let response = try await service.send(Call(api: "mine"))
        let shown = response.history.map(\.request.headers)
        expect(shown.map { $0["Cookie"] }, equals: ["session=1; theme=dark", "session=1; theme=dark"])
        expect(shown.map { $0["Authorization"]?.hasPrefix("Basic ") }, equals: [nil, true])
        expect(told.withLock { $0.suffix(2).map(\.description) }, equals: shown.map(\.description))
        let command = try #require(response.history.last?.curlCommand())
        expect(command.contains("'Cookie: REDACTED'") && command.contains("'Authorization: Basic REDACTED'"))
        withExtendedLifetime(listener) {}
    }
}
