import Foundation

/// The number of jobs that can start in a span of time: a token bucket.
///
/// ```swift
/// queue.rateLimit = RateLimit(10, per: 1)             // one every 100 ms
/// queue.rateLimit = RateLimit(10, per: 1, burst: 5)   // five at once after a pause
/// ```
///
/// In any span of `seconds`, at most `count + burst - 1` jobs start.
public struct RateLimit: Hashable, Sendable {
    /// The number of tokens that arrive in ``seconds``; at least 1.
    public let count: Int
    /// The span of time in seconds; at least a nanosecond, at most a thousand million seconds.
    public let seconds: TimeInterval
    /// The number of unused tokens that are kept; at least 1.
    public let burst: Int

    /// Creates a rate limit. Values below the minimum are raised to it. Seconds that are NaN or infinite count as 1.
    ///
    /// - Parameters:
    ///   - count: the number of jobs in that time.
    ///   - seconds: the span of time in seconds.
    ///   - burst: the number of unused tokens that are kept. Defaults to `1`, so that jobs start evenly spaced.
    public init(_ count: Int, per seconds: TimeInterval, burst: Int = 1) {
        self.count = max(1, count)
        self.seconds = seconds.isFinite ? min(max(1e-9, seconds), 1e9) : 1
        self.burst = max(1, burst)
    }
}

/// The state of a ``RateLimit``, as a value: the generic cell rate algorithm (ITU-T I.371), a token bucket without a
/// counter to refill.
struct RateGate {
    var limit: RateLimit
    /// The time of the next token if tokens were taken as evenly as they arrive.
    private var arrival = -TimeInterval.infinity

    init(_ limit: RateLimit) {
        self.limit = limit
    }

    private var interval: TimeInterval { limit.seconds / TimeInterval(limit.count) }

    /// The time when the next token can be taken; in the past if there is one.
    var opens: TimeInterval { arrival - interval * TimeInterval(limit.burst - 1) }

    mutating func take(at now: TimeInterval) {
        arrival = max(now, arrival) + interval
    }

    /// Returns a token that was not used.
    mutating func giveBack() {
        arrival -= interval
    }
}
