import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import EasyNetworkOutbox
@testable import TestSupport

@Suite("The delays of an outbox", .timeLimit(.minutes(10)))
struct OutboxDelayTests {
    /// The delays after failures, each of which is tried again at once.
    private func delays(
        _ count: Int,
        random: Double = 1,
        answer: @escaping @Sendable (Int) -> MockResponse = { _ in .status(503) }
    ) async throws -> [TimeInterval] {
        let fixture = OutboxFixture()
        let transport = fixture.transport
        transport.route("POST", "*") { _ in answer(transport.requests.count - 1) }
        let outbox = try fixture.outbox { $0.random = { random } }
        let events = outbox.events
        let id = try outbox.add(OutboxMessage(text: "a"))
        try outbox.start()
        var delays: [TimeInterval] = []
        for await event in events {
            guard case .failed(id, _, let delay) = event else { continue }
            delays.append(delay)
            if delays.count == count { break }
            try outbox.retry(id)
        }
        try await outbox.drain(deadline: 0)
        return delays
    }

    @Test("BEY-13: the bound of the delay doubles from two seconds to ten minutes")
    func bound() async throws {
        try await expect(delays(12), equals: [2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600, 600])
    }

    @Test("BEY-13: the delay is random below its bound", arguments: [0, 0.25])
    func jitter(random: Double) async throws {
        try await expect(delays(3, random: random), equals: [2, 4, 8].map { $0 * random })
    }

    @Test("BEY-13: Retry-After is the least delay, as seconds or as a date, up to a day")
    func retryAfter() async throws {
        // The clock stands at the beginning of 2026.
        let values = ["30", "3", "Thu, 01 Jan 2026 00:01:40 GMT", "86400", "86401", "99999999999", "soon"]
        let delays = try await delays(values.count) { .status(503, headers: ["Retry-After": values[$0]]) }
        expect(delays, equals: [30, 4, 100, 86_400, 86_400, 86_400, 128])
    }

    /// A clock that takes its time to set a timer.
    private struct SlowClock: NetworkClock {
        let clock: ManualClock
        var now: TimeInterval { clock.now }
        var date: Date { clock.date }

        func schedule(after delay: TimeInterval, _ action: @escaping @Sendable () -> Void) -> any ClockTimer {
            // An event that is posted too early lets the test advance the clock in this time, and then it waits forever.
            usleep(50_000)
            return clock.schedule(after: delay, action)
        }
    }

    @Test("BEY-13: the next try is scheduled before its failure is posted, so a listener can advance the clock once")
    func scheduledFirst() async throws {
        let fixture = OutboxFixture()
        fixture.answers(503, 204)
        let outbox = try fixture.outbox { $0.clock = SlowClock(clock: fixture.clock) }
        let events = outbox.events
        try outbox.start()
        // Until the outbox has its lock, it looks at its directory every second.
        await expect(eventually { outbox.state.withLock { $0.logic.phase } == .delivering })
        try outbox.add(OutboxMessage(text: "a"))
        for await case .failed(_, _, let delay) in events {
            fixture.clock.advance(by: delay)
            break
        }
        await expect(fixture.transport.waitForRequests(2))
        try await outbox.drain(deadline: 0)
    }

    @Test("BEY-13: what fails is not sent again before its delay is over")
    func notBefore() async throws {
        let fixture = OutboxFixture()
        fixture.answers(503, 503, 503, 204)
        let outbox = try fixture.outbox()
        var events = outbox.events.makeAsyncIterator()
        let id = try outbox.add(OutboxMessage(text: "a"))
        try outbox.start()
        // The third delay is of eight seconds.
        for number in 1...3 {
            while let event = await events.next() { if case .failed(id, _, _) = event { break } }
            if number < 3 { try outbox.retry(id) }
        }
        for _ in 1...7 {
            await fixture.checkForChanges()
            try expect(outbox.entries.map(\.isSending), equals: [false])
        }
        await fixture.checkForChanges()
        await expect(eventually { fixture.count("entries") == 0 })
        expect(fixture.texts.count, equals: 4)
        try await outbox.drain(deadline: 0)
    }

    @Test("BEY-13: when the network is back all that waits is tried at once, but what a server told to wait")
    func network() async throws {
        let fixture = OutboxFixture()
        let network = NetworkReachability(.reachable)
        fixture.transport.route("POST", "*") { message in
            let text = (message.json() as? [String: Any])?["text"] as? String ?? ""
            return .status(503, headers: text == "told" ? ["Retry-After": "60"] : [:])
        }
        let outbox = try fixture.outbox { $0.reachability = network }
        let events = outbox.events
        let names = ["a", "b", "told"]
        let ids = try names.map { try outbox.add(OutboxMessage(text: $0), lane: $0) }
        try outbox.start()
        var delays = Dictionary(uniqueKeysWithValues: ids.map { ($0, TimeInterval(0)) })
        for await event in events {
            guard case .failed(let id, _, let delay) = event else { continue }
            delays[id] = delay
            // Longer than two looks.
            if delays.values.allSatisfy({ $0 >= 8 }) { break }
            if delay < 8 { try outbox.retry(id) }
        }
        expect(ids.map { delays[$0] }, equals: [8, 8, 60])
        fixture.transport.route("POST", "*") { _ in .status(204) }

        network.status = .unreachable
        await fixture.checkForChanges()
        try expect(outbox.entries.map(\.id) == ids && outbox.entries.allSatisfy { !$0.isSending })
        network.status = .reachable
        await fixture.checkForChanges()
        await expect(eventually { (try? outbox.entries.map(\.id)) == [ids[2]] })
        expect(fixture.texts.suffix(2).sorted(), equals: ["a", "b"])
        for _ in 3...59 { await fixture.checkForChanges() }
        try expect(outbox.entries.map(\.isSending), equals: [false])
        await fixture.checkForChanges()
        await expect(eventually { fixture.count("entries") == 0 })
        try await outbox.drain(deadline: 0)
    }

    @Test("BEY-13, OPQ-9: without a network nothing is sent and no try is counted; when it comes, all are sent at once")
    func unreachable() async throws {
        let fixture = OutboxFixture()
        let (network, queue) = (NetworkReachability(.unreachable), NetworkQueue())
        let outbox = try fixture.outbox(queue: queue) { $0.reachability = network }
        let ids = try ["a", "b"].map { try outbox.add(OutboxMessage(text: $0), lane: $0) }
        var events = outbox.events.makeAsyncIterator()
        try outbox.start()
        await expect(eventually { queue.operationCount == 2 })
        for _ in 1...3 { await fixture.checkForChanges() }
        try expect(fixture.texts.isEmpty && outbox.entries.allSatisfy { !$0.isSending })
        network.status = .reachable
        // Without an advance of the clock.
        await expect(eventually { fixture.count("entries") == 0 })
        var (sent, delivered): (Set<UUID>, Set<UUID>) = ([], [])
        while delivered.count < 2, let event = await events.next() {
            switch event {
            case .delivered(let id): delivered.insert(id)
            case .sending(let id): sent.insert(id)
            default:
                Issue.record("\(event)")
                return
            }
        }
        expect(sent == Set(ids) && delivered == Set(ids))
        try await outbox.drain(deadline: 0)
    }
}

extension OutboxFixture {
    /// Moves the clock to the next look of the only outbox that has started, and waits until that is over.
    func checkForChanges() async {
        await clock.waitForTimers(1)
        clock.advance(by: 1)
        await clock.waitForTimers(1)
    }
}
