import Foundation

/// One message under way, for a task that waits for its answer.
final class Exchange: Sendable {
    typealias Arrival = (ending: AnswerIntake.Ending, body: BodyOutcome)

    private struct State {
        var continuation: UnsafeContinuation<Arrival, Never>?
        var exchange: (any TransportExchange)?
        /// Whether the exchange is stopped, now or when it is known.
        var isStopped = false
        var isOver = false
    }

    private let state = Locked(State())

    /// Whether the task waits no more.
    var isOver: Bool { state.withLock { $0.isOver } }

    /// - Parameter start: starts the exchange, and calls its argument with what has come of it.
    /// - Returns: at once, with ``NetworkError/Code/cancelled``, when the task is cancelled, which stops the exchange.
    func arrival(_ start: (@escaping @Sendable (Arrival) -> Void) -> any TransportExchange) async -> Arrival {
        await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                let isWanted = state.withLock { state in
                    if !state.isOver { state.continuation = continuation }
                    return !state.isOver
                }
                guard isWanted else { return continuation.resume(returning: Self.cancelled) }
                let exchange = start(finish)
                let isStopped = state.withLock { state in
                    if !state.isOver { state.exchange = exchange }
                    return state.isStopped
                }
                if isStopped { exchange.cancel() }
            }
        } onCancel: {
            stop()
            finish(Self.cancelled)
        }
    }

    private static let cancelled: Arrival = (.result(.failure(NetworkError(code: .cancelled))), BodyOutcome())

    /// Nothing more of the exchange is wanted.
    func stop() {
        let exchange = state.withLock { state in
            state.isStopped = true
            return state.exchange.take()
        }
        exchange?.cancel()
    }

    private func finish(_ arrival: Arrival) {
        let (continuation, exchange) = state.withLock { state in
            state.isOver = true
            return (state.continuation.take(), state.exchange.take())
        }
        withExtendedLifetime(exchange) {}
        continuation?.resume(returning: arrival)
    }
}
