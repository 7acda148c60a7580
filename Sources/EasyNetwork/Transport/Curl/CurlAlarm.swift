#if os(Linux) && canImport(CCurl)
import Foundation

/// When a loop is to look at its deadlines next; used on the loop's thread only.
///
/// With the machine's clock the loop's own wait ends then, which costs nothing. Any other clock is asked to wake the loop.
struct CurlAlarm {
    /// By the clock; infinity when there is nothing to look at.
    private(set) var time = TimeInterval.infinity
    private let clock: any NetworkClock
    private let isSystemClock: Bool
    private weak var loop: CurlLoop?
    private var timer: (any ClockTimer)?

    init(_ loop: CurlLoop) {
        self.loop = loop
        clock = loop.clock
        isSystemClock = loop.clock is SystemClock
    }

    /// Keeps the earliest of the times that are set.
    mutating func set(_ newTime: TimeInterval, now: TimeInterval) {
        guard newTime < time else { return }
        time = newTime
        guard !isSystemClock else { return }
        timer?.cancel()
        timer = clock.schedule(after: newTime - now) { [weak loop] in loop?.post(.look) }
    }

    mutating func cancel() {
        time = .infinity
        timer.take()?.cancel()
    }

    /// Milliseconds that the loop may wait.
    func pollTimeout(now: TimeInterval) -> Int32 {
        guard isSystemClock, time < .infinity else { return .max }
        // Rounded up, or the last millisecond would be spent in a circle.
        return Int32(min(max((time - now) * 1_000, 0).rounded(.up), 1_000_000_000))
    }
}
#endif
