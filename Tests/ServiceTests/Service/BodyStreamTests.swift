import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("BodyStream", .timeLimit(.minutes(10)))
struct BodyStreamTests {
    private let transport = SteeredTransport()
    private let message = TransportRequest(url: URL(fileURLWithPath: "/"))

    /// Starts a stream, and returns it with its exchange.
    private func begun() throws -> (body: BodyStream, exchange: SteeredTransport.Exchange) {
        let body = BodyStream()
        body.start(message, over: transport)
        return (body, try #require(transport.exchanges.last))
    }

    private func text(_ data: Data?) -> String? {
        data.map { String(decoding: $0, as: UTF8.self) }
    }

    @Test("BEY-5: a task that is cancelled before the start sends nothing")
    func cancelledBeforeStart() async {
        let (transport, message) = (transport, message)
        let task = Task {
            await untilCancelled()
            let body = BodyStream()
            body.start(message, over: transport)
            return await body.collect().end?.error?.code
        }
        task.cancel()
        await expect(task.value == .cancelled && transport.exchanges.isEmpty)
    }

    // MARK: - Reading

    @Test("TRF-5: head, chunks and end come in order; empty chunks are left out, the end stays the end")
    func order() async throws {
        let (body, exchange) = try begun()
        exchange.head(203, ["X-Name": "value"])
        try await expect(body.head(), equals: TransportHead(statusCode: 203, headers: ["X-Name": "value"]))
        async let first = body.next()
        exchange.body("one")
        expect(text(try await first), equals: "one")
        exchange.body("")
        exchange.body(Data(repeating: 97, count: 5_000))
        exchange.body(Data(repeating: 98, count: 5_000))
        expect(body.end == nil)
        exchange.end()
        try await expect(body.next(), equals: Data(repeating: 97, count: 5_000))
        try await expect(body.next(), equals: Data(repeating: 98, count: 5_000))
        try await expect(body.next() == nil)
        try await expect(body.next() == nil)
        expect(body.end != nil && !exchange.isCancelled)
    }

    @Test("TRF-5: an error comes after the bytes before it, with status and headers")
    func error() async throws {
        let (body, exchange) = try begun()
        exchange.head(200, ["X-Name": "value"])
        exchange.body("one")
        exchange.end(.connectionLost)
        expect(text(try await body.next()), equals: "one")
        let error = await #expect(throws: NetworkError.self) { try await body.next() }
        expect(error?.code == .connectionLost && error?.statusCode == 200 && error?.headers["X-Name"] == "value")
        expect(body.end?.error?.code, equals: .connectionLost)
    }

    @Test("TRF-5: an exchange without head is an error, also when it says none", arguments: [true, false])
    func noHead(hasError: Bool) async throws {
        let (body, exchange) = try begun()
        exchange.end(hasError ? .timedOut : nil)
        await expect(errorCode { try await body.head() }, equals: (hasError ? .timedOut : .badServerResponse))
        await expect(errorCode { try await body.next() }, equals: (hasError ? .timedOut : .badServerResponse))
        let url = try #require(URL(string: "https://example.com"))
        let collected = await body.collect()
        await expect(
            errorCode { try collected.response(from: url) },
            equals: (hasError ? .timedOut : .badServerResponse)
        )
    }

    @Test("TRF-5: small pieces are joined, so that the number of unread chunks has a bound as well")
    func pieces() async throws {
        let (body, exchange) = try begun()
        exchange.head()
        for _ in 0..<100_000 { exchange.body(Data([1])) }
        exchange.end()
        expect(body.unreadCount, equals: 100_000)
        var chunks = 0
        var bytes = 0
        while let data = try await body.next() {
            chunks += 1
            bytes += data.count
        }
        expect(bytes == 100_000 && chunks <= 100_000 / 4_096 + 1)
    }

    // MARK: - Collecting

    @Test("RSP-7: a whole answer is collected, in one piece")
    func collected() async throws {
        let (body, exchange) = try begun()
        exchange.head(404)
        async let pending = body.collect()
        for _ in 0..<100 { exchange.body(Data(repeating: 97, count: 10_000)) }
        exchange.end()
        let collected = await pending
        expect(collected.head?.statusCode == 404 && collected.end != nil)
        expect(collected.body, equals: Data(repeating: 97, count: 1_000_000))
        let response = try collected.response(from: try #require(URL(string: "https://example.com/a")))
        expect(response.statusCode == 404 && response.body.count == 1_000_000)
    }

    @Test("RSP-6: an error keeps the head and the beginning of the body")
    func collectedError() async throws {
        let (body, exchange) = try begun()
        exchange.head(500)
        exchange.body("half")
        exchange.end(.connectionLost)
        let collected = await body.collect()
        let url = try #require(URL(string: "https://example.com"))
        let error = #expect(throws: NetworkError.self) { try collected.response(from: url) }
        expect(error?.code == .connectionLost && error?.statusCode == 500 && text(error?.responseBody) == "half")
    }

    @Test("RSP-6: of an answer that is too long the beginning is collected, and the exchange is cancelled")
    func collectedBeginning() async throws {
        let (body, exchange) = try begun()
        exchange.head()
        async let pending = body.collect(upTo: 5)
        exchange.body("12345")
        expect(!exchange.isCancelled)
        exchange.body("6")
        exchange.body("7")
        let collected = await pending
        expect(collected.end == nil && text(collected.body)?.hasPrefix("123456") == true)
        expect(exchange.isCancelled)
    }

    // MARK: - Bounds

    @Test("TRF-5: the sender is paused above 256 KiB of unread bytes, resumed below half of it")
    func heldBack() async throws {
        let (body, exchange) = try begun()
        exchange.head()
        for _ in 0..<4 { exchange.body(Data(count: 65_536)) }
        expect(exchange.orders.isEmpty)
        exchange.body(Data(count: 65_536))
        exchange.body(Data(count: 65_536))
        expect(exchange.orders, equals: ["pause"])
        for _ in 0..<4 { _ = try await body.next() }
        expect(exchange.orders, equals: ["pause"])
        _ = try await body.next()
        expect(exchange.orders, equals: ["pause", "resume"])
        body.setUnreadLimit(10)
        expect(exchange.orders, equals: ["pause", "resume", "pause"])
        exchange.end()
        await expect(body.collect().body.count, equals: 65_536)
    }

    @Test("TRF-5: an exchange that is paused is resumed when all is to be collected")
    func resumedToCollect() async throws {
        let (body, exchange) = try begun()
        exchange.head()
        for _ in 0..<5 { exchange.body(Data(count: 65_536)) }
        expect(exchange.orders, equals: ["pause"])
        async let collected = body.collect()
        await expect(eventually { exchange.orders == ["pause", "resume"] })
        exchange.end()
        await expect(collected.body.count, equals: 5 * 65_536)
    }

    @Test("RSP-3: an empty body is within every limit, also a negative one")
    func negativeLimit() async throws {
        let (body, exchange) = try begun()
        body.limit(to: -1, otherwise: NetworkError(code: .bodyTooLong))
        async let pending = body.collect(upTo: -1)
        exchange.head()
        exchange.end()
        let collected = await pending
        expect(collected.end != nil && collected.failure == nil)
    }

    @Test("RSP-3: a body longer than it may be ends with that error, after the bytes up to there")
    func tooLong() async throws {
        for isKnownBefore in [true, false] {
            let (body, exchange) = try begun()
            if isKnownBefore { body.limit(to: 5, otherwise: NetworkError(code: .bodyTooLong)) }
            exchange.head()
            exchange.body("12345")
            if isKnownBefore {
                exchange.body("6")
            } else {
                body.limit(to: 4, otherwise: NetworkError(code: .bodyTooLong))
            }
            expect(exchange.isCancelled)
            expect(text(try await body.next()), equals: "12345")
            await expect(errorCode { try await body.next() }, equals: .bodyTooLong)
        }
    }

    /// A transport whose exchange is resumed by a reader on another thread while it is being paused.
    private final class Overtaking: NetworkTransport, TransportExchange {
        let events = Locked<(@Sendable (TransportEvent) -> Void)?>(nil)
        let orders = Locked<[String]>([])
        let whilePausing = Locked<(@Sendable () -> Void)?>(nil)

        func start(
            _ request: TransportRequest,
            events: @escaping @Sendable (TransportEvent) -> Void
        ) -> any TransportExchange {
            self.events.withLock { $0 = events }
            return self
        }

        func cancel() {}

        func pause() {
            whilePausing.withLock { $0 }?()
            orders.withLock { $0.append("pause") }
        }

        func resume() {
            orders.withLock { $0.append("resume") }
        }
    }

    @Test("TRF-5: a reader that makes room while another thread pauses the exchange has the last word")
    func overtaking() throws {
        let exchange = Overtaking()
        let body = BodyStream()
        body.start(message, over: exchange)
        exchange.whilePausing.withLock { $0 = { body.setUnreadLimit(1_000_000) } }
        let events = try #require(exchange.events.withLock { $0 })
        events(.body(Data(count: 300_000)))
        expect(exchange.orders.withLock { $0 }.last, equals: "resume")
        exchange.whilePausing.withLock { $0 = nil }
        exchange.events.withLock { $0 = nil }
        body.cancel()
    }

    // MARK: - Cancelling

    @Test("BEY-5: cancelled before it is sent, nothing is sent")
    func cancelledBefore() async {
        let body = BodyStream()
        body.cancel()
        body.start(message, over: transport)
        expect(transport.exchanges.isEmpty)
        await expect(errorCode { try await body.head() }, equals: .cancelled)
    }

    /// A transport under which the stream is cancelled on another thread, just before the message is handed on. Its
    /// exchanges cannot be cancelled.
    private struct Late: NetworkTransport {
        struct Exchange: TransportExchange {
            func cancel() {}
        }

        let base: any NetworkTransport
        let body: BodyStream
        let ended: @Sendable (TransportEnd) -> Void

        func start(
            _ request: TransportRequest,
            events: @escaping @Sendable (TransportEvent) -> Void
        ) -> any TransportExchange {
            body.cancel()
            _ = base.start(request) { event in
                if case .end(let end) = event { ended(end) }
                events(event)
            }
            return Exchange()
        }
    }

    @Test(
        "BEY-5: cancelled between the look and the start, nothing is sent",
        arguments: TransportFixture.Kind.allCases
    )
    func cancelledWhileStarting(kind: TransportFixture.Kind) async throws {
        let fixture = try TransportFixture(kind)
        fixture.route("GET", "/") { _ in .text("sent") }
        let body = BodyStream()
        // Not given to the continuation: resumed before its task waits, it orders nothing for the thread sanitizer.
        let error = Locked<NetworkError?>(nil)
        await withCheckedContinuation { continuation in
            let late = Late(base: fixture.transport, body: body) {
                error.exchange($0.error)
                continuation.resume()
            }
            body.start(TransportRequest(url: fixture.baseURL), over: late)
        }
        expect(error.withLock { $0?.code }, equals: .cancelled)
        expect(fixture.requests.isEmpty)
    }

    @Test("BEY-5: cancelled while something is awaited, the exchange is too when the cancel returns")
    func cancelledWaiting() async throws {
        let waits: [@Sendable (BodyStream) async throws -> Void] = [
            { _ = try await $0.head() }, { _ = try await $0.next() },
            { _ = try await $0.collect().response(from: URL(fileURLWithPath: "/")) },
        ]
        for (index, wait) in waits.enumerated() {
            // What collects is cancelled by its call.
            for cancelsTask in index < 2 ? [true, false] : [false] {
                let (body, exchange) = try begun()
                let task = Task { try await wait(body) }
                if cancelsTask { task.cancel() } else { body.cancel() }
                expect(exchange.isCancelled || cancelsTask)
                await expect(errorCode { try await task.value }, equals: .cancelled)
                expect(exchange.isCancelled)
            }
        }
    }

    @Test("BEY-5: cancelled, bytes that have come can be read; not by a task that is cancelled itself")
    func unread() async throws {
        let (body, exchange) = try begun()
        exchange.head()
        exchange.body("one")
        body.cancel()
        exchange.body("two")
        expect(text(try await body.next()), equals: "one")
        await expect(errorCode { try await body.next() }, equals: .cancelled)

        for isOver in [true, false] {
            let (other, otherExchange) = try begun()
            otherExchange.head()
            otherExchange.body("never seen")
            if isOver { otherExchange.end() }
            let task = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                return try await other.next()
            }
            await expect(errorCode { try await task.value }, equals: .cancelled)
            expect(otherExchange.isCancelled != isOver)
        }
    }

    @Test("BEY-5: nothing of an exchange is told after the end, and nothing of it is kept")
    func released() async throws {
        let told = Locked<[[Int]]>([])
        weak var kept: BodyStream?
        do {
            let (body, exchange) = try begun()
            kept = body
            exchange.sent(7)
            body.watch { counts in told.withLock { $0.append([counts.sent, counts.received]) } }
            exchange.sent(8)
            exchange.head(200)
            exchange.body("one")
            body.cancel()
            exchange.sent(9)
            exchange.body("two")
        }
        expect(told.withLock { $0 }, equals: [[7, 0], [8, 0], [8, 0], [8, 3]])
        await expect(eventually { kept == nil })
    }

    // MARK: - Everything at once

    /// Pseudorandom bytes, so that a lost, doubled or swapped byte is detected.
    private static let bytes = RangedFile.bytes(2_000_000)

    @Test(
        "TRF-5, BEY-5: from one thread to a task, every byte comes once and in order; cancelled anywhere, a part of them",
        arguments: 0..<40 as Range<UInt64>
    )
    func everything(seed: UInt64) async throws {
        var random = SeededGenerator(seed: seed)
        let total = Int.random(in: 0...Self.bytes.count, using: &random)
        let stop = Bool.random(using: &random) ? Int.random(in: 0...max(total, 1), using: &random) : nil
        let stopsTask = Bool.random(using: &random)
        let (body, exchange) = try begun()
        let sendingSeed = random.next()
        Thread {
            var random = SeededGenerator(seed: sendingSeed)
            exchange.head()
            var count = 0
            while count < total, !exchange.isCancelled {
                let most = Bool.random(using: &random) ? 100 : 100_000
                let next = min(count + Int.random(in: 0...most, using: &random), total)
                exchange.body(Self.bytes.subdata(in: count..<next))
                count = next
                // Simulates a transport that pauses late.
                if exchange.orders.last == "pause" { sched_yield() }
            }
            if !exchange.isCancelled { exchange.end() }
        }.start()
        let reader = Task {
            var all = Data()
            do {
                while let data = try await body.next() {
                    all += data
                    guard let stop, all.count >= stop else { continue }
                    if stopsTask { withUnsafeCurrentTask { $0?.cancel() } } else { body.cancel() }
                }
                return (all, NetworkError.Code?.none)
            } catch {
                return (all, (error as? NetworkError)?.code)
            }
        }
        let (all, code) = await reader.value
        expect(all, equals: Self.bytes.prefix(all.count), "seed \(seed)")
        expect(code == nil ? all.count == total : code == .cancelled && stop != nil, "seed \(seed)")
    }
}
