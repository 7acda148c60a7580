import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("Every transport: reports of an exchange", .timeLimit(.minutes(10)))
struct TransportReportTests {
    typealias Kind = TransportFixture.Kind

    @Test("RSP-1: trailers come apart from the header fields, at the end", arguments: Kind.those(that: .trailers))
    func trailers(kind: Kind) async throws {
        let fixture = try TransportFixture(kind)
        fixture.route("GET", "/trailers") { _ in
            MockResponse(
                headers: ["X-Head": "1"],
                body: .chunks([Data("ab".utf8), Data("c".utf8)]),
                trailers: HTTPHeaders([
                    .init(name: "X-Digest", value: "1"), .init(name: "X-Digest", value: "2"),
                ])
            )
        }
        fixture.route("GET", "/none") { _ in .text("x") }
        let outcome = await fixture.start(try fixture.request("/trailers")).end()
        expect(outcome.body == Data("abc".utf8) && outcome.code == nil && outcome.faults.isEmpty)
        expect(outcome.head?.headers["X-Head"] == "1" && outcome.head?.headers["X-Digest"] == nil)
        expect(outcome.end?.trailers.values(for: "x-digest"), equals: ["1", "2"])
        await expect(fixture.start(try fixture.request("/none")).end().end?.trailers.isEmpty, equals: true)
    }

    @Test("SEC-2: metrics have the total time and the wait, after a failure too", arguments: Kind.allCases)
    func times(kind: Kind) async throws {
        let fixture = try TransportFixture(kind, TransportConfiguration(maximumConnectionsPerHost: 1))
        fixture.route("GET", "/stall") { _ in .fault(.stall) }
        fixture.route("GET", "/ok") { _ in .text("ok") }
        let first = fixture.start(try fixture.request("/stall"))
        await fixture.waitForRequests(1)
        let second = fixture.start(try fixture.request("/ok"))
        if kind != .inMemory { await fixture.clock.waitForTimers(1) }
        fixture.clock.advance(by: 3)
        first.exchange.cancel()
        let failed = try #require(await first.end().end?.metrics)
        expect(failed.total == 3 && failed.firstByte == nil && failed.wait == 0)
        let whole = try #require(await second.end().end?.metrics)
        if kind != .inMemory { expect(whole.wait == 3 && whole.total == 0) }
    }

    @Test("SEC-2: cancelled while it waits for its turn, it has sent nothing and says so", arguments: Kind.allCases)
    func waiting(kind: Kind) async throws {
        guard kind != .inMemory else { return }
        let fixture = try TransportFixture(kind, TransportConfiguration(maximumConnectionsPerHost: 1))
        fixture.route("GET", "/stall") { _ in .fault(.stall) }
        let first = fixture.start(try fixture.request("/stall"))
        await fixture.waitForRequests(1)
        let second = fixture.start(try fixture.request("/stall"))
        second.exchange.cancel()
        let outcome = await second.end()
        expect(outcome.code == .cancelled && outcome.end?.error?.phase == .waiting)
        expect(outcome.end?.error?.mayHaveReachedServer == false && outcome.end?.metrics == nil)
        first.exchange.cancel()
        _ = await first.end()
    }

