import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("Interceptors", .timeLimit(.minutes(10)))
struct InterceptorTests: ServiceSuite {
    let transport = InMemoryTransport()

    private struct Call: APIRequest {
        typealias Item = NetworkResponse
        var api = "a"
        var interceptors: [any RequestInterceptor] = []
        var options: RequestOptions { RequestOptions(interceptors: interceptors) }
    }

    /// Records what it sees, and behaves as configured.
    private struct Probe: RequestInterceptor {
        struct Veto: Error {}

        let name: String
        let notes: Locked<[String]>
        var vetoes = false
        var decide: @Sendable (Result<NetworkResponse, NetworkError>) async -> ResponseDecision = { _ in .proceed }

        func adapt(_ message: TransportRequest, context: AttemptContext) async throws -> TransportRequest {
            notes.withLock { $0.append("\(name) adapts \(context.history.count)") }
            if vetoes { throw Veto() }
            var message = message
            message.headers.add(name, for: "X-Seen")
            return message
        }

        func didReceive(
            _ result: Result<NetworkResponse, NetworkError>,
            context: AttemptContext
        ) async -> ResponseDecision {
            let text = (try? result.get()).map { "\($0.statusCode)" } ?? "failure"
            notes.withLock { $0.append("\(name) lands \(text) \(context.history.count)") }
            return await decide(result)
        }
    }

    @Test("CBK-5: the host's run first for a message and last for its result; each sees earlier changes")
    func order() async throws {
        transport.route("GET", "/a") { _ in .text("plain") }
        let notes = Locked<[String]>([])
        let service = service {
            $0.interceptors = [Probe(name: "one", notes: notes), Probe(name: "two", notes: notes)]
        }
        let inner = Probe(name: "own", notes: notes) { _ in .succeed(NetworkResponse(statusCode: 299)) }
        let response = try await service.send(Call(interceptors: [inner]))
        expect(
            notes.withLock { $0 },
            equals: [
                "one adapts 0", "two adapts 0", "own adapts 0", "own lands 200 1", "two lands 299 1", "one lands 299 1",
            ]
        )
        expect(transport.requests.first?.headers.values(for: "X-Seen"), equals: ["one", "two", "own"])
        expect(response.statusCode == 299 && response.history.count == 1)
    }

    private struct Paged: APIRequest {
        let api = "a"
        func item(from response: NetworkResponse) throws -> Int {
            try #require(response.userInfo["page"] as? Int)
        }
    }

    @Test("CBK-5: a value that an interceptor attaches to an answer reaches the item and the others")
    func attached() async throws {
        transport.route("GET", "/a") { _ in .text("plain") }
        let notes = Locked<[String]>([])
        let seen = Locked<[Int?]>([])
        let first = Probe(name: "one", notes: notes) { result in
            seen.withLock { $0.append((try? result.get())?.userInfo["page"] as? Int) }
            return .proceed
        }
        let second = Probe(name: "two", notes: notes) { result in
            guard case .success(var response) = result else { return .proceed }
            let bare = response
            response.userInfo["page"] = 7
            expect(bare.userInfo.isEmpty)
            return .succeed(response)
        }
        let service = service { $0.interceptors = [first, second] }
        try await expect(service.perform(Paged()), equals: 7)
        let operation = RequestOperation(Paged(), service: service)
        NetworkQueue().addOperation(operation)
        try await expect(operation.value, equals: 7)
        expect(seen.withLock { $0 }, equals: [7, 7])
    }

    @Test("CBK-5: a veto ends the request unsent, with its reason")
    func veto() async throws {
        let notes = Locked<[String]>([])
        let probes = [Probe(name: "one", notes: notes, vetoes: true), Probe(name: "two", notes: notes)]
        let service = service { $0.interceptors = probes }
        let error = await #expect(throws: NetworkError.self) { try await service.send(Call()) }
        expect(error?.code == .refused && error?.underlying is Probe.Veto && error?.attempts == 0)
        expect(transport.requests.isEmpty && notes.withLock { $0 } == ["one adapts 0"])
    }

