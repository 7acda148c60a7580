import EasyNetwork
import EasyNetworkTesting
import Foundation
import Testing

@testable import TestSupport

@Suite("ManualClock")
struct ManualClockTests {
    @Test("BEY-11: timers run in the order of their times, then of their creation, each at its time")
    func order() {
        let clock = ManualClock(now: 100)
        let ran = Locked([String]())
        for (name, delay) in [("c", 3.0), ("a", 1), ("z", 0), ("d", 3), ("b", 2), ("late", 3.5), ("past", -1)] {
            _ = clock.schedule(after: delay) { ran.withLock { $0.append("\(name) \(clock.now)") } }
        }
        expect(clock.pendingCount, equals: 7)
        expect(ran.withLock { $0 }, equals: [], "nothing runs before the clock is advanced")
        clock.advance(by: 3)
        expect(ran.withLock { $0 }, equals: ["z 100.0", "past 100.0", "a 101.0", "b 102.0", "c 103.0", "d 103.0"])
        expect(clock.now, equals: 103)
        expect(clock.pendingCount, equals: 1)
        clock.advance(by: -5)
        clock.advance(by: .nan)
        expect(clock.now, equals: 103)
        clock.advance(by: 10)
        expect(clock.now, equals: 113)
        expect(clock.pendingCount, equals: 0)
    }

    @Test("BEY-11: timers of timers run in the same advance if they are due by its end")
    func nested() {
        let clock = ManualClock()
        let ran = Locked([TimeInterval]())
        @Sendable func tick() {
            ran.withLock { $0.append(clock.now) }
            _ = clock.schedule(after: 2, tick)
        }
        _ = clock.schedule(after: 2, tick)
        clock.advance(by: 7)
        expect(ran.withLock { $0 }, equals: [2, 4, 6])
        expect(clock.now, equals: 7)
        expect(clock.pendingCount, equals: 1)
        clock.advance(by: 1)
        expect(ran.withLock { $0 }, equals: [2, 4, 6, 8])
    }

    @Test("BEY-11: a cancelled timer never runs and frees its closure; a timer may cancel another")
    func cancelling() {
        final class Token: Sendable {}
        let clock = ManualClock()
        let ran = Locked(0)
        weak var token: Token?
        let timer: any ClockTimer
        do {
            let held = Token()
            token = held
            timer = clock.schedule(after: 1) {
                _ = held
                ran.withLock { $0 += 1 }
            }
        }
        expect(token != nil)
        timer.cancel()
        timer.cancel()
        expect(token == nil)
        expect(clock.pendingCount, equals: 0)
        let later = clock.schedule(after: 3) { ran.withLock { $0 += 1 } }
        _ = clock.schedule(after: 2) { later.cancel() }
        clock.advance(by: 10)
        expect(ran.withLock { $0 }, equals: 0)
    }

    @Test("BEY-11: an action may advance the clock itself")
    func reentrant() {
        let clock = ManualClock()
        let ran = Locked([TimeInterval]())
        _ = clock.schedule(after: 1) { clock.advance(by: 5) }
        _ = clock.schedule(after: 4) { ran.withLock { $0.append(clock.now) } }
        clock.advance(by: 2)
        expect(ran.withLock { $0 }, equals: [4])
        expect(clock.now, equals: 6)
    }

    @Test("BEY-11: 100,000 timers, most of them cancelled, run in order")
    func many() {
        let seed: UInt64 = 42
        var state = seed
        let clock = ManualClock()
        let ran = Locked([TimeInterval]())
        for index in 0..<100_000 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            let timer = clock.schedule(after: TimeInterval(state >> 54)) { ran.withLock { $0.append(clock.now) } }
            if index % 10 != 0 { timer.cancel() }
        }
        expect(clock.pendingCount, equals: 10_000)
        clock.advance(by: 2000)
        let times = ran.withLock { $0 }
        expect(times.count, equals: 10_000)
        expect(times, equals: times.sorted(), "seed \(seed)")
    }

    @Test("BEY-11: waiting ends when the number of timers is reached")
    func waiting() async {
        let clock = ManualClock()
        async let waited = clock.waitForTimers(2)
        _ = clock.schedule(after: 1) {}
        _ = clock.schedule(after: 1) {}
        await expect(waited)
        await expect(clock.waitForTimers(3, timeout: 0), equals: false)
    }
}
