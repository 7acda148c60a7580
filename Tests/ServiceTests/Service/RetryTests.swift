import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("Retries", .timeLimit(.minutes(10)))
struct RetryTests: ServiceSuite {
    private let clock = ManualClock()
    let transport: InMemoryTransport
    private let queue = NetworkQueue(maxConcurrentOperationCount: 1)

    init() {
        transport = InMemoryTransport(clock: clock)
    }

    private struct Call: APIRequest {
        typealias Item = NetworkResponse
        var api = "a"
        var method = NetworkService.Method.get
        var idempotencyKey: String?
        var overallTimeout: TimeInterval?
        var options: RequestOptions { RequestOptions(overallTimeout: overallTimeout, idempotencyKey: idempotencyKey) }
        var body: RequestBody? { method == .post ? .text("x") : nil }
    }

    func prepare(_ host: inout HostSettings) {
        host.clock = clock
        host.random = { 0.5 }
        host.retry = RetryPolicy()
    }

    /// Responds with these in order; the last one repeats.
    private func answers(_ answers: MockResponse...) {
        let rest = Locked(answers)
        for method in ["GET", "POST"] {
            transport.route(method, "/a") { _ in rest.withLock { $0.count > 1 ? $0.removeFirst() : $0[0] } }
        }
    }

    @Test(
        "RSP-7: an answer that breaks off within its body is retried, and the next one holds nothing of it",
        arguments: TransportFixture.Kind.allCases
    )
    func halfABody(kind: TransportFixture.Kind) async throws {
        let fixture = try TransportFixture(kind)
        let sent = Locked(0)
        fixture.route("GET", "/a") { _ in
            let number = sent.next()
            let body = Data(repeating: UInt8(number), count: 200_000)
            return MockResponse(
                headers: ["Content-Type": "application/octet-stream", "X-Attempt-\(number)": "yes"],
                body: .data(body),
                fault: number < 3 ? .truncate(after: 100_000) : nil
            )
        }
        let host = HostConfiguration(baseURL: fixture.baseURL, transport: fixture.transport) {
            $0.retry = RetryPolicy(baseDelay: 0)
        }
        let operation = RequestOperation(Call(), service: EasyNetworkService(host))
        queue.addOperation(operation)
        let response = try await operation.value
        expect(sent.withLock { $0 } == 3 && response.history.count == 3)
        expect(response.body, equals: Data(repeating: 3, count: 200_000))
        expect(response.headers["X-Attempt-3"], equals: "yes")
        expect(response.headers["X-Attempt-1"] == nil && response.headers["X-Attempt-2"] == nil)
    }

    @Test("BEY-8: a 503 with Retry-After: 2 is retried after two seconds of manual time")
    func retryAfter() async throws {
        answers(.status(503, headers: ["Retry-After": "2"]), .text("done"))
        let operation = RequestOperation(Call(), service: service())
        queue.addOperation(operation)
        await clock.waitForTimers(1)
        clock.advance(by: 1.9)
        expect(transport.requests.count == 1 && !operation.isFinished)
        clock.advance(by: 0.1)
        let response = try await operation.value
        try expect(response.text() == "done" && transport.requests.count == 2)
        expect(response.history.map(\.statusCode) == [503, 200] && response.history.map(\.delay) == [0, 2])
        expect(response.history.map(\.reason), equals: [.first, .retry])
    }

    @Test(
        "BEY-8: by default two retries, with delays drawn from half a second and one; then the last answer is the error"
    )
    func defaults() async throws {
        answers(.status(500))
        let operation = RequestOperation(Call(), service: service())
        queue.addOperation(operation)
        for delay in [0.25, 0.5] {
            await clock.waitForTimers(1)
            clock.advance(by: delay - 0.01)
            expect(clock.pendingCount, equals: 1)
            clock.advance(by: 0.01)
        }
        let error = await #expect(throws: NetworkError.self) { try await operation.value }
        expect(error?.code == .unacceptableStatus && error?.statusCode == 500 && error?.attempts == 3)
        expect(error?.history.map(\.delay) == [0, 0.25, 0.5] && transport.requests.count == 3)
    }

