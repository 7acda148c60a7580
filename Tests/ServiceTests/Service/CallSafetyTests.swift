import EasyNetworkTesting
import Foundation
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@testable import EasyNetwork
@testable import TestSupport

@Suite("Calls that do no harm", .timeLimit(.minutes(10)))
struct CallSafetyTests {
    private struct Call: APIRequest {
        typealias Item = NetworkResponse
        var api = "x"
        var method = NetworkService.Method.get
        var body: RequestBody?
        var headers: [String: String]?
        var isAuthenticated = true
        var timeout: TimeInterval?
        var interceptors: [any RequestInterceptor] = []
        var options: RequestOptions {
            RequestOptions(timeout: timeout, interceptors: interceptors, isAuthenticated: isAuthenticated)
        }
    }

    private func error(_ host: HostConfiguration, _ call: Call = Call()) async -> NetworkError? {
        await #expect(throws: NetworkError.self) { try await EasyNetworkService(host).send(call) }
    }

    private let payment = Call(method: .post, body: .text("pay 5 euros"))

    // MARK: - Nothing twice

    @Test("BEY-8: a POST that was answered with 303 is not sent again because the page behind it cannot be reached")
    func postAfterSeeOther() async {
        let transport = ScriptedTransport { message, _ in
            message.url.path == "/x"
                ? .answer(303, ["Location": "https://elsewhere.example.com/done"]) : .failure(.cannotConnect, .connect)
        }
        let error = await error(transport.host(), payment)
        expect(error?.code, equals: .cannotConnect)
        expect(transport.messages.map(\.method), equals: [.post, .get])
    }

    private struct Failing: RequestInterceptor {
        func didReceive(_ result: Result<NetworkResponse, NetworkError>, context: AttemptContext) async
            -> ResponseDecision
        {
            .fail(NetworkError(code: .cannotConnect, message: "the machine behind is down"))
        }
    }

    @Test("BEY-8, CBK-6: a POST that was answered is not sent again because an interceptor makes it a failure")
    func failedByInterceptor() async {
        let transport = ScriptedTransport { _, _ in .answer(200) }
        _ = await error(transport.host { $0.interceptors = [Failing()] }, payment)
        expect(transport.messages.count, equals: 1)
    }

    @Test("BEY-8: a job that is finished by hand while its request waits to be sent again sends nothing more")
    func finishedByHand() async {
        let clock = ManualClock()
        let transport = ScriptedTransport { _, _ in .failure(.cannotConnect, .connect) }
        let host = transport.host { settings in
            settings.retry = RetryPolicy(maximumRetryCount: 5, baseDelay: 10)
            settings.clock = clock
        }
        let queue = NetworkQueue()
        var operation: RequestOperation<Call>? = RequestOperation(Call(), service: EasyNetworkService(host))
        weak let kept = operation
        if let operation { queue.addOperation(operation) }
        await clock.waitForTimers(1)
        operation?.finish(NetworkError(code: .refused))
        await operation?.ended()
        operation = nil
        await expect(eventually { kept == nil })
        clock.advance(by: 1_000)
        expect(transport.messages.count, equals: 1)
    }

    private struct Posting: RequestInterceptor {
        func adapt(_ message: TransportRequest, context: AttemptContext) async throws -> TransportRequest {
            var message = message
            message.method = .post
            return message
        }
    }

    @Test("BEY-8, CBK-4: a message that an interceptor or the redirect policy made a POST counts as one")
    func becomesPost() async {
        let adapted = ScriptedTransport { _, _ in .failure(.timedOut, .firstByte) }
        _ = await error(adapted.host { $0.interceptors = [Posting()] })
        expect(adapted.messages.map(\.method), equals: [.post])
        let altered = ScriptedTransport { _, number in
            number == 0 ? .answer(302, ["Location": "/y"]) : .failure(.timedOut, .firstByte)
        }
        let host = altered.host {
            $0.redirects = RedirectPolicy { message, _ in
                var message = message
                message.method = .post
                return message
            }
        }
        _ = await error(host)
        expect(altered.messages.map(\.method), equals: [.get, .post])
    }

