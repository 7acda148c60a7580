#if os(Linux)
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("Nginx: every address with every protocol", .enabled(if: NginxServer.isInstalled), .timeLimit(.minutes(10)))
struct NginxProtocolTests {
    private static let ways = NginxClient.Way.all([.http, .https1, .https2])

    /// Whether the known times are in ascending order.
    private static func isInOrder(_ metrics: TransportMetrics) -> Bool {
        let times = [metrics.nameLookup, metrics.connect, metrics.tls, metrics.firstByte, metrics.total]
        let known = times.compactMap(\.self)
        return known == known.sorted() && known.allSatisfy { $0 >= 0 }
    }

    @Test("BEY-14: the answer is whole, and the metrics report a new connection, then a reused one", arguments: ways)
    func metrics(way: NginxClient.Way) async throws {
        let client = try await NginxClient()
        let request = client.request(way, "/small")
        let port = try #require(request.url.port)
        for isReused in [false, true, true] {
            let contents = await client.outcome(request)
            expect(contents.isSmall)
            let metrics = try #require(contents.metrics)
            let comment: Comment = "\(metrics)"
            expect(metrics.networkProtocol, equals: way.networkProtocol, comment)
            expect(metrics.remoteAddress, equals: "\(way.host):\(port)", comment)
            expect(metrics.isReusedConnection, equals: isReused, comment)
            expect(Self.isInOrder(metrics) && metrics.wait >= 0 && metrics.firstByte != nil, comment)
            expect((metrics.nameLookup == nil) == isReused && (metrics.connect == nil) == isReused, comment)
            expect((metrics.tls == nil), equals: (isReused || way.listener == .http), comment)
            let sent = metrics.bytesSent ?? 0
            let received = metrics.bytesReceived ?? 0
            expect(sent > 0 && sent < 1_024 && received > 1_024 && received < 2_048, comment)
        }
    }

    @Test("BEY-14: 64 at once are all whole", arguments: ways)
    func manyAtOnce(way: NginxClient.Way) async throws {
        let client = try await NginxClient()
        for _ in 0..<2 {
            let outcomes = await together(64) { _ in await client.outcome(client.request(way, "/ranges")) }
            expect(outcomes.allSatisfy { $0.body == NginxServer.rangesData && $0.end?.error == nil })
        }
    }

    @Test("BEY-14: requests of every kind over HTTP/2, in turn and at once, leave nothing behind for the next")
    func mixed() async throws {
        let client = try await NginxClient()
        let body = Data(repeating: 7, count: 200_000)
        @Sendable func run(_ number: Int) async {
            let comment: Comment = "request \(number)"
            switch number % 7 {
            case 0:
                await expect(client.outcome(.https2, "/small").isSmall, comment)
            case 1:
                let contents = await client.outcome(.https2, "/small", .head)
                expect(contents.head?.headers["Content-Length"] == "1024" && contents.body.isEmpty, comment)
                expect(contents.end?.error == nil, comment)
            case 2:
                let contents = await client.outcome(.https2, "/upload", .put, .data(body))
                expect((200_000..<210_000).contains(Int(contents.text) ?? 0), "\(contents)")
            case 3:
                let contents = await client.outcome(.https2, "/nothing-here")
                expect(contents.head?.statusCode == 404 && contents.end?.error == nil, comment)
            case 4:
                let contents = await client.outcome(.https2, "/upload", .post, .data(Data()))
                expect((1..<10_000).contains(Int(contents.text) ?? 0), "\(contents)")
            case 5:
                let exchange = client.start(client.request(.init(listener: .https2, ipv6: false), "/ranges"))
                if number % 2 == 0 { await Task.yield() }
                exchange.exchange.cancel()
                let contents = await exchange.end()
                expect([.cancelled, nil].contains(contents.code) && contents.faults.isEmpty, comment)
            default:
                let path = "/files/\(UUID().uuidString)"
                let put = await client.outcome(.https2, path, .put, .data(body))
                expect(put.head?.statusCode, equals: 201, comment)
                await expect(client.outcome(.https2, path).body, equals: body, comment)
                await expect(client.outcome(.https2, path, .delete).head?.statusCode, equals: 204, comment)
            }
        }
        for number in 0..<70 { await run(number) }
        _ = await together(210) { await run($0) }
    }
}
#endif
