import EasyNetwork
import Foundation

/// A real HTTP/1.1 server on 127.0.0.1, on a free port, with scripted responses.
///
/// ```swift
/// let server = try MockServer()
/// server.route("GET", "/users/1") { _ in .json(["name": "Ada"]) }
/// server.route("GET", "/broken") { _ in .fault(.reset) }
/// server.route("POST", "/upload", fault: .close(at: .requestBody(after: 4_096)))
/// server.failNextRequests(with: .stall(at: .requestStart))
/// let host = HostConfiguration(baseURL: server.baseURL)
/// ```
///
/// The server keeps connections open, responds to pipelined requests in order, reads bodies with a length or in chunks,
/// and supports `Expect: 100-continue`. For an invalid request, it responds with 400 and closes the connection; the
/// request is not in ``requests``. The server stops with ``stop()`` or when it is released.
///
/// You can use all members on any thread.
public final class MockServer: Sendable {
    /// The base URL: `http://127.0.0.1:` and the port, without a trailing slash.
    public let baseURL: URL

    let loop: ServerLoop
    let faults: Locked<RequestFaults>
    private let routes: Locked<MockRoutes>

    /// Starts a server.
    ///
    /// - Parameter conditions: The network in front of the server. Defaults to a network without limits. A client that
    ///   ends its side of the connection while a request or a response is on its way receives no response.
    /// - Throws: `NetworkError.Code.cannotConnect` if the system provides no socket, with a `POSIXError` as the
    ///   underlying error.
    public init(conditions: NetworkConditions = NetworkConditions()) throws {
        let routes = Locked(MockRoutes())
        let faults = Locked(RequestFaults())
        let script = ServerLoop.Script(
            answer: { request in
                let answer = routes.withLock { $0.answer(for: request) }
                return answer(request)
            },
            hasNext: { faults.withLock { !$0.isEmpty } },
            next: { faults.withLock { $0.next() } },
            keepsBody: { request in routes.withLock { $0.keepsBody(of: request) } },
            route: { request in routes.withLock { $0.fault(for: request) } }
        )
        let loop = try ServerLoop(script: script, conditions: conditions)
        loop.start()
        guard let url = URL(string: "http://127.0.0.1:\(loop.port)") else {
            loop.stop()
            throw NetworkError(code: .cannotConnect, message: "the mock server has no address")
        }
        self.routes = routes
        self.faults = faults
        self.loop = loop
        baseURL = url
    }

    deinit {
        stop()
    }

    /// Sets the response for a request. A request without a route receives a 404 that names the method and the path.
    ///
    /// - Parameters:
    ///   - method: The method, in any case. `*` matches every method. HEAD needs its own route, or `*`.
    ///   - path: The raw path of the request, including escapes. A `*` at its end matches any rest. If several routes
    ///     match, the latest one responds.
    ///   - answer: Called on a concurrent queue: at the same time for several connections, and in the order of the
    ///     requests for one connection.
    public func route(
        _ method: String,
        _ path: String,
        _ answer: @escaping @Sendable (MockRequest) -> MockResponse
    ) {
        addRoute(method, path, fault: nil, answer)
    }

    func addRoute(
        _ method: String,
        _ path: String,
        fault: MockResponse.Fault?,
        keepsBody: Bool = true,
        _ answer: @escaping @Sendable (MockRequest) -> MockResponse
    ) {
        // Release the replaced closure outside the lock, because its release can run user code.
        _ = routes.withLock { $0.add(method, path, fault: fault, keepsBody: keepsBody, answer) }
    }

    /// All received requests, in order. They are kept after ``stop()``.
    public var requests: [MockRequest] { loop.state.value.requests }

    /// Returns the received requests with a raw path, in order. The query is ignored.
    public func requests(to path: String) -> [MockRequest] {
        requests.filter { $0.path == path }
    }

    /// The number of open connections.
    public var connectionCount: Int { loop.state.value.connections.count }

    /// Waits until at least `count` requests have been received, with or without a response.
    ///
    /// - Parameters:
    ///   - count: The number of requests.
    ///   - timeout: The longest wait in seconds, so that a broken test ends. Defaults to 300.
    /// - Returns: `false` if the wait timed out or the task was cancelled.
    @discardableResult
    public func waitForRequests(_ count: Int, timeout: TimeInterval = 300) async -> Bool {
        await loop.state.wait(timeout: timeout) { $0.requests.count >= count }
    }

