import EasyNetworkTesting
import Foundation

/// A slow local server that sometimes fails.
enum FlakyServer {
    private static let titles = [
        "On engines", "Notes by night", "A bug in a relay", "Structured thoughts", "Lost pages",
    ]
    private static let authors = ["Ada", "Charles", "Grace", "Edsger", "Nobody"]

    static func start() throws -> MockServer {
        let server = try MockServer()
        let counts = Counts()
        @Sendable func id(_ request: MockRequest) -> Int { Int(request.path.split(separator: "/").last ?? "") ?? 0 }
        /// Returns true for the first of every three requests to a path.
        @Sendable func fails(_ request: MockRequest) -> Bool { counts.increment(request.path) % 3 == 1 }
        // The first connection is lost, so the list is requested twice.
        server.failNextRequests(with: .reset(at: .requestStart))
        server.route("GET", "/posts") { _ in
            .json(
                titles.enumerated().map {
                    ["id": $0 + 1, "title": $1, "picture": "pictures/\($0 + 1)"] as [String: Any]
                }
            )
        }
        server.route("GET", "/posts/*") { request in
            let id = id(request)
            guard id < titles.count else { return .json(["error": "this post is gone"], status: 404) }
            let likes = 10 * id + counts["likes of \(id)"]
            var response = MockResponse.json(["author": authors[id - 1], "likes": likes])
            response.delay = 0.3
            if id == 2, fails(request) { response.fault = .truncate(after: 10) }
            return response
        }
        server.route("GET", "/pictures/*") { request in
            if id(request) == 3, fails(request) { return .status(503) }
            return MockResponse(body: .data(Data((0..<200).map { UInt8($0 * id(request) % 8) })), bytesPerSecond: 400)
        }
        server.route("POST", "/likes/*") { request in
            let id = id(request)
            if id == titles.count { return .json(["error": "this post is gone"], status: 410) }
            if id == 1, fails(request) { return .status(503) }
            counts.increment("likes of \(id)")
            return .status(204)
        }
        return server
    }
}

/// Counts by name. Routes use them on several threads.
private final class Counts: @unchecked Sendable {
    // Sendable because the lock guards `counts`.
    private let lock = NSLock()
    private var counts: [String: Int] = [:]

    subscript(name: String) -> Int { lock.withLock { counts[name, default: 0] } }

    /// Adds one and returns the new count.
    @discardableResult
    func increment(_ name: String) -> Int {
        lock.withLock {
            counts[name, default: 0] += 1
            return counts[name, default: 0]
        }
    }
}
