/// Which closure answers which request: the table behind ``MockServer`` and ``InMemoryTransport``.
///
/// A path matches the raw path of the request byte for byte; one that ends in `*` matches every path that begins with
/// what stands before it. The method `*` matches every method. Of several that match, the latest registered answers.
struct MockRoutes: Sendable {
    typealias Answer = @Sendable (MockRequest) -> MockResponse

    private struct Key: Hashable {
        var method: String
        var path: String
    }

    private struct Route {
        /// Counts registrations: the higher wins.
        var order: Int
        /// What a request meets, perhaps before there is an answer to give.
        var fault: MockResponse.Fault?
        var answer: Answer
    }

    /// Routes for one path and routes for a beginning of paths apart, so that a thousand of the former cost no more
    /// than one. Registering the same again replaces, so a test may do it as often as it likes.
    private var exact: [Key: Route] = [:]
    private var prefixes: [Key: Route] = [:]
    private var count = 0

    /// - Returns: the closure that was there before for the same.
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

    /// The closure for a request; one that answers 404 when there is no route.
    func answer(for request: MockRequest) -> Answer {
        if let best = route(for: request) { return best.answer }
        return { request in MockResponse.error("no route for \(request.method) \(request.path)", status: 404) }
    }

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
            // Bytes, as `hasPrefix` of strings would see equal what differs only in its Unicode form.
            if request.path.utf8.starts(with: key.path.utf8) { consider(route) }
        }
        return best
    }
}
