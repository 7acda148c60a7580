import EasyNetworkTesting
import Foundation
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@testable import EasyNetwork
@testable import TestSupport

@Suite("Server-sent events over several connections", .timeLimit(.minutes(10)))
struct ServerSentEventsTests: ServiceSuite {
    private struct Post: BaseAPIRequest {
        let api = "x"
        let method = NetworkService.Method.post
        let body: RequestBody? = .text("question")
        var idempotencyKey: String?
        var options: RequestOptions { RequestOptions(idempotencyKey: idempotencyKey) }
    }

    private let type: HTTPHeaders = ["Content-Type": "text/event-stream"]
    let transport = SteeredTransport()
    private let clock = ManualClock()

    func prepare(_ host: inout HostSettings) {
        host.baseURL = URL(string: "https://api.example.com")
        host.clock = clock
    }

    /// Reads to the end in a separate task.
    private func read(
        _ events: StreamedSequence<ServerSentEvent>,
        into seen: Locked<[ServerSentEvent]>
    ) -> Task<Void, any Error> {
        Task { for try await event in events { seen.withLock { $0.append(event) } } }
    }

    private func error(_ task: Task<Void, any Error>) async -> NetworkError? {
        do {
            try await task.value
            return nil
        } catch {
            return error as? NetworkError
        }
    }

    @Test("BEY-3: asked for as a stream of events, and by the ID of the last one after the time that the server says")
    func reconnects() async throws {
        let seen = Locked<[ServerSentEvent]>([])
        let task = read(service().events(Get(api: "x")), into: seen)
        let first = try #require(await transport.exchange(0))
        expect(first.request.headers["Accept"], equals: "text/event-stream")
        expect(first.request.headers["Cache-Control"], equals: "no-store")
        expect(first.request.headers["Last-Event-ID"] == nil)
        // Some proxies send it twice.
        first.head(200, ["Content-Type": "text/event-stream; charset=utf-8", "content-type": "text/event-stream"])
        first.body("retry: 5000\nid: 1\ndata: a\n\nid: 2\ndata: half")
        first.end()
        await clock.waitForTimers(1)
        clock.advance(by: 4.9)
        expect(transport.exchanges.count, equals: 1)
        clock.advance(by: 0.1)
        let second = try #require(await transport.exchange(1))
        expect(second.request.headers["Last-Event-ID"], equals: "1")
        second.head(200, type)
        second.body("data: b\n\n")
        second.end(.connectionLost)
        await clock.waitForTimers(1)
        clock.advance(by: 5)
        let third = try #require(await transport.exchange(2))
        expect(third.request.headers["Last-Event-ID"], equals: "1")
        third.head(204)
        third.end()
        await expect(error(task) == nil)
        expect(
            seen.withLock { $0 },
            equals: [
                ServerSentEvent(data: "a", id: "1", retry: 5), ServerSentEvent(data: "b", id: "1"),
            ]
        )
        expect(clock.pendingCount, equals: 0)
    }

    @Test("CBK-5: interceptors see the fields of a stream of events, and may replace them")
    func interceptors() async throws {
        struct Signing: RequestInterceptor {
            func adapt(_ message: TransportRequest, context: AttemptContext) async throws -> TransportRequest {
                var message = message
                message.headers["X-Signed"] = message.headers["Accept"]
                message.headers["Cache-Control"] = "max-age=0"
                return message
            }
        }
        let task = read(service { $0.interceptors = [Signing()] }.events(Get(api: "x")), into: Locked([]))
        let first = try #require(await transport.exchange(0))
        expect(first.request.headers["X-Signed"], equals: "text/event-stream")
        expect(first.request.headers["Cache-Control"], equals: "max-age=0")
        task.cancel()
        await expect(error(task)?.code, equals: .cancelled)
    }

    @Test("BEY-3: copies of an iterator that two tasks use at once are an error of the second")
    func copies() async throws {
        // The type is not Sendable; sharing its copies is the mistake under test.
        nonisolated(unsafe) var iterator = service().events(Get(api: "x")).makeAsyncIterator()
        nonisolated(unsafe) var copy = iterator
        let task = Task { try await iterator.next() }
        let first = try #require(await transport.exchange(0))
        await #expect { try await copy.next() } throws: { ($0 as? NetworkError)?.code == .invalidRequest }
        first.head(200, type)
        first.body("data: a\n\n")
        try await expect(task.value?.data, equals: "a")
    }

