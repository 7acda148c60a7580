import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("The circuit breaker of a host", .timeLimit(.minutes(10)))
struct CircuitBreakerTests: ServiceSuite {
    private let clock = ManualClock()
    let transport: InMemoryTransport
    /// What `/a` answers.
    private let answer = Locked(MockResponse.status(503))

    init() {
        transport = InMemoryTransport(clock: clock)
        for method in ["GET", "PUT"] {
            transport.route(method, "/a") { [answer] _ in answer.withLock { $0 } }
        }
        transport.route("GET", "/missing") { _ in .status(404) }
        transport.route("GET", "/fine") { _ in .text("fine") }
    }

    private struct Call: APIRequest {
        typealias Item = NetworkResponse
        var api = "a"
        var method = NetworkService.Method.get
        var options = RequestOptions()
    }

    private final class Older: ServiceOperation, @unchecked Sendable {
        override func execute() {
            service.request(
                Call(),
                success: { _ in self.finish() },
                failure: { (error: NetworkError) in self.finish(error) }
            )
        }
    }

    func prepare(_ host: inout HostSettings) {
        host.baseURL = URL(string: "https://api.example.com:444")
        host.clock = clock
        host.random = { 0 }
        host.circuitBreaker = CircuitBreaker(opensAfter: .failuresInRow(3))
    }

    private func waitingCount(_ circuit: Circuit) -> Int { circuit.state.withLock { $0.waiting.count } }

    private func code(_ service: EasyNetworkService, _ call: Call = Call()) async -> NetworkError.Code? {
        await error(service, call)?.code
    }

    private func error(_ service: EasyNetworkService, _ call: Call = Call()) async -> NetworkError? {
        do throws(NetworkError) {
            _ = try await service.send(call)
            return nil
        } catch {
            return error
        }
    }

    private func open(_ service: EasyNetworkService) async {
        answer.exchange(.status(503))
        for _ in 0..<3 { _ = await code(service) }
    }

    @Test(
        "OPQ-13: after failures in a row calls fail at once, with the reason; a trial that succeeds closes the circuit"
    )
    func failsAtOnce() async throws {
        let service = service()
        await open(service)
        let refused = try #require(await error(service))
        expect(refused.code == .circuitOpen && refused.attempts == 0 && refused.headers["Retry-After"] == "5")
        expect(
            refused.message,
            equals: "the circuit to api.example.com:444 is open after 3 failures in a row, "
                + "the last one status 503; the next trial can start in 5 s"
        )
        clock.advance(by: 4.5)
        await expect(error(service)?.message?.hasSuffix("the next trial can start in 0.5 s"), equals: true)
        expect(transport.requests.count, equals: 3)
        clock.advance(by: 0.5)
        // Its trial.
        await expect(code(service), equals: .unacceptableStatus)
        await expect(error(service)?.message?.contains("and 1 failed trial"), equals: true)
        clock.advance(by: 9)
        await expect(code(service) == .circuitOpen && transport.requests.count == 4)
        clock.advance(by: 1)
        answer.exchange(.text("a"))
        for _ in 0..<5 { await expect(code(service) == nil) }
        expect(transport.requests.count, equals: 9)
    }

    @Test("OPQ-13: a message that was cancelled behind its head says nothing of its server")
    func cancelledBody() {
        let breaker = CircuitBreaker(opensAfter: .failuresInRow(3))
        for status in [200, 503] {
            let error = NetworkError(code: .cancelled, statusCode: status)
            expect(breaker.verdict(on: error, at: clock.date) == nil)
        }
    }

