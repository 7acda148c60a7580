import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

/// Passes everything on, and counts the bytes of the bodies that arrive.
private final class CountingTransport: NetworkTransport {
    private let base: any NetworkTransport
    /// By the number of the exchange.
    private let counts = Locked<[Int]>([])
    /// Opens when ten bytes of a body have arrived.
    let hasTen = Gate()

    init(_ base: any NetworkTransport) {
        self.base = base
    }

    var bodyCounts: [Int] { counts.withLock { $0 } }

    func start(
        _ request: TransportRequest,
        events: @escaping @Sendable (TransportEvent) -> Void
    ) -> any TransportExchange {
        let number = counts.withLock { counts in
            counts.append(0)
            return counts.count - 1
        }
        return base.start(request) { [counts, hasTen] event in
            events(event)
            guard case .body(let data) = event else { return }
            let count = counts.withLock { counts in
                counts[number] += data.count
                return counts[number]
            }
            if count >= 10 { hasTen.open() }
        }
    }
}

@Suite("Responses that are decided by their heads", .timeLimit(.minutes(10)))
struct DecidedResponseTests {
    typealias Kind = TransportFixture.Kind

    enum Head: Int, CaseIterable {
        case found = 302
        case temporaryRedirect = 307
        case challenge = 401
        case notFound = 404
        case unavailable = 503

        var isRedirect: Bool { headers["Location"] != nil }

        var headers: HTTPHeaders {
            var headers = MockResponse.exactType
            headers["Set-Cookie"] = "seen=\(rawValue)"
            switch self {
            case .found, .temporaryRedirect: headers["Location"] = "/next"
            case .challenge: headers["WWW-Authenticate"] = #"Basic realm="r""#
            case .notFound: break
            case .unavailable: headers["Retry-After"] = "2"
            }
            return headers
        }
    }

    enum Body: CaseIterable {
        case cut, stalled, badlyChunked, falselyLabelled, endless

        func response(_ head: Head) -> MockResponse {
            let data = Data(repeating: 7, count: 1_000)
            var response = MockResponse.data(data, status: head.rawValue, headers: head.headers)
            switch self {
            case .cut: response.fault = .truncate(after: 10)
            case .stalled: response.fault = .stall(at: .responseBody(after: 10))
            case .badlyChunked: response.fault = .badChunk(after: 5)
            case .falselyLabelled: response.headers["Content-Encoding"] = "gzip"
            case .endless:
                response.body = .repeating(7, count: 1 << 40)
                // Foundation keeps everything in memory that arrives before the task is cancelled.
                response.bytesPerSecond = 10_000_000
            }
            return response
        }
    }

    enum Way: CaseIterable {
        case data, download, upload, stream

        func text(_ service: EasyNetworkService) async throws -> String {
            switch self {
            case .data:
                return try await service.send(Get(api: "start")).text()
            case .download:
                let folder = TestFolder()
                defer { withExtendedLifetime(folder) {} }
                let operation = DownloadOperation(Get(api: "start"), to: folder.file("out"), service: service)
                NetworkQueue().addOperation(operation)
                return try String(contentsOf: await operation.value, encoding: .utf8)
            case .upload:
                let operation = UploadOperation(Put(), from: .text("sent"), service: service)
                NetworkQueue().addOperation(operation)
                return try await operation.value.text()
            case .stream:
                var data = Data()
                for try await piece in try await service.stream(Get(api: "start")) { data += piece }
                return String(decoding: data, as: UTF8.self)
            }
        }
    }

    private struct Put: APIRequest {
        typealias Item = NetworkResponse
        var api = "start"
        var method = NetworkService.Method.put
    }

    private struct Outcome: Equatable {
        var text: String?
        var code: NetworkError.Code?
        var status: Int?
        var requestCount = 2
        var cookies: [String]
        var isBounded = true
    }

