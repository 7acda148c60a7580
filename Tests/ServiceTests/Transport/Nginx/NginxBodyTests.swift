#if os(Linux)
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("Nginx: bodies", .enabled(if: NginxServer.isInstalled), .timeLimit(.minutes(10)))
struct NginxBodyTests {
    private static let listeners: [NginxServer.Listener] = [.http, .https1, .https2]
    private static let bytes = bodyBytes(3_000_001)

    @Test("RSP-3: a compressed body is decoded, and the metrics count its compressed bytes", arguments: listeners)
    func gzip(listener: NginxServer.Listener) async throws {
        let client = try await NginxClient()
        let contents = await client.outcome(listener, "/text")
        expect(contents.text == NginxServer.text && contents.end?.error == nil && contents.faults.isEmpty)
        expect(contents.head?.headers["Content-Encoding"], equals: "gzip")
        expect((1..<NginxServer.text.utf8.count / 4).contains(contents.metrics?.bytesReceived ?? 0))
    }

    @Test("RSP-3: more than allowed without its coding ends the exchange", arguments: listeners)
    func decodedLimit(listener: NginxServer.Listener) async throws {
        for (limit, code) in [(NginxServer.text.utf8.count, nil), (5_000, NetworkError.Code.bodyTooLong)] {
            let client = try await NginxClient { configuration, _ in configuration.maximumDecodedBodyCount = limit }
            await expect(client.outcome(listener, "/text").code, equals: code)
            // The limit does not apply to uncoded bodies.
            await expect(client.outcome(listener, "/ranges").body, equals: NginxServer.rangesData)
        }
    }

    @Test("SEC-2: a 417 is the answer, and nothing is sent again", arguments: listeners)
    func expectation(listener: NginxServer.Listener) async throws {
        let client = try await NginxClient()
        let path = "/expecting/\(UUID().uuidString)"
        var message = client.request(NginxClient.Way(listener: listener, ipv6: false), path, .put, .data(Self.bytes))
        message.headers = ["Expect": "100-continue"]
        let contents = await client.outcome(message)
        expect(contents.code == nil && contents.head?.statusCode == 417 && contents.faults.isEmpty, "\(contents)")
        // If libcurl wanted to send the message again, it skipped the body.
        expect(["expects nothing", ""].contains(contents.text))
        // A second message without the expectation would have stored the file.
        await expect(client.outcome(listener, path).head?.statusCode, equals: 404)
        message.headers = [:]
        await expect(client.outcome(message).head?.statusCode, equals: 201)
        await expect(client.outcome(listener, path).body, equals: Self.bytes)
    }

    /// A stream that yields the bytes in pieces, some of them empty.
    @Sendable private static func pieces() -> AsyncStream<Data> {
        AsyncStream { continuation in
            for start in stride(from: 0, to: bytes.count, by: 99_999) {
                continuation.yield(bytes[start..<min(start + 99_999, bytes.count)])
                continuation.yield(Data())
            }
            continuation.finish()
        }
    }

    @Test("REQ-3: data, files and streams with and without length arrive whole", arguments: listeners)
    func uploads(listener: NginxServer.Listener) async throws {
        let client = try await NginxClient()
        let file = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try Self.bytes.write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        let count = Self.bytes.count
        let bodies: [(String, TransportBody)] = [
            ("data", .data(Self.bytes)),
            ("file", .file(file)),
            ("stream", .stream(TransportBodyStream(length: count) { InputStream(url: file) })),
            ("stream without length", .stream(TransportBodyStream { InputStream(url: file) })),
            ("pieces", .stream(TransportBodyStream(length: count, pieces: Self.pieces))),
            ("pieces without length", .stream(TransportBodyStream(pieces: Self.pieces))),
        ]
        for (what, body) in bodies {
            for method in [NetworkService.Method.post, .put] {
                let contents = await client.outcome(listener, "/upload", method, body)
                let arrived = Int(contents.text) ?? 0
                expect((count..<count + 20_000).contains(arrived), "\(what): \(contents)")
                expect((count..<count + 20_000).contains(contents.metrics?.bytesSent ?? 0), "\(what): \(contents)")
            }
            let path = "/files/\(UUID().uuidString)"
            await expect(client.outcome(listener, path, .put, body).head?.statusCode, equals: 201, "\(what)")
            await expect(client.outcome(listener, path).body, equals: Self.bytes, "\(what)")
            await expect(client.outcome(listener, path, .delete).head?.statusCode, equals: 204, "\(what)")
        }
    }