    @Test("BEY-3: while no server answers the wait doubles each time; an answer resets it")
    func doubling() async throws {
        let seen = Locked<[ServerSentEvent]>([])
        let task = read(service().events(Get(api: "x"), reconnectionTime: 1, maximumReconnectionTime: 3), into: seen)
        var number = 0
        func fail(_ delay: TimeInterval, brings body: String = "") async throws {
            let exchange = try #require(await transport.exchange(number))
            if !body.isEmpty {
                exchange.head(200, type)
                exchange.body(body)
            }
            exchange.end(.cannotConnect)
            await clock.waitForTimers(1)
            clock.advance(by: delay - 0.01)
            expect(clock.pendingCount, equals: 1)
            clock.advance(by: 0.02)
            number += 1
        }
        for delay in [1, 2, 3, 3] { try await fail(TimeInterval(delay)) }
        try await fail(1, brings: ":\n")
        try await fail(2)
        let last = try #require(await transport.exchange(number))
        task.cancel()
        await expect(error(task)?.code, equals: .cancelled)
        await expect(eventually { last.isCancelled })
    }

    @Test("BEY-3: an ID that no header field can hold is left out, one beyond ASCII is sent")
    func identifiers() async throws {
        let seen = Locked<[ServerSentEvent]>([])
        let task = read(service().events(Get(api: "x"), lastEventID: "früher"), into: seen)
        let first = try #require(await transport.exchange(0))
        expect(first.request.headers["Last-Event-ID"], equals: "früher")
        first.head(200, type)
        first.body("id: a\u{1}b\ndata: x\n\n")
        first.end()
        await clock.waitForTimers(1)
        expect(seen.withLock { $0.map(\.id) }, equals: ["a\u{1}b"])
        clock.advance(by: 3)
        let second = try #require(await transport.exchange(1))
        expect(second.request.headers["Last-Event-ID"] == nil)
        second.head(204)
        second.end()
        await expect(error(task) == nil)
    }

    @Test(
        "BEY-3: the fields replace those of the request in any case, also in a custom URLRequest"
    )
    func fields() async throws {
        struct Own: BaseAPIRequest {
            let api = "x"
            var isCustom = false
            var headers: [String: String]? { ["accept": "application/json", "last-event-id": "7", "X-Own": "1"] }
            var customURLRequest: URLRequest? {
                guard isCustom, let url = URL(string: "https://api.example.com/x") else { return nil }
                var request = URLRequest(url: url)
                for (name, value) in headers ?? [:] { request.setValue(value, forHTTPHeaderField: name) }
                return request
            }
            var options: RequestOptions { RequestOptions(customURLRequest: customURLRequest) }
        }
        for (number, isCustom) in [false, true].enumerated() {
            for (offset, id) in ["", "9"].enumerated() {
                let task = read(service().events(Own(isCustom: isCustom), lastEventID: id), into: Locked([]))
                let exchange = try #require(await transport.exchange(2 * number + offset))
                let headers = exchange.request.headers
                expect(headers.values(for: "Accept"), equals: ["text/event-stream"])
                expect(headers.values(for: "Last-Event-ID"), equals: [id.isEmpty ? "7" : id])
                expect(headers["X-Own"], equals: "1")
                task.cancel()
                await expect(error(task)?.code, equals: .cancelled)
            }
        }
    }

    // MARK: - Ends

    @Test("BEY-3: a status that is not accepted, and an answer that is no stream of events, end it with an error")
    func refusals() async throws {
        var number = 0
        func error(_ status: Int, _ headers: HTTPHeaders) async throws -> NetworkError? {
            let task = read(service().events(Get(api: "x")), into: Locked([]))
            let exchange = try #require(await transport.exchange(number))
            number += 1
            exchange.head(status, headers)
            exchange.body("data: a\n\n")
            exchange.end()
            return await self.error(task)
        }
        try await expect(error(503, type)?.code, equals: .unacceptableStatus)
        try await expect(error(401, type)?.code, equals: .unauthorized)
        for status in [201, 203, 206] { try await expect(error(status, type)?.code, equals: .unacceptableStatus) }
        let page = try await error(200, ["Content-Type": "text/html"])
        expect(page?.code, equals: .cannotParseResponse)
        expect(page?.statusCode, equals: 200)
        expect(page?.message?.contains("text/html"), equals: true)
        try await expect(error(200, HTTPHeaders())?.code, equals: .cannotParseResponse)
        expect(transport.exchanges.count, equals: number)
        expect(clock.pendingCount, equals: 0)
    }

    @Test("BEY-3: 204 ends it, also where it is no accepted status")
    func noContent() async throws {
        let service = service { $0.validation = ResponseValidation(statusCodes: [200]) }
        let task = read(service.events(Get(api: "x")), into: Locked([]))
        let exchange = try #require(await transport.exchange(0))
        exchange.head(204)
        exchange.end()
        await expect(error(task) == nil)
    }

