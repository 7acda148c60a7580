#if os(Linux) && compiler(>=6.2)
import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

/// Each test runs in a separate process, because the environment is global.
@Suite("CurlTransport: the proxy of the environment", .timeLimit(.minutes(10)))
struct ProxyEnvironmentTests {
    /// A server and a proxy.
    struct Place {
        private let server: MockServer
        let proxy: MockServer

        init() throws {
            server = try MockServer()
            proxy = try MockServer()
            server.route("GET", "/") { _ in .text("server") }
            proxy.route("GET", "/") { _ in .text("proxy") }
        }

        /// Returns the answer to a request to the server, which names the server or the proxy.
        func answer(_ configuration: ProxyConfiguration) async throws -> String {
            let transport = CurlTransport(TransportConfiguration(proxy: configuration))
            defer { withExtendedLifetime(transport) {} }
            let recording = Recording {}
            let url = try #require(URL(string: server.baseURL.absoluteString + "/"))
            let exchange = transport.start(TransportRequest(url: url, deadlines: TransportDeadlines(idle: nil))) {
                recording.note($0)
            }
            return await RecordedExchange(exchange: exchange, recording: recording).end().text
        }
    }

    private static let names = ["http_proxy", "https_proxy", "all_proxy", "no_proxy"]

    static func clear() {
        for name in names {
            unsetenv(name)
            unsetenv(name.uppercased())
        }
    }

    @Test("BEY-14: the system's proxy is the environment's; .none uses no proxy")
    func environment() async {
        await #expect(processExitsWith: .success) {
            let place = try Place()
            let address = place.proxy.baseURL.absoluteString
            ProxyEnvironmentTests.clear()
            try await expect(place.answer(.system), equals: "server")
            for name in ["http_proxy", "all_proxy"] {
                ProxyEnvironmentTests.clear()
                setenv(name, address, 1)
                try await expect(place.answer(.system), equals: "proxy", "\(name)")
                try await expect(place.answer(.none), equals: "server", "\(name)")
            }
            // With a password, which the proxy has to ask for.
            for challenge in ["Basic realm=r", "Digest realm=r, nonce=n, qop=auth"] {
                place.proxy.route("GET", "/") { request in
                    let password = request.headers["Proxy-Authorization"] ?? ""
                    return password.isEmpty ? .status(407, headers: ["Proxy-Authenticate": challenge]) : .text(password)
                }
                let withPassword = address.replacingOccurrences(of: "//", with: "//user:secret@")
                for name in ["http_proxy", "all_proxy"] {
                    ProxyEnvironmentTests.clear()
                    setenv(name, withPassword, 1)
                    let scheme = challenge.prefix { $0 != " " }
                    try await expect(place.answer(.system).hasPrefix("\(scheme) "), "\(name)")
                }
            }
            // The variable is for another scheme.
            ProxyEnvironmentTests.clear()
            setenv("https_proxy", address, 1)
            try await expect(place.answer(.system), equals: "server")
        }
    }

    @Test("BEY-14: the system's exceptions are the environment's")
    func exceptions() async {
        await #expect(processExitsWith: .success) {
            let place = try Place()
            ProxyEnvironmentTests.clear()
            setenv("http_proxy", place.proxy.baseURL.absoluteString, 1)
            for (hosts, answer) in [("other.test", "proxy"), ("other.test,127.0.0.1", "server"), ("*", "server")] {
                setenv("no_proxy", hosts, 1)
                try await expect(place.answer(.system), equals: answer, "\(hosts)")
            }
        }
    }

    @Test("BEY-14: a configured proxy serves every host, whatever the environment says")
    func ownProxy() async {
        await #expect(processExitsWith: .success) {
            let place = try Place()
            let own = ProxyConfiguration.url(place.proxy.baseURL)
            ProxyEnvironmentTests.clear()
            setenv("http_proxy", "http://127.0.0.1:1", 1)
            try await expect(place.answer(own), equals: "proxy")
            for hosts in ["127.0.0.1", "*"] {
                setenv("no_proxy", hosts, 1)
                try await expect(place.answer(own), equals: "proxy", "\(hosts)")
            }
        }
    }
}
#endif
