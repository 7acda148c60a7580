import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("Alarm")
struct AlarmTests {
    /// A clock whose timers without delay fire before `schedule` returns.
    private struct EagerClock: NetworkClock {
        let base: ManualClock
        var now: TimeInterval { base.now }
        var date: Date { base.date }
        func schedule(after delay: TimeInterval, _ action: @escaping @Sendable () -> Void) -> any ClockTimer {
            let timer = base.schedule(after: delay, action)
            if delay <= 0 { base.advance(by: 0) }
            return timer
        }
    }

    private let clock = ManualClock()
    private let alarm = Alarm()
    private let calls = Locked<[TimeInterval]>([])

    private func set(_ time: TimeInterval?) {
        alarm.set(time, clock) { [clock, calls] in calls.withLock { $0.append(clock.now) } }
    }

    @Test("OPQ-10: of several times the earliest counts, with one timer, and each time once")
    func earliest() {
        set(30)
        set(20)
        set(25)
        expect(clock.pendingCount, equals: 1)
        clock.advance(by: 19)
        expect(calls.withLock { $0.isEmpty })
        clock.advance(by: 100)
        expect(calls.withLock { $0 } == [20] && clock.pendingCount == 0)
        set(50)
        clock.advance(by: 0)
        expect(calls.withLock { $0 }, equals: [20, 119])
    }

    @Test("OPQ-10: never ends what was set")
    func never() {
        set(nil)
        set(10)
        set(nil)
        expect(clock.pendingCount, equals: 0)
        clock.advance(by: 20)
        expect(calls.withLock { $0.isEmpty })
    }

    @Test("OPQ-10, BEY-13: a timer that fires before it is known leaves no time behind, so that the next one is set")
    func atOnce() {
        let eager = EagerClock(base: clock)
        let count = Locked(0)
        for expected in 1...3 {
            alarm.set(clock.now, eager) { count.withLock { $0 += 1 } }
            expect(count.withLock { $0 } == expected && clock.pendingCount == 0)
        }
    }

    @Test("OPQ-10: what another thread sets while never is asked for comes afterwards, and counts")
    func twoThreads() {
        let done = DispatchSemaphore(value: 0)
        func never() -> TimeInterval? {
            Thread { [alarm, clock] in
                alarm.set(10, clock) {}
                done.signal()
            }
            .start()
            // It gets as far as it can; it must not get to the end.
            expect(done.wait(timeout: .now() + 0.2), equals: .timedOut)
            return nil
        }
        alarm.set(never(), clock) {}
        done.wait()
        expect(clock.pendingCount, equals: 1)
    }

    @Test("OPQ-10: one that is released has no timer")
    func released() {
        do {
            let other = Alarm()
            other.set(10, clock) {}
            expect(clock.pendingCount, equals: 1)
        }
        expect(clock.pendingCount, equals: 0)
    }
}
