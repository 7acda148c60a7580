import Dispatch
import EasyNetwork
import Foundation

/// A transport without sockets that gives scripted answers, for tests that need no real connection.
///
/// ```swift
/// let transport = InMemoryTransport()
/// transport.route("GET", "/users/1") { _ in .json(["name": "Ada"]) }
/// ```
///
/// Routes match the path only, so that every http or https host works. Bodies are delivered as they are scripted,
/// without compression and decompression. Faults end an exchange as those of the server do:
///
/// | fault or answer | events |
/// |-|-|
/// | `.stall`, `.halfOpen`, or a status of 1xx | none until a cancellation or a deadline |
/// | `.close`, `.reset` | the end, with `NetworkError.Code.connectionLost` |
/// | one of these in the body | head, the bytes, then the same; only the end when nothing is missing |
/// | `.truncate(after:)`, a length too long | head, the bytes, the end with `.connectionLost` |
/// | a length too short | head, that many bytes, the end |
/// | `.badChunk` | head, the bytes, the end with `.badServerResponse` |
/// | `.refuse` | the answer with its status |
/// | `.raw`, `.statusLine` | the end, with `.badServerResponse` |
/// | any other malformation | the answer |
///
/// An exchange sets one timer of the clock for its earliest deadline before ``start(_:events:)`` returns, and one for
/// the delay of an answer, if there is one, after the closure of the route has returned.
///
/// ``init(har:clock:)`` answers from a recording.
public final class InMemoryTransport: NetworkTransport, Sendable {
    let clock: any NetworkClock
    private let routes = Locked(MockRoutes())
    private let recording: Locked<HARRecording>?
    private let received = Watched([MockRequest]())
    private let workers = DispatchQueue(
        label: "EasyNetworkTesting.InMemoryTransport",
        attributes: .concurrent,
        autoreleaseFrequency: .workItem
    )

    /// A transport without routes.
    ///
    /// - Parameter clock: for delays and deadlines; default `SystemClock`.
    public init(clock: any NetworkClock = SystemClock()) {
        self.clock = clock
        recording = nil
    }

    /// A transport that answers from a HAR file: a recording of a `TrafficRecorder`, or one of a browser.
    ///
    /// ```swift
    /// let transport = try InMemoryTransport(har: URL(fileURLWithPath: "traffic.har"))
    /// let host = HostConfiguration(baseURL: URL(string: "https://api.example.com"), transport: transport)
    /// ```
    ///
    /// A request gets the answer that was recorded for its method and URL, and, if there are several with different
    /// bodies, for its body. Equal requests get their answers in order; the last one repeats. A value that was redacted
    /// in the file stands for any value. A recorded failure is one again. A request without an answer fails with
    /// `NetworkError.Code.invalidRequest`, which names the nearest ones; one whose body is not whole in the file with
    /// `.cannotParseResponse`. Answers come at once. A ``route(_:_:_:)`` replaces the answers for its path.
    ///
    /// - Parameters:
    ///   - file: read at once.
    ///   - clock: for delays and deadlines; default `SystemClock`.
    /// - Throws: `NetworkError.Code.cannotParseResponse` for a file that cannot be read, or is no HAR.
    public init(har file: URL, clock: any NetworkClock = SystemClock()) throws(NetworkError) {
        self.clock = clock
        recording = Locked(try HARRecording(file))
    }

    /// Sets the answer to a request, with the rules of ``MockServer/route(_:_:_:)``.
    ///
    /// - Parameters:
    ///   - method: see ``MockServer/route(_:_:_:)``.
    ///   - path: see ``MockServer/route(_:_:_:)``.
    ///   - answer: called on a concurrent queue.
    public func route(
        _ method: String,
        _ path: String,
        _ answer: @escaping @Sendable (MockRequest) -> MockResponse
    ) {
        // The replaced closure is released outside of the lock, because its release may run user code.
        _ = routes.withLock { $0.add(method, path, answer) }
    }

    /// All received requests in order. A request that cannot be sent is never received.
    public var requests: [MockRequest] { received.value }

