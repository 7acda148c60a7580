#if os(Linux) && canImport(CCurl)
import Foundation

/// When a loop is to look at which deadlines; used on the loop's thread only.
///
/// With the machine's clock the loop's own wait ends then, which costs nothing. Any other clock is asked to wake the loop.
struct CurlAlarm {
    private var deadlines = TimerHeap<CurlTransfer>()
    private let clock: any NetworkClock
    private let isSystemClock: Bool
    private weak var loop: CurlLoop?
    private var timer: (time: TimeInterval, timer: any ClockTimer)?

    init(_ loop: CurlLoop) {
        self.loop = loop
        clock = loop.clock
        isSystemClock = loop.clock is SystemClock
    }

    /// - Parameter now: by the clock.
    mutating func set(_ transfer: CurlTransfer, after delay: TimeInterval, now: TimeInterval) {
        // Looked at too early, it is set again.
        guard now + delay < transfer.nextLook else { return }
        transfer.nextLook = now + delay
        deadlines.add(transfer, at: now + delay)
        setTimer(now: now)
    }

    /// Takes out one that is to be looked at; nil when there is none.
    mutating func takeDue() -> CurlTransfer? {
        guard let earliest = deadlines.earliest else { return nil }
        let now = clock.now
        guard now >= earliest, let due = deadlines.takeDue(now: now) else { return nil }
        setTimer(now: now)
        due.nextLook = .infinity
        return due
    }

    /// The clock has called; it may have been too early.
    mutating func timerFired() {
        guard timer != nil else { return }
        timer.take()?.timer.cancel()
        setTimer(now: clock.now)
    }

    /// Lets go of those that are over, once they are the most of all.
    ///
    /// - Parameter count: how many are not over.
    mutating func sweep(underWay count: Int) {
        guard count == 0 || deadlines.count > 2 * count + 32 else { return }
        deadlines.sweep { !$0.isOver }
        if deadlines.count == 0 { timer.take()?.timer.cancel() }
    }

    /// Milliseconds that the loop may wait.
    func pollTimeout() -> Int32 {
        guard isSystemClock, let earliest = deadlines.earliest else { return .max }
        // Rounded up, or the last millisecond would be spent in a circle.
        return Int32(min(max((earliest - clock.now) * 1_000, 0).rounded(.up), 1_000_000_000))
    }

    /// Not for what is due: the loop looks at that before it waits.
    private mutating func setTimer(now: TimeInterval) {
        guard !isSystemClock, let earliest = deadlines.earliest, earliest > now, earliest != timer?.time else { return }
        timer?.timer.cancel()
        timer = (earliest, clock.schedule(after: earliest - now) { [weak loop] in loop?.post(.look) })
    }
}
#endif
