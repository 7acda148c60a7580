import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("StreamedResponse", .timeLimit(.minutes(10)))
struct StreamedResponseTests {
    private func text(_ data: Data?) -> String? {
        data.map { String(decoding: $0, as: UTF8.self) }
    }

    /// Begins a stream, and returns the response with its exchange.
    private func begun(
        _ transport: SteeredTransport = SteeredTransport(),
        headers: HTTPHeaders = HTTPHeaders(),
        _ change: (inout HostSettings) -> Void = { _ in }
    ) async throws -> (answer: StreamedResponse, exchange: SteeredTransport.Exchange) {
        try await begun(transport, of: EasyNetworkService(transport.host(change)), headers)
    }

    private func begun(
        _ transport: SteeredTransport,
        of service: EasyNetworkService,
        _ headers: HTTPHeaders = HTTPHeaders()
    ) async throws -> (answer: StreamedResponse, exchange: SteeredTransport.Exchange) {
        // Read first, because the exchange may begin on the next line.
        let number = transport.exchanges.count
        async let answer = service.stream(Get(api: "x"))
        let exchange = try #require(await transport.exchange(number))
        exchange.head(200, headers)
        return (try await answer, exchange)
    }

    // MARK: - The head

    @Test(
        "BEY-3: the head is there before the body; then come chunks as they are sent, none of them empty, and the end"
    )
    func chunks() async throws {
        let (answer, exchange) = try await begun(headers: ["X-Name": "value"])
        expect(answer.statusCode, equals: 200)
        expect(answer.headers["x-name"], equals: "value")
        expect(answer.url?.path, equals: "/x")
        var chunks = answer.makeAsyncIterator()
        exchange.body("one")
        expect(text(try await chunks.next()), equals: "one")
        exchange.body("")
        exchange.body("two")
        expect(text(try await chunks.next()), equals: "two")
        exchange.end()
        try await expect(chunks.next() == nil)
        try await expect(chunks.next() == nil)
        expect(!exchange.isCancelled)
    }

    @Test("BEY-3: a chunk wakes the task that waits for it")
    func waking() async throws {
        let (answer, exchange) = try await begun()
        let reader = Task {
            var all = ""
            for try await data in answer { all += String(decoding: data, as: UTF8.self) }
            return all
        }
        for number in 0..<100 {
            if number % 3 == 0 { await Task.yield() }
            exchange.body("\(number),")
        }
        exchange.end()
        try await expect(reader.value, equals: (0..<100).map { "\($0)," }.joined())
    }

    @Test("BEY-3, RSP-4: an answer that is not accepted is thrown with its body")
    func refused() async throws {
        let server = try MockServer()
        server.route("GET", "/x") { _ in .json(["message": "gone away"], status: 410) }
        let service = EasyNetworkService(server.host())
        let error = await #expect(throws: NetworkError.self) { try await service.stream(Get(api: "x")) }
        expect(error?.code, equals: .unacceptableStatus)
        expect(error?.statusCode, equals: 410)
        expect(error?.serverMessage, equals: "gone away")
    }

    @Test("BEY-3, BEY-8: redirects are followed and failures retried until an answer begins")
    func roundAgain() async throws {
        let server = try MockServer()
        let count = Locked(0)
        server.route("GET", "/x") { _ in
            .status(302, headers: ["Location": "/y"])
        }
        server.route("GET", "/y") { _ in
            let number = count.next()
            return number == 1 ? .status(503) : .text("hello")
        }
        let service = EasyNetworkService(server.host { $0.retry = RetryPolicy(baseDelay: 0) })
        let answer = try await service.stream(Get(api: "x"))
        expect(answer.url?.path, equals: "/y")
        var all = Data()
        for try await data in answer { all += data }
        expect(text(all), equals: "hello")
    }

