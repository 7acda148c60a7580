#if os(Linux)
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("CurlTransport: https through a proxy", .enabled(if: NginxServer.isInstalled), .timeLimit(.minutes(10)))
struct ProxyTunnelTests {
    private static let ways = [NginxServer.Listener.https1, .https2].map { NginxClient.Way(listener: $0, ipv6: false) }

    /// A client that reaches the server through the proxy, and trusts it by default.
    private func client(
        _ proxy: TunnelProxy,
        _ tls: ((NginxServer) throws -> TLSConfiguration)? = nil
    ) async throws -> NginxClient {
        try await NginxClient { configuration, server in
            configuration.proxy = .url(proxy.url)
            if let tls { configuration.tls = try tls(server) }
        }
    }

    private func target(_ client: NginxClient, _ way: NginxClient.Way) -> String {
        "127.0.0.1:\(client.server.port(of: way.listener))"
    }

    // MARK: - Traffic

    @Test("BEY-14: https is spoken with the server itself, and the next message takes the same tunnel", arguments: ways)
    func passes(way: NginxClient.Way) async throws {
        let proxy = try TunnelProxy()
        let client = try await client(proxy)
        var connections: Set<Int?> = []
        for isReused in [false, true] {
            let contents = await client.outcome(client.request(way, "/echo-protocol"))
            expect(contents.head?.statusCode == 200 && contents.end?.error == nil && contents.faults.isEmpty)
            // The protocol that nginx saw.
            expect(contents.text.hasPrefix(way.listener == .https2 ? "HTTP/2.0 " : "HTTP/1.1 "), "\(contents.text)")
            connections.insert(contents.connection)
            let metrics = try #require(contents.metrics)
            let comment: Comment = "\(metrics)"
            expect(metrics.networkProtocol, equals: way.networkProtocol, comment)
            expect(metrics.remoteAddress, equals: proxy.address, comment)
            expect(metrics.isReusedConnection, equals: isReused, comment)
            expect((metrics.connect == nil) == isReused && (metrics.tls == nil) == isReused, comment)
            let times = [metrics.connect, metrics.tls, metrics.firstByte, metrics.total].compactMap(\.self)
            expect(times, equals: times.sorted(), comment)
        }
        expect(connections.count == 1 && !connections.contains(nil))
        expect(proxy.targets, equals: [target(client, way)])
    }

    @Test("BEY-14: bodies pass a tunnel whole, in both directions", arguments: ways)
    func bodies(way: NginxClient.Way) async throws {
        let proxy = try TunnelProxy()
        let client = try await client(proxy)
        let path = "/files/\(UUID().uuidString)"
        let body = bodyBytes(3_000_000)
        let put = await client.outcome(client.request(way, path, .put, .data(body)))
        expect(put.head?.statusCode == 201 && put.end?.error == nil)
        let got = await client.outcome(client.request(way, path))
        expect(got.body == body && got.end?.error == nil && got.faults.isEmpty)
        await expect(client.outcome(client.request(way, path, .delete)).head?.statusCode, equals: 204)
        expect(proxy.targets, equals: [target(client, way)])
    }

    @Test("BEY-14: the server's name is the proxy's to look up, and the certificate has to be for it", arguments: ways)
    func name(way: NginxClient.Way) async throws {
        let proxy = try TunnelProxy()
        let client = try await client(proxy)
        let port = client.server.port(of: way.listener)
        var request = client.request(way, "/small")
        request.url = try #require(URL(string: "https://localhost:\(port)/small"))
        await expect(client.outcome(request).isSmall)
        request.url = try #require(URL(string: "https://target.invalid:\(port)/small"))
        let error = try #require(await client.outcome(request).end?.error)
        expect(error.code == .tls && error.phase == .tls && !error.mayHaveReachedServer, "\(error)")
        expect(proxy.targets, equals: ["localhost:\(port)", "target.invalid:\(port)"])
    }

    @Test("BEY-14: the bytes of a message do not include those for the proxy", arguments: ways)
    func byteCounts(way: NginxClient.Way) async throws {
        let proxy = try TunnelProxy()
        let through = try await client(proxy)
        let direct = try await NginxClient()
        // The first request opens the tunnel, the others reuse it.
        for body in [TransportBody.none, .none, .data(Data(count: 5_000))] {
            let metrics = await through.outcome(through.request(way, "/upload", .post, body)).metrics
            let expected = await direct.outcome(direct.request(way, "/upload", .post, body)).metrics
            expect(metrics?.bytesSent == expected?.bytesSent && expected?.bytesSent ?? 0 > 0)
            expect(metrics?.bytesReceived == expected?.bytesReceived && expected?.bytesReceived ?? 0 > 0)
        }
        let distrusting = try await client(proxy, Distrust.wrongPin.configuration)
        let metrics = await distrusting.outcome(distrusting.request(way, "/small")).metrics
        expect(metrics?.bytesSent == 0 && metrics?.bytesReceived == 0 && metrics?.firstByte == nil)
        expect(proxy.targets.count, equals: 2)
    }

