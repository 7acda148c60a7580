#if os(Linux)
import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork

@Suite("CurlAlarm")
struct CurlAlarmTests {
    private func loop(_ clock: any NetworkClock) -> CurlLoop {
        CurlLoop(TransportConfiguration(), clock: clock)
    }

    private func transfer(_ loop: CurlLoop) throws -> CurlTransfer {
        let request = TransportRequest(url: try #require(URL(string: "http://a.example/")))
        let start = CurlStart(exchange: CurlExchange(loop), request: request, time: 0, events: { _ in })
        let options = Shared(CurlOptions(loop.configuration))
        return CurlTransfer(start, options: options, news: CurlNews(), clock: loop.clock)
    }

    @Test("REQ-5: with the machine's clock the loop waits until the earliest deadline, rounded up")
    func systemClock() throws {
        let loop = loop(SystemClock())
        var alarm = CurlAlarm(loop)
        #expect(alarm.pollTimeout() == .max)
        let (one, other) = (try transfer(loop), try transfer(loop))
        let now = loop.clock.now
        alarm.set(one, after: 1e18, now: now)
        #expect(alarm.pollTimeout() == 1_000_000_000)
        alarm.set(other, after: 3_600, now: now)
        #expect((3_000_000...3_600_000).contains(alarm.pollTimeout()))
        #expect(alarm.takeDue() == nil)
        alarm.set(other, after: -1, now: now)
        #expect(alarm.pollTimeout() == 0)
        #expect(alarm.takeDue() === other)
        other.end(nil)
        one.end(nil)
        alarm.sweep(underWay: 0)
        #expect(alarm.pollTimeout() == .max)
    }

    @Test("REQ-5: another clock wakes the loop with one timer, which goes with the last transfer")
    func otherClock() throws {
        let clock = ManualClock(now: 10)
        let loop = loop(clock)
        var alarm = CurlAlarm(loop)
        let transfers = try (0..<3).map { _ in try transfer(loop) }
        for (transfer, delay) in zip(transfers, [5, 2, 9]) { alarm.set(transfer, after: TimeInterval(delay), now: 10) }
        #expect(alarm.pollTimeout() == .max && clock.pendingCount == 1)
        // Called too early, as by a clock with coarse timers.
        alarm.timerFired()
        #expect(alarm.takeDue() == nil && clock.pendingCount == 1)
        clock.advance(by: 2)
        // What is due is looked at anyway; a timer for it would still be there when the last end has been told.
        alarm.timerFired()
        #expect(clock.pendingCount == 0)
        #expect(alarm.takeDue() === transfers[1])
        #expect(alarm.takeDue() == nil && clock.pendingCount == 1)
        for transfer in transfers { transfer.end(nil) }
        alarm.sweep(underWay: 0)
        #expect(clock.pendingCount == 0)
    }
}
#endif