    @Test("REQ-3: uploads of every kind at once, on the same connections", arguments: listeners)
    func uploadsAtOnce(listener: NginxServer.Listener) async throws {
        let client = try await NginxClient { configuration, _ in configuration.maximumConnectionsPerHost = 8 }
        let outcomes = await together(24) { number in
            let stream = TransportBodyStream(length: number % 3 == 0 ? Self.bytes.count : nil, pieces: Self.pieces)
            let body = number % 3 == 1 ? TransportBody.data(Self.bytes) : .stream(stream)
            return await client.outcome(listener, "/upload", .post, body)
        }
        for contents in outcomes {
            expect((Self.bytes.count..<Self.bytes.count + 20_000).contains(Int(contents.text) ?? 0), "\(contents)")
        }
    }

    @Test(
        "REQ-3: a stream that has too few or too many bytes, or throws, is an error of its exchange alone",
        arguments: listeners
    )
    func wrongStreams(listener: NginxServer.Listener) async throws {
        struct Broken: Error {}
        let client = try await NginxClient()
        let count = Self.bytes.count
        let bodies = [
            TransportBodyStream(length: count + 1, pieces: Self.pieces),
            TransportBodyStream(length: count - 1, pieces: Self.pieces),
            TransportBodyStream(length: 10) { throw Broken() },
            TransportBodyStream(pieces: {
                AsyncThrowingStream<Data, any Error> { continuation in
                    continuation.yield(Data(count: 100_000))
                    continuation.finish(throwing: Broken())
                }
            }),
        ]
        for body in bodies {
            let contents = await client.outcome(listener, "/upload", .post, .stream(body))
            expect(contents.code == .invalidRequest && contents.head == nil, "\(contents)")
            await expect(client.outcome(listener, "/small").isSmall)
        }
    }

    @Test("REQ-3: an answer to HEAD has a length and no body", arguments: listeners)
    func head(listener: NginxServer.Listener) async throws {
        let client = try await NginxClient()
        for _ in 0..<2 {
            let contents = await client.outcome(listener, "/big", .head)
            expect(contents.head?.statusCode == 200 && contents.end?.error == nil && contents.body.isEmpty)
            expect(contents.head?.headers["Content-Length"], equals: "\(NginxServer.bigCount)")
            expect((1..<2_000).contains(contents.metrics?.bytesReceived ?? 0))
        }
    }

    @Test("REQ-3: a range comes with status 206, an unsatisfiable one with 416", arguments: listeners)
    func ranges(listener: NginxServer.Listener) async throws {
        let client = try await NginxClient()
        var request = client.request(.init(listener: listener, ipv6: false), "/ranges")
        for range in [0..<1, 1_000..<50_000, 99_999..<100_000] {
            request.headers["Range"] = "bytes=\(range.lowerBound)-\(range.upperBound - 1)"
            let contents = await client.outcome(request)
            expect(contents.head?.statusCode == 206 && contents.end?.error == nil)
            expect(contents.body, equals: NginxServer.rangesData[range])
            let expected = "bytes \(range.lowerBound)-\(range.upperBound - 1)/100000"
            expect(contents.head?.headers["Content-Range"], equals: expected)
        }
        request.headers["Range"] = "bytes=100000-"
        await expect(client.outcome(request).head?.statusCode, equals: 416)
    }
}
#endif
