#if os(Linux)
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("Nginx: whom the transport trusts", .enabled(if: NginxServer.isInstalled), .timeLimit(.minutes(10)))
struct NginxTLSTests {
    private static let ways = NginxClient.Way.all([.https1, .https2])

    /// Sends a PUT, which stores a file if it arrives, over every listener and address family.
    private func outcomes(
        _ tls: (NginxServer) throws -> TLSConfiguration
    ) async throws -> [(way: NginxClient.Way, contents: Recording.Contents, hasArrived: Bool)] {
        let client = try await NginxClient { configuration, server in configuration.tls = try tls(server) }
        var outcomes: [(NginxClient.Way, Recording.Contents, Bool)] = []
        for way in Self.ways {
            let path = "/files/\(UUID().uuidString)"
            let contents = await client.outcome(client.request(way, path, .put, .data(Data("kept".utf8))))
            let file = client.server.folder.appendingPathComponent(path)
            outcomes.append((way, contents, FileManager.default.fileExists(atPath: file.path)))
        }
        return outcomes
    }

    private func expectAccepted(_ what: String, _ tls: (NginxServer) throws -> TLSConfiguration) async throws {
        for (way, contents, hasArrived) in try await outcomes(tls) {
            let comment: Comment = "\(what), \(way): \(String(describing: contents.end?.error))"
            expect(contents.head?.statusCode == 201 && contents.end?.error == nil, comment)
            expect(contents.metrics?.networkProtocol, equals: way.networkProtocol, comment)
            expect(hasArrived, comment)
        }
    }

    private func expectRefused(_ what: String, _ tls: (NginxServer) throws -> TLSConfiguration) async throws {
        for (way, contents, hasArrived) in try await outcomes(tls) {
            let error = try #require(contents.end?.error, "\(what), \(way)")
            let comment: Comment = "\(what), \(way): \(error)"
            expect(error.code == .tls && error.phase == .tls, comment)
            expect(!error.mayHaveReachedServer && error.message?.isEmpty == false, comment)
            expect(contents.head == nil && contents.metrics?.bytesSent == 0 && !hasArrived, comment)
        }
    }

    @Test("SEC-1: a custom authority is trusted by file, by folder, and without checks")
    func accepted() async throws {
        try await expectAccepted("file") { TLSConfiguration(trust: .certificateFile($0.caFile)) }
        try await expectAccepted("folder") { TLSConfiguration(trust: .certificateDirectory($0.caDirectory)) }
        try await expectAccepted("all") { _ in TLSConfiguration(trust: .dangerouslyTrustingEveryServer) }
    }

    @Test("SEC-1: a server of another authority is refused before anything is sent")
    func refused() async throws {
        try await expectRefused("system") { _ in TLSConfiguration() }
        try await expectRefused("other file") { TLSConfiguration(trust: .certificateFile($0.otherCAFile)) }
        // The folder has no certificate that is named by its hash.
        try await expectRefused("other folder") { TLSConfiguration(trust: .certificateDirectory($0.folder)) }
    }

    @Test("SEC-1: a single matching pin is enough, with every kind of trust")
    func rightPin() async throws {
        for isFirst in [true, false] {
            try await expectAccepted("right one first: \(isFirst)") { server in
                let pins = isFirst ? [server.pin, server.otherPin] : [server.otherPin, server.pin]
                return TLSConfiguration(
                    trust: .certificateFile(server.caFile),
                    pinnedPublicKeys: try pins.map { try PublicKeyPin($0) }
                )
            }
        }
        try await expectAccepted("trusting all") { server in
            TLSConfiguration(
                trust: .dangerouslyTrustingEveryServer,
                pinnedPublicKeys: [try PublicKeyPin(server.pin)]
            )
        }
    }

    @Test("SEC-1: a server without a pinned key is refused, with every kind of trust")
    func wrongPin() async throws {
        try await expectRefused("wrong pin") { server in
            TLSConfiguration(
                trust: .certificateFile(server.caFile),
                pinnedPublicKeys: [try PublicKeyPin(server.otherPin)]
            )
        }
        try await expectRefused("wrong pin, trusting all") { server in
            TLSConfiguration(
                trust: .dangerouslyTrustingEveryServer,
                pinnedPublicKeys: [try PublicKeyPin(server.otherPin)]
            )
        }
        // A pin is an additional requirement, and does not replace trust.
        try await expectRefused("right pin, other authority") { server in
            TLSConfiguration(
                trust: .certificateFile(server.otherCAFile),
                pinnedPublicKeys: [try PublicKeyPin(server.pin)]
            )
        }
    }

    @Test("SEC-1: a minimum of TLS 1.3 refuses a server with TLS 1.2", arguments: [false, true])
    func minimumVersion(ipv6: Bool) async throws {
        guard !ipv6 || NginxServer.hasIPv6 else { return }
        let strict = try await NginxClient { configuration, _ in configuration.tls.requiresTLS13 = true }
        let lenient = try await NginxClient()
        let old = NginxClient.Way(listener: .oldTLS, ipv6: ipv6)
        let error = await strict.outcome(strict.request(old, "/small")).end?.error
        expect(error?.code == .tls && error?.phase == .tls && error?.mayHaveReachedServer == false)
        await expect(lenient.outcome(lenient.request(old, "/small")).isSmall)
        for listener in [NginxServer.Listener.https1, .https2] {
            await expect(strict.outcome(strict.request(.init(listener: listener, ipv6: ipv6), "/small")).isSmall)
        }
    }

    @Test(
        "SEC-1: a later connection to a host resumes the TLS session",
        arguments: [NginxServer.Listener.oldTLS, .https1]
    )
    func resumption(listener: NginxServer.Listener) async throws {
        let client = try await NginxClient()
        let other = try await NginxClient()
        let way = NginxClient.Way(listener: listener, ipv6: false)
        var resumed: [String] = []
        for client in [client, client, client, other] {
            let contents = await client.outcome(client.request(way, "/resumed"))
            expect(contents.metrics?.isReusedConnection, equals: false)
            resumed.append(String(decoding: contents.body, as: UTF8.self))
        }
        expect(resumed, equals: [".", "r", "r", "."])
    }

    @Test("SEC-1: a server that was refused for its key is refused again, though its TLS session is known")
    func refusedAgain() async throws {
        let client = try await NginxClient { configuration, server in
            configuration.tls.pinnedPublicKeys = [try PublicKeyPin(server.otherPin)]
        }
        for _ in 0..<3 {
            let way = NginxClient.Way(listener: .oldTLS, ipv6: false)
            await expect(client.outcome(client.request(way, "/resumed")).code, equals: .tls)
        }
    }

    @Test("SEC-1: transports share neither trust nor connections")
    func transportsAreApart() async throws {
        let trusting = try await NginxClient()
        let other = try await NginxClient { configuration, server in
            configuration.tls.trust = .certificateFile(server.otherCAFile)
        }
        for way in Self.ways {
            await expect(trusting.outcome(trusting.request(way, "/small")).isSmall)
            await expect(other.outcome(other.request(way, "/small")).code, equals: .tls)
            await expect(trusting.outcome(trusting.request(way, "/small")).metrics?.isReusedConnection, equals: true)
        }
    }
}
#endif
