import EasyNetworkTesting
import Foundation

@testable import EasyNetwork

/// A transport whose exchanges are controlled by the test on its own thread, and record pauses, resumes and cancels.
final class SteeredTransport: NetworkTransport {
    private let started = Locked<[Exchange]>([])

    var exchanges: [Exchange] { started.withLock { $0 } }

    func start(
        _ request: TransportRequest,
        events: @escaping @Sendable (TransportEvent) -> Void
    ) -> any TransportExchange {
        let exchange = Exchange(request, events)
        started.withLock { $0.append(exchange) }
        return exchange
    }

    /// Returns the exchange with this number, counted from 0, when it has begun.
    func exchange(_ number: Int) async -> Exchange? {
        _ = await eventually { exchanges.count > number }
        return exchanges.count > number ? exchanges[number] : nil
    }

    /// A host at `https://api.example.com` without retries.
    func host(_ change: (inout HostSettings) -> Void = { _ in }) -> HostConfiguration {
        HostConfiguration(baseURL: URL(string: "https://api.example.com"), transport: self) { settings in
            settings.retry = .never
            change(&settings)
        }
    }

    final class Exchange: TransportExchange {
        struct State {
            var events: (@Sendable (TransportEvent) -> Void)?
            var isCancelled = false
            var orders: [String] = []
        }

        let request: TransportRequest
        let state: Locked<State>
        private let queue = DispatchQueue(label: "SteeredTransport.Exchange")

        init(_ request: TransportRequest, _ events: @escaping @Sendable (TransportEvent) -> Void) {
            self.request = request
            state = Locked(State(events: events))
        }

        var isCancelled: Bool { state.withLock { $0.isCancelled } }
        var orders: [String] { state.withLock { $0.orders } }

        func sent(_ count: Int) {
            emit(.sent(count))
        }

        func head(_ head: TransportHead) {
            emit(.head(head))
        }

        func head(_ status: Int = 200, _ headers: HTTPHeaders = HTTPHeaders()) {
            emit(.head(TransportHead(statusCode: status, headers: headers)))
        }

        func body(_ text: String) {
            body(Data(text.utf8))
        }

        func body(_ data: Data) {
            emit(.body(data))
        }

        func end(_ code: NetworkError.Code? = nil) {
            let events = state.withLock { $0.events.take() }
            var error = code.map { NetworkError(code: $0) }
            error?.phase = .body
            events?(.end(TransportEnd(error: error)))
        }

        private func emit(_ event: TransportEvent) {
            state.withLock { $0.events }?(event)
        }

        func cancel() {
            state.withLock { $0.isCancelled = true }
            queue.async { self.end(.cancelled) }
        }

        func pause() {
            note("pause")
        }

        func resume() {
            note("resume")
        }

        /// Records an order unless it repeats the previous one.
        private func note(_ order: String) {
            state.withLock { state in
                if state.orders.last != order { state.orders.append(order) }
            }
        }
    }
}
