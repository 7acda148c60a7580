import EasyNetwork
import EasyNetworkTesting
import Foundation
import Testing

@testable import TestSupport

/// The numbers are sums of powers of two, so that the times are exact.
@Suite("NetworkConditions of InMemoryTransport", .timeLimit(.minutes(10)))
struct InMemoryConditionsTests {
    private let clock = ManualClock()

    private func transport(_ conditions: NetworkConditions, _ response: MockResponse) -> InMemoryTransport {
        let transport = InMemoryTransport(clock: clock, conditions: conditions)
        transport.route("*", "/") { _ in response }
        return transport
    }

    @discardableResult
    private func start(
        _ transport: InMemoryTransport,
        body: Data? = nil,
        deadlines: TransportDeadlines = TransportDeadlines(idle: nil)
    ) throws -> (recorder: Recorder, exchange: any TransportExchange) {
        let url = try #require(URL(string: "http://host.test/"))
        let request = TransportRequest(
            method: body == nil ? .get : .put,
            url: url,
            body: body.map { .data($0) } ?? .none,
            deadlines: deadlines
        )
        let recorder = Recorder()
        return (recorder, recorder.start(request, on: transport))
    }

    @Test("BEY-24: the latency delays the request and the response, exactly")
    func latency() async throws {
        let transport = transport(NetworkConditions(latency: 2), .text("a"))
        let (recorder, _) = try start(transport)
        await expect(clock.waitForTimers(1))
        clock.advance(by: 1.875)
        expect(transport.requests.count == 0 && clock.pendingCount == 1)
        clock.advance(by: 0.125)
        await expect(transport.waitForRequests(1))
        await expect(clock.waitForTimers(1))
        clock.advance(by: 1.875)
        expect(recorder.story == "" && clock.pendingCount == 1)
        clock.advance(by: 0.125)
        await expect(recorder.ended(), equals: "200 body:a end")
        expect(recorder.total, equals: 4)
        expect(clock.pendingCount, equals: 0)
    }

    @Test("BEY-24: a body arrives with the bandwidth, in pieces, whatever the step of the clock")
    func bandwidth() async throws {
        let transport = transport(
            NetworkConditions(bandwidth: 1_024),
            MockResponse(body: .repeating(0x61, count: 1_024))
        )
        let piece = " body:" + String(repeating: "a", count: 20)
        for step in [0.5, 100] {
            let (recorder, _) = try start(transport, deadlines: TransportDeadlines(idle: 0.125))
            await expect(clock.waitForTimers(2))
            clock.advance(by: step)
            if step < 1 {
                await recorder.heard("200" + String(repeating: piece, count: 25))
                expect(clock.pendingCount, equals: 2)
                clock.advance(by: step)
            }
            await expect(recorder.ended(), equals: "200" + String(repeating: piece, count: 51) + " body:aaaa end")
            expect(recorder.total, equals: 1)
            expect(clock.pendingCount, equals: 0)
        }
    }

    @Test("BEY-24: a request arrives when its last byte has, and its progress is that of the bytes")
    func upload() async throws {
        let transport = transport(NetworkConditions(latency: 1, bandwidth: 1_024), .status(204))
        let (recorder, _) = try start(transport, body: Data(count: 1_024))
        await expect(clock.waitForTimers(1))
        clock.advance(by: 1.984375)
        expect(transport.requests.count == 0 && clock.pendingCount == 1)
        clock.advance(by: 0.015625)
        await expect(transport.waitForRequests(1))
        await expect(clock.waitForTimers(1))
        clock.advance(by: 1)
        await expect(recorder.ended(), equals: "204 end")
        expect(recorder.total == 3 && recorder.sentCount == 1_024)
    }

    @Test("BEY-24: exchanges share the bandwidth, and each direction has its own")
    func shared() async throws {
        let transport = transport(NetworkConditions(bandwidth: 1_024), MockResponse(body: .repeating(0x61, count: 512)))
        let recorders = try (0..<4).map { _ in try start(transport).recorder }
        await expect(clock.waitForTimers(4))
        clock.advance(by: 1.875)
        // The four take turns, so that none is ready much earlier than another one.
        expect(clock.pendingCount, equals: 4)
        clock.advance(by: 0.125)
        for recorder in recorders { await expect(recorder.ended().hasSuffix(" end")) }
        expect(recorders.compactMap(\.total).max(), equals: 2)
    }

