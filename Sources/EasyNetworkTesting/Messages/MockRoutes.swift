/// The table of answers behind ``MockServer`` and ``InMemoryTransport``.
///
/// A path matches the raw path of the request byte for byte; a path that ends in `*` matches every path with the text
/// before it at its beginning. The method `*` matches every method. The latest of several matching routes answers.
struct MockRoutes: Sendable {
    typealias Answer = @Sendable (MockRequest) -> MockResponse

    private struct Key: Hashable {
        var method: String
        var path: String
    }

    private struct Route {
        /// The number of the registration; the highest wins.
        var order: Int
        /// The fault of each request, which may come before the answer.
        var fault: MockResponse.Fault?
        var answer: Answer
    }

    /// Routes for one path are apart from routes for a beginning of paths, so that a thousand of them cost no more than
    /// one.
    private var exact: [Key: Route] = [:]
    private var prefixes: [Key: Route] = [:]
    private var count = 0

    /// - Returns: the closure that the route replaces.
    @discardableResult
    mutating func add(
        _ method: String,
        _ path: String,
        fault: MockResponse.Fault? = nil,
        _ answer: @escaping Answer
    ) -> Answer? {
        count += 1
        let route = Route(order: count, fault: fault, answer: answer)
        let method = method.uppercased()
        return path.hasSuffix("*")
            ? prefixes.updateValue(route, forKey: Key(method: method, path: String(path.dropLast())))?.answer
            : exact.updateValue(route, forKey: Key(method: method, path: path))?.answer
    }

    /// The closure for a request; without a route it answers 404.
    func answer(for request: MockRequest) -> Answer {
        if let best = route(for: request) { return best.answer }
        return { request in MockResponse.error("no route for \(request.method) \(request.path)", status: 404) }
    }

    func hasRoute(for request: MockRequest) -> Bool { route(for: request) != nil }

    func fault(for request: MockRequest) -> MockResponse.Fault? {
        route(for: request)?.fault
    }

    private func route(for request: MockRequest) -> Route? {
        var best: Route?
        func consider(_ route: Route?) {
            if let route, route.order > best?.order ?? 0 { best = route }
        }
        for method in [request.method, "*"] {
            consider(exact[Key(method: method, path: request.path)])
        }
        for (key, route) in prefixes where key.method == request.method || key.method == "*" {
            // By bytes, because `hasPrefix` ignores differences in the Unicode form.
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

    /// Removes the fault for the request that begins now.
    mutating func next() -> MockResponse.Fault? {
        guard let fault = entries.first?.fault else { return nil }
        entries[0].left -= 1
        if entries[0].left == 0 { entries.removeFirst() }
        return fault
    }
}