    /// Waits until exactly `count` connections are open. With 0, it waits until every client has closed its connection.
    ///
    /// - Parameters:
    ///   - count: The number of connections.
    ///   - timeout: The longest wait in seconds, so that a broken test ends. Defaults to 300.
    /// - Returns: `false` if the wait timed out or the task was cancelled.
    @discardableResult
    public func waitForConnections(_ count: Int, timeout: TimeInterval = 300) async -> Bool {
        await loop.state.wait(timeout: timeout) { $0.connections.count == count }
    }

    /// Closes the port and every connection, and releases the routes. When this method returns, no descriptor is left.
    /// A second call does nothing. The method blocks the thread until the server's loop finishes its current round,
    /// without raising the loop's priority.
    public func stop() {
        loop.stop()
        // The closures of the routes can hold the server.
        routes.exchange(MockRoutes())
    }

    /// Waits until the client of the only connection can see that the server has closed it, for tests. The client can
    /// still keep it open.
    func waitForClose(timeout: TimeInterval = 300) async -> Bool {
        await loop.state.wait(timeout: timeout) { $0.hasEnded || $0.connections.isEmpty }
    }

    /// The open descriptors, for tests.
    var descriptors: [Int32] { loop.descriptors }
}

extension MockServer {
    /// Makes every request of a route fail. ``requests`` contains only complete requests, so it omits those that broke
    /// off earlier.
    ///
    /// ```swift
    /// server.route("POST", "/upload", fault: .reset(at: .requestBody(after: 4_096)))
    /// ```
    ///
    /// - Parameters:
    ///   - method: See ``route(_:_:_:)``.
    ///   - path: See ``route(_:_:_:)``.
    ///   - fault: The fault. A fault in the response applies to an empty 200.
    public func route(_ method: String, _ path: String, fault: MockResponse.Fault) {
        addRoute(method, path, fault: fault) { _ in .fault(fault) }
    }

    /// Makes the next requests fail, on any route and any connection. A fault in the response replaces the route's
    /// fault.
    ///
    /// Requests are ordered by the arrival of their first bytes. A second call adds to the remaining faults.
    ///
    /// - Parameters:
    ///   - count: The number of requests. Defaults to 1.
    ///   - fault: The fault. With ``MockResponse/Fault/Place/requestStart``, no byte of the request is read.
    public func failNextRequests(_ count: Int = 1, with fault: MockResponse.Fault) {
        faults.withLock { $0.add(fault, count: count) }
    }

    /// The number of faults so far: requests that broke off, and responses with a fault that began.
    public var faultCount: Int { loop.state.value.faultCount }

    /// Waits until at least `count` faults have happened.
    ///
    /// - Parameters:
    ///   - count: The number of faults.
    ///   - timeout: The longest wait in seconds, so that a broken test ends. Defaults to 300.
    /// - Returns: `false` if the wait timed out or the task was cancelled.
    @discardableResult
    public func waitForFaults(_ count: Int, timeout: TimeInterval = 300) async -> Bool {
        await loop.state.wait(timeout: timeout) { $0.faultCount >= count }
    }

    /// Sends unrequested bytes on each connection that is waiting for a request, such as a second response, or the 408
    /// that a server sends before it closes an idle connection. The connections stay open.
    ///
    /// - Parameters:
    ///   - bytes: The bytes to send.
    ///   - timeout: The longest wait in seconds, so that a broken test ends. Defaults to 300.
    /// - Returns: `true` when the bytes have been passed to the system; `false` if the wait timed out or the task was
    ///   cancelled.
    @discardableResult
    public func sendUnasked(_ bytes: Data, timeout: TimeInterval = 300) async -> Bool {
        let count = loop.state.value.unaskedCount
        loop.post(.sendUnasked(bytes))
        return await loop.state.wait(timeout: timeout) { $0.unaskedCount > count }
    }

    /// Redirects a path and all paths below it to a new path: `/loop` leads to `/loop/1`, which leads to `/loop/2`, and
    /// so on endlessly. No URL occurs twice, so only a limit stops a client.
    ///
    /// - Parameters:
    ///   - path: The path, without a trailing slash.
    ///   - status: The status. Defaults to 302.
    public func routeEndlessRedirect(_ path: String, status: Int = 302) {
        let answer: @Sendable (MockRequest) -> MockResponse = { request in
            let hop = Int(request.path.dropFirst(path.utf8.count + 1)) ?? 0
            return .status(status, headers: ["Location": "\(path)/\(hop &+ 1)"])
        }
        route("*", path, answer)
        route("*", path + "/*", answer)
    }
}
