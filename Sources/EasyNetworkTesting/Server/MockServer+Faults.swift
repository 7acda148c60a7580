import EasyNetwork
import Foundation

extension MockServer {
    /// Makes every request of a route meet a fault. In ``requests`` is only what was received whole, so none that was
    /// broken off before its answer's place came.
    ///
    /// ```swift
    /// server.route("POST", "/upload", fault: .reset(at: .requestBody(after: 4_096)))
    /// ```
    ///
    /// - Parameters:
    ///   - method: as for ``route(_:_:_:)``.
    ///   - path: as for ``route(_:_:_:)``.
    ///   - fault: one of the answer is that of an empty 200.
    public func route(_ method: String, _ path: String, fault: MockResponse.Fault) {
        addRoute(method, path, fault: fault) { _ in .fault(fault) }
    }

    /// Makes the next requests meet a fault, whatever they ask for and whichever connection they come on. A fault of the
    /// answer comes in place of that which the route may give.
    ///
    /// Which request is the next is told by its first byte. Calling it again adds to those that wait.
    ///
    /// - Parameters:
    ///   - count: how many requests; default 1.
    ///   - fault: with ``MockResponse/Fault/Place/requestStart`` not a byte of the request is read.
    public func failNextRequests(_ count: Int = 1, with fault: MockResponse.Fault) {
        faults.withLock { $0.add(fault, count: count) }
    }

    /// How many faults exchanges have met so far: when a request was broken off, or an answer with a fault began.
    public var faultCount: Int { loop.state.value.faultCount }

    /// Waits until at least `count` faults have been met.
    ///
    /// - Parameters:
    ///   - timeout: seconds after which it returns regardless, so that a broken test ends. Default 60.
    /// - Returns: false when the time ran out or the task was cancelled.
    @discardableResult
    public func waitForFaults(_ count: Int, timeout: TimeInterval = 60) async -> Bool {
        await loop.state.wait(timeout: timeout) { $0.faultCount >= count }
    }

    /// Sends bytes that nobody asked for on each connection that waits for a request: a 408, as a server does that closes
    /// one for idleness, or an answer too many. The connections stay open.
    ///
    /// - Parameters:
    ///   - timeout: seconds after which it returns regardless, so that a broken test ends. Default 60.
    /// - Returns: when the bytes have been handed to the system; false when the time ran out or the task was cancelled.
    @discardableResult
    public func sendUnasked(_ bytes: Data, timeout: TimeInterval = 60) async -> Bool {
        let count = loop.state.value.unaskedCount
        loop.post(.sendUnasked(bytes))
        return await loop.state.wait(timeout: timeout) { $0.unaskedCount > count }
    }

    /// Answers a path, and what begins with it and a `/`, with a redirect to yet another URL that begins like that:
    /// `/loop` leads to `/loop/1`, that to `/loop/2`, and so on without end. No URL comes twice, so that only counting
    /// stops a client.
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
