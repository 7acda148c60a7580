import Foundation

/// How many jobs may start in a span of time: a token bucket.
///
/// ```swift
/// queue.rateLimit = RateLimit(10, per: 1)             // one every 100 ms
/// queue.rateLimit = RateLimit(10, per: 1, burst: 5)   // five at once after a pause
/// ```
///
/// In any span of `seconds` at most `count + burst - 1` jobs start.
public struct RateLimit: Hashable, Sendable {
    /// How many tokens come in ``seconds``; at least 1.
    public let count: Int
    /// At least a nanosecond, at most a thousand million seconds.
    public let seconds: TimeInterval
    /// How many tokens are kept while nobody takes one; at least 1.
    public let burst: Int

    /// Values below the least are raised to it; a number of seconds that is no number counts as 1.
    ///
    /// - Parameter burst: default 1, so that jobs start evenly spaced.
    public init(_ count: Int, per seconds: TimeInterval, burst: Int = 1) {
        self.count = max(1, count)
        self.seconds = seconds.isFinite ? min(max(1e-9, seconds), 1e9) : 1
        self.burst = max(1, burst)
    }
}

/// A ``RateLimit`` at work, as a value: the generic cell rate algorithm (ITU-T I.371), which is the token bucket
/// without a counter to refill.
struct RateGate {
    var limit: RateLimit
    /// When the next token would come if tokens were taken as evenly as they come.
    private var arrival = -TimeInterval.infinity

    init(_ limit: RateLimit) {
        self.limit = limit
    }

    private var interval: TimeInterval { limit.seconds / TimeInterval(limit.count) }

    /// When the next token may be taken; in the past when one is there.
    var opens: TimeInterval { arrival - interval * TimeInterval(limit.burst - 1) }

    mutating func take(at now: TimeInterval) {
        arrival = max(now, arrival) + interval
    }

    /// Returns a token that was not used.
    mutating func giveBack() {
        arrival -= interval
    }
}
