import Foundation

/// Where the body of an accepted answer goes, instead of into memory: a file, or whoever iterates over it.
///
/// A landing asks for an intake before each sending, retries and redirects included, and gives it the answer to that
/// message alone.
protocol BodySink: Sendable {
    /// What takes the answer to a message, and the message with what it needs, as a range.
    ///
    /// Called on ``WorkQueue`` or on a thread of a queue, never on the transport's.
    func intake(for message: TransportRequest) -> (TransportRequest, any BodyIntake)
}

/// Takes the answer of one exchange.
///
/// ``begin(_:isAccepted:valve:)`` and ``take(_:)`` are called on the transport's thread, one after the other, and return
/// at once.
protocol BodyIntake: Sendable {
    /// The head has come.
    ///
    /// - Parameters:
    ///   - isAccepted: whether the body of this answer is wanted: its status and media type are accepted, and it is no
    ///     redirect that is followed.
    ///   - valve: holds the sender back.
    func begin(_ head: TransportHead, isAccepted: Bool, valve: BodyValve) -> BodyDecision

    /// Some bytes have come, after ``begin(_:isAccepted:valve:)`` said ``BodyDecision/take``.
    func take(_ data: Data) -> BodyDecision

    /// The exchange is over, and nothing more comes. Also called when it ended before its head, and after every
    /// decision; not when the landing was cancelled meanwhile.
    ///
    /// - Parameters:
    ///   - error: why it broke off; nil when the answer was whole or enough.
    ///   - completion: to be called once, on any thread but the transport's, when all that came is where it is to be.
    func end(_ error: NetworkError?, _ completion: @escaping @Sendable (BodyOutcome) -> Void)
}

/// What is done with an answer that has begun.
enum BodyDecision: Sendable {
    /// Gather it, as without a sink; it is an error, or leads on to another message.
    case gather
    /// Give the bytes to the intake.
    case take
    /// No more is needed: the answer counts as whole.
    case enough
    /// It does not fit what is there, which has been given up: send the message again.
    case again
    case fail(NetworkError)
}

/// What has become of a body.
struct BodyOutcome: Sendable {
    /// Why the bytes are not where they are to be; nil when they are.
    var error: NetworkError?
    /// Whether bytes were gained that need not come again. Then retries are counted from the beginning, within bounds.
    var hasProgressed = false
    /// Whether another answer may take the place of this one.
    var mayBeginAgain = true
}

/// Holds back the sender of one answer, for any number of reasons at a time. Any thread may use it.
final class BodyValve: Sendable {
    /// Why nothing is to come.
    struct Reason: OptionSet, Sendable {
        let rawValue: Int

        /// What came is not dealt with yet.
        static let backlog = Reason(rawValue: 1)
        /// It comes faster than it may.
        static let rate = Reason(rawValue: 2)
    }

    private struct State {
        var exchange: (any TransportExchange)?
        var reasons: Reason = []
        /// How many times the first reason came or the last one went.
        var turn = 0
        /// Whether the exchange is over, perhaps before anyone had it.
        var isOver = false
    }

    private let state = Locked(State())

    init() {}

    /// The exchange, which may have begun to bring its answer before anyone had it.
    func attach(_ exchange: any TransportExchange) {
        let isHeld = state.withLock { state in
            if !state.isOver { state.exchange = exchange }
            return !state.reasons.isEmpty
        }
        if isHeld { tell() }
    }

    /// Has taken effect when it returns, on the thread that brings the body.
    func hold(_ reason: Reason) {
        state.withLock { state in
            if state.reasons.isEmpty { state.turn += 1 }
            state.reasons.insert(reason)
        }
        // Also when it was held already: another thread may be about to resume for what was true before.
        tell()
    }

    func release(_ reason: Reason) {
        let isLast = state.withLock { state in
            guard state.reasons.remove(reason) != nil, state.reasons.isEmpty else { return false }
            state.turn += 1
            return true
        }
        if isLast { tell() }
    }

    /// The exchange is over.
    func detach() {
        let exchange = state.withLock { state in
            state.isOver = true
            return state.exchange.take()
        }
        withExtendedLifetime(exchange) {}
    }

    /// Tells the exchange what counts now, and again if that has changed meanwhile: of two threads the one that was
    /// overtaken would have the last word.
    private func tell() {
        var told: Int?
        while let order = state.withLock({ state -> (exchange: any TransportExchange, turn: Int, pauses: Bool)? in
            guard state.turn != told, let exchange = state.exchange else { return nil }
            return (exchange, state.turn, !state.reasons.isEmpty)
        }) {
            if order.pauses { order.exchange.pause() } else { order.exchange.resume() }
            told = order.turn
        }
    }
}
