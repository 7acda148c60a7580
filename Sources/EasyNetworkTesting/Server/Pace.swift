import Foundation

/// How an answer trickles: by the tick of a timer a share of bytes may go out.
///
/// A tick comes first, and what a late one leaves undone is not made up for: no count of bytes goes out sooner than its
/// rate allows.
struct Pace: Equatable, Sendable {
    /// How many bytes may go out at each tick.
    let share: Int
    /// Seconds from tick to tick.
    let interval: TimeInterval
    /// How many bytes may go out now.
    private(set) var allowance = 0

    /// - Parameter bytesPerSecond: below 1 is taken for 1.
    init(bytesPerSecond: Int) {
        let rate = max(bytesPerSecond, 1)
        // 50 ticks a second are fine enough to see, and few enough to bear.
        share = max(rate / 50, 1)
        interval = TimeInterval(share) / TimeInterval(rate)
    }

    mutating func tick() {
        allowance = share
    }

    mutating func spend(_ count: Int) {
        allowance = max(allowance - count, 0)
    }
}
