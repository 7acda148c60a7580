import EasyNetwork
import Foundation

/// A real HTTP/1.1 server on 127.0.0.1, on a free port, with scripted answers.
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
/// The server keeps connections open, answers pipelined requests in order, reads bodies with a length or in chunks, and
/// answers `Expect: 100-continue`. An invalid request gets a 400, its connection is closed, and it is not in
/// ``requests``. The server stops with ``stop()`` or when it is released.
///
/// All members may be used on any thread.
public final class MockServer: Sendable {
    /// `http://127.0.0.1:` and the port, without a slash at its end.
    public let baseURL: URL

    let loop: ServerLoop
    let faults: Locked<RequestFaults>
    private let routes: Locked<MockRoutes>

    /// Starts a server.
    ///
    /// - Throws: `NetworkError.Code.cannotConnect` when the system gives no socket, with a `POSIXError` as its
    ///   underlying error.
    public init() throws {
        let routes = Locked(MockRoutes())
        let faults = Locked(RequestFaults())
        let script = ServerLoop.Script(
            answer: { request in
                let answer = routes.withLock { $0.answer(for: request) }
                return answer(request)
            },
            hasNext: { faults.withLock { !$0.isEmpty } },
            next: { faults.withLock { $0.next() } },
            route: { request in routes.withLock { $0.fault(for: request) } }
        )
        let loop = try ServerLoop(script: script)
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

    /// Sets the answer to a request. Without a route the answer is a 404 that names method and path.
    ///
    /// - Parameters:
    ///   - method: in any case; `*` matches every method. HEAD needs its own route, or `*`.
    ///   - path: compared with the raw path of the request, escapes included; a `*` at its end matches any rest. The
    ///     latest of several matching routes answers.
    ///   - answer: called on a concurrent queue, for several connections at once, for one connection in the order of
    ///     its requests.
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
        _ answer: @escaping @Sendable (MockRequest) -> MockResponse
    ) {
        // The replaced closure is released outside of the lock, because its release may run user code.
        _ = routes.withLock { $0.add(method, path, fault: fault, answer) }
    }

    /// All received requests in order, also after ``stop()``.
    public var requests: [MockRequest] { loop.state.value.requests }

    /// The received requests to a raw path, in order; the query does not count.
    public func requests(to path: String) -> [MockRequest] {
        requests.filter { $0.path == path }
    }

    /// The number of open connections.
    public var connectionCount: Int { loop.state.value.connections.count }

    /// Waits until at least `count` requests have been received, answered or not.
    ///
    /// - Parameters:
    ///   - count: the number of requests.
    ///   - timeout: the longest wait in seconds, so that a broken test ends. Default 300.
    /// - Returns: false when the time ran out or the task was cancelled.
    @discardableResult
    public func waitForRequests(_ count: Int, timeout: TimeInterval = 300) async -> Bool {
        await loop.state.wait(timeout: timeout) { $0.requests.count >= count }
    }

    /// Waits until exactly `count` connections are open: with 0, until every client has closed.
    ///
    /// - Parameters:
    ///   - count: the number of connections.
    ///   - timeout: the longest wait in seconds, so that a broken test ends. Default 300.
    /// - Returns: false when the time ran out or the task was cancelled.
    @discardableResult
    public func waitForConnections(_ count: Int, timeout: TimeInterval = 300) async -> Bool {
        await loop.state.wait(timeout: timeout) { $0.connections.count == count }
    }

    /// Closes the port and every connection, and releases the routes. When it returns, no descriptor is left. A second
    /// call does nothing. It blocks the thread for a round of the server's, and lends that no priority.
    public func stop() {
        loop.stop()
        // Routes may hold the server.
        routes.exchange(MockRoutes())
    }

    /// Waits until the client of the only connection can see that the server has closed it, for tests. The client may
    /// keep it open.
    func waitForClose(timeout: TimeInterval = 300) async -> Bool {
        await loop.state.wait(timeout: timeout) { $0.hasEnded || $0.connections.isEmpty }
    }

    /// The open descriptors, for tests.
    var descriptors: [Int32] { loop.descriptors }
}

extension MockServer {
    /// Makes every request of a route fail. ``requests`` holds complete requests only, and so none that broke off
    /// before its answer.
    ///
    /// ```swift
    /// server.route("POST", "/upload", fault: .reset(at: .requestBody(after: 4_096)))
    /// ```
    ///
    /// - Parameters:
    ///   - method: see ``route(_:_:_:)``.
    ///   - path: see ``route(_:_:_:)``.
    ///   - fault: a fault of an answer applies to an empty 200.
    public func route(_ method: String, _ path: String, fault: MockResponse.Fault) {
        addRoute(method, path, fault: fault) { _ in .fault(fault) }
    }

    /// Makes the next requests fail, on any route and any connection. A fault of the answer replaces that of the route.
    ///
    /// The order of requests is that of their first bytes. A second call adds to the faults that are left.
    ///
    /// - Parameters:
    ///   - count: the number of requests; default 1.
    ///   - fault: with ``MockResponse/Fault/Place/requestStart`` no byte of the request is read.
    public func failNextRequests(_ count: Int = 1, with fault: MockResponse.Fault) {
        faults.withLock { $0.add(fault, count: count) }
    }

    /// The number of faults so far: requests that broke off, and answers with a fault that began.
    public var faultCount: Int { loop.state.value.faultCount }

    /// Waits until at least `count` faults have happened.
    ///
    /// - Parameters:
    ///   - count: the number of faults.
    ///   - timeout: the longest wait in seconds, so that a broken test ends. Default 300.
    /// - Returns: false when the time ran out or the task was cancelled.
    @discardableResult
    public func waitForFaults(_ count: Int, timeout: TimeInterval = 300) async -> Bool {
        await loop.state.wait(timeout: timeout) { $0.faultCount >= count }
    }

    /// Sends unrequested bytes on each connection that waits for a request, such as the 408 of a server that closes an
    /// idle connection, or a second answer. The connections stay open.
    ///
    /// - Parameters:
    ///   - bytes: the bytes to send.
    ///   - timeout: the longest wait in seconds, so that a broken test ends. Default 300.
    /// - Returns: when the bytes have been handed to the system; false when the time ran out or the task was cancelled.
    @discardableResult
    public func sendUnasked(_ bytes: Data, timeout: TimeInterval = 300) async -> Bool {
        let count = loop.state.value.unaskedCount
        loop.post(.sendUnasked(bytes))
        return await loop.state.wait(timeout: timeout) { $0.unaskedCount > count }
    }

    /// Answers a path and all paths below it with a redirect to a new path: `/loop` leads to `/loop/1`, that to
    /// `/loop/2`, and so on without end. No URL comes twice, so that only a limit stops a client.
    ///
    /// - Parameters:
    ///   - path: without a slash at its end.
    ///   - status: default 302.
    public func routeEndlessRedirect(_ path: String, status: Int = 302) {
        let answer: @Sendable (MockRequest) -> MockResponse = { request in
            let hop = Int(request.path.dropFirst(path.utf8.count + 1)) ?? 0
            return .status(status, headers: ["Location": "\(path)/\(hop &+ 1)"])
        }
        route("*", path, answer)
        route("*", path + "/*", answer)
    }
}
