import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("Redirects", .timeLimit(.minutes(10)), .serialized)
struct RedirectTests {
    /// Two ports of one machine are two origins.
    private let here: MockServer
    private let elsewhere: MockServer

    init() throws {
        here = try MockServer()
        elsewhere = try MockServer()
    }

    private struct Call: BaseAPIRequest {
        var api = "start"
        var method = NetworkService.Method.get
        var headers: [String: String]?
        var body: RequestBody?
    }

    private func service(
        _ kind: Wire,
        _ change: (inout HostSettings) -> Void = { _ in }
    ) -> EasyNetworkService {
        EasyNetworkService(here.host(transport: kind.transport, change: change))
    }

    private func redirect(_ status: Int, to location: String) -> @Sendable (MockRequest) -> MockResponse {
        { _ in .status(status, headers: ["Location": location]) }
    }

    @Test("SEC-2: a 307 keeps method and body, a 303 neither, over the wire", arguments: Wire.allCases)
    func methods(kind: Wire) async throws {
        here.route("POST", "/start", redirect(307, to: "/next"))
        here.route("POST", "/next", redirect(303, to: "/done?x=1"))
        here.route("GET", "/done") { _ in .text("done") }
        let call = Call(method: .post, headers: ["Content-Type": "text/plain"], body: .text("hello"))
        let response = try await service(kind).send(call)
        try expect(response.text() == "done" && response.url?.path == "/done" && response.url?.query == "x=1")
        expect(
            here.requests.map { "\($0.method) \(String(decoding: $0.body, as: UTF8.self))" },
            equals: [
                "POST hello", "POST hello", "GET ",
            ]
        )
        expect(here.requests.map { $0.headers["Content-Type"] }, equals: ["text/plain", "text/plain", nil])
        expect(response.history.map(\.reason), equals: [.first, .redirect, .redirect])
        expect(response.history.map(\.statusCode), equals: [307, 303, 200])
    }

    @Test("SEC-1: an origin change carries no credential", arguments: Wire.allCases)
    func credentials(kind: Wire) async throws {
        here.route("GET", "/start", redirect(302, to: "/same"))
        here.route("GET", "/same", redirect(302, to: elsewhere.baseURL.absoluteString + "/other"))
        elsewhere.route("GET", "/other", redirect(302, to: here.baseURL.absoluteString + "/back"))
        here.route("GET", "/back") { _ in .text("done") }
        let headers = [
            "Authorization": "Bearer 1", "Cookie": "a=1", "Proxy-Authorization": "x", "X-Own": "1", "Accept": "a/b",
        ]
        _ = try await service(kind).send(Call(headers: headers))
        expect(here.requests.map { $0.headers["Authorization"] }, equals: ["Bearer 1", "Bearer 1", nil])
        expect(here.requests.map { $0.headers["Cookie"] }, equals: ["a=1", "a=1", nil])
        let other = try #require(elsewhere.requests.first)
        for name in ["Authorization", "Cookie", "Proxy-Authorization"] { expect(other.headers[name] == nil) }
        expect(other.headers["X-Own"] == nil && other.headers["Accept"] == "a/b")
    }

    @Test("SEC-1: an absolute address elsewhere gets none of the host's credentials, but the request's own")
    func absoluteElsewhere() async throws {
        elsewhere.route("GET", "/other") { _ in .text("done") }
        let address = elsewhere.baseURL.absoluteString + "/other"
        let host = here.host(
            headers: ["Authorization": "Bearer host", "X-Host": "1"],
            transport: TransportConfiguration.sharedTransport
        )
        let service = EasyNetworkService(host)
        _ = try await service.send(Call(api: address))
        _ = try await service.send(Call(api: address, headers: ["Authorization": "Bearer own"]))
        expect(elsewhere.requests.map { $0.headers["Authorization"] }, equals: [nil, "Bearer own"])
        expect(elsewhere.requests.allSatisfy { $0.headers["X-Host"] == "1" })
    }

    @Test("SEC-2: twenty redirects are followed, an endless row is an error with the way it went")
    func endless() async throws {
        here.route("GET", "/start", redirect(302, to: "/start"))
        let error = await #expect(throws: NetworkError.self) { try await service(.standard).send(Call()) }
        expect(error?.code == .redirectFailed && error?.statusCode == 302 && error?.message == "more than 20 redirects")
        expect(error?.history.count == 21 && error?.attempts == 1 && here.requests.count == 21)
    }

    @Test("SEC-2: a policy that follows none leaves the redirect to the validation")
    func none() async throws {
        here.route("GET", "/start", redirect(302, to: "/next"))
        let service = service(.standard) { $0.redirects = .never }
        let error = await #expect(throws: NetworkError.self) { try await service.send(Call()) }
        expect(error?.code == .unacceptableStatus && error?.headers["Location"] == "/next")
        expect(here.requests.count, equals: 1)
    }

    @Test("SEC-2: the hook sees each redirect, and follows, refuses or alters it")
    func hook() async throws {
        here.route("GET", "/start", redirect(302, to: "/next"))
        here.route("GET", "/next", redirect(302, to: elsewhere.baseURL.absoluteString + "/other"))
        here.route("GET", "/altered") { _ in .text("done") }
        let altered = here.baseURL.appendingPathComponent("altered")
        let seen = Locked<[String]>([])
        let service = service(.standard) { host in
            host.redirects.decide = { message, answer in
                let isCrossOrigin = message.url.origin != answer.url?.origin
                seen.withLock { $0.append("\(answer.url?.path ?? "") \(message.url.path) \(isCrossOrigin)") }
                return isCrossOrigin ? TransportRequest(url: altered) : message
            }
        }
        try await expect(service.send(Call()).text(), equals: "done")
        expect(seen.withLock { $0 } == ["/start /next false", "/next /other true"] && elsewhere.requests.isEmpty)
    }

    @Test("SEC-1, SEC-2: a hook that changes the origin sends no field there but the standard ones and its own")
    func hookElsewhere() async throws {
        here.route("GET", "/start", redirect(302, to: "/next"))
        elsewhere.route("GET", "/other") { _ in .text("done") }
        let other = elsewhere.baseURL.appendingPathComponent("other")
        let service = service(.standard) { host in
            host.redirects.crossOriginHeaders = ["X-Trace"]
            host.redirects.decide = { message, _ in
                var message = message
                message.url = other
                message.headers["X-Hook"] = "1"
                return message
            }
        }
        let headers = [
            "Authorization": "Bearer 1", "X-Api-Key": "1", "X-Own": "1", "X-Trace": "1", "Accept": "a/b",
            "Cookie": "a=1",
        ]
        _ = try await service.send(Call(headers: headers))
        let received = try #require(elsewhere.requests.first)
        for name in ["Authorization", "X-Api-Key", "X-Own", "Cookie"] {
            expect(received.headers[name] == nil, "\(name)")
        }
        expect(["X-Hook", "X-Trace", "Accept"].map { received.headers[$0] }, equals: ["1", "1", "a/b"])
    }

    @Test("SEC-2: cancelled between two redirects, nothing more is sent")
    func cancelled() async throws {
        here.route("GET", "/start", redirect(302, to: "/next"))
        let asked = Gate()
        let asking = Gate()
        let service = service(.standard) { host in
            host.redirects.decide = { message, _ in
                asking.open()
                await asked.opened()
                return message
            }
        }
        let task = Task { try await service.send(Call()) }
        await asking.opened()
        task.cancel()
        let error = await #expect(throws: NetworkError.self) { try await task.value }
        asked.open()
        expect(error?.code == .cancelled && error?.attempts == 1 && here.requests.count == 1)
    }
}
