#if os(Linux)
import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("CurlDeadlines")
struct CurlDeadlinesTests {
    private func loop(_ clock: any NetworkClock) -> CurlLoop {
        CurlLoop(TransportConfiguration(), clock: clock)
    }

    @Test("REQ-5: with the system clock the loop waits until the earliest deadline, rounded up")
    func systemClock() {
        let loop = loop(SystemClock())
        var deadlines = CurlDeadlines(loop)
        func poll() -> Int32 { deadlines.pollTimeout(underWay: 1, hasMoved: true) }
        deadlines.add(1e18)
        let far = (poll(), deadlines.takeDue(at: loop.clock.now))
        expect(far.0 == 10 && !far.1)
        deadlines.add(loop.clock.now - 1)
        let due = (poll(), deadlines.takeDue(at: loop.clock.now))
        expect(due.0 == 0 && due.1)
        // The deadlines have been cleared, and must be added again.
        let none = (poll(), deadlines.takeDue(at: loop.clock.now))
        expect(none.0 == 10 && !none.1)
        deadlines.add(loop.clock.now + 0.0001)
        let near = poll()
        expect((0...1).contains(near))
    }

    @Test("REQ-5: another clock wakes the loop with one timer, for the earliest deadline")
    func otherClock() {
        let clock = ManualClock(now: 10)
        let loop = loop(clock)
        var deadlines = CurlDeadlines(loop)
        for time in [15, 12, 19] { deadlines.add(TimeInterval(time)) }
        let poll = deadlines.pollTimeout(underWay: 3, hasMoved: true)
        expect(poll == 10 && clock.pendingCount == 1)
        // The timer fires too early, like that of a coarse clock.
        deadlines.timerFired()
        let isEarly = deadlines.takeDue(at: clock.now)
        expect(!isEarly && clock.pendingCount == 1)
        clock.advance(by: 2)
        var arrived: [CurlExchange] = []
        let isTimerDue = loop.take(into: &arrived).isTimerDue
        expect(isTimerDue)
        // A deadline that has passed needs no timer: the loop checks it before it waits.
        deadlines.timerFired()
        expect(clock.pendingCount, equals: 0)
        let isDue = deadlines.takeDue(at: clock.now)
        expect(isDue)
        deadlines.add(15)
        expect(clock.pendingCount, equals: 1)
        deadlines.clear()
        let isDueAfterwards = deadlines.takeDue(at: clock.now)
        expect(!isDueAfterwards && clock.pendingCount == 0)
    }

    @Test("BEY-11: the loop looks soon after something has moved, then less often, and not without exchanges")
    func waits() {
        var deadlines = CurlDeadlines(loop(SystemClock()))
        let idle = deadlines.pollTimeout(underWay: 0, hasMoved: false)
        let quiet = (0..<9).map { deadlines.pollTimeout(underWay: 1, hasMoved: $0 == 0) }
        expect(quiet, equals: [10, 20, 40, 80, 160, 320, 640, 1_000, 1_000])
        let moved = [0, 2, 2].map { deadlines.pollTimeout(underWay: $0, hasMoved: true) }
        expect(idle == .max && moved == [.max, 10, 10])
    }
}
#endif
