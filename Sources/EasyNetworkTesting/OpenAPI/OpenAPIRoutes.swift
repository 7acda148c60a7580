import EasyNetwork
import EasyNetworkOpenAPI
import Foundation

extension MockServer {
    /// Responds to the requests of an OpenAPI document with its examples, so that you can try an app before its server
    /// exists.
    ///
    /// ```swift
    /// try server.routes(openAPI: URL(fileURLWithPath: "openapi.json"))
    /// let host = HostConfiguration(baseURL: server.baseURL)
    /// ```
    ///
    /// The response has the document's lowest success status, and the first example for it. If there is no example, a
    /// value that fits the schema is created, which is always the same. If each value would be endless or too large,
    /// the response is 500. A request can ask for another response with `Prefer: code=404` or `Prefer: example=empty`
    /// (RFC 7240). A ``route(_:_:_:)`` that is set later replaces the document's responses for its path.
    ///
    /// A request that violates the document receives a response whose body is `{"error": …}`, the
    /// `NetworkError.serverMessage`. The status is 404 for an unknown path, 405 for an unknown method, and 415 for an
    /// unknown body type. It is 400 for a parameter that is missing, unknown or of the wrong type, and for a body that
    /// doesn't match the schema; the message names the place. Credentials are not checked. The path of the document's
    /// server, such as `/v1`, is optional in requests.
    ///
    /// - Parameter file: The OpenAPI 3.0 or 3.1 document in JSON, which is read immediately.
    /// - Throws: `NetworkError.Code.cannotParseResponse` if the file cannot be read or is not an OpenAPI document. The
    ///   error names the line and column.
    public func routes(openAPI file: URL) throws(NetworkError) {
        let routes = try OpenAPIRoutes(file)
        route("*", "/*") { request in routes.answer(to: request) }
    }
}

extension InMemoryTransport {
    /// Responds to the requests of an OpenAPI document with its examples; see ``MockServer/routes(openAPI:)``.
    ///
    /// - Parameter file: The OpenAPI 3.0 or 3.1 document in JSON, which is read immediately.
    /// - Throws: The errors of ``MockServer/routes(openAPI:)``.
    public func routes(openAPI file: URL) throws(NetworkError) {
        let routes = try OpenAPIRoutes(file)
        route("*", "/*") { request in routes.answer(to: request) }
    }
}

/// The responses of a document.
struct OpenAPIRoutes: Sendable {
    private struct Route: Sendable {
        let operation: OpenAPIOperation
        let path: PathTemplate
    }

    private let document: OpenAPIDocument
    private let routes: [Route]
    /// The operations that cannot be read, by method and path.
    private let broken: [(method: String, path: PathTemplate, message: String)]
    private let basePaths: [String]

    init(_ file: URL) throws(NetworkError) {
        let data: Data
        do {
            data = try Data(contentsOf: file)
        } catch {
            let message = "the document \(file.path) cannot be read"
            throw NetworkError(code: .cannotParseResponse, message: message, underlying: error)
        }
        do throws(InputError) {
            self.init(try OpenAPIDocument(data))
        } catch {
            let place = error.place(in: data)
            let message = "\(file.path), line \(place.line), column \(place.column): \(error.message)"
            throw NetworkError(code: .cannotParseResponse, message: message)
        }
    }

    init(_ document: OpenAPIDocument) {
        self.document = document
        basePaths = document.basePaths.filter { !$0.isEmpty }
        var routes: [Route] = []
        var broken: [(method: String, path: PathTemplate, error: InputError)] = []
        for (method, path, result) in document.operations {
            switch result {
            case .success(let operation): routes.append(Route(operation: operation, path: PathTemplate(path)))
            case .failure(let error): broken.append((method, PathTemplate(path), error))
            }
        }
        self.routes = routes
        self.broken = zip(broken, InputError.places(of: broken.map(\.error), in: document.data)).map { item, place in
            (item.method, item.path, "line \(place.line), column \(place.column): \(item.error.message)")
        }
    }

    func answer(to request: MockRequest) -> MockResponse {
        var paths = [request.path]
        for base in basePaths where request.path.hasPrefix(base + "/") {
            paths.append(String(request.path.dropFirst(base.count)))
        }
        for path in paths {
            var found = routes.compactMap { route in route.path.values(in: path).map { (route, $0) } }
            if found.isEmpty { continue }
            // `/users/me` takes precedence over `/users/{id}`.
            let best = found.map(\.0.path.literalCount).max()
            found.removeAll { $0.0.path.literalCount != best }
            guard let (route, values) = found.first(where: { $0.0.operation.method == request.method }) else {
                let allowed = found.map(\.0.operation.method).joined(separator: ", ")
                let message = "the document has no \(request.method) \(found[0].0.operation.path), only \(allowed)"
                var answer = MockResponse.error(message, status: 405)
                answer.headers["Allow"] = allowed
                return answer
            }
            return answer(to: request, route.operation, values)
        }
        if let broken = broken.first(where: { item in
            item.method == request.method && paths.contains { item.path.values(in: $0) != nil }
        }) {
            return .error("the document has an error in \(broken.message)", status: 500)
        }
        return .error("the document has no path like \(request.path)", status: 404)
    }

