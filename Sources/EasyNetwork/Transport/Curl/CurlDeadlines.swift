#if os(Linux) && canImport(CCurl)
import Foundation

/// The time of the loop's next check of its exchanges. It is used only on the loop's thread.
///
/// Only the earliest time is stored. When it is reached, the worker checks every exchange in progress and adds the
/// times again. With the system clock, the loop's own wait ends at that time. With any other clock, a timer wakes the
/// loop.
struct CurlDeadlines {
    private(set) var earliest = TimeInterval.infinity
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

    /// Returns whether the earliest time has been reached. If so, all times are removed.
    mutating func takeDue(at now: TimeInterval) -> Bool {
        guard earliest.isFinite, earliest <= now else { return false }
        clear()
        return true
    }

    mutating func clear() {
        earliest = .infinity
        timer.take()?.cancel()
    }

    /// Notes that the clock's timer has fired, possibly too early.
    mutating func timerFired() {
        if timer != nil { setTimer() }
    }

    private mutating func setTimer() {
        timer.take()?.cancel()
        guard !isSystemClock, earliest.isFinite else { return }
        let delay = earliest - clock.now
        // A time that has been reached needs no timer, because the loop checks it before it waits.
        if delay > 0 { timer = clock.schedule(after: delay) { [weak loop] in loop?.timerFired() } }
    }

    /// Returns the number of milliseconds for which the loop can wait. Without a deadline, it is 10 after data was
    /// transferred, and doubles each time that no data was, up to 1,000.
    ///
    /// libcurl marks a transfer that needs attention, such as one whose stream has just ended, with an expired timer.
    /// If another timer of that transfer expires within a millisecond, libcurl before 8.4 drops both timers and the
    /// transfer waits forever. This occurred with 7.88, whose timer 200 milliseconds after connecting coincided with
    /// the end of a response.
    mutating func pollTimeout(underWay count: Int, hasMoved: Bool) -> Int32 {
        guard count > 0 else { return .max }
        let wait = hasMoved ? Self.shortestPoll : nextPoll
        nextPoll = min(2 * wait, Self.longestPoll)
        guard isSystemClock, earliest.isFinite else { return wait }
        // Round up. Otherwise the loop would spin through the last millisecond.
        let left = ((earliest - clock.now) * 1_000).rounded(.up)
        return left < Double(wait) ? Int32(max(left, 0)) : wait
    }
}
#endif