    static let deadlines: [(TransportDeadlines, MockResponse.Fault?, due: TimeInterval)] = [
        (TransportDeadlines(firstByte: 3, idle: nil), nil, 3), (TransportDeadlines(idle: 1), nil, 1),
        (TransportDeadlines(idle: nil, total: 4.5), nil, 4.5),
        // The head comes at 4 seconds and 64 bytes in another one: the silence begins there.
        (TransportDeadlines(firstByte: 4.5, idle: 8), .stall(at: .responseBody(after: 64)), 13),
    ]

    @Test("BEY-24: deadlines hold under conditions, and only silence counts as such", arguments: deadlines)
    func deadline(deadlines: TransportDeadlines, fault: MockResponse.Fault?, due: TimeInterval) async throws {
        let response = MockResponse(body: .repeating(0x61, count: 400), fault: fault)
        let transport = transport(NetworkConditions(latency: 2, bandwidth: 64), response)
        let (recorder, _) = try start(transport, deadlines: deadlines)
        await expect(clock.waitForTimers(2))
        clock.advance(by: 2)
        if due > 2 {
            await expect(transport.waitForRequests(1))
            await expect(clock.waitForTimers(2))
        }
        clock.advance(by: 1_000)
        await expect(recorder.ended().hasSuffix("end:timedOut"))
        expect(recorder.total, equals: due)
        expect(clock.pendingCount, equals: 0)
    }

    @Test("BEY-24: a loss of 1 loses every request, some before their route, the same ones with the same seed")
    func loss() async throws {
        let seed = UInt64.random(in: 0 ... .max)
        func stories() async throws -> (stories: [String], requests: Int) {
            let transport = transport(NetworkConditions(lossOfConnections: 1, seed: seed), .text("abcd"))
            var stories: [String] = []
            for _ in 0..<100 { stories.append(try await start(transport).recorder.ended()) }
            return (stories, transport.requests.count)
        }
        let (first, second) = try await (stories(), stories())
        expect(first.stories.allSatisfy { $0.hasSuffix("end:connectionLost") }, "seed \(seed)")
        expect(first.stories, equals: second.stories, "seed \(seed)")
        expect((1..<100).contains(first.requests), "seed \(seed)")
    }

    @Test(
        "BEY-24: an exchange that is cancelled on its way ends once, at once, and leaves no timer",
        arguments: [0, 1, 3]
    )
    func cancel(time: TimeInterval) async throws {
        let response = MockResponse(body: .repeating(0x61, count: .max))
        let transport = transport(NetworkConditions(latency: 1, bandwidth: 1), response)
        let (recorder, exchange) = try start(transport)
        await expect(clock.waitForTimers(1))
        if time > 0 {
            clock.advance(by: 1)
            await expect(transport.waitForRequests(1))
            await expect(clock.waitForTimers(1))
            clock.advance(by: time - 1)
        }
        exchange.cancel()
        await expect(recorder.ended().hasSuffix("end:cancelled"))
        clock.advance(by: 1_000)
        expect(recorder.total == time && clock.pendingCount == 0 && recorder.endCount == 1)
        expect(transport.requests.count, equals: time > 0 ? 1 : 0)
    }

    @Test("BEY-24: a thousand exchanges at once end, each whole or lost, in no less than the time of their bytes")
    func many() async throws {
        let seed = UInt64.random(in: 0 ... .max)
        let conditions = NetworkConditions(bandwidth: 65_536, lossOfConnections: 0.25, seed: seed)
        let transport = transport(conditions, .text("abcd"))
        let recorders = try (0..<1_000).map { _ in try start(transport).recorder }
        var whole = 0
        for recorder in recorders {
            // Lost requests never reach their route, so that no number of timers says when all are on their way.
            while recorder.endCount == 0 {
                clock.advance(by: 0.0625)
                await Task.yield()
            }
            if recorder.story == "200 body:abcd end" { whole += 1 }
            expect(recorder.endCount == 1)
        }
        expect((600..<900).contains(whole), "seed \(seed): \(whole)")
        expect(recorders.compactMap(\.total).max() ?? 0 >= Double(whole * 4) / 65_536, "seed \(seed)")
        expect(clock.pendingCount, equals: 0)
    }
}
