#if os(Linux)
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("Nginx: the cache", .enabled(if: NginxServer.isInstalled), .timeLimit(.minutes(10)))
struct NginxCacheTests {
    static let cases: [(listener: NginxServer.Listener, path: String, validator: String)] =
        [NginxServer.Listener.http, .https1, .https2].flatMap { listener in
            [
                (listener, "/ranges", "ETag"), (listener, "/modified", "Last-Modified"),
                // The tag is weak, since nginx compresses the response.
                (listener, "/text", "ETag"),
            ]
        }

    @Test("BEY-10: a stored response is revalidated by ETag and Last-Modified, and its body reused", arguments: cases)
    func revalidation(listener: NginxServer.Listener, path: String, validator: String) async throws {
        let client = try await NginxClient()
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: folder) }
        let url = client.server.url(listener, path)
        func cache() throws -> NetworkCache {
            try NetworkCache(directory: folder, memoryBytes: 0)
        }
        func service(_ cache: NetworkCache) -> EasyNetworkService {
            EasyNetworkService(
                HostConfiguration(baseURL: nil, deadlines: TransportDeadlines(idle: nil), transport: client.transport) {
                    $0.cache = cache
                }
            )
        }
        let cacheBefore = try cache()
        let first = try await service(cacheBefore).send(CachedCall(api: url.absoluteString))
        expect(first.source == .network && first.headers[validator] != nil)
        expect(validator == "ETag" || first.headers["ETag"] == nil)
        await cacheBefore.flush()
        // Another cache with the same files, as after a relaunch.
        let call = CachedCall(api: url.absoluteString, headers: ["Cache-Control": "no-cache"])
        let second = try await service(cache()).send(call)
        expect(second.source == .revalidated && second.body == first.body && second.statusCode == 200)
        expect(second.history.map(\.statusCode), equals: [304])
        expect(second.metrics?.bytesReceived ?? .max < first.body.count)
    }

    @Test(
        "BEY-10: a part of a stored response is that of the server",
        arguments: ["0-0", "0-99", "100-", "-1", "-100", "50-1000000", "-1000000", "1000000-"]
    )
    func part(range: String) async throws {
        let client = try await NginxClient()
        let settings = HostConfiguration(
            baseURL: nil,
            deadlines: TransportDeadlines(idle: nil),
            transport: client.transport
        ) {
            $0.cache = NetworkCache(diskBytes: 0)
            $0.validation = ResponseValidation(statusCodes: [200, 206, 416])
        }
        let service = EasyNetworkService(settings)
        var call = CachedCall(api: client.server.url(.http, "/ranges").absoluteString)
        let whole = try await service.send(call)
        call.headers = ["Range": "bytes=\(range)", "Cache-Control": "max-stale"]
        let stored = try await service.send(call)
        let sent = try await service.send(call, ignoringCache: true)
        expect(whole.statusCode == 200 && sent.source == .network)
        expect(stored.source, equals: (sent.statusCode == 416 ? .network : .cache))
        expect(stored.statusCode == sent.statusCode && stored.body == sent.body)
        for name in ["Content-Range", "Content-Length", "ETag", "Last-Modified", "Content-Type"] {
            expect(stored.headers[name], equals: sent.headers[name], "\(name)")
        }
    }
}
#endif
