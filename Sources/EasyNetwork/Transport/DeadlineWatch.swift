import Foundation

/// Whether an exchange has used up its time, as a value.
///
/// One timer serves all deadlines: activity only moves a number, and a timer that fires too early is set again.
struct DeadlineWatch {
    enum Verdict: Equatable {
        case expired(message: String)
        case checkAgain(after: TimeInterval)
        /// There is no deadline.
        case never
    }

    private var deadlines: TransportDeadlines
    private let begin: TimeInterval
    private var lastActivity: TimeInterval
    private var isPaused = false

    init(_ deadlines: TransportDeadlines, now: TimeInterval) {
        self.deadlines = deadlines.withoutNaN
        begin = now
        lastActivity = now
    }

    /// A byte went out or came in; what was told of before may be told again.
    mutating func activity(now: TimeInterval) {
        lastActivity = max(lastActivity, now)
    }

    /// There is a connection.
    mutating func connected() {
        deadlines.connect = nil
    }

    /// The answer has begun.
    mutating func answered() {
        deadlines.connect = nil
        deadlines.firstByte = nil
    }

    /// Whoever takes the bytes in has asked for none, or for more again: a silence of its own making does not count.
    mutating func setPaused(_ isPaused: Bool, now: TimeInterval) {
        self.isPaused = isPaused
        lastActivity = now
    }

    func verdict(now: TimeInterval) -> Verdict {
        func left(_ limit: TimeInterval?, since: TimeInterval) -> TimeInterval {
            limit.map { since + $0 - now } ?? .infinity
        }
        let total = left(deadlines.total, since: begin)
        if total <= 0 { return expired("not done after", deadlines.total) }
        let connect = left(deadlines.connect, since: begin)
        if connect <= 0 { return expired("no connection after", deadlines.connect) }
        let firstByte = left(deadlines.firstByte, since: begin)
        if firstByte <= 0 { return expired("no answer after", deadlines.firstByte) }
        let idle = left(isPaused ? nil : deadlines.idle, since: lastActivity)
        if idle <= 0 { return expired("no byte moved for", deadlines.idle) }
        let least = min(min(total, connect), min(firstByte, idle))
        return least.isFinite ? .checkAgain(after: least) : .never
    }

    private func expired(_ what: String, _ limit: TimeInterval?) -> Verdict {
        .expired(message: "\(what) \(limit ?? 0) seconds")
    }
}

extension TransportDeadlines {
    /// What is no number is no deadline; left in, it would also swallow the others.
    package var withoutNaN: TransportDeadlines {
        func number(_ deadline: TimeInterval?) -> TimeInterval? { deadline.flatMap { $0.isNaN ? nil : $0 } }
        return TransportDeadlines(
            connect: number(connect),
            firstByte: number(firstByte),
            idle: number(idle),
            total: number(total)
        )
    }
}
