#if os(Linux)
import Foundation
import Programs
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("Nginx: how the transport makes itself known", .enabled(if: NginxServer.isInstalled), .timeLimit(.minutes(10)))
struct NginxClientCertificateTests {
    private typealias ClientCertificate = TLSConfiguration.ClientCertificate

    private func client(_ certificate: @escaping (NginxServer) throws -> ClientCertificate?) async throws -> NginxClient
    {
        try await NginxClient { configuration, server in
            configuration.tls.clientCertificate = try certificate(server)
        }
    }

    @Test("SEC-1: with a client certificate the server knows the name; without, it answers 400")
    func clientCertificate() async throws {
        let known = try await client { .init(certificateFile: $0.clientCertificate, keyFile: $0.clientKey) }
        let unknown = try await client { _ in nil }
        for way in NginxClient.Way.all([.mutualTLS]) {
            let contents = await known.outcome(known.request(way, "/client"))
            expect(contents.text, equals: "SUCCESS \(TestCertificates.clientName)", "\(way)")
            let refused = await unknown.outcome(unknown.request(way, "/client"))
            expect(refused.head?.statusCode == 400 && refused.end?.error == nil, "\(way)")
        }
    }

    @Test("SEC-1: missing and unusable files are errors, and nothing is sent")
    func badFiles() async throws {
        let server = try await NginxServer.shared
        let missing = server.folder.appendingPathComponent("no-such-file.pem")
        let malformed = server.folder.appendingPathComponent("openssl.cnf")
        let configurations: [(String, TLSConfiguration)] = [
            ("no-such-file", TLSConfiguration(trust: .certificateFile(missing))),
            ("openssl.cnf", TLSConfiguration(trust: .certificateFile(malformed))),
            ("certificate", TLSConfiguration(trust: .certificateDirectory(missing))),
        ]
        let certificates: [(String, ClientCertificate)] = [
            ("no-such-file", .init(certificateFile: missing, keyFile: server.clientKey)),
            ("no-such-file", .init(certificateFile: server.clientCertificate, keyFile: missing)),
            ("openssl.cnf", .init(certificateFile: malformed, keyFile: server.clientKey)),
            ("openssl.cnf", .init(certificateFile: server.clientCertificate, keyFile: malformed)),
            // The key of another certificate.
            ("key", .init(certificateFile: server.clientCertificate, keyFile: server.certificates.serverKey)),
        ]
        let trusting = certificates.map { words, certificate in
            (words, TLSConfiguration(trust: .certificateFile(server.caFile), clientCertificate: certificate))
        }
        for (words, tls) in configurations + trusting {
            let client = try await NginxClient { configuration, _ in configuration.tls = tls }
            for listener in [NginxServer.Listener.mutualTLS, .https2] {
                let contents = await client.outcome(listener, "/client")
                let error = try #require(contents.end?.error, "\(words)")
                expect(error.code == .tls && error.phase == .tls && !error.mayHaveReachedServer, "\(error)")
                expect(error.message?.contains(words), equals: true, "\(error)")
                expect(contents.head == nil && contents.metrics?.bytesSent == 0, "\(error)")
            }
        }
    }
}
#endif