    @Test("CBK-5: a message that an interceptor changed is checked")
    func checked() async throws {
        struct Breaker: RequestInterceptor {
            func adapt(_ message: TransportRequest, context: AttemptContext) async throws -> TransportRequest {
                var message = message
                message.headers["X-Bad"] = "a\r\nX-Injected: 1"
                return message
            }
        }
        let service = service { $0.interceptors = [Breaker()] }
        let error = await #expect(throws: NetworkError.self) { try await service.send(Call()) }
        expect(error?.code == .invalidRequest && error?.message?.contains("X-Bad") == true)
        expect(transport.requests.isEmpty)
    }

    @Test("CBK-6: an error in a body of status 200 becomes a failure, a failure a success")
    func turned() async throws {
        transport.route("GET", "/a") { _ in .json(["code": 7]) }
        let business = Probe(name: "one", notes: Locked([])) { result in
            guard let response = try? result.get(), let json = try? response.json() as? [String: Int], json["code"] == 7
            else { return .proceed }
            return .fail(NetworkError(code: NetworkError.Code(rawValue: 10_007), message: "sold out"))
        }
        let strict = service { $0.interceptors = [business] }
        let error = await #expect(throws: NetworkError.self) { try await strict.send(Call()) }
        expect(error?.code.rawValue == 10_007 && error?.attempts == 1 && error?.request?.url.path == "/a")
        let rescue = Probe(name: "one", notes: Locked([])) { result in
            if case .failure(let error) = result, error.statusCode == 404 {
                return .succeed(NetworkResponse(statusCode: 404, body: Data("none".utf8)))
            }
            return .proceed
        }
        try await expect(service { $0.interceptors = [rescue] }.send(Call(api: "missing")).text(), equals: "none")
    }

    @Test("CBK-6: a repeat waits for its delay on the clock, without its slot")
    func again() async throws {
        let clock = ManualClock()
        let count = Locked(0)
        transport.route("GET", "/a") { _ in .text("\(count.next())") }
        let poll = Probe(name: "one", notes: Locked([])) { result in
            (try? result.get().text()) == "3" ? .proceed : .sendAgain(after: 5)
        }
        let service = service { ($0.interceptors, $0.clock) = ([poll], clock) }
        let queue = NetworkQueue(maxConcurrentOperationCount: 1)
        let operation = RequestOperation(Call(), service: service)
        queue.addOperation(operation)
        for _ in 0..<2 {
            await clock.waitForTimers(1)
            let other = BlockOperation {}
            queue.addOperation(other)
            await other.ended()
            clock.advance(by: 5)
        }
        let response = try await operation.value
        expect(response.history.map(\.reason), equals: [.first, .again, .again])
        expect(response.history.map(\.delay), equals: [0, 5, 5])
    }

    @Test("CBK-6: stopped, it ends as cancelled, and its closures are not called")
    func stop() async throws {
        transport.route("GET", "/a") { _ in .text("x") }
        let service = service { $0.interceptors = [Probe(name: "one", notes: Locked([])) { _ in .stop }] }
        let operation = RequestOperation(Call(), service: service)
        let called = Locked(0)
        operation.success = { _ in called.withLock { $0 += 1 } }
        operation.failure = { _ in called.withLock { $0 += 1 } }
        let queue = NetworkQueue()
        queue.addOperation(operation)
        let error = await #expect(throws: NetworkError.self) { try await operation.value }
        await operation.ended()
        expect(error?.code == .cancelled && called.withLock { $0 } == 0)
    }

    @Test(
        "CBK-2, CBK-5: cancelled while an interceptor runs, it ends at once, and the interceptor's task is cancelled"
    )
    func cancelled() async throws {
        let begun = Gate()
        let wasCancelled = Gate()
        struct Slow: RequestInterceptor {
            let begun: Gate
            let wasCancelled: Gate

            func adapt(_ message: TransportRequest, context: AttemptContext) async throws -> TransportRequest {
                begun.open()
                await withTaskCancellationHandler {
                    await wasCancelled.opened()
                } onCancel: {
                    wasCancelled.open()
                }
                return message
            }
        }
        let slow = Slow(begun: begun, wasCancelled: wasCancelled)
        let operation = RequestOperation(Call(), service: service { $0.interceptors = [slow] })
        NetworkQueue().addOperation(operation)
        await begun.opened()
        operation.cancel()
        await operation.ended()
        await wasCancelled.opened()
        expect(operation.error?.code == .cancelled && transport.requests.isEmpty)
    }
}
