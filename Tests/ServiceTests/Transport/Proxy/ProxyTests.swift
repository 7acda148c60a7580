#if os(Linux)
import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("CurlTransport: proxies", .timeLimit(.minutes(10)))
struct ProxyTests {
    private static let target = "http://target.invalid:8080/a/b?c=d"

    /// A server that answers every request like a proxy.
    private func proxy() throws -> MockServer {
        let server = try MockServer()
        server.route("*", "/a/b") { _ in .text("through the proxy") }
        return server
    }

    private func url(_ proxy: MockServer, scheme: String = "http", credentials: String = "") throws -> URL {
        let address = "\(scheme)://\(credentials)127.0.0.1:\(proxy.baseURL.port ?? 0)"
        return try #require(URL(string: address))
    }

    private func outcome(_ address: String, through proxy: ProxyConfiguration) async throws -> Recording.Contents {
        let transport = CurlTransport(TransportConfiguration(proxy: proxy))
        // Releasing the transport would end the exchange.
        defer { withExtendedLifetime(transport) {} }
        let recording = Recording {}
        var request = TransportRequest(url: try #require(URL(string: address)))
        request.headers = ["X-Secret": "for the server"]
        // Without a network, the resolver may try for a long time.
        request.deadlines = TransportDeadlines(idle: nil)
        let exchange = transport.start(request) { recording.note($0) }
        return await RecordedExchange(exchange: exchange, recording: recording).end()
    }

    @Test("BEY-14: http goes to the proxy with the whole URL, and the metrics have the proxy's address")
    func absoluteForm() async throws {
        let server = try proxy()
        let contents = try await outcome(Self.target, through: .url(url(server)))
        expect(contents.text == "through the proxy" && contents.end?.error == nil)
        let request = try #require(server.requests.first)
        expect(request.target == Self.target && request.path == "/a/b" && request.query == "c=d")
        expect(request.headers.values(for: "Host"), equals: ["target.invalid:8080"])
        expect(request.headers["Proxy-Authorization"] == nil && request.headers["X-Secret"] != nil)
        expect(contents.metrics?.remoteAddress, equals: "127.0.0.1:\(server.baseURL.port ?? 0)")
    }

    @Test("SEC-1: user and password of the proxy go to the proxy only")
    func credentials() async throws {
        let server = try proxy()
        let expected = "Basic " + Data("us er:se:cret".utf8).base64EncodedString()
        let url = try url(server, credentials: "us%20er:se%3Acret@")
        try await expect(outcome(Self.target, through: .url(url)).end?.error == nil)
        expect(server.requests.first?.headers.values(for: "Proxy-Authorization"), equals: [expected])
        expect(server.requests.first?.headers["Authorization"] == nil)
        // Credentials in the URL are not sent, as without a proxy.
        let withUser = Self.target.replacingOccurrences(of: "//", with: "//me:mine@")
        try await expect(outcome(withUser, through: .url(url)).end?.error == nil)
        expect(server.requests.last?.headers.values(for: "Proxy-Authorization"), equals: [expected])
        expect(server.requests.last?.headers["Authorization"] == nil)
        expect(server.requests.last?.target.contains("mine"), equals: false)
        // CONNECT carries the proxy's credentials and none of the server's fields.
        server.route("CONNECT", "*") { _ in .status(403) }
        _ = try await outcome("https://target.invalid/a/b", through: .url(url))
        let connect = try #require(server.requests.last)
        expect(connect.method == "CONNECT" && connect.target == "target.invalid:443")
        expect(connect.headers.values(for: "Proxy-Authorization"), equals: [expected])
        expect(connect.headers["X-Secret"] == nil)
    }

    @Test("BEY-14: a proxy that refuses a tunnel is .cannotConnect, and nothing was sent", arguments: [403, 407, 502])
    func refusedTunnel(status: Int) async throws {
        let server = try proxy()
        server.route("CONNECT", "*") { _ in .status(status) }
        for credentials in ["", "user:secret@"] {
            let proxy = ProxyConfiguration.url(try url(server, credentials: credentials))
            let contents = try await outcome("https://target.invalid/a/b", through: proxy)
            let error = try #require(contents.end?.error)
            expect(error.code, equals: .cannotConnect, "\(error)")
            expect(error.phase == .connect && !error.mayHaveReachedServer, "\(error)")
            expect(error.message?.contains("\(status)"), equals: true, "\(error)")
            expect(contents.head == nil && contents.faults.isEmpty, "\(error)")
        }
        expect(server.requests.allSatisfy { $0.method == "CONNECT" })
    }

    @Test("BEY-14: a missing proxy, or one that hangs up, is .cannotConnect")
    func noProxy() async throws {
        let server = try proxy()
        server.route("CONNECT", "*") { _ in .fault(.close) }
        let hungUp = try await outcome("https://target.invalid/a/b", through: .url(url(server)))
        expect(hungUp.code == .cannotConnect && hungUp.end?.error?.phase == .connect, "\(hungUp)")
        let closed = try DeafListener(.closed)
        for address in [Self.target, "https://target.invalid/a/b"] {
            let contents = try await outcome(address, through: .url(closed.url))
            expect(contents.code == .cannotConnect && contents.end?.error?.phase == .connect, "\(contents)")
        }
        withExtendedLifetime(closed) {}
        let unknown = try #require(URL(string: "http://nowhere.invalid:1"))
        let contents = try await outcome(Self.target, through: .url(unknown))
        expect(contents.code == .cannotConnect && contents.end?.error?.phase == .resolve, "\(contents)")
    }

    @Test("BEY-14: a malformed proxy ends every exchange, without its password in the message")
    func malformed() async throws {
        for address in ["ftp://127.0.0.1:1", "127.0.0.1", "http://", "http:///path", "proxy", "//user:secret@host:1"] {
            let proxy = ProxyConfiguration.url(try #require(URL(string: address)))
            let contents = try await outcome(Self.target, through: proxy)
            let error = try #require(contents.end?.error, "\(address)")
            expect(error.code == .invalidRequest && !error.mayHaveReachedServer, "\(address): \(error)")
            expect(error.message?.contains("secret"), equals: false, "\(error)")
            expect(contents.head == nil, "\(address)")
        }
    }
}
#endif