    @Test(
        "RSP-10: redirects, challenges and refused statuses count whatever their body does",
        arguments: Kind.allCases,
        Way.allCases
    )
    func everyBody(kind: Kind, way: Way) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for head in Head.allCases where !head.isRedirect || TransportCapability.brokenRedirects.known(kind) == nil {
                for body in Body.allCases { group.addTask { try await check(head, body, kind, way) } }
            }
            try await group.waitForAll()
        }
    }

    private func check(_ head: Head, _ body: Body, _ kind: Kind, _ way: Way) async throws {
        let fixture = try TransportFixture(kind)
        let isFirst = Locked(true)
        fixture.route("*", "/start") { _ in isFirst.exchange(false) ? body.response(head) : .text("done") }
        fixture.route("*", "/next") { _ in .text("done") }
        let transport = CountingTransport(fixture.transport)
        let (clock, jar) = (ManualClock(), CookieJar())
        let service = try service(fixture, transport) { host in
            host.retry = RetryPolicy(baseDelay: 0)
            host.clock = clock
            host.cookies = jar
        }
        let isOver = Locked(false)
        let call = Task {
            defer { isOver.exchange(true) }
            return try await way.text(service)
        }
        if body == .stalled, !head.isRedirect {
            await transport.hasTen.opened()
            await fixture.clock.waitForTimers(1)
            fixture.clock.advance(by: 5)
        }
        // The wait for the end of a redirect, and for a retry. An upload has timers of its own.
        if head == .unavailable || (body == .stalled && head.isRedirect) {
            await expect(
                eventually {
                    clock.advance(by: 2)
                    return isOver.withLock { $0 }
                },
                "\(head), \(body)"
            )
        }
        let result = await call.result
        let error = result.failure as? NetworkError
        var outcome = Outcome(text: try? result.get(), code: error?.code, status: error?.statusCode, cookies: [])
        outcome.requestCount = fixture.requests.count
        outcome.cookies = jar.cookies.map(\.value)
        // One piece of a transport may come with the limit.
        outcome.isBounded = transport.bodyCounts[0] < 1_000_000
        var expected = Outcome(text: "done", cookies: ["\(head.rawValue)"])
        if head == .notFound {
            (expected.text, expected.code, expected.status, expected.requestCount) = (nil, .unacceptableStatus, 404, 1)
        }
        expect(outcome, equals: expected, "\(head), \(body): \(error?.debugDescription ?? "no error")")
        let last = fixture.requests.last
        expect(last?.method, equals: (way == .upload ? "PUT" : "GET"), "\(head), \(body)")
        if way == .upload { expect(last?.body, equals: Data("sent".utf8), "\(head), \(body)") }
    }

    private func service(
        _ fixture: TransportFixture,
        _ transport: (any NetworkTransport)? = nil,
        _ change: (inout HostSettings) -> Void
    ) throws -> EasyNetworkService {
        let password = try RequestAuthentication.password(user: "ada", password: "x", allowsBasicWithoutTLS: true)
        let host = HostConfiguration(
            baseURL: fixture.baseURL,
            deadlines: TransportDeadlines(idle: 5),
            transport: transport ?? fixture.transport
        ) { host in
            host.retry = .never
            host.authentication = password
            change(&host)
        }
        return EasyNetworkService(host)
    }

    // MARK: - Accepted responses

    /// A response to a GET, the rule for it, and the outcome.
    private typealias Case = (
        status: Int, count: Int, fault: MockResponse.Fault?, rule: ResponseValidation, outcome: NetworkError.Code?
    )

    @Test("RSP-10: an accepted response counts only with its whole body, also a redirect that a hook does not follow")
    func accepted() async throws {
        let json = ResponseValidation(contentTypes: ["application/json"])
        let short = ResponseValidation(maximumBodyCount: 10)
        let wide = ResponseValidation(statusCodes: 200...399)
        let cases: [Case] = [
            (200, 1_000, .truncate(after: 10), ResponseValidation(), .connectionLost),
            (302, 1_000, nil, wide, nil),
            (302, 1_000, .truncate(after: 10), wide, .connectionLost),
            (302, 65_537, nil, wide, .bodyTooLong),
            // An empty body is accepted with any type.
            (200, 1_000, .truncate(after: 0), json, .connectionLost),
            (200, 1_000, .truncate(after: 10), json, .cannotParseResponse),
            (200, 1_000, nil, short, .bodyTooLong),
            (404, 1_000, nil, short, .unacceptableStatus),
        ]
        let fixture = try TransportFixture(.inMemory)
        var outcomes: [NetworkError.Code?] = []
        for one in cases {
            fixture.route("GET", "/start") { _ in
                MockResponse(
                    statusCode: one.status,
                    headers: ["Location": "/next", "Content-Type": "text/html"],
                    body: .data(Data(count: one.count)),
                    fault: one.fault
                )
            }
            let service = try service(fixture) { host in
                host.validation = one.rule
                host.redirects.decide = { _, _ in nil }
            }
            do {
                try await expect(service.send(Get(api: "start")).statusCode, equals: one.status)
                outcomes.append(nil)
            } catch {
                outcomes.append(error.code)
            }
        }
        expect(outcomes, equals: cases.map(\.outcome))
    }

    @Test("RSP-10, SEC-4: a challenge is answered though its status is accepted and its body is cut")
    func acceptedChallenge() async throws {
        let fixture = try TransportFixture(.inMemory)
        fixture.route("GET", "/start") { request in
            request.headers["Authorization"] == nil ? Body.cut.response(.challenge) : .text("done")
        }
        let service = try service(fixture) { $0.validation = .any }
        try await expect(service.send(Get(api: "start")).text(), equals: "done")
    }

    @Test("RSP-10: 64 KiB of an endless redirect are read, and its attempt names why the body is not complete")
    func limit() async throws {
        let fixture = try TransportFixture(.inMemory)
        fixture.route("GET", "/start") { _ in Body.endless.response(.found) }
        fixture.route("GET", "/next") { _ in .text("done") }
        let count = Locked(0)
        let service = try service(fixture) { host in
            host.redirects.decide = { message, response in
                count.exchange(response.body.count)
                return message
            }
        }
        let response = try await service.send(Get(api: "start"))
        expect(count.withLock { $0 }, equals: 65_536)
        expect(response.history.map(\.statusCode), equals: [302, 200])
        expect(response.history.map(\.errorCode), equals: [.bodyTooLong, nil])
    }

    @Test("RSP-10, REQ-5: the wait for the body of a redirect is a part of the timeout of its attempt")
    func timeout() async throws {
        let clock = ManualClock()
        let transport = SteeredTransport()
        let host = transport.host { host in
            host.clock = clock
            host.deadlines = TransportDeadlines(idle: nil, total: 10)
        }
        let call = Task { try await EasyNetworkService(host).send(Get(api: "start")) }
        let first = try #require(await transport.exchange(0))
        clock.advance(by: 2)
        first.head(302, ["Location": "/next"])
        await clock.waitForTimers(1)
        clock.advance(by: 0.5)
        let second = try #require(await transport.exchange(1))
        expect(first.isCancelled && second.request.deadlines.total == 7.5)
        second.head()
        second.end()
        try await expect(call.value.statusCode, equals: 200)
    }

    @Test("RSP-10, SEC-3: the cookies of a response that breaks off are kept on every path", arguments: Way.allCases)
    func cookies(way: Way) async throws {
        let fixture = try TransportFixture(.inMemory)
        fixture.route("*", "/start") { _ in
            .init(headers: ["Set-Cookie": "a=1"], body: .data(Data(count: 100)), fault: .truncate(after: 10))
        }
        let jar = CookieJar()
        let service = try service(fixture) { $0.cookies = jar }
        let error = await #expect(throws: NetworkError.self) { _ = try await way.text(service) }
        expect(error?.code == .connectionLost && jar.cookies.map(\.value) == ["1"])
    }
}