    @Test("BEY-3: an answer without body ends at once, and so does one from an interceptor, with its body")
    func withoutWire() async throws {
        struct Standing: RequestInterceptor {
            func didReceive(_ result: Result<NetworkResponse, NetworkError>, context: AttemptContext) async
                -> ResponseDecision
            {
                .succeed(NetworkResponse(statusCode: 203, body: Data("instead".utf8)))
            }
        }
        let empty = ScriptedTransport { _, _ in .answer(204) }
        for try await data in try await EasyNetworkService(empty.host()).stream(Get(api: "x")) {
            Issue.record("\(data.count) bytes of nothing")
        }
        let lost = ScriptedTransport { _, _ in .failure(.connectionLost, .connect) }
        let service = EasyNetworkService(lost.host { $0.interceptors = [Standing()] })
        let answer = try await service.stream(Get(api: "x"))
        expect(answer.statusCode, equals: 203)
        var all = Data()
        for try await data in answer { all += data }
        expect(text(all), equals: "instead")
    }

    // MARK: - The end

    @Test("BEY-3: a lost connection is thrown once, after the bytes that came before, and nothing is sent again")
    func broken() async throws {
        let transport = ScriptedTransport { _, _ in
            let end = TransportEnd(error: NetworkError(code: .connectionLost))
            return [.head(TransportHead(statusCode: 200)), .body(Data("one".utf8)), .end(end)]
        }
        let answer = try await EasyNetworkService(transport.host()).stream(Get(api: "x"))
        var chunks = answer.makeAsyncIterator()
        expect(text(try await chunks.next()), equals: "one")
        var error: NetworkError?
        do { _ = try await chunks.next() } catch let thrown as NetworkError { error = thrown }
        expect(error?.code, equals: .connectionLost)
        expect(error?.statusCode, equals: 200)
        expect(error?.history.count, equals: 1)
        try await expect(chunks.next() == nil)
        expect(transport.messages.count, equals: 1)
    }

    @Test("BEY-3: a body cut in the middle, over sockets", arguments: Wire.allCases)
    func cut(wire: Wire) async throws {
        let server = try MockServer()
        server.route("GET", "/x") { _ in
            MockResponse(body: .repeating(7, count: 100_000), fault: .close(at: .responseBody(after: 60_000)))
        }
        let service = EasyNetworkService(server.host(transport: wire.transport))
        let answer = try await service.stream(Get(api: "x"))
        var count = 0
        let code = await errorCode { for try await data in answer { count += data.count } }
        expect(code, equals: .connectionLost)
        expect(count, equals: 60_000)
        expect(server.requests.count, equals: 1)
    }

    @Test("BEY-3: a body that trickles comes as it trickles", arguments: Wire.allCases)
    func trickle(wire: Wire) async throws {
        let server = try MockServer()
        server.route("GET", "/x") { _ in
            var response = MockResponse.chunked((0..<40).map { Data("line \($0)\r\n".utf8) })
            response.bytesPerSecond = 4_000
            return response
        }
        let service = EasyNetworkService(server.host(transport: wire.transport))
        var lines: [String] = []
        for try await line in try await service.stream(Get(api: "x")).lines() { lines.append(line) }
        expect(lines, equals: (0..<40).map { "line \($0)" })
    }

    @Test("BEY-3, RSP-3: a body longer than the validation has it is an error, and the server is left")
    func tooLong() async throws {
        let transport = SteeredTransport()
        let (answer, exchange) = try await begun(transport) { $0.validation = ResponseValidation(maximumBodyCount: 5) }
        exchange.body("12345")
        exchange.body("6")
        var chunks = answer.makeAsyncIterator()
        expect(text(try await chunks.next()), equals: "12345")
        await expect(errorCode { try await chunks.next() }, equals: .bodyTooLong)
        await expect(eventually { exchange.isCancelled })
    }

    @Test("BEY-3: a second iteration throws, and the first goes on")
    func once() async throws {
        let (answer, exchange) = try await begun()
        var first = answer.makeAsyncIterator()
        var second = answer.makeAsyncIterator()
        exchange.body("one")
        await expect(errorCode { try await second.next() }, equals: .invalidRequest)
        try await expect(second.next() == nil)
        var lines = answer.lines().makeAsyncIterator()
        await expect(errorCode { try await lines.next() }, equals: .invalidRequest)
        expect(text(try await first.next()), equals: "one")
    }

    // MARK: - Lines