    @Test(
        "SEC-2: bytes, protocol, address and whether the connection was there already",
        arguments: Kind.those(that: .connectionMetrics).filter { $0 != .inMemory }
    )
    func connection(kind: Kind) async throws {
        let fixture = try TransportFixture(kind)
        fixture.route("PUT", "/echo") { _ in .data(Data(count: 5_000)) }
        var request = try fixture.request("/echo", .put)
        request.body = .data(Data(count: 3_000))
        let first = try #require(await fixture.start(request).end().end?.metrics)
        let second = try #require(await fixture.start(request).end().end?.metrics)
        for metrics in [first, second] {
            expect((3_100..<3_500).contains(metrics.bytesSent ?? 0))
            expect((5_020..<5_500).contains(metrics.bytesReceived ?? 0))
            expect(metrics.networkProtocol == "HTTP/1.1" && metrics.tls == nil)
            expect(metrics.remoteAddress, equals: "127.0.0.1:\(fixture.baseURL.port ?? 0)")
        }
        expect(first.isReusedConnection == false && second.isReusedConnection == true)
        let (connect, firstByte) = (try #require(first.connect), try #require(first.firstByte))
        expect(connect <= firstByte && second.connect == nil && second.nameLookup == nil)
    }

    @Test("REQ-5: the first-byte deadline ends an exchange without answer, and no other", arguments: Kind.allCases)
    func firstByte(kind: Kind) async throws {
        let fixture = try TransportFixture(kind)
        fixture.route("GET", "/stall") { _ in .fault(.stall) }
        fixture.route("GET", "/begins") { _ in
            MockResponse(
                headers: MockResponse.exactType,
                body: .data(Data(count: 100)),
                fault: .stall(at: .responseBody(after: 10))
            )
        }
        var request = try fixture.request("/stall")
        request.deadlines = TransportDeadlines(firstByte: 2, idle: nil)
        let silent = fixture.start(request)
        await fixture.clock.waitForTimers(1)
        fixture.clock.advance(by: 2)
        let outcome = await silent.end()
        expect(outcome.code == .timedOut && outcome.end?.error?.message?.contains("no response after 2.0") == true)
        // In memory, the head and the bytes before a stall arrive together, and the deadline covers both.
        guard kind != .inMemory else { return }
        request.url = try fixture.request("/begins").url
        let begun = fixture.start(request)
        await expect(eventually { begun.recording.contents.body.count == 10 })
        fixture.clock.advance(by: 1_000)
        expect(begun.recording.contents.end == nil)
        begun.exchange.cancel()
        await expect(begun.end().code, equals: .cancelled)
    }

    @Test(
        "REQ-5: the connect deadline ends an exchange without connection, not one with a silent server",
        arguments: Kind.those(that: .connectDeadline).filter { $0 != .inMemory }
    )
    func connectDeadline(kind: Kind) async throws {
        let fixture = try TransportFixture(kind)
        fixture.route("GET", "/stall") { _ in .fault(.stall) }
        var request = try fixture.request("/stall")
        request.deadlines = TransportDeadlines(connect: 2, idle: nil)
        let connected = fixture.start(request)
        await fixture.waitForRequests(1)
        fixture.clock.advance(by: 1_000)
        connected.exchange.cancel()
        await expect(connected.end().code, equals: .cancelled)

        // The listener's backlog is full, so it accepts no connection.
        let listener = try DeafListener(.full)
        request.url = listener.url
        let waiting = fixture.start(request)
        await fixture.clock.waitForTimers(1)
        fixture.clock.advance(by: 2)
        let outcome = await waiting.end()
        expect(outcome.code == .timedOut && outcome.end?.error?.phase == .connect)
        expect(outcome.end?.error?.mayHaveReachedServer, equals: false)
        expect(outcome.end?.error?.message, equals: "no connection after 2.0 seconds")
    }

    @Test(
        "REQ-5: a transport that does not hear of the connection has no deadline for it, and ends no slow answer by it",
        arguments: Kind.allCases.filter { TransportCapability.connectDeadline.known($0) != nil }
    )
    func noConnectDeadline(kind: Kind) async throws {
        let fixture = try TransportFixture(kind)
        fixture.route("GET", "/stall") { _ in .fault(.stall) }
        var request = try fixture.request("/stall")
        request.deadlines = TransportDeadlines(connect: 2, idle: nil, total: 5)
        let exchange = fixture.start(request)
        await fixture.waitForRequests(1)
        await fixture.clock.waitForTimers(1)
        fixture.clock.advance(by: 5)
        await expect(exchange.end().end?.error?.message, equals: "not finished after 5.0 seconds")
    }

    @Test(
        "CBK-2: paused, the idle deadline does not count; resumed, all arrives",
        arguments: Kind.those(that: .backPressure)
    )
    func pause(kind: Kind) async throws {
        guard kind != .inMemory else { return }
        let fixture = try TransportFixture(kind)
        let body = bodyBytes(5_000_000)
        fixture.route("GET", "/long") { _ in .data(body) }
        var request = try fixture.request("/long")
        request.deadlines = TransportDeadlines(idle: 5)
        let exchange = Locked<(any TransportExchange)?>(nil)
        let isStarted = DispatchSemaphore(value: 0)
        // Pauses during the head event, before the body has begun.
        let started = fixture.start(request) {
            isStarted.wait()
            exchange.withLock { $0 }?.pause()
        }
        exchange.withLock { $0 = started.exchange }
        isStarted.signal()
        await expect(eventually { started.recording.contents.head != nil })
        for _ in 0..<20 {
            fixture.clock.advance(by: 4)
            await Task.yield()
        }
        expect(started.recording.contents.end == nil && started.recording.contents.body.isEmpty)
        started.exchange.resume()
        started.exchange.resume()
        let outcome = await started.end()
        expect(outcome.code == nil && outcome.body == body && outcome.faults.isEmpty)
        started.exchange.pause()
        started.exchange.resume()
    }

    @Test(
        "CBK-2: paused and resumed at random all the time, every byte arrives once",
        arguments: 0..<4 as Range<UInt64>
    )
    func pauses(seed: UInt64) async throws {
        for kind in Kind.those(that: .backPressure) where kind != .inMemory {
            var random = SeededGenerator(seed: seed)
            let fixture = try TransportFixture(kind)
            let body = bodyBytes(2_000_000)
            fixture.route("GET", "/long") { _ in .data(body) }
            let started = fixture.start(try fixture.request("/long"))
            let hasEnded = await eventually {
                for _ in 0..<20 {
                    if Bool.random(using: &random) { started.exchange.pause() } else { started.exchange.resume() }
                }
                // A paused exchange would not end.
                if started.recording.contents.body.count > 1_900_000 { started.exchange.resume() }
                return started.recording.contents.end != nil
            }
            started.exchange.resume()
            expect(hasEnded, "seed \(seed)")
            let outcome = await started.end()
            expect(outcome.code == nil && outcome.body == body && outcome.faults.isEmpty, "seed \(seed)")
        }
    }

    @Test(
        "CBK-2: paused before a silence, the idle deadline does not count either",
        arguments: Kind.those(that: .backPressure)
    )
    func pauseBeforeSilence(kind: Kind) async throws {
        guard kind != .inMemory else { return }
        let fixture = try TransportFixture(kind)
        fixture.route("GET", "/stall") { _ in .fault(.stall) }
        fixture.route("GET", "/ok") { _ in .text("ok") }
        var request = try fixture.request("/stall")
        request.deadlines = TransportDeadlines(idle: 5)
        let started = fixture.start(request)
        await fixture.waitForRequests(1)
        await fixture.clock.waitForTimers(1)
        started.exchange.pause()
        // Runs after the pause, on the same loop.
        await expect(fixture.start(try fixture.request("/ok")).end().code == nil)
        fixture.clock.advance(by: 100)
        await expect(fixture.start(try fixture.request("/ok")).end().code == nil)
        expect(started.recording.contents.end == nil)
        started.exchange.resume()
        await expect(
            eventually {
                fixture.clock.advance(by: 100)
                return started.recording.contents.end != nil
            }
        )
        await expect(started.end().code, equals: .timedOut)
    }

    @Test(
        "CBK-2, SEC-2: an inflation bomb that came while it was paused ends at the limit, though nothing more comes",
        arguments: Kind.those(that: .backPressure)
    )
    func pausedBomb(kind: Kind) async throws {
        guard kind != .inMemory else { return }
        let fixture = try TransportFixture(kind, TransportConfiguration(maximumDecodedBodyCount: 1_000))
        fixture.route("GET", "/bomb") { _ in
            var response = MockResponse.inflationBomb(10_000_000)
            response.fault = .stall(at: .responseBody(after: 5_000))
            return response
        }
        fixture.route("GET", "/ok") { _ in .text("ok") }
        let exchange = Locked<(any TransportExchange)?>(nil)
        let isStarted = DispatchSemaphore(value: 0)
        let started = fixture.start(try fixture.request("/bomb")) {
            isStarted.wait()
            exchange.withLock { $0 }?.pause()
        }
        exchange.withLock { $0 = started.exchange }
        isStarted.signal()
        await fixture.waitForFaults(1)
        // Runs after the received bytes, on the same loop.
        await expect(fixture.start(try fixture.request("/ok")).end().code == nil)
        started.exchange.resume()
        await expect(eventually { started.recording.contents.end != nil })
        started.exchange.cancel()
        let outcome = await started.end()
        expect(outcome.code == .bodyTooLong && outcome.faults.isEmpty)
    }

    @Test("CBK-2: an exchange that is cancelled during a pause ends once", arguments: Kind.allCases)
    func cancelPaused(kind: Kind) async throws {
        let fixture = try TransportFixture(kind)
        fixture.route("GET", "/stall") { _ in
            MockResponse(
                headers: MockResponse.exactType,
                body: .data(Data(count: 100)),
                fault: .stall(at: .responseBody(after: 10))
            )
        }
        let started = fixture.start(try fixture.request("/stall"))
        await expect(eventually { started.recording.contents.head != nil })
        started.exchange.pause()
        started.exchange.cancel()
        started.exchange.resume()
        let outcome = await started.end()
        expect(outcome.code == .cancelled && outcome.faults.isEmpty)
    }
}
