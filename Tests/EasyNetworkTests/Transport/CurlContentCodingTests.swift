#if os(Linux)
import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork

@Suite("CurlTransport: content codings", .timeLimit(.minutes(10)))
struct CurlContentCodingTests {
    /// The same text in one of the codings, as other programs than libcurl have written it.
    struct Coding: Sendable, CustomTestStringConvertible {
        let name: String
        let base64: String
        /// Whether every libcurl with zlib can take it off.
        var isAlwaysThere = false

        var testDescription: String { name }
    }

    private static let text = String(repeating: "What has been said three times is true. ", count: 3)

    private static let codings = [
        // DEFLATE in the format of zlib (RFC 1950), which is what HTTP calls by that name.
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

    @Test("RSP-3: a coding is taken off if it was asked for; one that nobody asked for says so", arguments: codings)
    func takenOff(coding: Coding) async throws {
        let bytes = try #require(Data(base64Encoded: coding.base64))
        let server = try MockServer()
        let headers: HTTPHeaders = ["Content-Encoding": coding.name]
        server.route("GET", "/whole") { _ in .data(bytes, headers: headers) }
        server.route("GET", "/bytes") { _ in .chunked(bytes.map { Data([$0]) }, headers: headers) }
        let transport = CurlTransport(TransportConfiguration(proxy: .none))
        // Let go of, it would end them.
        defer { withExtendedLifetime(transport) {} }
        for path in ["/whole", "/bytes"] {
            let url = try #require(URL(string: server.baseURL.absoluteString + path))
            let recording = Recording {}
            let exchange = transport.start(TransportRequest(url: url, deadlines: TransportDeadlines(idle: nil))) {
                recording.note($0)
            }
            let contents = await RecordedExchange(exchange: exchange, recording: recording).end()
            // It names what this libcurl can take off.
            let asked = server.requests.last?.headers["Accept-Encoding"] ?? ""
            let names = asked.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
            #expect(contents.head?.headers["Content-Encoding"] == coding.name && contents.faults.isEmpty, "\(path)")
            if names.contains(coding.name) {
                #expect(contents.text == Self.text && contents.end?.error == nil, "\(path): \(contents)")
            } else {
                #expect(!coding.isAlwaysThere, "\(asked)")
                #expect(contents.code == .cannotParseResponse && contents.body.isEmpty, "\(path): \(contents)")
            }
        }
    }
}
#endif
