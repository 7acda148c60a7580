import Foundation

/// The time that one exchange may take, in seconds, exact to the millisecond.
///
/// ```swift
/// host.deadlines = TransportDeadlines(firstByte: 10, idle: 20, total: 120)
/// ```
///
/// All deadlines count from the moment when the transport begins, after any wait for a free connection. A deadline that
/// passes ends the exchange with ``NetworkError/Code/timedOut``. NaN means no limit.
public struct TransportDeadlines: Hashable, Sendable {
    /// Until there is a connection: the look-up of the name, the connection and its TLS. Default nil, no limit.
    /// ``URLSessionTransport`` is not told when there is one and ignores this deadline; set ``firstByte`` too.
    public var connect: TimeInterval?
    /// Until the answer begins, sending included. Default nil, no limit.
    public var firstByte: TimeInterval?
    /// The longest time in which no byte goes out or comes in; nil means no limit. Default 60.
    public var idle: TimeInterval?
    /// From start to last byte. Default nil, no limit.
    public var total: TimeInterval?

    /// Creates deadlines. The defaults are those of the properties.
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

/// Measures an exchange against its deadlines.
///
/// A single timer serves all of them: activity only moves a number, and a timer that fires too early is set again.
struct DeadlineWatch {
    private var deadlines: TransportDeadlines
    private let begin: TimeInterval
    private var lastActivity: TimeInterval
    private var isPaused = false
    /// When a timer fired that was late.
    private var lateAt: TimeInterval?

    init(_ deadlines: TransportDeadlines, now: TimeInterval) {
        self.deadlines = deadlines
        begin = now
        lastActivity = now
    }

    /// A byte went out or came in. The same moment may be reported again.
    mutating func activity(now: TimeInterval) {
        lastActivity = max(lastActivity, now)
    }

    mutating func connected() {
        deadlines.connect = nil
    }

    mutating func answered() {
        deadlines.connect = nil
        deadlines.firstByte = nil
    }

    /// The receiver holds the sender back or continues. Its pause does not count as the sender's silence.
    mutating func setPaused(_ isPaused: Bool, now: TimeInterval) {
        guard self.isPaused != isPaused else { return }
        self.isPaused = isPaused
        lastActivity = now
    }

    /// A timer has fired. When it is seconds late, the program was suspended, and all deadlines are past though the
    /// answer may have come meanwhile: each grants one idle period from now on, or its own if that is shorter.
    mutating func timerFired(due: TimeInterval, now: TimeInterval) {
        if now - due > 2 { lateAt = now }
    }

    /// - Returns: seconds until the next deadline; infinity without one.
    /// - Throws: ``NetworkError/Code/timedOut`` if a deadline has passed.
    func timeLeft(now: TimeInterval) throws(NetworkError) -> TimeInterval {
        var least = try left(deadlines.total, "not done after", begin, now)
        least = try min(least, left(deadlines.connect, "no connection after", begin, now))
        least = try min(least, left(deadlines.firstByte, "no answer after", begin, now))
        return try min(least, left(isPaused ? nil : deadlines.idle, "no byte moved for", lastActivity, now))
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
