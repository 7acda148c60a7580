import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("Interceptors and cookies of a streamed body", .timeLimit(.minutes(10)))
struct StreamSurroundingsTests {
    private struct Witness: RequestInterceptor {
        let seen: Locked<[String]>

        func adapt(_ message: TransportRequest, context: AttemptContext) async throws -> TransportRequest {
            seen.withLock { $0.append("\(type(of: context.request))") }
            return message
        }
    }

    @Test("BEY-3: interceptors see the request as its user made it")
    func asMade() async throws {
        let transport = InMemoryTransport()
        transport.route("GET", "/a") { _ in
            .text("data: 1\n\n", headers: ["Content-Type": "text/event-stream"])
        }
        let seen = Locked<[String]>([])
        let host = HostConfiguration(
            baseURL: URL(string: "http://one.example"),
            deadlines: TransportDeadlines(idle: nil),
            transport: transport
        ) { host in
            host.interceptors = [Witness(seen: seen)]
        }
        var events = EasyNetworkService(host).events(Get(api: "a")).makeAsyncIterator()
        try await expect(events.next()?.data, equals: "1")
        expect(seen.withLock { $0 }, equals: ["Get"])
    }

    @Test("BEY-3: the cookies of a body that breaks off are kept, from its beginning")
    func cookies() async throws {
        let server = try MockServer()
        server.route("GET", "/a") { _ in
            var answer = MockResponse.text(String(repeating: "x", count: 1_000), headers: ["Set-Cookie": "a=1"])
            answer.fault = .truncate(after: 10)
            return answer
        }
        let jar = CookieJar()
        let host = server.host(transport: TransportConfiguration.sharedTransport) { $0.cookies = jar }
        let answer = try await EasyNetworkService(host).stream(Get(api: "a"))
        let url = server.baseURL.appendingPathComponent("a")
        await expect(eventually { jar.cookieHeader(for: url, at: Date()) == "a=1" })
        await #expect(throws: NetworkError.self) { for try await _ in answer {} }
    }
}
