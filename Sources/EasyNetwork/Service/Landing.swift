import Dispatch
import Foundation

/// One request on its way: from the message that is sent to the one result.
///
/// The events of the transport are gathered as they come; the result is handed over once, on ``WorkQueue``.
final class Landing: Sendable {
    typealias Completion = @Sendable (Landing, Result<NetworkResponse, NetworkError>) -> Void

    private struct State {
        var assembly = ResponseAssembly()
        /// What was sent; nil when nothing was.
        var request: NetworkError.Request?
        var exchange: (any TransportExchange)?
        /// Nil once the result is known.
        var completion: Completion?
    }

    private let state: Locked<State>

    /// - Parameter completion: called exactly once, on ``WorkQueue``.
    init(_ completion: @escaping Completion) {
        state = Locked(State(completion: completion))
    }

    /// An error with what this landing knows of the request.
    func annotate(_ error: NetworkError) -> NetworkError {
        var error = error
        error.request = state.withLock { $0.request }
        error.attempts = error.request == nil ? 0 : 1
        return error
    }

    /// Sends the message; not if the landing was cancelled before.
    func send(_ message: TransportRequest, over transport: any NetworkTransport) {
        let isWanted = state.withLock { state in
            guard state.completion != nil else { return false }
            state.request = NetworkError.Request(method: message.method.rawValue, url: message.url)
            return true
        }
        guard isWanted else { return }
        let exchange = transport.start(message) { event in self.receive(event, from: message.url) }
        let isOver = state.withLock { state in
            if state.completion != nil { state.exchange = exchange }
            return state.completion == nil
        }
        // It may have been cancelled while it was being started. If it had ended, this does nothing.
        if isOver { exchange.cancel() }
    }

    /// Ends the landing at once; what the transport still brings is ignored.
    func fail(_ error: NetworkError) {
        complete(.failure(error))
    }

    func cancel() {
        fail(NetworkError(code: .cancelled))
    }

    private func receive(_ event: TransportEvent, from url: URL) {
        let result = state.withLock { state in
            // What comes after the result is known is not gathered.
            state.completion == nil ? nil : state.assembly.receive(event, from: url)
        }
        if let result { complete(result) }
    }

    /// Ends the landing; the first end counts.
    func complete(_ result: Result<NetworkResponse, NetworkError>) {
        let (completion, exchange) = state.withLock { state in
            if state.completion != nil { state.assembly = ResponseAssembly() }
            return (state.completion.take(), state.exchange.take())
        }
        guard let completion else { return }
        exchange?.cancel()
        WorkQueue.shared.async { completion(self, result) }
    }
}
