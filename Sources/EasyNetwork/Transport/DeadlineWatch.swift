import Foundation

/// Whether an exchange has used up its time, as a value.
///
/// One timer serves both deadlines: activity only moves a number, and a timer that fires too early is set again.
struct DeadlineWatch {
    enum Verdict: Equatable {
        case expired(message: String)
        case checkAgain(after: TimeInterval)
        /// There is no deadline.
        case never
    }

    private let idle: TimeInterval?
    private let total: TimeInterval?
    private let begin: TimeInterval
    private var lastActivity: TimeInterval

    init(_ deadlines: TransportDeadlines, now: TimeInterval) {
        // What is no number is no deadline; left in, it would also swallow the other one.
        idle = deadlines.idle.flatMap { $0.isNaN ? nil : $0 }
        total = deadlines.total.flatMap { $0.isNaN ? nil : $0 }
        begin = now
        lastActivity = now
    }

    /// A byte went out or came in.
    mutating func activity(now: TimeInterval) {
        lastActivity = now
    }

    func verdict(now: TimeInterval) -> Verdict {
        let idleLeft = idle.map { lastActivity + $0 - now } ?? .infinity
        let totalLeft = total.map { begin + $0 - now } ?? .infinity
        if let total, totalLeft <= 0 { return .expired(message: "not done after \(total) seconds") }
        if let idle, idleLeft <= 0 { return .expired(message: "no byte moved for \(idle) seconds") }
        let left = min(idleLeft, totalLeft)
        return left.isFinite ? .checkAgain(after: left) : .never
    }
}
