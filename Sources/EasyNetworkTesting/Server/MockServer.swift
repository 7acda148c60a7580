import EasyNetwork
import Foundation

/// A real HTTP/1.1 server on 127.0.0.1, on a free port, that answers as scripted.
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
/// It keeps connections open, answers pipelined requests in order, reads bodies with a length or in chunks, and answers
/// `Expect: 100-continue`. What is no proper request gets a 400 and the connection is closed; it is not among
/// ``requests``. The server stops with ``stop()``, or when it is let go of.
///
/// All of it may be used from any thread.
public final class MockServer: Sendable {
    /// `http://127.0.0.1:` and the port, without a slash at its end.
    public let baseURL: URL

    let loop: ServerLoop
    let faults: Locked<RequestFaults>
    private let routes: Locked<MockRoutes>

    /// Starts a server.
    ///
    /// - Throws: `NetworkError.Code.cannotConnect` when the system gives no socket, with a `POSIXError` underneath.
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

    /// Sets what is answered to a request. Without a route the answer is a 404 that names what was asked for.
    ///
    /// - Parameters:
    ///   - method: in any case; `*` stands for every method. HEAD needs a route of its own, or `*`.
    ///   - path: compared with the raw path of the request, escapes and all; a `*` at its end stands for any rest. Of
    ///     several routes that match, the latest counts.
    ///   - answer: called on a concurrent queue, for several connections at once, in the order of the requests for one.
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
        // What the route replaces is handed out of the lock, as letting go of a closure may run anything.
        _ = routes.withLock { $0.add(method, path, fault: fault, answer) }
    }

    /// Everything received, in order, from the start; also after ``stop()``.
    public var requests: [MockRequest] { loop.state.value.requests }

    /// What was received for one raw path, query not counted, in order.
    public func requests(to path: String) -> [MockRequest] {
        requests.filter { $0.path == path }
    }

    /// How many connections are open now.
    public var connectionCount: Int { loop.state.value.connections.count }

    /// Waits until at least `count` requests have been received, answered or not.
    ///
    /// - Parameters:
    ///   - timeout: seconds after which it returns regardless, so that a broken test ends. Default 60.
    /// - Returns: false when the time ran out or the task was cancelled.
    @discardableResult
    public func waitForRequests(_ count: Int, timeout: TimeInterval = 60) async -> Bool {
        await loop.state.wait(timeout: timeout) { $0.requests.count >= count }
    }

    /// Waits until exactly `count` connections are open: with 0, until every client has closed.
    ///
    /// - Parameters:
    ///   - timeout: seconds after which it returns regardless, so that a broken test ends. Default 60.
    /// - Returns: false when the time ran out or the task was cancelled.
    @discardableResult
    public func waitForConnections(_ count: Int, timeout: TimeInterval = 60) async -> Bool {
        await loop.state.wait(timeout: timeout) { $0.connections.count == count }
    }

    /// Closes the port and every connection, and lets go of the routes. When it returns no descriptor is left; stopping
    /// again does nothing.
    public func stop() {
        loop.stop()
        // Routes that hold the server would keep it alive.
        routes.exchange(MockRoutes())
    }

    /// For a test that they are closed.
    var descriptors: [Int32] { loop.descriptors }
}