    @Test("BEY-3: an event that is too long ends it with an error, and the connection")
    func tooLong() async throws {
        let task = read(service().events(Get(api: "x"), maximumEventByteCount: 10), into: Locked([]))
        let exchange = try #require(await transport.exchange(0))
        exchange.head(200, type)
        exchange.body("data: 12345678901")
        await expect(error(task)?.code, equals: .bodyTooLong)
        await expect(eventually { exchange.isCancelled })
        expect(transport.exchanges.count, equals: 1)
    }

    @Test("BEY-8: a POST is not sent again: its events end with its connection, in order or with the error")
    func post() async throws {
        for (number, code) in [nil, NetworkError.Code.connectionLost].enumerated() {
            let seen = Locked<[ServerSentEvent]>([])
            let task = read(service().events(Post()), into: seen)
            let exchange = try #require(await transport.exchange(number))
            exchange.head(200, type)
            exchange.body("data: answer\n\n")
            exchange.end(code)
            await expect(error(task)?.code, equals: code)
            expect(seen.withLock { $0.map(\.data) }, equals: ["answer"])
        }
        expect(transport.exchanges.count, equals: 2)
        expect(clock.pendingCount, equals: 0)
    }

    @Test("BEY-8: a POST with an idempotency key is sent again")
    func idempotentPost() async throws {
        let task = read(service().events(Post(idempotencyKey: "k")), into: Locked([]))
        let exchange = try #require(await transport.exchange(0))
        exchange.end(.connectionLost)
        await clock.waitForTimers(1)
        clock.advance(by: 3)
        await expect(transport.exchange(1) != nil)
        task.cancel()
        await expect(error(task)?.code, equals: .cancelled)
    }

    // MARK: - Cancelling

    @Test("BEY-5: cancelled before it connects, while it waits for a head, for an event, and for the next connection")
    func cancelling() async throws {
        let early = Task {
            await untilCancelled()
            for try await _ in service().events(Get(api: "x")) {}
        }
        early.cancel()
        await expect(error(early)?.code, equals: .cancelled)
        expect(transport.exchanges.isEmpty)

        for phase in 0..<3 {
            let task = read(service().events(Get(api: "x")), into: Locked([]))
            let exchange = try #require(await transport.exchange(phase))
            if phase > 0 { exchange.head(200, type) }
            if phase > 1 {
                exchange.end()
                await clock.waitForTimers(1)
            }
            task.cancel()
            await expect(error(task)?.code, equals: .cancelled, "phase \(phase)")
            await expect(eventually { phase == 2 || exchange.isCancelled })
            await expect(eventually { clock.pendingCount == 0 })
        }
        expect(transport.exchanges.count, equals: 3)
    }

    @Test("BEY-5: cancelling the service ends it at once, also between two connections")
    func cancelledService() async throws {
        let service = service()
        let task = read(service.events(Get(api: "x")), into: Locked([]))
        let exchange = try #require(await transport.exchange(0))
        exchange.end(.connectionLost)
        await clock.waitForTimers(1)
        service.cancel()
        await expect(error(task)?.code, equals: .cancelled)
        await expect(eventually { clock.pendingCount == 0 })
        expect(transport.exchanges.count, equals: 1)
    }

    @Test("BEY-5: the connection ends when the iteration stops")
    func stopping() async throws {
        let events = service().events(Get(api: "x"))
        let task = Task { for try await _ in events { break } }
        let exchange = try #require(await transport.exchange(0))
        exchange.head(200, type)
        exchange.body("data: a\n\ndata: b\n\n")
        try await task.value
        await expect(eventually { exchange.isCancelled })
    }

    // MARK: - Over sockets

    @Test("BEY-14: over sockets, cut in the middle and trickling", arguments: Wire.allCases)
    func sockets(wire: Wire) async throws {
        let server = try MockServer()
        server.route("GET", "/x") { [type] request in
            let stream = "id: 1\ndata: a\n\nid: 2\ndata: b\n\nid: 3\ndata: c\n\n"
            switch request.headers["Last-Event-ID"] {
            case nil:
                return MockResponse(
                    headers: type,
                    body: .data(Data(stream.utf8)),
                    fault: .close(at: .responseBody(after: 22))
                )
            case "1":
                var rest = MockResponse.chunked(stream.dropFirst(15).utf8.map { Data([$0]) }, headers: type)
                rest.bytesPerSecond = 4_000
                return rest
            default: return .status(204)
            }
        }
        let service = EasyNetworkService(server.host(transport: wire.transport))
        var seen: [String] = []
        for try await event in service.events(Get(api: "x"), reconnectionTime: 0) { seen.append(event.id + event.data) }
        expect(seen, equals: ["1a", "2b", "3c"])
        expect(server.requests.map { $0.headers["Last-Event-ID"] }, equals: [nil, "1", "3"])
    }
}
