#if os(Linux) && canImport(CCurl)
import Foundation

/// When the loop checks its exchanges, used on the loop's thread only.
///
/// It keeps the earliest time only: when that has come, the worker checks every exchange under way and adds the times
/// again. With the system clock the loop's own wait ends then; any other clock sets a timer that wakes the loop.
struct CurlDeadlines {
    private var earliest = TimeInterval.infinity
    private let clock: any NetworkClock
    private let isSystemClock: Bool
    private weak var loop: CurlLoop?
    private var timer: (any ClockTimer)?
    private var nextPoll = Self.shortestPoll

    private static let shortestPoll: Int32 = 10
    private static let longestPoll: Int32 = 1_000

    init(_ loop: CurlLoop) {
        self.loop = loop
        clock = loop.clock
        isSystemClock = loop.clock is SystemClock
    }

    mutating func add(_ time: TimeInterval) {
        guard time < earliest else { return }
        earliest = time
        setTimer()
    }

    /// Whether the earliest time has come. If so, all times are forgotten.
    mutating func takeDue() -> Bool {
        guard earliest.isFinite, earliest <= clock.now else { return false }
        clear()
        return true
    }

    mutating func clear() {
        earliest = .infinity
        timer.take()?.cancel()
    }

    /// The clock has called, perhaps too early.
    mutating func timerFired() {
        if timer != nil { setTimer() }
    }

    private mutating func setTimer() {
        timer.take()?.cancel()
        guard !isSystemClock, earliest.isFinite else { return }
        let delay = earliest - clock.now
        // A time that has come needs no timer: the loop checks it before it waits.
        if delay > 0 { timer = clock.schedule(after: delay) { [weak loop] in loop?.timerFired() } }
    }

    /// The milliseconds for which the loop may wait. Without a deadline: 10 after something has moved, doubled each
    /// time that nothing has, 1,000 at most.
    ///
    /// libcurl marks a transfer that needs another look, such as one whose stream has just ended, with an expired
    /// timer. If another timer of that transfer expires within a millisecond of it, libcurl before 8.4 drops both and
    /// the transfer waits for ever. Seen with 7.88, whose timer 200 milliseconds after connecting met the end of an
    /// answer.
    mutating func pollTimeout(underWay count: Int, hasMoved: Bool) -> Int32 {
        guard count > 0 else { return .max }
        let wait = hasMoved ? Self.shortestPoll : nextPoll
        nextPoll = min(2 * wait, Self.longestPoll)
        guard isSystemClock, earliest.isFinite else { return wait }
        // Rounded up, or the loop would spin through the last millisecond.
        let left = ((earliest - clock.now) * 1_000).rounded(.up)
        return left < Double(wait) ? Int32(max(left, 0)) : wait
    }
}
#endif