    @Test("OPQ-13: one trial goes at a time, and a trial that is cancelled lets the next one go")
    func oneTrial() async throws {
        let service = service()
        await open(service)
        clock.advance(by: 5)
        var slow = MockResponse.text("a")
        slow.delay = 100
        answer.exchange(slow)
        let trial = Task { try await service.send(Call()) }
        await expect(transport.waitForRequests(4))
        for _ in 0..<3 {
            let refused = await error(service)
            expect(refused?.message?.hasSuffix("a trial is running"), equals: true)
            expect(refused?.headers["Retry-After"] == nil)
        }
        trial.cancel()
        _ = await trial.result
        answer.exchange(.text("a"))
        // The task of the call may still be about to notice.
        let circuit = service.configuration.circuit(to: try #require(service.configuration.baseURL))
        await expect(eventually { circuit.isForgettable(at: clock.now) })
        await expect(code(service) == nil && transport.requests.count == 5)
    }

    @Test("OPQ-13: a trial without a response lets the others go after its time; its later failure counts")
    func longTrial() async throws {
        let service = service { $0.circuitBreaker?.trialTime = 7 }
        let events = Locked<[String]>([])
        let subscription = service.configuration.subscribe { event in
            switch event.kind {
            case .circuitOpened: events.withLock { $0.append("opened") }
            case .circuitClosed: events.withLock { $0.append("closed") }
            default: break
            }
        }
        await open(service)
        clock.advance(by: 5)
        var slow = MockResponse.text("a", status: 503)
        slow.delay = 100
        answer.exchange(slow)
        let trial = Task { await code(service, Call(method: .put)) }
        // The trial and its response each have a timer. The transport notes the request before it sets the second one.
        await expect(eventually { clock.pendingCount == 2 })
        var patient = Call(api: "fine")
        patient.options.circuitBreaker = CircuitBreaker(waitsWhileOpen: true)
        let waiting = Task { [patient] in await code(service, patient) }
        let circuit = service.configuration.circuit(to: try #require(service.configuration.baseURL))
        await expect(eventually { waitingCount(circuit) == 1 })
        clock.advance(by: 6.9)
        await expect(code(service, Call(api: "fine")), equals: .circuitOpen)
        clock.advance(by: 0.1)
        await expect(eventually { waitingCount(circuit) == 0 })
        await expect(code(service, Call(api: "fine")) == nil)
        // The others have succeeded: its failure is one of three.
        clock.advance(by: 93)
        await expect(trial.value, equals: .unacceptableStatus)
        await expect(waiting.value == nil)
        await expect(code(service, Call(api: "fine")) == nil && clock.pendingCount == 0)
        expect(events.withLock { $0 }, equals: ["opened", "closed"])
        // Without a success of others the circuit opens again.
        await open(service)
        clock.advance(by: 5)
        answer.exchange(slow)
        let second = Task { await code(service, Call(method: .put)) }
        await expect(eventually { clock.pendingCount == 2 })
        clock.advance(by: 100)
        await expect(second.value, equals: .unacceptableStatus)
        answer.exchange(.text("a"))
        await expect(error(service)?.headers["Retry-After"], equals: "10")
        expect(events.withLock { $0 }, equals: ["opened", "closed", "opened", "closed", "opened"])
        withExtendedLifetime(subscription) {}
    }

    @Test(
        "OPQ-13: calls that wait have no slot; one sends the trial when it is time, and the others follow its success"
    )
    func waits() async throws {
        let service = service {
            $0.circuitBreaker = CircuitBreaker(opensAfter: .failuresInRow(3), waitsWhileOpen: true)
        }
        await open(service)
        let queue = NetworkQueue(maxConcurrentOperationCount: 2)
        let jobs = (0..<500).map { _ in RequestOperation(Call(), service: service) }
        queue.addOperations(jobs, waitUntilFinished: false)
        await expect(eventually { queue.explain(jobs[499]) == [.circuit(host: "api.example.com:444", seconds: 5)] })
        expect("\(queue.explain(jobs[0])[0])", equals: "waits for the open circuit to api.example.com:444, 5 s")
        let elsewhere = self.service { $0.baseURL = URL(string: "https://other.example.com") }
        let other = RequestOperation(Get(api: "a"), service: elsewhere)
        queue.addOperation(other)
        await other.ended()
        jobs[0].cancel()
        await jobs[0].ended()
        expect(jobs[0].error?.code == .cancelled && transport.requests.count == 4)
        // The first trial fails.
        clock.advance(by: 5)
        await expect(transport.waitForRequests(5))
        await expect(eventually { queue.operationCount == 498 })
        let ended = jobs.filter(\.isFinished)
        expect(ended.compactMap(\.error?.statusCode), equals: [503])
        let next = try #require(jobs.first { !$0.isFinished })
        await expect(eventually { queue.explain(next) == [.circuit(host: "api.example.com:444", seconds: 10)] })
        expect(transport.requests.count, equals: 5)
        answer.exchange(.text("a"))
        clock.advance(by: 10)
        for job in jobs where !ended.contains(job) { _ = try await job.value }
        expect(transport.requests.count == 503 && queue.operationCount == 0)
    }

    @Test("OPQ-13: a call that is woken and gets no slot does not hold the others up; the wait ends with its timeout")
    func wokenWithoutSlot() async throws {
        let service = service {
            $0.circuitBreaker = CircuitBreaker(opensAfter: .failuresInRow(3), waitsWhileOpen: true)
        }
        await open(service)
        let queue = NetworkQueue()
        let job = RequestOperation(Call(), service: service)
        queue.addOperation(job)
        await expect(eventually { queue.explain(job) == [.circuit(host: "api.example.com:444", seconds: 5)] })
        queue.isSuspended = true
        var hurried = Call()
        hurried.options.overallTimeout = 2
        async let late = error(service, hurried)
        await expect(eventually { clock.pendingCount >= 2 })
        clock.advance(by: 2)
        await expect(late?.code, equals: .timedOut)
        let circuit = service.configuration.circuit(to: try #require(service.configuration.baseURL))
        await expect(eventually { waitingCount(circuit) == 1 })
        let call = Task { try await service.send(Call()) }
        await expect(eventually { waitingCount(circuit) == 2 })
        answer.exchange(.text("a"))
        clock.advance(by: 3)
        await expect(eventually { waitingCount(circuit) == 1 } && transport.requests.count == 3)
        clock.advance(by: 1)
        _ = try await call.value
        expect(transport.requests.count, equals: 4)
        queue.isSuspended = false
        _ = try await job.value
    }

    @Test(
        "OPQ-13, BEY-8: each attempt counts; a retry that would be refused is not made, and the call ends with its error"
    )
    func retries() async throws {
        let service = service { $0.retry = RetryPolicy(maximumRetryCount: 9, errorCodes: [.circuitOpen], baseDelay: 0) }
        let first = Task { await error(service) }
        for _ in 0..<2 {
            await expect(clock.waitForTimers(1))
            clock.advance(by: 0)
        }
        let failed = await first.value
        expect(failed?.statusCode == 503 && failed?.attempts == 3 && transport.requests.count == 3)
        // Even a policy that retries it waits for the trial.
        answer.exchange(.text("a"))
        let patient = Task { try await service.send(Call()) }
        await expect(clock.waitForTimers(1))
        clock.advance(by: 4.9)
        expect(transport.requests.count, equals: 3)
        clock.advance(by: 0.1)
        try await expect(patient.value.history.count, equals: 1)
    }

    @Test("OPQ-13, CBK-7: a message that waits for the circuit with a new credential goes with the one of then")
    func credentialWhileWaiting() async throws {
        let authorizations = Locked<[String?]>([])
        transport.route("GET", "/mine") { [authorizations] request in
            authorizations.withLock { $0.append(request.headers["Authorization"]) }
            return request.headers["Authorization"] == "Bearer old" ? .status(401) : .text("mine")
        }
        // A refresh whose own request opens the circuit.
        let failing = Locked<EasyNetworkService?>(nil)
        let tokens = TestTokens { _ in
            _ = try? await failing.withLock { $0 }?.send(Call(options: RequestOptions(isAuthenticated: false)))
            return "new"
        }
        let session = AuthenticationSession(tokens, credential: "old")
        let service = service {
            $0.circuitBreaker = CircuitBreaker(opensAfter: .failuresInRow(1), openTime: 5, waitsWhileOpen: true)
            $0.authentication = session
        }
        failing.exchange(service)
        async let answered = service.send(Call(api: "mine"))
        let url = try #require(URL(string: "https://api.example.com:444/mine"))
        let circuit = service.configuration.circuit(to: url)
        await expect(eventually { waitingCount(circuit) == 1 })
        session.signIn("others")
        answer.exchange(.text("fine"))
        clock.advance(by: 5)
        _ = try await answered
        expect(authorizations.withLock { $0 }, equals: ["Bearer old", "Bearer others"])
    }

    @Test("OPQ-13, CBK-7: a trial that was not sent, because another user signed in, does not hold back itself")
    func trialOfAnotherUser() async throws {
        let authorizations = Locked<[String?]>([])
        transport.route("GET", "/mine") { [authorizations] request in
            authorizations.withLock { $0.append(request.headers["Authorization"]) }
            return .text("mine")
        }
        let session = AuthenticationSession(TestTokens { _ in "new" }, credential: "old")
        let service = service {
            $0.circuitBreaker = CircuitBreaker(opensAfter: .failuresInRow(1), openTime: 5, waitsWhileOpen: true)
            $0.authentication = session
        }
        await expect(code(service), equals: .unacceptableStatus)
        clock.advance(by: 5)
        var request = CallRequest(Call(api: "mine"))
        let isFirst = Locked(true)
        request.consumer = { message in
            if isFirst.exchange(false) { session.signIn("others") }
            return (message, { _, _, _ in .collect })
        }
        _ = try await CallGroup(service.configuration).result(of: request) { $0 }.get()
        expect(authorizations.withLock { $0 }, equals: ["Bearer others"])
    }

    @Test("OPQ-13, BEY-8: the time without a trial is at least the Retry-After; refused calls pay nothing for retries")
    func retryAfter() async throws {
        let service = service { $0.retryBudget = 0 }
        answer.exchange(.status(429, headers: ["Retry-After": "120"]))
        for _ in 0..<3 { _ = await code(service) }
        for _ in 0..<20 { await expect(error(service)?.headers["Retry-After"], equals: "120") }
        clock.advance(by: 119)
        await expect(code(service) == .circuitOpen && transport.requests.count == 3)
        // Three fifths.
        expect(!service.configuration.takeRetry(afterProgress: false))
        clock.advance(by: 1)
        answer.exchange(.text("a"))
        await expect(code(service) == nil)
    }

    @Test(
        "OPQ-13: the cache answers while the circuit is open, also with a stale answer; no failures: 4xx, a cancel, no network"
    )
    func cacheAndOthers() async throws {
        let network = NetworkReachability()
        let transport = transport
        let service = service { host in
            host.reachability = network
            host.cachePolicy = .http
            host.cache = NetworkCache(diskBytes: 0, clock: clock)
        }
        answer.exchange(.text("old", headers: ["Cache-Control": "max-age=60, stale-if-error=1000"]))
        await expect(code(service) == nil)
        let missing = Call(api: "missing")
        for _ in 0..<3 { await expect(code(service, missing), equals: .unacceptableStatus) }
        transport.route("GET", "/offline") { _ in
            network.status = .unreachable
            return MockResponse(fault: .close)
        }
        for _ in 0..<3 {
            await expect(code(service, Call(api: "offline")), equals: .connectionLost)
            network.status = .reachable
        }
        var never = MockResponse.text("")
        never.delay = 1_000
        let last = never
        transport.route("GET", "/never") { _ in last }
        for _ in 0..<3 {
            let count = transport.requests.count
            let call = Task { try await service.send(Call(api: "never")) }
            await expect(transport.waitForRequests(count + 1))
            call.cancel()
            _ = await call.result
        }
        let count = transport.requests.count
        var uncached = Call()
        uncached.options.cache = .never
        answer.exchange(.status(500))
        for _ in 0..<3 { await expect(code(service, uncached), equals: .unacceptableStatus) }
        await expect(code(service, uncached), equals: .circuitOpen)
        try await expect(service.send(Call()).source, equals: .cache)
        clock.advance(by: 61)
        // The circuit is ready for a trial: another one opens it again.
        answer.exchange(.status(500))
        await expect(code(service, uncached), equals: .unacceptableStatus)
        try await expect(service.send(Call()).text(), equals: "old")
        expect(transport.requests.count, equals: count + 4)
    }

    @Test("OPQ-13: a request switches it off, or waits; each server has its own circuit, redirects included")
    func overrides() async throws {
        let service = service()
        await open(service)
        var off = Call()
        off.options.circuitBreaker = .never
        for _ in 0..<5 { await expect(code(service, off), equals: .unacceptableStatus) }
        await expect(code(service), equals: .circuitOpen)
        var patient = Call()
        patient.options.circuitBreaker = CircuitBreaker(waitsWhileOpen: true)
        answer.exchange(.text("a"))
        let call = Task { [patient] in try await service.send(patient) }
        let circuit = service.configuration.circuit(to: try #require(service.configuration.baseURL))
        await expect(eventually { waitingCount(circuit) == 1 })
        await expect(code(service, Call(api: "https://other.example.com/fine")) == nil)
        transport.route("GET", "/there") { _ in .status(302, headers: ["Location": "https://api.example.com:444/a"]) }
        await expect(code(service, Call(api: "https://other.example.com/there")), equals: .circuitOpen)
        clock.advance(by: 5)
        _ = try await call.value
        await expect(code(service, Call(api: "https://other.example.com/there")) == nil)
        // A program that visits many servers.
        let urls = try (0..<1_500).map { try #require(URL(string: "http://\($0).example.com")) }
        let circuits = urls.map(service.configuration.circuit)
        expect(circuits[0] !== service.configuration.circuit(to: urls[0]))
        expect(circuits[1_499] === service.configuration.circuit(to: urls[1_499]))
    }

    @Test("OPQ-13: it holds for all kinds of calls, and the head of a stream that is a trial closes the circuit")
    func kinds() async throws {
        let service = service()
        await open(service)
        let (queue, folder) = (NetworkQueue(), FileManager.default.temporaryDirectory)
        let download = DownloadOperation(Call(), to: folder.appendingPathComponent(UUID().uuidString), service: service)
        let upload = UploadOperation(Call(method: .put), from: .text("x"), service: service)
        let older = Older(service: service)
        for job in [download, upload, older] as [NetworkOperation] {
            queue.addOperation(job)
            await job.ended()
            expect(job.error?.code, equals: .circuitOpen, "\(job)")
        }
        let error = await #expect(throws: NetworkError.self) { try await service.stream(Call()) }
        expect(error?.code == .circuitOpen && transport.requests.count == 3)
        clock.advance(by: 5)
        answer.exchange(MockResponse(body: .repeating(1, count: 10_000_000)))
        let stream = try await service.stream(Call())
        answer.exchange(.text("a"))
        await expect(code(service) == nil)
        withExtendedLifetime(stream) {}
    }

    @Test("OPQ-13: the opening, the wait and the closing are told as events")
    func events() async throws {
        let service = service {
            $0.circuitBreaker = CircuitBreaker(opensAfter: .failuresInRow(1), waitsWhileOpen: true)
        }
        let words = Locked<[String]>([])
        let subscription = service.configuration.subscribe { event in
            switch event.kind {
            case .circuitAwaited, .circuitOpened, .circuitClosed: words.withLock { $0.append(event.description) }
            default: break
            }
        }
        await expect(code(service), equals: .unacceptableStatus)
        answer.exchange(.text("a"))
        let call = Task { try await service.send(Call()) }
        await expect(eventually { words.withLock { $0.count } == 2 })
        await expect(clock.waitForTimers(1))
        clock.advance(by: 5)
        _ = try await call.value
        await subscription.settled()
        let parts = words.withLock { $0 }.compactMap { $0.split(separator: ": ", maxSplits: 1).last }
        try #require(parts.count == 3)
        expect(
            parts[0].hasPrefix("opened the circuit: The server failed too often: the circuit to api.example.com:444")
        )
        expect(parts[1...], equals: ["waits because the circuit to its server is open", "closed the circuit"])
    }
}
