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

    private let deadlines: TransportDeadlines
    private let begin: TimeInterval
    private var lastActivity: TimeInterval

    init(_ deadlines: TransportDeadlines, now: TimeInterval) {
        self.deadlines = deadlines
        begin = now
        lastActivity = now
    }

    /// A byte went out or came in.
    mutating func activity(now: TimeInterval) {
        lastActivity = now
    }

    func verdict(now: TimeInterval) -> Verdict {
        let idleLeft = deadlines.idle.map { lastActivity + $0 - now } ?? .infinity
        let totalLeft = deadlines.total.map { begin + $0 - now } ?? .infinity
        if let total = deadlines.total, totalLeft <= 0 {
            return .expired(message: "not done after \(total.formatted()) seconds")
        }
        if let idle = deadlines.idle, idleLeft <= 0 {
            return .expired(message: "nothing came for \(idle.formatted()) seconds")
        }
        let left = min(idleLeft, totalLeft)
        return left.isFinite ? .checkAgain(after: left) : .never
    }
}
