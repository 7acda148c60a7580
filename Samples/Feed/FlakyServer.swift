import EasyNetworkTesting
import Foundation

/// A slow server on this machine that fails now and then.
enum FlakyServer {
    private static let titles = [
        "On engines", "Notes by night", "A bug in a relay", "Structured thoughts", "Lost pages",
    ]
    private static let authors = ["Ada", "Charles", "Grace", "Edsger", "Nobody"]

    static func start() throws -> MockServer {
        let server = try MockServer()
        @Sendable func isFirst(_ request: MockRequest) -> Bool { server.requests(to: request.path).count == 1 }
        @Sendable func id(_ request: MockRequest) -> Int { Int(request.path.split(separator: "/").last ?? "") ?? 0 }
        // The list is asked for twice, as the first connection is lost.
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
            var answer = MockResponse.json(["author": authors[id - 1], "likes": 10 * id])
            answer.delay = 0.3
            // The answer about the second post breaks off, once.
            if id == 2, isFirst(request) { answer.fault = .truncate(after: 10) }
            return answer
        }
        server.route("GET", "/pictures/*") { request in
            if id(request) == 3, isFirst(request) { return .status(503) }
            return MockResponse(body: .data(Data((0..<200).map { UInt8($0 * id(request) % 8) })), bytesPerSecond: 400)
        }
        server.route("POST", "/likes/*") { request in
            if id(request) == titles.count { return .json(["error": "this post is gone"], status: 410) }
            return .status(isFirst(request) && id(request) == 1 ? 503 : 204)
        }
        return server
    }
}