    @Test("BEY-8: a lost connection is retried, a POST only with its key, which stays the same")
    func post() async throws {
        answers(.fault(.close), .text("done"))
        let service = service()
        let plain = RequestOperation(Call(method: .post), service: service)
        queue.addOperation(plain)
        let error = await #expect(throws: NetworkError.self) { try await plain.value }
        expect(error?.code == .connectionLost && error?.attempts == 1)
        answers(.fault(.close), .text("done"))
        let keyed = RequestOperation(Call(method: .post, idempotencyKey: "k-1"), service: service)
        queue.addOperation(keyed)
        await clock.waitForTimers(1)
        clock.advance(by: 1)
        _ = try await keyed.value
        expect(transport.requests.map { $0.headers["Idempotency-Key"] }, equals: [nil, "k-1", "k-1"])
        expect(transport.requests.allSatisfy { $0.body == Data("x".utf8) })
    }

    @Test("BEY-6, BEY-8: a job that waits for its retry gives its slot back, and asks for one again")
    func slot() async throws {
        answers(.status(503), .text("done"))
        transport.route("GET", "/b") { _ in .text("other") }
        let service = service()
        let waiting = RequestOperation(Call(), service: service)
        queue.addOperation(waiting)
        await clock.waitForTimers(1)
        // The queue has a single slot.
        let other = RequestOperation(Get(api: "b"), service: service)
        queue.addOperation(other)
        try await expect(other.value.text(), equals: "other")
        expect(!waiting.isFinished)
        queue.isSuspended = true
        clock.advance(by: 5)
        expect(transport.requests.count, equals: 2)
        queue.isSuspended = false
        try await expect(waiting.value.text(), equals: "done")
    }

    @Test("OPQ-2, BEY-8: cancelled while it waits for its retry, it ends at once and sends nothing more")
    func cancelled() async throws {
        answers(.status(503))
        let operation = RequestOperation(Call(), service: service())
        queue.addOperation(operation)
        await clock.waitForTimers(1)
        operation.cancel()
        await operation.ended()
        expect(operation.error?.code, equals: .cancelled)
        await expect(eventually { clock.pendingCount == 0 })
        expect(transport.requests.count, equals: 1)
    }

    @Test("REQ-5, BEY-8: the time for all attempts together ends the wait for the next")
    func overallTimeout() async throws {
        answers(.status(503, headers: ["Retry-After": "10"]))
        let operation = RequestOperation(Call(overallTimeout: 3), service: service())
        queue.addOperation(operation)
        await clock.waitForTimers(2)
        clock.advance(by: 2.9)
        expect(!operation.isFinished)
        clock.advance(by: 0.1)
        let error = await #expect(throws: NetworkError.self) { try await operation.value }
        expect(error?.code == .timedOut && error?.attempts == 1 && error?.message?.contains("3") == true)
        await expect(eventually { clock.pendingCount == 0 })
        for timeout in [0, -1, Double.infinity, .nan] {
            let bad = RequestOperation(Call(overallTimeout: timeout), service: service())
            queue.addOperation(bad)
            let error = await #expect(throws: NetworkError.self) { try await bad.value }
            expect(error?.code == .invalidRequest && error?.message?.contains("overall timeout") == true)
        }
    }

    @Test("BEY-8: the budget of the host bounds the retries of all its requests")
    func budget() async throws {
        answers(.status(503))
        let service = service { host in
            host.retryBudget = 3.05
            host.retry.baseDelay = 0
        }
        let operations = (0..<10).map { _ in RequestOperation(Call(), service: service) }
        let wide = NetworkQueue()
        wide.addOperations(operations, waitUntilFinished: false)
        for operation in operations {
            let isFinished = await eventually {
                clock.advance(by: 0)
                return operation.isFinished
            }
            expect(isFinished)
        }
        expect(operations.allSatisfy { $0.error?.statusCode == 503 })
        // The budget allows three retries, and ten requests earn two more.
        expect(transport.requests.count, equals: 15)
    }

    @Test("BEY-8: a request may have a policy of its own, and a host none")
    func policies() async throws {
        struct Never: APIRequest {
            typealias Item = NetworkResponse
            var api: String { "a" }
            var options: RequestOptions { RequestOptions(retry: .never) }
        }
        answers(.status(503))
        let error = await #expect(throws: NetworkError.self) { try await service().send(Never()) }
        expect(error?.attempts, equals: 1)
        let never = service { $0.retry = .never }
        await #expect(throws: NetworkError.self) { try await never.send(Call()) }
        expect(transport.requests.count, equals: 2)
    }
}
