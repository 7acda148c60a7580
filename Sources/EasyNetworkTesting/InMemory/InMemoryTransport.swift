import Dispatch
import EasyNetwork
import Foundation

/// A transport without sockets that returns scripted responses, for tests that need no real connection.
///
/// ```swift
/// let transport = InMemoryTransport()
/// transport.route("GET", "/users/1") { _ in .json(["name": "Ada"]) }
/// ```
///
/// Routes match only the path, so every http or https host works. Bodies are delivered as scripted, without compression
/// or decompression. Faults end an exchange as they do with the server:
///
/// | fault or response | events |
/// |-|-|
/// | `.stall`, `.halfOpen`, or a status of 1xx | none until a cancellation or a deadline |
/// | `.close`, `.reset` | the end, with `NetworkError.Code.connectionLost` |
/// | one of these in the body | head, the bytes, then the same; a normal end if no bytes are missing |
/// | `.truncate(after:)`, a length too long | head, the bytes, the end with `.connectionLost` |
/// | a length too short | head, that many bytes, the end |
/// | `.badChunk` | head, the bytes, the end with `.badServerResponse` |
/// | `.refuse` | the response with its status |
/// | `.raw`, `.statusLine` | the end, with `.badServerResponse` |
/// | any other malformation | the response |
///
/// Each exchange sets one timer of the clock for its earliest deadline before ``start(_:events:)`` returns. If the
/// response has a delay, it sets another one after the closure of the route has returned. With ``NetworkConditions``,
/// an exchange also has a second timer while its request or its response is on its way. A single
/// ``ManualClock/advance(by:)`` can fire these timers one after the other. The timers of the response, however, are set
/// only after the closure of the route has returned.
///
/// To respond from a recording, use ``init(har:clock:conditions:)``.
public final class InMemoryTransport: NetworkTransport, Sendable {
    let clock: any NetworkClock
    private let routes = Locked(MockRoutes())
    private let link: Locked<NetworkLink>
    private let recording: Locked<HARRecording>?
    private let received = Watched([MockRequest]())
    private let workers = DispatchQueue(
        label: "EasyNetworkTesting.InMemoryTransport",
        attributes: .concurrent,
        autoreleaseFrequency: .workItem
    )

    /// Creates a transport without routes.
    ///
    /// - Parameters:
    ///   - clock: The clock for delays, deadlines and conditions. Defaults to `SystemClock`.
    ///   - conditions: The network in front of the routes. Defaults to a network without limits.
    public init(clock: any NetworkClock = SystemClock(), conditions: NetworkConditions = NetworkConditions()) {
        self.clock = clock
        link = Locked(NetworkLink(conditions))
        recording = nil
    }

    /// Creates a transport that responds from a HAR file, recorded by a `TrafficRecorder` or a browser.
    ///
    /// ```swift
    /// let transport = try InMemoryTransport(har: URL(fileURLWithPath: "traffic.har"))
    /// let host = HostConfiguration(baseURL: URL(string: "https://api.example.com"), transport: transport)
    /// ```
    ///
    /// A request receives the response that was recorded for its method and URL. If several were recorded for different
    /// request bodies, those for the same body are preferred. Equal requests receive their responses in order; the last
    /// one repeats. A value that was redacted in the file matches any value. A recorded failure fails again. Responses
    /// arrive without delay. A ``route(_:_:_:)`` replaces the recorded responses for its path.
    ///
    /// A request without a recorded response fails with `NetworkError.Code.invalidRequest`, and the error names the
    /// nearest ones. If the file does not contain the whole body of the response, the request fails with
    /// `.cannotParseResponse`.
    ///
    /// - Parameters:
    ///   - file: The HAR file, which is read immediately.
    ///   - clock: The clock for delays, deadlines and conditions. Defaults to `SystemClock`.
    ///   - conditions: The network in front of the recording. Defaults to a network without limits.
    /// - Throws: `NetworkError.Code.cannotParseResponse` if the file cannot be read or is not a HAR file.
    public init(
        har file: URL,
        clock: any NetworkClock = SystemClock(),
        conditions: NetworkConditions = NetworkConditions()
    ) throws(NetworkError) {
        self.clock = clock
        link = Locked(NetworkLink(conditions))
        recording = Locked(try HARRecording(file))
    }