    /// Sets the idempotency key that `makeKey` returns for the current key and the number of earlier attempts.
    private struct Keying: RequestInterceptor {
        let makeKey: @Sendable (String?, Int) -> String?

        func adapt(_ message: TransportRequest, context: AttemptContext) async throws -> TransportRequest {
            var message = message
            message.headers["Idempotency-Key"] = makeKey(message.headers["Idempotency-Key"], context.history.count)
            return message
        }
    }

    private func keys(
        _ first: [TransportEvent],
        own: String? = nil,
        _ makeKey: @escaping @Sendable (String?, Int) -> String?
    ) async -> [String?] {
        let transport = ScriptedTransport { _, number in number == 0 ? first : .answer(200) }
        var call = payment
        call.headers = own.map { ["Idempotency-Key": $0] }
        let host = transport.host { $0.interceptors = [Keying(makeKey: makeKey)] }
        do {
            _ = try await EasyNetworkService(host).send(call)
        } catch {
            expect(error.code == .connectionLost && error.attempts == 1, "the failure that it would have retried")
        }
        return transport.messages.map { $0.headers["Idempotency-Key"] }
    }

    @Test("BEY-8: a key counts only if it is the same for every attempt, not if each makes its own")
    func keysOfInterceptors() async {
        let (lost, refused) = (
            [TransportEvent].failure(.connectionLost, .send), [TransportEvent].failure(.cannotConnect, .connect)
        )
        await expect(keys(lost) { _, count in "k\(count)" }, equals: ["k0"])
        await expect(keys(lost, own: "own") { _, count in "k\(count)" }, equals: ["k0"])
        await expect(keys(lost) { _, count in count == 0 ? "k" : nil }, equals: ["k"])
        await expect(keys(lost) { _, _ in "k" }, equals: ["k", "k"])
        await expect(keys(lost, own: "own") { key, _ in key }, equals: ["own", "own"])
        await expect(
            keys(lost) { key, count in key ?? "k\(count)" },
            equals: ["k0", "k0"],
            "the one of the attempt before"
        )
        await expect(keys(refused) { _, count in "k\(count)" }, equals: ["k0", "k1"], "nobody has seen the first")
    }

    @Test("BEY-8: an idempotent method needs no key, and may have another one each time")
    func keysOfIdempotent() async {
        let transport = ScriptedTransport { _, number in
            number == 0 ? .failure(.connectionLost, .send) : .answer(200)
        }
        let host = transport.host { $0.interceptors = [Keying { _, count in "k\(count)" }] }
        _ = try? await EasyNetworkService(host).send(Call(method: .put, body: .text("x")))
        expect(transport.messages.map { $0.headers["Idempotency-Key"] }, equals: ["k0", "k1"])
    }

    // MARK: - After a refresh

    private static var ends: [(end: [TransportEvent], code: NetworkError.Code)] {
        [
            (.failure(.connectionLost, .send), .connectionLost),
            (.answer(200, body: "longer than ten"), .bodyTooLong),
            (.answer(302, ["Location": "ftp://x/"]), .redirectFailed),
        ]
    }

    @Test(
        "CBK-7: a failure after a refresh keeps its own reason, and asks for no sign-in",
        arguments: [0, 1, 2]
    )
    func afterRefresh(_ index: Int) async {
        let (end, code) = Self.ends[index]
        let transport = ScriptedTransport { _, number in number == 0 ? .answer(401) : end }
        let host = transport.host {
            $0.authentication = AuthenticationSession(TestTokens { _ in "new" }, credential: "old")
            $0.retry = .never
            $0.validation = ResponseValidation(maximumBodyCount: 10)
        }
        let posted = Locked(0)
        let observer = NotificationCenter.default.addObserver(
            forName: Notification.Name(DidPerformUnauthorizedOperation),
            object: host,
            queue: nil
        ) { _ in posted.withLock { $0 += 1 } }
        defer { NotificationCenter.default.removeObserver(observer) }
        let error = await error(host)
        expect(error?.code == code && posted.withLock { $0 } == 0)
    }

