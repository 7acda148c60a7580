import EasyNetwork
import Foundation
import Testing

@testable import EasyNetworkTesting
@testable import TestSupport

@Suite("RequestParser")
struct RequestParserTests {
    /// Parses the bytes, split at these places.
    private func parse(
        _ bytes: [UInt8],
        cuts: [Int] = []
    ) -> (messages: [RequestParser.Message], failure: RequestParser.Failure?) {
        var parser = RequestParser()
        var messages: [RequestParser.Message] = []
        var from = 0
        for cut in cuts + [bytes.count] {
            parser.append(bytes[from..<cut])
            from = cut
            do {
                while let event = try parser.next() {
                    if case .request(let message) = event { messages.append(message) }
                }
            } catch {
                return (messages, error)
            }
        }
        return (messages, nil)
    }

    private static let stream = Array(
        """
        \r
        GET /a?b=c HTTP/1.1\r
        Host: x\r
        Empty:\r
        Spaced:  \t two  words \t\r
        \r
        POST /form HTTP/1.1\r
        host: x\r
        Content-Length: 5\r
        Expect: 100-continue\r
        \r
        12\r\n3PUT /chunks HTTP/1.1\r
        Host: x\r
        Transfer-Encoding: Chunked\r
        Cookie: a=1\r
        Cookie: b=2\r
        \r
        5;name=value; other="x"\r
        hello\r
        00A ; x\r
        0123456789\r
        0\r
        Trailer: t\r
        \r
        OPTIONS * HTTP/1.0\r
        \r

        """.utf8
    )

    private func expectStream(_ messages: [RequestParser.Message], _ place: String) {
        expect(messages.map(\.method), equals: ["GET", "POST", "PUT", "OPTIONS"], "\(place)")
        expect(messages.map(\.target), equals: ["/a?b=c", "/form", "/chunks", "*"], "\(place)")
        let bodies = ["", "12\r\n3", "hello0123456789", ""]
        expect(messages.map(\.body), equals: bodies.map { Data($0.utf8) }, "\(place)")
        expect(messages.map(\.minorVersion), equals: [1, 1, 1, 0], "\(place)")
        expect(messages.first?.headers, equals: ["Host": "x", "Empty": "", "Spaced": "two  words"], "\(place)")
        expect(messages.dropFirst(2).first?.headers.values(for: "cookie"), equals: ["a=1", "b=2"], "\(place)")
    }

    @Test("BEY-11: requests are the same wherever the stream is cut")
    func everyCut() {
        let stream = Self.stream
        for cut in 0...stream.count {
            let (messages, failure) = parse(stream, cuts: [cut])
            expect(failure == nil, "cut at \(cut)")
            expectStream(messages, "cut at \(cut)")
        }
        let (messages, failure) = parse(stream, cuts: Array(0..<stream.count))
        expect(failure == nil)
        expectStream(messages, "byte by byte")
    }

    @Test("BEY-11: a continue is expected once, and not when the body has arrived")
    func continueExpected() throws {
        let head = "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-Continue\r\n\r\n"
        var parser = RequestParser()
        parser.append(head.utf8)
        try expect(parser.next(), equals: .continueExpected)
        try expect(parser.next() == nil)
        parser.append("ab".utf8)
        guard case .request(let message) = try parser.next() else {
            Issue.record("no request")
            return
        }
        expect(message.body, equals: Data("ab".utf8))

        parser.append((head + "ab").utf8)
        guard case .request = try parser.next() else {
            Issue.record("the body was there, so nothing is to be sent first")
            return
        }
        parser.append("GET / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n\r\n".utf8)
        guard case .request = try parser.next() else {
            Issue.record("there is no body to wait for")
            return
        }
    }

