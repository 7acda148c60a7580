import EasyNetwork
import Foundation
import Testing

@testable import EasyNetworkTesting
@testable import TestSupport

@Suite("Malformed answers")
struct MalformedAnswerTests {
    /// The answer `abcd` on a connection that the client asks to close, so that its end is visible.
    private func sight(
        _ fault: MockResponse.Fault?,
        headers: HTTPHeaders = HTTPHeaders(),
        body: MockResponse.Body = .data(Data("abcd".utf8)),
        method: String = "GET"
    ) async throws -> Sight {
        try await MockServer.sight(
            of: MockResponse(headers: headers, body: body, fault: fault),
            request: "\(method) / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        )
    }

    private let rest = "\r\nContent-Length: 4\r\nConnection: close\r\n\r\nabcd"

    @Test("BEY-11: a status line is garbage, or has no reason phrase")
    func statusLine() async throws {
        try await expect(sight(.garbageStatusLine), equals: Sight("?!@ garbage" + rest))
        try await expect(sight(.statusLine("HTTP/9.9 ü")), equals: Sight("HTTP/9.9 ü" + rest))
        try await expect(sight(.noReasonPhrase), equals: Sight("HTTP/1.1 200" + rest))
        try await expect(sight(nil), equals: Sight("HTTP/1.1 200 OK" + rest))
    }

    @Test("BEY-11: the lines of a head end in LF alone, the framing of the body does not")
    func lineFeeds() async throws {
        let head = "HTTP/1.1 200 OK\nContent-Length: 4\nConnection: close\n\n"
        try await expect(sight(.lineFeedsOnly), equals: Sight(head + "abcd"))
        let chunked = "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\nConnection: close\n\n2\r\nab\r\n0\r\n\r\n"
        try await expect(sight(.lineFeedsOnly, body: .chunks([Data("ab".utf8)])), equals: Sight(chunked))
    }

    @Test("BEY-11: a header's value is in Latin-1, by default in UTF-8")
    func latin1() async throws {
        let seen = try await sight(.latin1Headers, headers: ["X-Name": "Zoë ÿ €"]).bytes
        let line = Data("X-Name: Zo".utf8) + [0xEB, 0x20, 0xFF] + Data(" ?\r\n".utf8)
        expect(seen.range(of: line) != nil)
        try await expect(sight(nil, headers: ["X-Name": "Zoë"]).text.contains("X-Name: Zoë\r\n"))
    }

    @Test("BEY-11: 10,000 headers, and one of a mebibyte")
    func large() async throws {
        let many = try await sight(.manyHeaders(), headers: ["A": "b"]).text
        let lines = many.components(separatedBy: "\r\n")
        expect(lines[1...2], equals: ["A: b", "Content-Length: 4"])
        expect(lines[3..<10_003].elementsEqual((1...10_000).map { "X-Field-\($0): \($0)" }))
        expect(lines[10_003...], equals: ["Connection: close", "", "abcd"])
        try await expect(sight(.manyHeaders(0)), equals: Sight("HTTP/1.1 200 OK" + rest))
        let long = try await sight(.longHeader()).text
        let value = String(repeating: "x", count: 1_048_576)
        expect(
            long,
            equals: "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nX-Long: \(value)\r\nConnection: close\r\n\r\nabcd"
        )
    }

    @Test("BEY-11: a Content-Length is too long, too short, or too large to add")
    func contentLength() async throws {
        func expected(_ length: Int) -> Sight {
            Sight("HTTP/1.1 200 OK\r\nContent-Length: \(length)\r\nConnection: close\r\n\r\nabcd")
        }
        try await expect(sight(.contentLength(offBy: 3)), equals: expected(7))
        try await expect(sight(.contentLength(offBy: -3)), equals: expected(1))
        try await expect(sight(.contentLength(offBy: -5)), equals: expected(0))
        try await expect(sight(.contentLength(offBy: .min)), equals: expected(0))
        try await expect(sight(.contentLength(offBy: .max)), equals: expected(.max))
        try await expect(sight(.contentLength(offBy: 3), body: .chunks([Data("abcd".utf8)])), equals: expected(7))
    }

    @Test("BEY-11: a length that is too long closes the connection, one that is too short leaves the rest on it")
    func keptConnection() async throws {
        let long = MockResponse(body: .data(Data("abcd".utf8)), fault: .contentLength(offBy: 1))
        let sight = try await MockServer.sight(of: long)
        expect(sight, equals: Sight("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabcd"))
        let server = try MockServer()
        server.route("GET", "/") { _ in MockResponse(body: .data(Data("abcd".utf8)), fault: .contentLength(offBy: -1)) }
        let (first, second) = try await onThread {
            let client = try RawClient(server)
            let first = try client.get("/")
            try client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            return (first, try client.receiveHead())
        }
        expect(first, equals: "abc")
        expect(second.hasPrefix("dHTTP/1.1 200 OK\r\n"))
    }

    @Test("BEY-11: a chunk has no size, after the given bytes of the body")
    func badChunk() async throws {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
        try await expect(sight(.badChunk()), equals: Sight(head + "zz\r\n"))
        try await expect(sight(.badChunk(after: 3)), equals: Sight(head + "3\r\nabc\r\nzz\r\n"))
        try await expect(sight(.badChunk(after: 9)), equals: Sight(head + "4\r\nabcd\r\nzz\r\n"))
        let chunks = MockResponse.Body.chunks([Data("ab".utf8), Data("cd".utf8)])
        try await expect(sight(.badChunk(after: 3), body: chunks), equals: Sight(head + "2\r\nab\r\n1\r\nc\r\nzz\r\n"))
        try await expect(sight(.badChunk(after: 3), method: "HEAD"), equals: Sight(head))
    }

    @Test("BEY-11: answers of 1xx come before the final one, but not to a client of HTTP/1.0")
    func interim() async throws {
        let response = MockResponse(
            body: .data(Data("x".utf8)),
            interim: [.init(100), .init(103, headers: ["Link": "</a.css>"]), .init(102), .init(199)]
        )
        let final = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx"
        let before =
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n"
            + "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 199 \r\n\r\n"
        let request = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        try await expect(MockServer.sight(of: response, request: request), equals: Sight(before + final))
        try await expect(MockServer.sight(of: response, request: "GET / HTTP/1.0\r\n\r\n"), equals: Sight(final))
        for interim in [MockResponse.Interim(200), .init(103, headers: ["A": "\n"])] {
            let text = try await MockServer.sight(of: MockResponse(interim: [interim]), request: request).text
            expect(text.hasPrefix("HTTP/1.1 500 "))
        }
    }

    @Test("BEY-11: trailers follow a body, which is then chunked")
    func trailers() async throws {
        let response = MockResponse(body: .data(Data("abcd".utf8)), trailers: ["X-Sum": "1", "X-Sum": "2"])
        func sight(_ method: String, _ version: String) async throws -> Sight {
            let request = "\(method) / HTTP/\(version)\r\nHost: a\r\nConnection: close\r\n\r\n"
            return try await MockServer.sight(of: response, request: request)
        }
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
        try await expect(sight("GET", "1.1"), equals: Sight(head + "4\r\nabcd\r\n0\r\nX-Sum: 1\r\nX-Sum: 2\r\n\r\n"))
        try await expect(sight("HEAD", "1.1"), equals: Sight(head))
        try await expect(sight("GET", "1.0"), equals: Sight("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nabcd"))
        let bad = MockResponse(trailers: ["A": "b\r\nc"])
        expect(ResponsePlan(bad, method: "GET").statusCode, equals: 500)
    }
}
