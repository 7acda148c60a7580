import Foundation

/// The delays between tries that fail in a row: twice as long each time, up to a maximum. A value.
package struct Backoff: Sendable {
    /// The bound of the first delay, in seconds.
    let base: TimeInterval
    let maximum: TimeInterval

    /// The longest delay after so many delays before it, in seconds.
    func bound(after count: Int) -> TimeInterval {
        min(base * pow(2, Double(min(count, 64))), maximum)
    }

    /// A delay from zero to its bound ("full jitter"), so that clients that failed together do not return together.
    ///
    /// - Parameter random: from 0 to 1, the place of the delay in its range. Anything else counts as the nearest of
    ///   these, NaN as 0.
    package func delay(after count: Int, random: Double) -> TimeInterval {
        let bound = bound(after: count)
        return bound > 0 && random > 0 ? bound * min(random, 1) : 0
    }
}
