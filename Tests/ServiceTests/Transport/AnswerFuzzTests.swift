import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

/// Sends malformed answers, and after each of them a plain request, which must get its own answer.
@Suite("Answers at random", .timeLimit(.minutes(30)))
struct AnswerFuzzTests {
    /// The number of answers for each transport; `EASYNETWORK_ANSWERS` overrides it.
    private static let count =
        ProcessInfo.processInfo.environment["EASYNETWORK_ANSWERS"].flatMap { Int($0) }
        ?? TestLoad.count(3_000, part: 100)

    private static let kinds = TransportFixture.Kind.allCases.filter { $0 != .inMemory }

    @Test(
        "BEY-17, BEY-1: random answers give a single end; with libcurl no answer counts for another request",
        arguments: kinds
    )
    func everything(kind: TransportFixture.Kind) async throws {
        let seed = UInt64.random(in: 0 ... .max)
        print("AnswerFuzzTests: seed \(seed)")
        var generator = SeededGenerator(seed: seed)
        let server = try MockServer()
        let answer = Locked(MockResponse())
        server.route("*", "/fuzz") { _ in answer.withLock { $0 } }
        server.route("*", "/plain") { request in .text("plain " + (request.headers["X-Number"] ?? "")) }
        var transport = Self.transport(kind)
        for number in 0..<Self.count {
            let wild = Self.answer(&generator, for: kind)
            answer.withLock { $0 = MockResponse(fault: .raw(wild.bytes, keepsConnection: wild.keepsConnection)) }
            // Foundation reuses broken connections, and reads leftover bytes as the next answer (see the table), so
            // each answer gets a new session.
            if kind == .urlSession { transport = Self.transport(kind) }
            let contents = try await Self.outcome(transport, server, "/fuzz", number, &generator)
            expect(contents.faults.isEmpty && contents.end != nil, "seed \(seed), answer \(number): \(wild)")
            guard kind != .urlSession else { continue }
            if let unasked = wild.unasked { await server.sendUnasked(unasked) }
            var plain = try await Self.outcome(transport, server, "/plain", number, &generator)
            // The server may have closed the connection after the transport checked it.
            if plain.code == .connectionLost, plain.head == nil {
                plain = try await Self.outcome(transport, server, "/plain", number, &generator)
            }
            let text = String(decoding: plain.body, as: UTF8.self)
            expect(
                plain.code == nil && text == "plain \(number)",
                "seed \(seed), answer \(number): \(wild), then \(plain)"
            )
            guard plain.code == nil, text == "plain \(number)" else { return }
        }
    }

    private static func transport(_ kind: TransportFixture.Kind) -> any NetworkTransport {
        #if os(Linux)
        if kind == .curl { return CurlTransport(TransportConfiguration(proxy: .none)) }
        #endif
        return URLSessionTransport()
    }

    private static func outcome(
        _ transport: any NetworkTransport,
        _ server: MockServer,
        _ path: String,
        _ number: Int,
        _ generator: inout SeededGenerator
    ) async throws -> Recording.Contents {
        let url = try #require(URL(string: server.baseURL.absoluteString + path))
        var request = TransportRequest(url: url, headers: ["X-Number": "\(number)"])
        request.method = [.get, .get, .post, .delete].randomElement(using: &generator) ?? .get
        if request.method == .post { request.body = .data(Data("body".utf8)) }
        let recording = Recording {}
        let exchange = transport.start(request) { recording.note($0) }
        await recording.ended.opened()
        withExtendedLifetime(exchange) {}
        return recording.contents
    }

    // MARK: - Answers

    struct Wild: CustomStringConvertible {
        var bytes: Data
        var keepsConnection: Bool
        /// Bytes that are sent afterwards, while no request is pending.
        var unasked: Data?

        var description: String {
            let text = String(decoding: bytes.prefix(2_000), as: UTF8.self).debugDescription
            return "\(text)\(keepsConnection ? " kept" : "")\(unasked == nil ? "" : " and unasked bytes")"
        }
    }

    private static func answer(_ generator: inout SeededGenerator, for kind: TransportFixture.Kind) -> Wild {
        func chance(_ parts: Int) -> Bool { Int.random(in: 0..<parts, using: &generator) == 0 }
        // A complete answer lets the connection be kept.
        let isWhole = chance(3)
        var text = "HTTP/1.1 200 OK\r\n"
        let fields = [
            " folded: x", "\tfolded", "A: b", "A: b\r\n folded on", "Set-Cookie: a=1, b=2", "X: \u{e9}", "Vary: *",
            "Cache-Control: max-age=60, x=\"\\\"\\\"", "Content-Disposition: attachment; filename=\"\\\"",
            "Transfer-Encoding: gzip", "Content-Length: 0x5", "Content-Length: 3", "Content-Length: 5, 5", "A\rB: c",
            "Content-Encoding: gzip", "Content-Encoding: nothing", "Connection: upgrade", ": empty", "no colon",
            "Retry-After: 99999999999999999999", "Date: Fri, 31 Dec 9999 23:59:59 GMT", "ETag: \"", "Trailer: A",
        ]
        // Foundation crashes on a truncated head and on trailers: see the table.
        let isFoundation = kind == .urlSession
        let harmless = ["A: b", "Set-Cookie: a=1, b=2", "Vary: *", "ETag: \"", "Trailer: A", "A: b\r\n folded on"]
        for _ in 0..<Int.random(in: 0..<4, using: &generator) {
            text += ((isWhole ? harmless : fields).randomElement(using: &generator) ?? "A: b") + "\r\n"
        }
        switch isWhole ? 0 : Int.random(in: 0..<5, using: &generator) {
        case 0: text += "Content-Length: 5\r\n\r\nhello"
        case 1: text += "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
        case 2: text += "Transfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n"
        case 3: text += "Content-Length: 9\r\n\r\nhello"
        default: text += "\r\nhello"
        }
        var bytes = Data(text.utf8)
        if !isWhole, !isFoundation {
            for _ in 0..<Int.random(in: 0..<4, using: &generator) {
                let index = bytes.startIndex + Int.random(in: 0..<bytes.count, using: &generator)
                switch Int.random(in: 0..<3, using: &generator) {
                case 0: bytes[index] = UInt8.random(in: 0 ... .max, using: &generator)
                case 1: bytes.remove(at: index)
                default:
                    bytes =
                        bytes.prefix(upTo: index) + [UInt8.random(in: 0 ... .max, using: &generator)] + bytes[index...]
                }
                if bytes.isEmpty { break }
            }
        }
        let other = Data("HTTP/1.1 408 Request Timeout\r\nContent-Length: 3\r\n\r\nbad".utf8)
        let followsAtOnce = isWhole && chance(3)
        if followsAtOnce { bytes += other }
        let unasked = isWhole && !followsAtOnce && chance(2) ? other : nil
        // An incomplete answer ends with the connection.
        return Wild(bytes: bytes, keepsConnection: isWhole, unasked: unasked)
    }
}
