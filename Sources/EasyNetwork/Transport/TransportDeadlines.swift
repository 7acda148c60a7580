import Foundation

/// The time limits of one exchange, in seconds, exact to the millisecond.
///
/// ```swift
/// host.deadlines = TransportDeadlines(firstByte: 10, idle: 20, total: 120)
/// ```
///
/// All deadlines count from the moment when the transport begins, after any wait for a free connection. A missed
/// deadline ends the exchange with ``NetworkError/Code/timedOut``. NaN means no limit.
public struct TransportDeadlines: Hashable, Sendable {
    /// The time until the connection is established: name lookup, connection and TLS. Defaults to `nil`, no limit.
    /// ``URLSessionTransport`` is not notified of the connection and ignores this deadline; set ``firstByte`` as well.
    public var connect: TimeInterval?
    /// The time until the response begins, including sending the request. Defaults to `nil`, no limit.
    public var firstByte: TimeInterval?
    /// The maximum time in which no byte is sent or received; nil means no limit. Defaults to 60.
    public var idle: TimeInterval?
    /// The time from the start to the last byte. Defaults to `nil`, no limit.
    public var total: TimeInterval?

    /// Creates deadlines. The default arguments are the defaults of the properties.
    public init(
        connect: TimeInterval? = nil,
        firstByte: TimeInterval? = nil,
        idle: TimeInterval? = 60,
        total: TimeInterval? = nil
    ) {
        self.connect = connect
        self.firstByte = firstByte
        self.idle = idle
        self.total = total
    }
}

extension TransportDeadlines {
    /// Checks that each deadline is positive.
    ///
    /// - Parameter owner: Who has set the deadlines, for the message.
    /// - Throws: ``NetworkError/Code/invalidRequest``.
    func check(of owner: String) throws(NetworkError) {
        for (seconds, name) in [(connect, "connect"), (firstByte, "firstByte"), (idle, "idle"), (total, "total")] {
            guard let seconds, !(seconds > 0) else { continue }
            let rule = "must be a positive number of seconds, but is \(seconds)"
            throw .invalidRequest("the \(owner)'s deadline \"\(name)\" \(rule)")
        }
    }
}

extension TransportDeadlines: CustomStringConvertible {
    /// The deadlines that are set, in seconds.
    public var description: String {
        String(
            listing: "TransportDeadlines",
            [("connect", connect), ("firstByte", firstByte), ("idle", idle), ("total", total)]
        )
    }
}

/// Checks an exchange against its deadlines.
///
/// A single timer serves all of them. Activity only changes a number, and a timer that fires too early is scheduled
/// again.
package struct DeadlineWatch: Sendable {
    private var deadlines: TransportDeadlines
    private let begin: TimeInterval
    private var lastActivity: TimeInterval
    private var isPaused = false
    /// The time when a timer fired late; nil if none has.
    private var lateAt: TimeInterval?

    package init(_ deadlines: TransportDeadlines, now: TimeInterval) {
        self.deadlines = deadlines
        begin = now
        lastActivity = now
    }

    /// Notes that a byte was sent or received. The same moment can be reported again.
    package mutating func activity(now: TimeInterval) {
        lastActivity = max(lastActivity, now)
    }

    package mutating func connected() {
        deadlines.connect = nil
    }

    package mutating func answered() {
        deadlines.connect = nil
        deadlines.firstByte = nil
    }

    /// Notes that the receiver pauses or resumes the sender. A pause does not count as silence of the sender.
    mutating func setPaused(_ isPaused: Bool, now: TimeInterval) {
        guard self.isPaused != isPaused else { return }
        self.isPaused = isPaused
        lastActivity = now
    }

    /// Notes that a timer has fired. If it is seconds late, the program was suspended. All deadlines have then passed,
    /// although the response might have arrived meanwhile. Each deadline grants one idle period from now, or its own
    /// period if that is shorter.
    mutating func timerFired(due: TimeInterval, now: TimeInterval) {
        if now - due > 2 { lateAt = now }
    }

    /// Returns the time until the next deadline.
    ///
    /// - Returns: The time in seconds; infinity without a deadline.
    /// - Throws: ``NetworkError/Code/timedOut`` if a deadline has passed.
    package func timeLeft(now: TimeInterval) throws(NetworkError) -> TimeInterval {
        var least = try left(deadlines.total, "not finished after", begin, now)
        least = try min(least, left(deadlines.connect, "no connection after", begin, now))
        least = try min(least, left(deadlines.firstByte, "no response after", begin, now))
        return try min(least, left(isPaused ? nil : deadlines.idle, "no byte was transferred for", lastActivity, now))
    }

    private func left(
        _ limit: TimeInterval?,
        _ problem: String,
        _ begin: TimeInterval,
        _ now: TimeInterval
    ) throws(NetworkError) -> TimeInterval {
        guard let limit, !limit.isNaN else { return .infinity }
        var left = begin + limit - now
        if let lateAt {
            let period = deadlines.idle.map { $0 < limit ? $0 : limit } ?? limit
            left = max(left, lateAt + period - now)
        }
        if left <= 0 { throw NetworkError(code: .timedOut, message: "\(problem) \(limit) seconds") }
        return left
    }
}
