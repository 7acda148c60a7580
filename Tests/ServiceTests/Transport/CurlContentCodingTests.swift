#if os(Linux)
import Foundation
import Testing

@testable import EasyNetwork
@testable import EasyNetworkTesting
@testable import TestSupport

@Suite("CurlTransport: content codings", .timeLimit(.minutes(10)))
struct CurlContentCodingTests {
    /// The same text in a content coding, encoded by a program other than libcurl.
    struct Coding: Sendable, CustomTestStringConvertible {
        let name: String
        let base64: String
        /// Whether every libcurl with zlib can decode it.
        var isAlwaysThere = false

        var testDescription: String { name }
    }

    private static let text = String(repeating: "What has been said three times is true. ", count: 3)

    private static let codings = [
        // In HTTP, `deflate` is the zlib format (RFC 1950).
        Coding(
            name: "deflate",
            base64: "eNoLz0gsUchILFZISk3NUyhOzExRKMkoSk1VKMnMTS1WyCxWKCkqTdVTCKeyOgADjCou",
            isAlwaysThere: true
        ),
        Coding(name: "br", base64: "G3cA6I2Ubt50hEpvkKswNO1ClkYHNuCAvQQDwAXlyOmZpywvw5tkW2kQt/DsCQQ="),
        Coding(
            name: "zstd",
            base64: "KLUv/SR4VQEAkkIIDMA9HBG1Dvf/Hl3mBHGoVv7et/D4VWp8Otln1XzFzmIRAQDhhaoyaNNKTA=="
        ),
    ]

    @Test("RSP-3: a known coding is removed, an unknown one is passed on", arguments: codings)
    func takenOff(coding: Coding) async throws {
        let bytes = try #require(Data(base64Encoded: coding.base64))
        let server = try MockServer()
        let headers: HTTPHeaders = ["Content-Encoding": coding.name]
        server.route("GET", "/whole") { _ in .data(bytes, headers: headers) }
        server.route("GET", "/bytes") { _ in .chunked(bytes.map { Data([$0]) }, headers: headers) }
        let transport = CurlTransport(TransportConfiguration(proxy: .none))
        // Releasing the transport would end the exchanges.
        defer { withExtendedLifetime(transport) {} }
        for path in ["/whole", "/bytes"] {
            let url = try #require(URL(string: server.baseURL.absoluteString + path))
            let recording = Recording {}
            let exchange = transport.start(TransportRequest(url: url, deadlines: TransportDeadlines(idle: nil))) {
                recording.note($0)
            }
            let contents = await RecordedExchange(exchange: exchange, recording: recording).end()
            // The field names the codings that this libcurl can decode.
            let asked = server.requests.last?.headers["Accept-Encoding"] ?? ""
            let names = asked.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
            expect(contents.head?.headers["Content-Encoding"] == coding.name && contents.faults.isEmpty, "\(path)")
            if names.contains(coding.name) {
                expect(contents.text == Self.text && contents.end?.error == nil, "\(path): \(contents)")
            } else {
                expect(!coding.isAlwaysThere, "\(asked)")
                expect(contents.code == nil && contents.body == bytes, "\(path): \(contents)")
            }
        }
    }

    private func outcome(
        _ server: MockServer,
        _ limit: Int? = nil,
        whenBody: @escaping @Sendable (CurlExchange) -> Void
    )
        async throws -> Recording.Contents
    {
        let transport = CurlTransport(TransportConfiguration(proxy: .none, maximumDecodedBodyCount: limit))
        defer { withExtendedLifetime(transport) {} }
        let recording = Recording {}
        let exchange = CurlExchange(transport.loop)
        transport.start(
            TransportRequest(url: server.baseURL, deadlines: TransportDeadlines(idle: nil)),
            as: exchange
        ) { event in
            recording.note(event)
            if case .body = event { whenBody(exchange) }
        }
        return await RecordedExchange(exchange: exchange, recording: recording).end()
    }

    @Test("RSP-3: a body that ends before its coding does says so, wherever it is cut", arguments: codings)
    func cut(coding: Coding) async throws {
        let bytes = try #require(Data(base64Encoded: coding.base64))
        let server = try MockServer()
        let length = Locked(0)
        server.route("GET", "*") { _ in
            .data(bytes.prefix(length.withLock { $0 }), headers: ["Content-Encoding": coding.name])
        }
        for count in 0...bytes.count {
            length.withLock { $0 = count }
            let contents = try await outcome(server) { _ in }
            guard server.requests.last?.headers["Accept-Encoding"]?.contains(coding.name) == true else { return }
            let isWhole = count == 0 || count == bytes.count
            expect(contents.code, equals: (isWhole ? nil : .cannotParseResponse), "\(count) of \(bytes.count) bytes")
        }
    }

