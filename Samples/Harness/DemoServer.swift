import EasyNetwork
import EasyNetworkTesting
import Foundation

/// The server that is used without `--base`. It has a route for each API in `APIs.swift`.
enum DemoServer {
    private static let users = ["ada", "grace", "edsger"]

    static func start(conditions: NetworkConditions = NetworkConditions()) throws -> MockServer {
        let server = try MockServer(conditions: conditions)
        server.route("GET", "/users/*") { request in
            let id = Int(request.path.dropFirst("/users/".count)) ?? 0
            guard users.indices.contains(id - 1) else { return .json(["error": "there is no user \(id)"], status: 404) }
            return .json(["id": id, "name": users[id - 1]])
        }
        server.route("POST", "/sign-in") { request in
            let name = (request.json() as? [String: Any])?["name"] as? String ?? ""
            guard let index = users.firstIndex(of: name) else {
                return .json(["error": "there is no user \(name)"], status: 401)
            }
            return .json(["id": index + 1, "name": name], headers: ["Set-Cookie": "user=\(index + 1); HttpOnly"])
        }
        server.route("GET", "/me") { request in
            guard let cookie = request.headers["Cookie"], let id = Int(cookie.dropFirst("user=".count)),
                users.indices.contains(id - 1)
            else { return .json(["error": "sign in first"], status: 401) }
            return .json(["id": id, "name": users[id - 1]])
        }
        server.route("GET", "/articles") { request in
            let page = item("page", of: request).flatMap(Int.init) ?? 1
            guard (1...3).contains(page) else { return .json(["error": "there is no page \(page)"], status: 404) }
            let titles = (1...10).map { "Article \((page - 1) * 10 + $0)" }
            return .json(["titles": titles, "next": page < 3 ? page + 1 : NSNull()])
        }
        server.route("GET", "/slow") { request in
            var response = MockResponse.status(204)
            response.delay = item("seconds", of: request).flatMap(Double.init) ?? 2
            return response
        }
        server.route("GET", "/flaky") { request in
            isFirst(request, of: server) ? .json(["error": "try again"], status: 503) : .status(204)
        }
        server.route("GET", "/down") { request in
            let count = item("count", of: request).flatMap(Int.init) ?? 0
            return .status(server.requests(to: "/down").count > count ? 204 : 503)
        }
        server.route("POST", "/messages") { request in
            let message = request.json() as? [String: Any]
            guard let number = message?["number"] as? Int, let text = message?["text"] as? String, !text.isEmpty else {
                return .json(["error": "a message needs a non-empty text"], status: 422)
            }
            if number % 4 == 0, isFirst(request, of: server) { return .status(503, headers: ["Retry-After": "0"]) }
            return .status(201)
        }
        server.route("POST", "/bookings/*") { request in
            request.path.hasSuffix("/refused") ? .json(["error": "there is no room"], status: 422) : .status(201)
        }
        server.route("DELETE", "/bookings/*") { _ in .status(204) }
        server.route("POST", "/contact") { request in .text(String(decoding: request.body, as: UTF8.self)) }
        server.route("GET", "/report") { request in
            report(of: item("size", of: request).flatMap(Int.init) ?? 0, for: request.headers["Range"])
        }
        server.routeUploads("/tus", .tus)
        server.routeUploads("/files", .http)
        server.route("GET", "/pictures/*") { request in .text("picture \(request.path.dropFirst("/pictures/".count))") }
        return server
    }

    /// Returns whether this is the first attempt of a request. All attempts have the same idempotency key.
    private static func isFirst(_ request: MockRequest, of server: MockServer) -> Bool {
        let key = request.headers["Idempotency-Key"]
        return server.requests(to: request.path).count { $0.headers["Idempotency-Key"] == key } <= 1
    }

    /// The report, or the rest of it for a range request. A download gives its slot to urgent jobs only if it can be
    /// resumed.
    private static func report(of size: Int, for range: String?) -> MockResponse {
        var headers: HTTPHeaders = ["ETag": "\"\(size)\"", "Accept-Ranges": "bytes"]
        let first = range.flatMap { Int($0.dropFirst("bytes=".count).dropLast()) } ?? 0
        let isRest = first > 0 && first < size
        if isRest { headers["Content-Range"] = "bytes \(first)-\(size - 1)/\(size)" }
        let body = MockResponse.Body.repeating(UInt8(ascii: "."), count: isRest ? size - first : size)
        return MockResponse(statusCode: isRest ? 206 : 200, headers: headers, body: body)
    }

    private static func item(_ name: String, of request: MockRequest) -> String? {
        request.queryItems.first { $0.name == name }?.value
    }
}