    /// The received requests to a raw path, in order; the query does not count.
    public func requests(to path: String) -> [MockRequest] {
        requests.filter { $0.path == path }
    }

    /// Waits until at least `count` requests have been received, answered or not.
    ///
    /// - Parameters:
    ///   - count: the number of requests.
    ///   - timeout: the longest wait in real seconds, so that a broken test ends. Default 300.
    /// - Returns: false when the time ran out or the task was cancelled.
    @discardableResult
    public func waitForRequests(_ count: Int, timeout: TimeInterval = 300) async -> Bool {
        await received.wait(timeout: timeout) { $0.count >= count }
    }

    /// Starts an exchange. Each exchange delivers its events on its own serial queue.
    public func start(
        _ request: TransportRequest,
        events: @escaping @Sendable (TransportEvent) -> Void
    ) -> any TransportExchange {
        let exchange = InMemoryExchange(request, clock: clock, events: events)
        exchange.watchDeadlines()
        // The file of a body is read there too, so that it does not block other exchanges.
        workers.async { self.send(request, on: exchange) }
        return exchange
    }

    private func send(_ request: TransportRequest, on exchange: InMemoryExchange) {
        // A request that was cancelled by now is not sent.
        guard !exchange.isInterrupted else { return }
        if request.isWanted?() == false { return exchange.cancel() }
        if case .stream(let stream) = request.body {
            let spool = stream.spool { result in self.send(request, body: result, on: exchange) }
            return exchange.whenInterrupted { spool.cancel() }
        }
        do throws(NetworkError) {
            let message = try request.mockRequest()
            received.update { $0.append(message) }
            exchange.sent(message.body.count)
            if let recording, !routes.withLock({ $0.hasRoute(for: message) }) {
                exchange.answer(try recording.withLock { $0.answer(to: request, message) }.get())
            } else {
                let answer = routes.withLock { $0.answer(for: message) }
                exchange.answer(answer(message))
            }
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
            try? FileManager.default.removeItem(at: file)
        case .failure(let error):
            exchange.fail(error.code, error.message, underlying: error.underlying)
        }
    }
}

extension TransportRequest {
    /// The request as a server receives it, with the fields that a transport adds.
    ///
    /// - Throws: `NetworkError.Code.invalidRequest` for a request that cannot be sent.
    func mockRequest() throws(NetworkError) -> MockRequest {
        try check()
        guard let components = URLComponents(url: url, resolvingAgainstBaseURL: true),
            let host = components.percentEncodedHost
        else { throw NetworkError(code: .invalidRequest, message: "\(url.withoutSecrets) is no address") }
        let bytes = try bodyBytes()
        // The transport frames the body.
        var headers = HTTPHeaders(headers.filter { !$0.isFraming })
        if headers["Host"] == nil { headers["Host"] = components.port.map { "\(host):\($0)" } ?? host }
        // RFC 9110, section 8.6: a method that usually has a body also has the length of an empty one.
        let usuallyHasBody = method == .post || method == .put || method == .patch
        if headers["Content-Length"] == nil, bytes != nil || usuallyHasBody {
            headers["Content-Length"] = String(bytes?.count ?? 0)
        }
        let path = components.percentEncodedPath.isEmpty ? "/" : components.percentEncodedPath
        let query = components.percentEncodedQuery.map { "?" + $0 } ?? ""
        return MockRequest(method: method.rawValue, target: path + query, headers: headers, body: bytes ?? Data())
    }

    private func bodyBytes() throws(NetworkError) -> Data? {
        switch body {
        case .none: return nil
        case .data(let data): return data
        case .stream(let stream):
            // InMemoryTransport writes a stream to a file first.
            throw NetworkError(code: .invalidRequest, message: "\(stream) is not read at once")
        case .file(let file):
            do {
                return try Data(contentsOf: file)
            } catch {
                let message = "the file \(file.path) of the body cannot be read"
                throw NetworkError(code: .invalidRequest, message: message, underlying: error)
            }
        }
    }
}