    @Test("CBK-7, BEY-8: a connection that is lost after a refresh is retried")
    func retriedAfterRefresh() async throws {
        let transport = ScriptedTransport { _, number in
            number == 0 ? .answer(401) : number == 1 ? .failure(.connectionLost, .send) : .answer(200)
        }
        let session = AuthenticationSession(TestTokens { _ in "new" }, credential: "old")
        let response = try await EasyNetworkService(transport.host { $0.authentication = session }).send(Call())
        expect(response.history.map(\.reason), equals: [.first, .authentication, .retry])
    }

    @Test("CBK-7, BEY-8: a POST that may have acted keeps its key when a later try of it is refused and sent again")
    func keyAfterRefresh() async throws {
        let transport = ScriptedTransport { _, number in
            switch number {
            case 0: .failure(.connectionLost, .send)
            case 1: .answer(401)
            case 2: .failure(.cannotConnect, .connect)
            default: .answer(200)
            }
        }
        let host = transport.host {
            $0.authentication = AuthenticationSession(TestTokens { _ in "new" }, credential: "old")
            $0.interceptors = [Keying { key, count in key ?? "k\(count)" }]
        }
        let response = try await EasyNetworkService(host).send(payment)
        expect(response.history.map(\.reason), equals: [.first, .retry, .authentication, .retry])
        expect(transport.messages.map { $0.headers["Idempotency-Key"] }, equals: ["k0", "k0", "k0", "k0"])
    }

    // MARK: - Credentials

    private struct Custom: BaseAPIRequest {
        var api = ""
        var url: URL?
        var options: RequestOptions { RequestOptions(customURLRequest: url.map { URLRequest(url: $0) }) }
    }

    @Test("REQ-7, CBK-7: a custom URLRequest is sent without the host's credential", arguments: [true, false])
    func customRequest(_ hasBase: Bool) async throws {
        let transport = ScriptedTransport { _, _ in .answer(200) }
        var host = transport.host {
            $0.authentication = AuthenticationSession(TestTokens { _ in "new" }, credential: "old")
            if !hasBase { $0.baseURL = nil }
        }
        host = HostConfiguration(host.settings)
        let url = URL(string: hasBase ? "https://api.example.com/x" : "https://third.example.org/x")
        _ = try await EasyNetworkService(host).send(Custom(url: url))
        expect(transport.messages.map { $0.headers["Authorization"] }, equals: [nil])
    }

    @Test("CBK-7: a request that signs in carries no older credential, and its refusal is its answer")
    func signIn() async {
        let refreshes = Locked(0)
        let transport = ScriptedTransport { _, _ in .answer(401, body: "wrong password") }
        let tokens = TestTokens { _ in
            refreshes.withLock { $0 += 1 }
            return "new"
        }
        let host = transport.host { $0.authentication = AuthenticationSession(tokens, credential: "old") }
        let error = await error(host, Call(isAuthenticated: false))
        expect(error?.code == .unauthorized && error?.underlying == nil && refreshes.withLock { $0 } == 0)
        expect(transport.messages.map { $0.headers["Authorization"] }, equals: [nil])
    }

    private struct Elsewhere: RequestInterceptor {
        let url: URL

        @Sendable func filter(_ draft: inout RequestDraft) {
            draft.url = url
            draft.headers["X-Api-Token"] = "chosen"
        }

        func adapt(_ message: TransportRequest, context: AttemptContext) async throws -> TransportRequest {
            var message = message
            message.url = url
            message.headers["X-Api-Token"] = "chosen"
            return message
        }
    }

