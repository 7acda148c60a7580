#if os(Linux)
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("Nginx: pauses in the middle of things", .enabled(if: NginxServer.isInstalled), .timeLimit(.minutes(10)))
struct NginxPauseTests {
    private static let listeners: [NginxServer.Listener] = [.http, .https1, .https2]

    /// Reads a body with a pause after every piece; another thread resumes it.
    private func haltingly(_ request: TransportRequest, over client: NginxClient) async -> Recording.Contents {
        let exchange = CurlExchange(client.transport.loop)
        let recording = Recording {}
        client.transport.start(request, as: exchange) { event in
            recording.note(event)
            guard case .body = event else { return }
            exchange.pause()
            DispatchQueue.global().async { exchange.resume() }
        }
        await recording.ended.opened()
        return recording.contents
    }

    @Test("BEY-1: bodies read with a pause after every piece are whole, compressed ones too", arguments: listeners)
    func everyPiece(listener: NginxServer.Listener) async throws {
        let client = try await NginxClient()
        let data = bodyBytes(4_000_000)
        let path = "/files/\(UUID().uuidString)"
        await expect(client.outcome(listener, path, .put, .data(data)).head?.statusCode, equals: 201)
        let way = NginxClient.Way(listener: listener, ipv6: false)
        let outcomes = await together(12) { number in
            await haltingly(client.request(way, number % 3 == 0 ? "/text" : path), over: client)
        }
        for (number, contents) in outcomes.enumerated() {
            let isWhole = number % 3 == 0 ? contents.text == NginxServer.text : contents.body == data
            expect(isWhole && contents.end?.error == nil && contents.faults.isEmpty, "\(number)")
        }
        await expect(client.outcome(listener, path, .delete).head?.statusCode, equals: 204)
    }

    @Test("BEY-1: an upload goes on while its answer is paused, and the answer comes after", arguments: listeners)
    func uploadWhilePaused(listener: NginxServer.Listener) async throws {
        let client = try await NginxClient()
        let body = Data(repeating: 3, count: 2_000_000)
        let stream = TransportBodyStream {
            let left = Locked(20)
            return AsyncStream<Data> {
                let isLeft = left.withLock { left in
                    left -= 1
                    return left >= 0
                }
                return isLeft ? body.prefix(100_000) : nil
            }
        }
        let way = NginxClient.Way(listener: listener, ipv6: false)
        let exchange = CurlExchange(client.transport.loop)
        let head = Gate()
        let recording = Recording { head.open() }
        exchange.pause()
        let request = client.request(way, "/upload", .post, .stream(stream))
        client.transport.start(request, as: exchange) { recording.note($0) }
        await head.opened()
        await expect(client.outcome(listener, "/small").isSmall)
        expect(recording.contents.body.isEmpty && recording.contents.end == nil)
        exchange.resume()
        await recording.ended.opened()
        expect((body.count..<body.count + 20_000).contains(Int(recording.contents.text) ?? 0))
    }

    @Test("BEY-1: paused exchanges do not block others on their connection", arguments: listeners)
    func manyHeld(listener: NginxServer.Listener) async throws {
        let client = try await NginxClient()
        let way = NginxClient.Way(listener: listener, ipv6: false)
        let held = (0..<20).map { _ in
            HeldExchange(client.request(way, "/ranges"), over: client.transport)
        }
        for exchange in held { await exchange.held() }
        let others = await together(50) { _ in await client.outcome(listener, "/ranges") }
        expect(others.allSatisfy { $0.body == NginxServer.rangesData })
        for exchange in held {
            expect(exchange.recording.contents.end == nil)
            exchange.letGo()
        }
        for exchange in held { await expect(exchange.end().body, equals: NginxServer.rangesData) }
    }

    @Test("BEY-11: an answer that arrives while a timer of libcurl expires is not missed")
    func timer() async throws {
        let client = try await NginxClient()
        let path = "/files/\(UUID().uuidString)"
        let way = NginxClient.Way(listener: .https2, ipv6: false)
        // More than may be sent before the server's settings are read, so only the answer is outstanding afterwards.
        let count = 200_000
        var upload = client.request(way, path, .put, .data(Data(count: count)))
        // After this time the loop would find an answer that it had missed.
        let idle: TimeInterval = 120
        upload.deadlines.idle = idle
        // The end of another exchange blocks the thread until the answer has arrived and libcurl's timer for the
        // connection, 200 milliseconds after its start, has expired. In this case libcurl 7.88 does not read the socket
        // again.
        let other = CurlExchange(client.transport.loop)
        client.transport.start(client.request(.init(listener: .http, ipv6: false), "/big"), as: other) { event in
            guard case .end = event else { return }
            // Not to synchronise: libcurl uses real time, and 200 milliseconds of it must pass.
            Thread.sleep(forTimeInterval: 0.3)
        }
        let uploaded = Recording {}
        client.transport.start(upload, as: CurlExchange(client.transport.loop)) { event in
            uploaded.note(event)
            if case .sent(count) = event { other.cancel() }
        }
        await uploaded.ended.opened()
        let end = try #require(uploaded.contents.end)
        expect(end.error == nil && uploaded.contents.head?.statusCode == 201)
        try expect(#require(end.metrics?.total) < idle)
        await expect(client.outcome(.https2, path, .delete).head?.statusCode, equals: 204)
    }
}
#endif