    @Test("BEY-3: lines, wherever they are cut; one that is too long ends the exchange")
    func lines() async throws {
        let (answer, exchange) = try await begun()
        for piece in ["a\r", "\nb", "c\n\nd"] { exchange.body(piece) }
        exchange.end()
        var lines: [String] = []
        for try await line in answer.lines() { lines.append(line) }
        expect(lines, equals: ["a", "bc", "", "d"])

        let (other, long) = try await begun()
        long.body("12345\n123456")
        var few = other.lines(maximumByteCount: 5).makeAsyncIterator()
        try await expect(few.next(), equals: "12345")
        await expect(errorCode { try await few.next() }, equals: .bodyTooLong)
        try await expect(few.next() == nil)
        await expect(eventually { long.isCancelled })
        withExtendedLifetime(other) {}
    }

    @Test("BEY-3: lines are their own iterator, and reading them is the one iteration")
    func ownIterator() async throws {
        let (answer, exchange) = try await begun()
        exchange.body("a\nb\n")
        exchange.end()
        var lines = answer.lines()
        for expected in ["a", "b", nil, nil] { try await expect(lines.next(), equals: expected) }
        var others = answer.lines()
        await expect(errorCode { try await others.next() }, equals: .invalidRequest)
        try await expect(others.next() == nil)
    }

    @Test("BEY-3: a line that was cut by an error is no line")
    func cutLine() async throws {
        let (answer, exchange) = try await begun()
        exchange.body("whole\nhal")
        exchange.end(.connectionLost)
        var lines = answer.lines().makeAsyncIterator()
        try await expect(lines.next(), equals: "whole")
        await expect(errorCode { try await lines.next() }, equals: .connectionLost)
        try await expect(lines.next() == nil)
    }

    // MARK: - Cancelling

    @Test("BEY-5: cancelled before it is sent, nothing is sent")
    func cancelledBefore() async {
        let transport = SteeredTransport()
        let service = EasyNetworkService(transport.host())
        let task = Task {
            await untilCancelled()
            return try await service.stream(Get(api: "x"))
        }
        task.cancel()
        await expect(errorCode { try await task.value }, equals: .cancelled)
        expect(transport.exchanges.isEmpty)
    }

    @Test("BEY-5: cancelled while the head is awaited, the exchange is, and the wait is over")
    func cancelledWaiting() async throws {
        let transport = SteeredTransport()
        let service = EasyNetworkService(transport.host())
        let task = Task { try await service.stream(Get(api: "x")) }
        let exchange = try #require(await transport.exchange(0))
        task.cancel()
        await expect(errorCode { try await task.value }, equals: .cancelled)
        await expect(eventually { exchange.isCancelled })
    }

    @Test(
        "BEY-5: cancelled while a chunk is awaited, and while chunks wait, the iteration is over and the exchange too"
    )
    func cancelledIterating() async throws {
        for isWaiting in [true, false] {
            let (answer, exchange) = try await begun()
            let (begun, gate) = (Gate(), Gate())
            if !isWaiting { exchange.body("never seen") }
            let task = Task {
                begun.open()
                if !isWaiting { await gate.opened() }
                var chunks = answer.makeAsyncIterator()
                let data = try await chunks.next()
                return (data, try await chunks.next())
            }
            await begun.opened()
            task.cancel()
            gate.open()
            await expect(errorCode { try await task.value }, equals: .cancelled)
            await expect(eventually { exchange.isCancelled })
        }
    }

    @Test("BEY-5: lines that have come are not returned once the task is cancelled")
    func cancelledLines() async throws {
        let (answer, exchange) = try await begun()
        exchange.body("a\nb\n")
        let (first, gate) = (Gate(), Gate())
        let task = Task {
            var lines = answer.lines().makeAsyncIterator()
            try await expect(lines.next(), equals: "a")
            first.open()
            await gate.opened()
            return try await lines.next()
        }
        await first.opened()
        task.cancel()
        gate.open()
        await expect(errorCode { try await task.value }, equals: .cancelled)
        await expect(eventually { exchange.isCancelled })
    }