    /// Sets the response for a request, with the rules of ``MockServer/route(_:_:_:)``.
    ///
    /// - Parameters:
    ///   - method: See ``MockServer/route(_:_:_:)``.
    ///   - path: See ``MockServer/route(_:_:_:)``.
    ///   - answer: Called on a concurrent queue.
    public func route(
        _ method: String,
        _ path: String,
        _ answer: @escaping @Sendable (MockRequest) -> MockResponse
    ) {
        // Release the replaced closure outside the lock, because its release can run user code.
        _ = routes.withLock { $0.add(method, path, answer) }
    }

    /// All received requests, in order. A request that cannot be sent is never received.
    public var requests: [MockRequest] { received.value }

    /// Returns the received requests with a raw path, in order. The query is ignored.
    public func requests(to path: String) -> [MockRequest] {
        requests.filter { $0.path == path }
    }

    /// Waits until at least `count` requests have been received, with or without a response.
    ///
    /// - Parameters:
    ///   - count: The number of requests.
    ///   - timeout: The longest wait in real seconds, so that a broken test ends. Defaults to 300.
    /// - Returns: `false` if the wait timed out or the task was cancelled.
    @discardableResult
    public func waitForRequests(_ count: Int, timeout: TimeInterval = 300) async -> Bool {
        await received.wait(timeout: timeout) { $0.count >= count }
    }

    /// Starts an exchange. Each exchange delivers its events on its own serial queue.
    public func start(
        _ request: TransportRequest,
        events: @escaping @Sendable (TransportEvent) -> Void
    ) -> any TransportExchange {
        let exchange = InMemoryExchange(request, clock: clock, link: link, events: events)
        exchange.watchDeadlines()
        // The worker also reads the file of a body, so that this does not block other exchanges.
        workers.async { self.send(request, on: exchange) }
        return exchange
    }

    private func send(_ request: TransportRequest, on exchange: InMemoryExchange) {
        // A request that is already cancelled is not sent.
        guard !exchange.isInterrupted else { return }
        if request.isWanted?() == false { return exchange.cancel() }
        if case .stream(let stream) = request.body {
            let spool = stream.spool { result in self.send(request, body: result, on: exchange) }
            return exchange.whenInterrupted { spool.cancel() }
        }
        do throws(NetworkError) {
            let message = try request.mockRequest()
            exchange.send(message.body) { isLate in
                // The closure of a route must not run on the thread that advances the clock.
                guard isLate else { return self.answer(message, to: request, on: exchange) }
                self.workers.async { self.answer(message, to: request, on: exchange) }
            }
        } catch {
            exchange.fail(error.code, error.message, underlying: error.underlying)
        }
    }

    private func answer(_ message: MockRequest, to request: TransportRequest, on exchange: InMemoryExchange) {
        guard !exchange.isInterrupted else { return }
        received.update { $0.append(message) }
        do throws(NetworkError) {
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
    /// Returns the request as a server would receive it, with the fields that a transport adds.
    ///
    /// - Throws: `NetworkError.Code.invalidRequest` if the request cannot be sent.
    func mockRequest() throws(NetworkError) -> MockRequest {
        try check()
        guard let components = URLComponents(url: url, resolvingAgainstBaseURL: true),
            let host = components.percentEncodedHost
        else { throw NetworkError(code: .invalidRequest, message: "\(url.withoutSecrets) is not a valid URL") }
        let bytes = try bodyBytes()
        // The transport sets the framing fields itself.
        var headers = HTTPHeaders(headers.filter { !$0.isFraming })
        if headers["Host"] == nil { headers["Host"] = components.port.map { "\(host):\($0)" } ?? host }
        // RFC 9110, section 8.6: a method that usually has a body also sends the length of an empty one.
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
            // `InMemoryTransport` writes a stream to a file before this call.
            throw NetworkError(code: .invalidRequest, message: "\(stream) cannot be read synchronously")
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