    @Test("CFG-2, SEC-1: a changed origin of a message drops the host's credentials, and others may be set")
    func elsewhere() async throws {
        let url = try #require(URL(string: "https://other.example.org/x"))
        for isFilter in [true, false] {
            let transport = ScriptedTransport { _, _ in .answer(200) }
            let host = transport.host {
                $0.headers = ["Authorization": "host", "X-Api-Key": "host", "X-Api-Token": "host", "X-App": "shop"]
                if isFilter {
                    $0.filters = [Elsewhere(url: url).filter]
                } else {
                    $0.interceptors = [Elsewhere(url: url)]
                }
            }
            _ = try await EasyNetworkService(host).send(Call())
            let headers = try #require(transport.messages.first?.headers)
            expect(headers["Authorization"] == nil && headers["X-Api-Key"] == nil)
            expect(headers["X-Api-Token"] == "chosen" && headers["X-App"] == "shop")
        }
    }

    @Test("SEC-1, SEC-2: a key in a header of any name stays with its origin: by redirects, and by absolute addresses")
    func keys() async throws {
        let transport = ScriptedTransport { message, _ in
            message.url.path == "/x" ? .answer(302, ["Location": "https://other.example.org/y"]) : .answer(200)
        }
        let host = transport.host { $0.headers = ["X-Api-Key": "host"] }
        let service = EasyNetworkService(host)
        _ = try await service.send(Call(headers: ["X-Session-Token": "mine"]))
        _ = try await service.send(Call(api: "https://other.example.org/z"))
        expect(transport.messages.map { $0.headers["X-Api-Key"] }, equals: ["host", nil, nil])
        expect(transport.messages.map { $0.headers["X-Session-Token"] }, equals: ["mine", nil, nil])
    }

    @Test("CFG-4, SEC-1: headers with credentials are not taken along to another environment")
    func environment() throws {
        let transport = ScriptedTransport { _, _ in .answer(200) }
        let host = transport.host {
            $0.headers = ["Authorization": "release", "X-Api-Key": "release", "X-App": "shop"]
            $0.environments = URL(string: "http://develop.example.net").map { ["develop": $0] } ?? [:]
        }
        try expect(host.switched(to: "develop").settings.headers, equals: ["X-App": "shop"])
        let own = try host.switched(to: "develop") { $0.headers["X-Api-Key"] = "develop" }
        expect(own.settings.headers["X-Api-Key"], equals: "develop")
    }

    // MARK: - Exchanges, time and locks

    @Test("RSP-4: an answer that is too long stops its exchange, also when it came before start returned")
    func tooLongAtOnce() async {
        let transport = ScriptedTransport(isSynchronous: true) { _, _ in
            [.head(TransportHead(statusCode: 200)), .body(Data(count: 100))]
        }
        let error = await error(transport.host { $0.validation = ResponseValidation(maximumBodyCount: 10) })
        expect(error?.code, equals: .bodyTooLong)
        await expect(eventually { transport.cancelCount.withLock { $0 } == 1 })
    }

    @Test("REQ-5, SEC-2: the timeout of an attempt holds for the redirects that are a part of it")
    func redirectsWithinTimeout() async throws {
        let clock = ManualClock()
        let transport = InMemoryTransport(clock: clock)
        for (path, next) in [("/x", "/b"), ("/b", "/c"), ("/c", "/d")] {
            transport.route("GET", path) { _ in MockResponse(statusCode: 302, headers: ["Location": next], delay: 4) }
        }
        let url = URL(string: "https://api.example.com")
        let host = HostConfiguration(baseURL: url, deadlines: TransportDeadlines(idle: nil), transport: transport) {
            $0.clock = clock
            $0.retry = .never
        }
        let operation = RequestOperation(Call(timeout: 10), service: EasyNetworkService(host))
        let queue = NetworkQueue()
        queue.addOperation(operation)
        for count in 1...2 {
            await transport.waitForRequests(count)
            // Two timers: the delay and the deadline.
            await clock.waitForTimers(2)
            clock.advance(by: 4)
        }
        await expect(transport.waitForRequests(3))
        clock.advance(by: 2)
        await operation.ended()
        expect(operation.error?.code == .timedOut && operation.error?.attempts == 1)
    }