    @Test("BEY-5: cancelling the service ends the iteration, after the bytes that have come")
    func cancelledService() async throws {
        let transport = SteeredTransport()
        let service = EasyNetworkService(transport.host())
        async let pending = service.stream(Get(api: "x"))
        let exchange = try #require(await transport.exchange(0))
        exchange.head()
        let answer = try await pending
        exchange.body("one")
        service.cancel()
        var chunks = answer.makeAsyncIterator()
        expect(text(try await chunks.next()), equals: "one")
        await expect(errorCode { try await chunks.next() }, equals: .cancelled)
        await expect(eventually { exchange.isCancelled })
    }

    @Test(
        "BEY-5: dropped without being iterated over, or in the middle of it, the exchange is cancelled, and all is freed"
    )
    func dropped() async throws {
        let transport = SteeredTransport()
        weak var freed: EasyNetworkService?
        for isIterated in [false, true] {
            let service = EasyNetworkService(transport.host())
            freed = service
            let exchange: SteeredTransport.Exchange
            do {
                let begun = try await begun(transport, of: service)
                exchange = begun.exchange
                exchange.body("one")
                expect(!exchange.isCancelled)
                if isIterated { for try await _ in begun.answer { break } }
            }
            await expect(eventually { exchange.isCancelled })
        }
        await expect(eventually { freed == nil })
    }

    // MARK: - Back-pressure

    @Test("BEY-3: the sender is paused above 256 KiB of unread bytes, and resumed below half of that")
    func heldBack() async throws {
        let (answer, exchange) = try await begun()
        var chunks = answer.makeAsyncIterator()
        let piece = Data(count: 64 * 1_024)
        for _ in 0..<4 { exchange.body(piece) }
        expect(exchange.orders.isEmpty)
        exchange.body(piece)
        // The call learns of its exchange only when that has begun.
        await expect(eventually { exchange.orders == ["pause"] })
        exchange.body(piece)
        for _ in 0..<4 { _ = try await chunks.next() }
        expect(exchange.orders, equals: ["pause"])
        _ = try await chunks.next()
        expect(exchange.orders, equals: ["pause", "resume"])
        for _ in 0..<4 { exchange.body(piece) }
        expect(exchange.orders, equals: ["pause", "resume", "pause"])
    }

    @Test(
        "BEY-3: a server of 64 MiB waits for a slow reader; the unread bytes have a bound, and all come"
    )
    func backPressure() async throws {
        let total = 64 * 1_024 * 1_024
        let server = try MockServer()
        server.route("GET", "/x") { _ in MockResponse(body: .repeating(7, count: total)) }
        let transport = CountingTransport()
        let service = EasyNetworkService(server.host(transport: transport))
        let answer = try await service.stream(Get(api: "x"))
        var chunks = answer.makeAsyncIterator()
        var count = try #require(await chunks.next()).count
        await expect(eventually { transport.pauseCount > 0 })
        // Bytes in flight may arrive after the pause. The number of earlier bytes depends on scheduling, because the
        // call learns of its exchange only when that has begun.
        let bound = transport.byteCount + 1_024 * 1_024
        expect(bound < total / 2)
        var most = 0
        while let data = try await chunks.next() {
            count += data.count
            most = max(most, answer.source.body?.unreadCount ?? 0)
        }
        expect(count, equals: total)
        expect(most < bound)
        expect(transport.byteCount, equals: total)
    }
}

/// The standard transport with a count of received bytes.
private final class CountingTransport: NetworkTransport {
    private struct Exchange: TransportExchange {
        let exchange: any TransportExchange
        let paused: Locked<Int>

        func cancel() { exchange.cancel() }
        func resume() { exchange.resume() }

        func pause() {
            exchange.pause()
            paused.withLock { $0 += 1 }
        }
    }

    private let bytes = Locked(0)
    private let paused = Locked(0)

    var byteCount: Int { bytes.withLock { $0 } }
    var pauseCount: Int { paused.withLock { $0 } }

    func start(
        _ request: TransportRequest,
        events: @escaping @Sendable (TransportEvent) -> Void
    ) -> any TransportExchange {
        let exchange = TransportConfiguration.sharedTransport.start(request) { [bytes] event in
            if case .body(let data) = event { bytes.withLock { $0 += data.count } }
            events(event)
        }
        return Exchange(exchange: exchange, paused: paused)
    }
}
