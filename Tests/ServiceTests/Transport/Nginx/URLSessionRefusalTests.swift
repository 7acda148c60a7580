#if os(Linux)
import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("URLSessionTransport: unsupported settings on Linux", .timeLimit(.minutes(10)))
struct URLSessionRefusalTests {
    @Test("SEC-1: a setting that the session cannot keep ends the exchange before anything is sent")
    func refused() async throws {
        let file = URL(fileURLWithPath: "/no/such/file.pem")
        let pin = try PublicKeyPin("sha256//" + Data(count: 32).base64EncodedString())
        let settings: [TLSConfiguration] = [
            TLSConfiguration(trust: .certificateFile(file)),
            TLSConfiguration(trust: .certificateDirectory(file)),
            TLSConfiguration(trust: .dangerouslyTrustingEveryServer),
            TLSConfiguration(requiresTLS13: true),
            TLSConfiguration(pinnedPublicKeys: [pin]),
            TLSConfiguration(clientCertificate: .init(certificateFile: file, keyFile: file)),
        ]
        let proxy = ProxyConfiguration.url(try #require(URL(string: "http://127.0.0.1:9")))
        let configurations =
            settings.map { TransportConfiguration(tls: $0) }
            + [TransportConfiguration(proxy: .none), TransportConfiguration(proxy: proxy)]
        for configuration in configurations {
            let fixture = try TransportFixture(.urlSession, configuration)
            fixture.route("GET", "/a") { _ in .text("a") }
            let outcome = await fixture.start(try fixture.request("/a")).end()
            let error = try #require(outcome.end?.error, "\(configuration)")
            expect(error.code == .invalidRequest && !error.mayHaveReachedServer, "\(configuration)")
            expect(error.message?.contains("CurlTransport"), equals: true, "\(error)")
            expect(outcome.head == nil && outcome.faults.isEmpty && fixture.requests.isEmpty, "\(configuration)")
        }
        let usual = try TransportFixture(.urlSession)
        usual.route("GET", "/a") { _ in .text("a") }
        await expect(usual.start(try usual.request("/a")).end().body, equals: Data("a".utf8))
    }
}
#endif