    private func answer(
        to request: MockRequest,
        _ operation: OpenAPIOperation,
        _ values: [String: String]
    ) -> MockResponse {
        let check = RequestCheck(document: document, operation: operation, request: request, pathValues: values)
        if let (status, message) = check.complaint {
            return .error("\(operation.method) \(operation.path): \(message)", status: status)
        }
        let wishes = (request.headers["Prefer"] ?? "").split(whereSeparator: { ",;".contains($0) }).reduce(
            into: [String: String]()
        ) { wishes, word in
            let parts = word.split(separator: "=", maxSplits: 1).map { $0.trimmingCharacters(in: .whitespaces) }
            if parts.count == 2 { wishes[parts[0].lowercased()] = parts[1].trimmingCharacters(in: ["\""]) }
        }
        return response(operation, wishes)
    }

    private func response(_ operation: OpenAPIOperation, _ wishes: [String: String]) -> MockResponse {
        let responses = operation.responses.sorted { $0.status < $1.status }
        let chosen: (status: String, content: OpenAPIContent)?
        if let code = wishes["code"] {
            let family = code.prefix(1) + "XX"
            chosen =
                responses.first { $0.status == code } ?? responses.first { $0.status == family }
                ?? responses.first { $0.status == "default" }
            if chosen == nil {
                let known = responses.map(\.status).joined(separator: ", ")
                return .error(
                    "\(operation.method) \(operation.path) has no response \(code), only \(known)",
                    status: 400
                )
            }
        } else {
            chosen =
                responses.first { $0.status.hasPrefix("2") } ?? responses.first { $0.status == "default" }
                ?? responses.first
        }
        guard let chosen else { return .status(200) }
        let status =
            wishes["code"].flatMap(Int.init) ?? Int(chosen.status) ?? Int(chosen.status.prefix(1)).map { $0 * 100 }
            ?? 200
        let media = chosen.content.json ?? chosen.content.media.first
        guard let media, (200...999).contains(status) else { return .status(min(max(status, 200), 999)) }
        let maker = ExampleMaker(document: document)
        let value = maker.example(of: media, named: wishes["example"])
        if value == nil, media.schema != nil {
            let reason = "the document has no example for \(chosen.status), and none of bounded size can be made"
            return .error("\(operation.method) \(operation.path): \(reason)", status: 500)
        }
        let type = media.type.contains("*") ? "application/json" : media.type
        let headers = HTTPHeaders(["Content-Type": type])
        // An example of another type than JSON is sent as a plain string.
        if !media.isJSON, let text = value?.string { return .data(Data(text.utf8), status: status, headers: headers) }
        return .data(Data((value?.text ?? "").utf8), status: status, headers: headers)
    }
}

/// A path with parameter names in braces.
struct PathTemplate: Sendable {
    private let segments: [[TemplatePart]]
    /// The number of bytes that are not part of a parameter.
    let literalCount: Int

    init(_ path: String) {
        segments = path.split(separator: "/", omittingEmptySubsequences: false).map(TemplatePart.parts)
        literalCount = segments.joined().reduce(0) { count, part in
            if case .literal(let text) = part { count + text.utf8.count } else { count }
        }
    }

    /// Returns the decoded values of the parameters in a raw path; `nil` if the path does not match.
    func values(in path: String) -> [String: String]? {
        let texts = path.split(separator: "/", omittingEmptySubsequences: false)
        guard texts.count == segments.count else { return nil }
        var values: [String: String] = [:]
        for (parts, text) in zip(segments, texts) {
            var rest = text
            for (index, part) in parts.enumerated() {
                switch part {
                case .literal(let literal):
                    guard rest.hasPrefix(literal) || rest.hasPrefix(PathTemplate.escaped(literal)) else { return nil }
                    rest = rest.dropFirst(rest.hasPrefix(literal) ? literal.count : PathTemplate.escaped(literal).count)
                case .parameter(let name):
                    var end = rest.endIndex
                    if index + 1 < parts.count, case .literal(let next) = parts[index + 1] {
                        guard let range = rest.range(of: next) else { return nil }
                        end = range.lowerBound
                    }
                    guard end > rest.startIndex else { return nil }
                    let value = String(rest[..<end])
                    values[name] = value.removingPercentEncoding ?? value
                    rest = rest[end...]
                }
            }
            guard rest.isEmpty else { return nil }
        }
        return values
    }

    private static func escaped(_ text: String) -> String {
        text.addingPercentEncoding(withAllowedCharacters: .urlPathAllowed) ?? text
    }
}