    // MARK: - Trust

    @Test("SEC-1: a pinned key is looked for at the server behind the proxy", arguments: ways)
    func rightPin(way: NginxClient.Way) async throws {
        let proxy = try TunnelProxy()
        let client = try await client(proxy) { server in
            TLSConfiguration(
                trust: .certificateFile(server.caFile),
                pinnedPublicKeys: try [server.otherPin, server.pin].map { try PublicKeyPin($0) }
            )
        }
        let contents = await client.outcome(client.request(way, "/small"))
        expect(contents.isSmall && contents.metrics?.networkProtocol == way.networkProtocol, "\(contents)")
        expect(proxy.targets, equals: [target(client, way)])
    }

    /// The reasons to distrust a server.
    enum Distrust: CaseIterable, Sendable {
        case otherAuthority
        case notTheSystems
        case wrongPin
        case wrongPinTrustingAll

        func configuration(_ server: NginxServer) throws -> TLSConfiguration {
            let pins = [try PublicKeyPin(server.otherPin)]
            return switch self {
            case .otherAuthority: TLSConfiguration(trust: .certificateFile(server.otherCAFile))
            case .notTheSystems: TLSConfiguration()
            case .wrongPin: TLSConfiguration(trust: .certificateFile(server.caFile), pinnedPublicKeys: pins)
            case .wrongPinTrustingAll:
                TLSConfiguration(trust: .dangerouslyTrustingEveryServer, pinnedPublicKeys: pins)
            }
        }
    }

    @Test("SEC-1: a server that is not trusted gets nothing through a tunnel", arguments: ways, Distrust.allCases)
    func refused(way: NginxClient.Way, distrust: Distrust) async throws {
        let proxy = try TunnelProxy()
        let client = try await client(proxy, distrust.configuration)
        let path = "/files/\(UUID().uuidString)"
        let contents = await client.outcome(client.request(way, path, .put, .data(Data("kept".utf8))))
        let error = try #require(contents.end?.error)
        expect(error.code == .tls && error.phase == .tls, "\(error)")
        expect(!error.mayHaveReachedServer && error.message?.isEmpty == false, "\(error)")
        expect(contents.head == nil && contents.sent.isEmpty && contents.faults.isEmpty)
        let file = client.server.folder.appendingPathComponent(path)
        expect(!FileManager.default.fileExists(atPath: file.path))
        // The proxy opened the tunnel, and was not asked again.
        expect(proxy.targets, equals: [target(client, way)])
    }

    // MARK: - A tunnel that breaks

    @Test(
        "BEY-1: a tunnel that ends within the handshake is an error, and nothing was sent",
        arguments: ways,
        [TunnelProxy.Course.end(after: 0), .end(after: 100), .reset(after: 0), .reset(after: 100)]
    )
    func brokenHandshake(way: NginxClient.Way, course: TunnelProxy.Course) async throws {
        let proxy = try TunnelProxy(course)
        let client = try await client(proxy)
        let contents = await client.outcome(client.request(way, "/files/x", .put, .data(Data("kept".utf8))))
        let error = try #require(contents.end?.error)
        expect([.tls, .cannotConnect].contains(error.code), "\(error)")
        try expect(#require(error.phase) < .send && !error.mayHaveReachedServer, "\(error)")
        expect(contents.head == nil && contents.sent.isEmpty && contents.faults.isEmpty)
        expect(contents.metrics?.networkProtocol == nil)
        expect(proxy.targets, equals: [target(client, way)])
    }

    // libcurl opens another tunnel for a message whose reused connection was closed before a response.
    @Test("BEY-14, SEC-1: what a proxy says of a second tunnel is not the server's response", arguments: [false, true])
    func secondTunnel(hasBody: Bool) async throws {
        let way = NginxClient.Way(listener: .https1, ipv6: false)
        let proxy = try TunnelProxy()
        let client = try await client(proxy)
        await expect(client.outcome(client.request(way, "/small")).isSmall)
        let body = hasBody ? TransportBody.data(Data("kept".utf8)) : .none
        let contents = await client.outcome(client.request(way, "/unanswered", hasBody ? .post : .get, body))
        let error = try #require(contents.end?.error, "\(contents)")
        expect(error.code == .connectionLost && error.mayHaveReachedServer, "\(error)")
        expect(contents.head == nil && contents.body.isEmpty && contents.faults.isEmpty, "\(contents)")
        expect(proxy.targets, equals: [target(client, way), target(client, way)])
        await expect(client.outcome(client.request(way, "/small")).isSmall)
    }
}
#endif
