import Dispatch
import EasyNetwork
import Foundation

/// A transport without sockets, that answers as scripted: for tests that need no wire.
///
/// ```swift
/// let transport = InMemoryTransport()
/// transport.route("GET", "/users/1") { _ in .json(["name": "Ada"]) }
/// ```
///
/// Routes see the path only, so that any http or https host will do. Bodies are passed on as they are scripted: nothing
/// is compressed and no content coding is taken off. Faults end an exchange as the server's would:
///
/// | fault or answer | what is heard |
/// |-|-|
/// | `.stall`, `.halfOpen`, or a status of 1xx | nothing, until cancelled or a deadline passes |
/// | `.close`, `.reset` | the end, with `NetworkError.Code.connectionLost` |
/// | one of these in the body | head, the bytes, then the same; the end alone when nothing is missing |
/// | `.truncate(after:)`, a length too long | head, the bytes, the end with `.connectionLost` |
/// | a length too short | head, that many bytes, the end |
/// | `.badChunk` | head, the bytes, the end with `.badServerResponse` |
/// | `.refuse` | the answer with its status |
/// | `.raw`, `.statusLine` | the end, with `.badServerResponse` |
/// | any other malformation | the answer |
///
/// Time is that of the clock given. An exchange sets one timer for the sooner of its deadlines before
/// ``start(_:events:)`` returns, and one for the answer's delay, should it have one, once its closure has answered.
public final class InMemoryTransport: NetworkTransport, Sendable {
    let clock: any NetworkClock
    private let routes = Locked(MockRoutes())
    private let received = Watched([MockRequest]())
    private let workers = DispatchQueue(label: "EasyNetworkTesting.InMemoryTransport", attributes: .concurrent)

    /// - Parameter clock: for delays and deadlines; default the machine's.
    public init(clock: any NetworkClock = SystemClock()) {
        self.clock = clock
    }

    /// Sets what is answered to a request; matches as ``MockServer/route(_:_:_:)`` does.
    ///
    /// - Parameter answer: called on a concurrent queue.
    public func route(
        _ method: String,
        _ path: String,
        _ answer: @escaping @Sendable (MockRequest) -> MockResponse
    ) {
        // What the route replaces is handed out of the lock, as letting go of a closure may run anything.
        _ = routes.withLock { $0.add(method, path, answer) }
    }

    /// Everything received, in order. A request that cannot be sent is never received.
    public var requests: [MockRequest] { received.value }

    /// What was received for one raw path, query not counted, in order.
    public func requests(to path: String) -> [MockRequest] {
        requests.filter { $0.path == path }
    }

    /// Waits until at least `count` requests have been received, answered or not.
    ///
    /// - Parameters:
    ///   - timeout: real seconds after which it returns regardless, so that a broken test ends. Default 60.
    /// - Returns: false when the time ran out or the task was cancelled.
    @discardableResult
    public func waitForRequests(_ count: Int, timeout: TimeInterval = 60) async -> Bool {
        await received.wait(timeout: timeout) { $0.count >= count }
    }

    /// Starts an exchange. Its events come on a serial queue of its own.
    public func start(
        _ request: TransportRequest,
        events: @escaping @Sendable (TransportEvent) -> Void
    ) -> any TransportExchange {
        let exchange = InMemoryExchange(request, clock: clock, events: events)
        exchange.watchDeadlines()
        // The file of a body is read there too, so that it holds up nobody else.
        workers.async { self.send(request, on: exchange) }
        return exchange
    }

    private func send(_ request: TransportRequest, on exchange: InMemoryExchange) {
        // Cancelled before it began: nothing was sent.
        guard !exchange.isInterrupted else { return }
        if case .stream(let stream) = request.body {
            let spool = BodySpool(stream)
            exchange.whenInterrupted { spool.cancel() }
            return spool.write { result in self.send(request, body: result, on: exchange) }
        }
        do throws(NetworkError) {
            let message = try request.mockRequest()
            received.update { $0.append(message) }
            exchange.sent(message.body.count)
            let answer = routes.withLock { $0.answer(for: message) }
            exchange.answer(answer(message))
        } catch {
            exchange.fail(error.code, error.message, underlying: error.underlying)
        }
    }

    private func send(_ request: TransportRequest, body: Result<URL, NetworkError>, on exchange: InMemoryExchange) {
        switch body {
        case .success(let file):
            var request = request
            request.body = .file(file)
            send(request, on: exchange)
            BodySpool.remove(file)
        case .failure(let error):
            exchange.fail(error.code, error.message, underlying: error.underlying)
        }
    }
}