    static let bad: [(bytes: String, status: Int)] = [
        ("GET / HTTP/1.1\nHost: x\r\n\r\n", 400),
        ("GET /\r\n\r\n", 400),
        ("GET  / HTTP/1.1\r\n", 400),
        ("GET / HTTP/1.1 \r\n", 400),
        (" GET / HTTP/1.1\r\n", 400),
        ("G(T / HTTP/1.1\r\n", 400),
        ("GET /\u{E9} HTTP/1.1\r\n", 400),
        ("GET /\u{1} HTTP/1.1\r\n", 400),
        ("GET / HTTP/1\r\n", 400),
        ("GET / HTTP/x.1\r\n", 400),
        ("GET / FTTP/1.1\r\n", 400),
        ("GET / HTTP/2.0\r\n", 505),
        ("\u{16}\u{3}\u{1}", 400),
        ("GET / HTTP/1.1\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\n: no name\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\u{0}b\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 1\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        ("GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", 501),
        ("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1 2\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\n0\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nno colon\r\n", 400),
    ]

    @Test("BEY-11: invalid bytes are refused in the same way wherever they are cut", arguments: bad)
    func refused(bytes: String, status: Int) {
        let bytes = Array(bytes.utf8)
        let (messages, failure) = parse(bytes)
        expect(messages.isEmpty)
        expect(failure?.statusCode, equals: status)
        expect(failure?.reason.isEmpty, equals: false)
        for cut in 0...bytes.count { expect(parse(bytes, cuts: [cut]).failure, equals: failure, "cut at \(cut)") }
        expect(parse(bytes, cuts: Array(0..<bytes.count)).failure, equals: failure)
    }

    @Test("BEY-11: after invalid bytes nothing is read")
    func staysRefused() {
        var parser = RequestParser()
        parser.append("bad\r\n".utf8)
        #expect(throws: RequestParser.Failure.self) { try parser.next() }
        parser.append("GET / HTTP/1.1\r\nHost: x\r\n\r\n".utf8)
        #expect(throws: RequestParser.Failure.self) { try parser.next() }
    }

    @Test("BEY-11: a head may have at most 1 MiB, whether its lines are short, long or endless")
    func headLimit() {
        let limit = RequestParser.headLimit
        let frame = "GET / HTTP/1.1\r\nHost: x\r\nA: \r\n\r\n".utf8.count
        func head(_ count: Int) -> [UInt8] {
            Array("GET / HTTP/1.1\r\nHost: x\r\nA: \(String(repeating: "a", count: count - frame))\r\n\r\n".utf8)
        }
        expect(parse(head(limit)).messages.count, equals: 1)
        expect(parse(head(limit + 1)).failure?.statusCode, equals: 431)
        expect(parse(head(limit + 1), cuts: [limit - 1, limit]).failure?.statusCode, equals: 431)
        let endless = Array("GET /".utf8) + Array(repeating: UInt8(ascii: "a"), count: limit)
        expect(parse(endless).failure?.statusCode, equals: 431)
        let many =
            Array("GET / HTTP/1.1\r\nHost: x\r\n".utf8)
            + Array(repeatElement("A: b\r\n".utf8, count: limit / 6).joined())
        expect(parse(many).failure?.statusCode, equals: 431)
        let chunked = "PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        let extended = Array((chunked + "1;").utf8) + Array(repeating: UInt8(ascii: "a"), count: 20_000)
        expect(parse(extended).failure?.statusCode, equals: 400)
    }

    @Test("BEY-11: a large body byte by byte and thousands of requests at once are read completely")
    func large() {
        // Takes practically forever if each byte makes the parser rescan the input.
        let count = TestLoad.count(1_000_000)
        var parser = RequestParser()
        parser.append("PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: \(count)\r\n\r\n".utf8)
        var event: RequestParser.ParserEvent?
        for index in 0..<count {
            parser.append(CollectionOfOne(UInt8(truncatingIfNeeded: index)))
            event = try? parser.next()
            guard index < count - 1 else { break }
            if event != nil { break }
        }
        guard case .request(let message) = event else {
            Issue.record("no request at the end")
            return
        }
        expect(message.body.count, equals: count)
        expect(message.body.last, equals: UInt8(truncatingIfNeeded: count - 1))
        expect(parser.bufferedCount, equals: 0)

        let one = Array("GET /x HTTP/1.1\r\nHost: x\r\n\r\n".utf8)
        let (messages, failure) = parse(Array(repeatElement(one, count: 5000).joined()))
        expect(failure == nil)
        expect(messages.count, equals: 5000)
    }
}
