/// The routes of ``MockServer`` and ``InMemoryTransport``.
///
/// A path matches the raw path of the request byte for byte. A path that ends with `*` matches every path that begins
/// with the part before it. The method `*` matches every method. If several routes match, the latest one responds.
struct MockRoutes: Sendable {
    typealias Answer = @Sendable (MockRequest) -> MockResponse

    private struct Key: Hashable {
        var method: String
        var path: String
    }

    private struct Route {
        /// The number of the registration. The highest number wins.
        var order: Int
        /// The fault of each request, which can occur before the response.
        var fault: MockResponse.Fault?
        /// Whether the bodies of its requests are kept after the response.
        var keepsBody: Bool
        var answer: Answer
    }

    /// Routes for exact paths are stored apart from routes for prefixes, so that a thousand of them cost no more than
    /// one.
    private var exact: [Key: Route] = [:]
    private var prefixes: [Key: Route] = [:]
    private var count = 0

    /// - Returns: The closure of the route that is replaced.
    @discardableResult
    mutating func add(
        _ method: String,
        _ path: String,
        fault: MockResponse.Fault? = nil,
        keepsBody: Bool = true,
        _ answer: @escaping Answer
    ) -> Answer? {
        count += 1
        let route = Route(order: count, fault: fault, keepsBody: keepsBody, answer: answer)
        let method = method.uppercased()
        return path.hasSuffix("*")
            ? prefixes.updateValue(route, forKey: Key(method: method, path: String(path.dropLast())))?.answer
            : exact.updateValue(route, forKey: Key(method: method, path: path))?.answer
    }

    /// Returns the closure for a request. Without a route, it responds with 404.
    func answer(for request: MockRequest) -> Answer {
        if let best = route(for: request) { return best.answer }
        return { request in MockResponse.error("no route for \(request.method) \(request.path)", status: 404) }
    }

    func hasRoute(for request: MockRequest) -> Bool { route(for: request) != nil }

    func fault(for request: MockRequest) -> MockResponse.Fault? {
        route(for: request)?.fault
    }

    func keepsBody(of request: MockRequest) -> Bool { route(for: request)?.keepsBody ?? true }

    private func route(for request: MockRequest) -> Route? {
        var best: Route?
        func consider(_ route: Route?) {
            if let route, route.order > best?.order ?? 0 { best = route }
        }
        for method in [request.method, "*"] {
            consider(exact[Key(method: method, path: request.path)])
        }
        for (key, route) in prefixes where key.method == request.method || key.method == "*" {
            // Compare bytes, because `hasPrefix` ignores differences in the Unicode form.
            if request.path.utf8.starts(with: key.path.utf8) { consider(route) }
        }
        return best
    }
}

/// A queue of faults for the next requests.
struct RequestFaults: Sendable {
    private struct Entry: Sendable {
        var fault: MockResponse.Fault
        var left: Int
    }

    private var entries: [Entry] = []

    var isEmpty: Bool { entries.isEmpty }

    mutating func add(_ fault: MockResponse.Fault, count: Int) {
        if count > 0 { entries.append(Entry(fault: fault, left: count)) }
    }

    /// Removes and returns the fault for the request that begins now.
    mutating func next() -> MockResponse.Fault? {
        guard let fault = entries.first?.fault else { return nil }
        entries[0].left -= 1
        if entries[0].left == 0 { entries.removeFirst() }
        return fault
    }
}
