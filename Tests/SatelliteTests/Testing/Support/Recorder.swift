import EasyNetwork
import EasyNetworkTesting
import Foundation

/// Records the events of one exchange.
final class Recorder: Sendable {
    private struct State: Sendable {
        var events: [String] = []
        var story: String { events.joined(separator: " ") }
        var headers: HTTPHeaders?
        var error: NetworkError?
        /// The seconds that the exchange took, by its clock.
        var total: TimeInterval?
        var sentCount = 0
        var endCount = 0
        var exchange: (any TransportExchange)?
        /// Resumed when the recorded story equals this one, or has ended.
        var waiter: (story: String?, continuation: CheckedContinuation<Void, Never>)?
    }

    private let state = Locked(State())
    private let cancelAt: String?
    private let gate: DispatchSemaphore?

    /// - Parameters:
    ///   - cancelAt: The event during which to cancel the exchange.
    ///   - gate: Blocks that event until it is signalled, once the exchange is known.
    init(cancelAt: String? = nil, gate: DispatchSemaphore? = nil) {
        self.cancelAt = cancelAt
        self.gate = gate
    }

    @discardableResult
    func start(_ request: TransportRequest, on transport: some NetworkTransport) -> any TransportExchange {
        let exchange = transport.start(request) { self.record($0) }
        state.withLock { $0.exchange = exchange }
        return exchange
    }

    private func record(_ event: TransportEvent) {
        if case .sent(let count) = event { return state.withLock { $0.sentCount += count } }
        let name =
            switch event {
            case .sent: "sent"
            case .head(let head): "\(head.statusCode)"
            case .body(let data): "body:" + (String(bytes: data, encoding: .utf8) ?? "no text")
            case .end(let end): end.error.map { "end:\($0.code)" } ?? "end"
            }
        let waiter = state.withLock { state -> CheckedContinuation<Void, Never>? in
            state.events.append(name)
            switch event {
            case .head(let head): state.headers = head.headers
            case .body, .sent: break
            case .end(let end):
                state.error = end.error
                state.total = end.metrics?.total
                state.endCount += 1
            }
            guard state.endCount > 0 || state.waiter?.story == state.story else { return nil }
            return state.waiter.take()?.continuation
        }
        waiter?.resume()
        if name == cancelAt {
            gate?.wait()
            state.withLock { $0.exchange }?.cancel()
        }
    }

    var story: String { state.withLock { $0.story } }
    var headers: HTTPHeaders? { state.withLock { $0.headers } }
    var error: NetworkError? { state.withLock { $0.error } }
    var total: TimeInterval? { state.withLock { $0.total } }
    var sentCount: Int { state.withLock { $0.sentCount } }
    var endCount: Int { state.withLock { $0.endCount } }

    /// Returns all events after the end.
    func ended() async -> String {
        await wait(for: nil)
        return story
    }

    /// Returns when these events have been recorded, or after the end.
    func heard(_ story: String) async {
        await wait(for: story)
    }

    private func wait(for story: String?) async {
        await withCheckedContinuation { continuation in
            let isThere = state.withLock { state in
                let isThere = state.endCount > 0 || state.story == story
                if !isThere { state.waiter = (story, continuation) }
                return isThere
            }
            if isThere { continuation.resume() }
        }
    }
}
