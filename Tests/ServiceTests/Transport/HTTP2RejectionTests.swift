#if os(Linux)
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

/// Requests that a server has rejected without processing them (RFC 9113, section 8.7).
@Suite("CurlTransport: requests that HTTP/2 rejects", .enabled(if: HTTP2Server.isInstalled), .timeLimit(.minutes(10)))
struct HTTP2RejectionTests {
    /// Sends requests through one transport, every second one a POST with a body, and compares what came back with what
    /// the server has counted.
    private func check(
        _ server: HTTP2Server,
        _ count: Int,
        atOnce: Int,
        over transport: CurlTransport? = nil,
        line: Int = #line
    ) async throws -> HTTP2Server.Counts {
        let transport = transport ?? server.transport()
        let failures = await together(count, atOnce: atOnce) { number -> String? in
            var request = TransportRequest(method: .get, url: server.url.appendingPathComponent("\(number)"))
            if !number.isMultiple(of: 2) {
                request.method = .post
                request.body = .data(Data("request \(number)".utf8))
            }
            let outcome = await Self.outcome(of: request, transport)
            return outcome.code == nil && outcome.head?.statusCode == 200 ? nil : "\(number): \(outcome)"
        }.compactMap { $0 }
        expect(failures, equals: [], line: line)
        let counts = try await server.counts()
        let expected = (0..<count).map { ($0.isMultiple(of: 2) ? "GET /\($0)" : "POST /\($0)", 1) }
        expect(counts.processed, equals: Dictionary(uniqueKeysWithValues: expected), line: line)
        return counts
    }

    private static func outcome(of request: TransportRequest, _ transport: CurlTransport) async -> Recording.Contents {
        let recording = Recording {}
        let exchange = transport.start(request) { recording.note($0) }
        return await RecordedExchange(exchange: exchange, recording: recording).end()
    }

    @Test(
        "BEY-23: requests above the last one of a GOAWAY go out again, none is lost and none is processed twice",
        arguments: [6, 16, 64],
        [["goaway=40"], ["goaway=40", "graceful=1"]]
    )
    func goaway(atOnce: Int, options: [String]) async throws {
        let server = try HTTP2Server(options)
        let counts = try await check(server, 400, atOnce: atOnce)
        expect(counts.connections >= 10)
    }

    @Test(
        "BEY-23: requests that are refused go out again, none is lost and none is processed twice",
        .enabled(if: CurlLoop.multiplexes, "libcurl before 8.3 does not report it"),
        arguments: [6, 16, 64]
    )
    func refused(atOnce: Int) async throws {
        let server = try HTTP2Server(["refuse=7"])
        let counts = try await check(server, 400, atOnce: atOnce)
        expect(counts.rejected >= 400 / 7)
    }

    @Test(
        "BEY-23: a server that takes few streams at a time gets every request once",
        arguments: [6, 16, 64],
        [["streams=1"], ["streams=4"], ["streams=1", "goaway=10"], ["streams=4", "goaway=10", "graceful=1"]]
    )
    func streamLimit(atOnce: Int, options: [String]) async throws {
        _ = try await check(try HTTP2Server(options), 400, atOnce: atOnce)
    }

    @Test("BEY-23: requests that are rejected together share the next connection", .enabled(if: CurlLoop.multiplexes))
    func sharedConnection() async throws {
        let server = try HTTP2Server(["goaway=40"])
        let transport = server.transport()
        _ = try await server.counts(over: transport)
        let counts = try await check(server, 64, atOnce: 64, over: transport)
        expect(counts.connections <= 8, "\(counts.connections)")
    }

    @Test(
        "BEY-23: a server that takes few streams at a time gets no more connections than over HTTP/1.1",
        .enabled(if: CurlLibrary.version >= 0x08_0B_00, "libcurl before 8.11 does not report it")
    )
    func connectionLimit() async throws {
        let server = try HTTP2Server(["streams=1"])
        let counts = try await check(server, 300, atOnce: 64, over: server.transport(connectionsPerHost: 6))
        // A connection that is given up closes a little after the next one opens.
        expect(counts.mostConnections <= 18, "\(counts.mostConnections)")
    }

    @Test(
        "BEY-23: a request that is refused again and again is sent six times, and counts as not sent",
        .enabled(if: CurlLoop.multiplexes, "libcurl before 8.3 does not report it"),
        arguments: ["GET", "POST"]
    )
    func alwaysRefused(method: String) async throws {
        let server = try HTTP2Server(["refuse=all"])
        var request = TransportRequest(method: .init(rawValue: method), url: server.url.appendingPathComponent("x"))
        if method == "POST" { request.body = .data(Data("body".utf8)) }
        let outcome = await Self.outcome(of: request, server.transport())
        expect(outcome.code == .connectionLost && outcome.end?.error?.mayHaveReachedServer == false, "\(outcome)")
        expect(outcome.head == nil && outcome.faults == [])
        try await expect(server.counts().rejected, equals: 6)
    }

    @Test(
        "BEY-23: a request that is refused costs no retry",
        .enabled(if: CurlLoop.multiplexes, "libcurl before 8.3 does not report it")
    )
    func retries() async throws {
        struct Call: APIRequest {
            typealias Item = NetworkResponse
            var api = "x"
            var method = NetworkService.Method.post
            var body: RequestBody? = .data(Data("body".utf8))
        }
        let server = try HTTP2Server(["refuse=1"])
        let host = HostConfiguration(baseURL: server.url, transport: server.transport()) { $0.retry = .never }
        let response = try await EasyNetworkService(host).send(Call())
        expect(response.statusCode == 200 && response.history.map(\.reason) == [.first])
        let counts = try await server.counts()
        expect(counts.processed == ["POST /x": 1] && counts.rejected == 3)
    }

    @Test(
        "BEY-23: a refused request with a body that can be read once ends, and counts as not sent",
        .enabled(if: CurlLoop.multiplexes, "libcurl before 8.3 does not report it")
    )
    func readOnce() async throws {
        let server = try HTTP2Server(["refuse=all"])
        let body = TransportBodyStream(length: 4, isReplayable: false) { InputStream(data: Data("body".utf8)) }
        let url = server.url.appendingPathComponent("x")
        let request = TransportRequest(method: .post, url: url, body: .stream(body))
        let outcome = await Self.outcome(of: request, server.transport())
        expect(outcome.code == .connectionLost && outcome.end?.error?.mayHaveReachedServer == false, "\(outcome)")
        try await expect(server.counts().rejected, equals: 1)
    }
}
#endif
