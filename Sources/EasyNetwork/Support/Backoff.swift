import Foundation

/// The delays between consecutive failed attempts. The delay doubles each time, up to a maximum.
package struct Backoff: Sendable {
    /// The upper bound of the first delay, in seconds.
    let base: TimeInterval
    let maximum: TimeInterval

    /// Returns the upper bound of the next delay after `count` delays, in seconds.
    func bound(after count: Int) -> TimeInterval {
        min(base * pow(2, Double(min(count, 64))), maximum)
    }

    /// Returns a random delay from zero to the bound ("full jitter"), so that clients that failed together do not retry
    /// together.
    ///
    /// - Parameter random: A number from 0 to 1, the position of the delay in its range. Values outside of the range
    ///   are clamped to it; NaN counts as 0.
    package func delay(after count: Int, random: Double) -> TimeInterval {
        let bound = bound(after: count)
        return bound > 0 && random > 0 ? bound * min(random, 1) : 0
    }
}
