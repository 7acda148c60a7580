#if os(Linux)
import Foundation
import Testing

@testable import EasyNetwork

@Suite("Nginx: the cache", .enabled(if: NginxServer.isInstalled), .timeLimit(.minutes(10)))
struct NginxCacheTests {
    private struct Call: BaseAPIRequest {
        var api: String
        var headers: [String: String]?
        var cache: CachePolicy? = .http
    }

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
            NetworkCache(memoryBytes: 0, disk: try .init(directory: folder))
        }
        func service(_ cache: NetworkCache) -> EasyNetworkService {
            EasyNetworkService(
                HostConfiguration(baseURL: nil, deadlines: TransportDeadlines(idle: nil), transport: client.transport) {
                    $0.cache = cache
                }
            )
        }
        let cacheBefore = try cache()
        let first = try await service(cacheBefore).send(Call(api: url.absoluteString))
        #expect(first.source == .network && first.headers[validator] != nil)
        #expect(validator == "ETag" || first.headers["ETag"] == nil)
        await cacheBefore.flush()
        // Another cache with the same files, as after a relaunch.
        let call = Call(api: url.absoluteString, headers: ["Cache-Control": "no-cache"])
        let second = try await service(cache()).send(call)
        #expect(second.source == .revalidated && second.body == first.body && second.statusCode == 200)
        #expect(second.history.map(\.statusCode) == [304])
        #expect(second.metrics?.bytesReceived ?? .max < first.body.count)
    }
}
#endif
