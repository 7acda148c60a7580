import EasyNetworkTesting
import Foundation

@testable import EasyNetwork

/// A changeable file on a server with the ranges of RFC 9110.
final class RangedFile: Sendable {
    struct State {
        var data: Data
        var tag: String?
        /// Alters an answer, given the request and the number of earlier requests.
        var change: @Sendable (MockRequest, Int, inout MockResponse) -> Void = { _, _, _ in }
        var requests: [MockRequest] = []
        /// The number of body bytes in all answers.
        var answered = 0
    }

    let state: Locked<State>

    init(_ data: Data, tag: String? = "\"one\"") {
        state = Locked(State(data: data, tag: tag))
    }

    var data: Data { state.withLock { $0.data } }
    var requests: [MockRequest] { state.withLock { $0.requests } }
    var ranges: [String?] { requests.map { $0.headers["Range"] } }

    func change(_ change: @escaping @Sendable (MockRequest, Int, inout MockResponse) -> Void) {
        state.withLock { $0.change = change }
    }

    func replace(_ data: Data, tag: String?) {
        state.withLock { state in
            state.data = data
            state.tag = tag
        }
    }

    func answer(_ request: MockRequest) -> MockResponse {
        let (data, tag, change, number) = state.withLock { state in
            state.requests.append(request)
            return (state.data, state.tag, state.change, state.requests.count - 1)
        }
        var response = Self.answer(request, data, tag)
        change(request, number, &response)
        return response
    }

    private static func answer(_ request: MockRequest, _ data: Data, _ tag: String?) -> MockResponse {
        var headers = HTTPHeaders()
        headers["Accept-Ranges"] = "bytes"
        headers["ETag"] = tag
        let whole = MockResponse(statusCode: 200, headers: headers, body: .data(data))
        guard let field = request.headers["Range"], field.hasPrefix("bytes=") else { return whole }
        if let condition = request.headers["If-Range"], condition != tag { return whole }
        let bounds = field.dropFirst(6).split(separator: "-", omittingEmptySubsequences: false).map { Int($0) }
        guard let lower = bounds.first ?? nil, lower < data.count else {
            headers["Content-Range"] = "bytes */\(data.count)"
            return MockResponse(statusCode: 416, headers: headers)
        }
        let upper = min((bounds.last ?? nil) ?? data.count - 1, data.count - 1)
        headers["Content-Range"] = "bytes \(lower)-\(upper)/\(data.count)"
        return MockResponse(statusCode: 206, headers: headers, body: .data(data[lower...upper]))
    }

    /// Pseudorandom bytes, so that a misplaced byte is detected. They repeat after a prime number of bytes, because a
    /// debug build needs half a second for 30 MB of random ones.
    static func bytes(_ count: Int, seed: UInt64 = 1) -> Data {
        let period = min(count, 1_000_003)
        var generator = SeededGenerator(seed: seed)
        var block = Data(capacity: period + 8)
        while block.count < period { withUnsafeBytes(of: generator.next()) { block.append(contentsOf: $0) } }
        block = block.prefix(period)
        var data = Data(capacity: count + period)
        while data.count < count { data.append(block) }
        return data.prefix(count)
    }
}