    private final class Token: Sendable {
        let gone: @Sendable () -> Void

        init(_ gone: @escaping @Sendable () -> Void) { self.gone = gone }

        deinit { gone() }
    }

    /// Sets a body that reports its release.
    private struct FreshBody: RequestInterceptor {
        let gone: @Sendable () -> Void

        func adapt(_ message: TransportRequest, context: AttemptContext) async throws -> TransportRequest {
            var message = message
            let token = Token(gone)
            message.body = .stream(
                TransportBodyStream {
                    withExtendedLifetime(token) {}
                    return InputStream(data: Data("x".utf8))
                }
            )
            return message
        }
    }

    @Test("BEY-3: objects of a message are not released under a lock: their deinit may cancel the service")
    func releasedOutsideLock() async {
        let clock = ManualClock()
        let transport = ScriptedTransport { _, number in
            number == 0 ? .failure(.cannotConnect, .connect) : .answer(200)
        }
        let box = Locked<EasyNetworkService?>(nil)
        let service = EasyNetworkService(
            transport.host {
                $0.retry = RetryPolicy(baseDelay: 1)
                $0.random = { 1 }
                $0.clock = clock
            }
        )
        box.withLock { $0 = service }
        let ends = Locked<[NetworkError.Code]>([])
        let gone = Locked(0)
        let interceptor = FreshBody {
            // Deadlocks under the call's lock.
            box.withLock { $0 }?.cancel()
            gone.withLock { $0 += 1 }
        }
        let request = CallRequest(Call(method: .put, interceptors: [interceptor]))
        let call = EasyNetwork.Call(request, in: service.group) { _, result, _ in
            if case .failure(let error) = result { ends.withLock { $0.append(error.code) } }
        }
        call.start()
        await clock.waitForTimers(1)
        transport.sent.exchange([])
        clock.advance(by: 2)
        await expect(eventually { ends.withLock { !$0.isEmpty } && gone.withLock { $0 } > 0 })
        expect(ends.withLock { $0 }, equals: [.cancelled])
        box.withLock { $0 = nil }
    }

    private struct Streamed: APIRequest {
        typealias Item = NetworkResponse
        let gone: @Sendable () -> Void
        let repeatPolicy: RepeatPolicy
        var options: RequestOptions { RequestOptions(repeatPolicy: repeatPolicy) }
        var api = "x"
        var method: NetworkService.Method { .put }
        var body: RequestBody? {
            let token = Token(gone)
            return .stream(
                TransportBodyStream {
                    withExtendedLifetime(token) {}
                    return InputStream(data: Data("x".utf8))
                }
            )
        }
    }

    @Test(
        "OPQ-6: the body of a repeat is not released under a lock of the queue",
        arguments: [RepeatPolicy.cancelOlder, .join]
    )
    func repeatReleasedOutsideLock(_ policy: RepeatPolicy) async {
        let transport = ScriptedTransport { _, _ in .answer(200) }
        let service = EasyNetworkService(transport.host())
        let queue = NetworkQueue()
        let gone = Locked(0)
        let request = Streamed(
            gone: {
                let other = RequestOperation(Call(api: "other"), service: service)
                other.repeatPolicy = .cancelOlder
                // Deadlocks under the queue's lock.
                queue.addOperation(other)
                gone.withLock { $0 += 1 }
            },
            repeatPolicy: policy
        )
        let operation = RequestOperation(request, service: service)
        queue.addOperation(operation)
        await operation.ended()
        transport.sent.exchange([])
        await expect(eventually { gone.withLock { $0 } >= 1 })
    }
}