    /// The text without another coding than gzip.
    private static let hello = Gzip.stored(Data(text.utf8))

    @Test(
        "RSP-3: several codings are removed, the last one first, in pieces of any size, with a pause after each piece",
        arguments: [
            ["gzip"], ["gzip, gzip"], ["gzip", "x-gzip"], ["deflate, gzip"], ["identity, br, GZIP"],
            ["zstd", "gzip, gzip"],
            ["gzip,gzip,gzip,gzip,gzip"],
        ]
    )
    func several(fields: [String]) async throws {
        let names = fields.joined(separator: ",").lowercased().split { ", ".contains($0) }.filter { $0 != "identity" }
        let first = Self.codings.first { names.first?.elementsEqual($0.name) == true }
        guard first.map({ CurlDecoder.names?.contains($0.name) == true }) ?? true else { return }
        var bytes = try #require(first.map { Data(base64Encoded: $0.base64) } ?? Self.hello)
        for _ in names.dropFirst() { bytes = Gzip.stored(bytes) }
        let headers = HTTPHeaders(fields.map { .init(name: "Content-Encoding", value: $0) })
        let server = try MockServer()
        let answers = [
            MockResponse.data(bytes, headers: headers), .chunked(bytes.map { Data([$0]) }, headers: headers),
            .data(bytes.dropLast(9), headers: headers),
        ]
        for (index, answer) in answers.enumerated() {
            server.route("GET", "*") { _ in answer }
            let contents = try await outcome(server) { exchange in
                exchange.pause()
                DispatchQueue.global().async { exchange.resume() }
            }
            expect(contents.code, equals: index < 2 ? nil : .cannotParseResponse, "\(index)")
            if index < 2 { expect(contents.text, equals: Self.text) }
        }
    }

    @Test("BEY-25: several codings are bounded: their number, and what each of them becomes")
    func bounded() async throws {
        let server = try MockServer()
        let limit = 1_000_000
        let zeros = Gzip.zeros(limit)
        for (codings, body, code) in [
            ("gzip, gzip, gzip, gzip, gzip, gzip", Self.hello, NetworkError.Code.cannotParseResponse),
            ("gzip, gzip", Gzip.stored(zeros), nil), ("gzip, gzip", Gzip.stored(Gzip.zeros(limit + 1)), .bodyTooLong),
            // What follows the end of the inner one is ignored, and counts.
            ("gzip, gzip", Gzip.stored(Self.hello + Data(count: limit)), .bodyTooLong),
            ("gzip, gzip", Self.hello, .cannotParseResponse), ("gzip, gzip", Gzip.stored(Data()), nil),
            ("gzip, gzip", Data(), nil),
        ] as [(String, Data, NetworkError.Code?)] {
            server.route("GET", "*") { _ in .data(body, headers: ["Content-Encoding": codings]) }
            let contents = try await outcome(server, limit) { _ in }
            expect(contents.code, equals: code, "\(codings): \(body.count) bytes")
        }
    }

    @Test("RSP-3: bare DEFLATE, as some servers send it, is removed")
    func bareDeflate() async throws {
        let bytes = try #require(Data(base64Encoded: Self.codings[0].base64)).dropFirst(2).dropLast(4)
        let server = try MockServer()
        for pieces in [[Data(bytes)], bytes.map { Data([$0]) }] {
            server.route("GET", "*") { _ in .chunked(pieces, headers: ["Content-Encoding": "deflate"]) }
            let contents = try await outcome(server) { _ in }
            expect(contents.text == Self.text && contents.code == nil)
        }
    }

    @Test("RSP-3: paused after each piece, a body that becomes much larger comes whole and no faster")
    func pausedWhileDecoding() async throws {
        let count = 10_000_000
        let server = try MockServer()
        server.route("GET", "*") { _ in .inflationBomb(count) }
        let pauses = Locked(0)
        let contents = try await outcome(server) { exchange in
            pauses.withLock { $0 += 1 }
            exchange.pause()
            DispatchQueue.global().async { exchange.resume() }
        }
        expect(contents.code == nil && contents.body == Data(count: count))
        expect(pauses.withLock { $0 } >= count / 65_536)
    }

    @Test("RSP-3: a part of a coded body comes as it is (RFC 9110, section 14.2)")
    func part() async throws {
        let server = try MockServer()
        let part = Data([0xCB, 0x48])
        server.route("GET", "*") { _ in .data(part, status: 206, headers: ["Content-Encoding": "gzip"]) }
        let contents = try await outcome(server) { _ in }
        expect(contents.code == nil && contents.body == part)
    }
}
#endif
