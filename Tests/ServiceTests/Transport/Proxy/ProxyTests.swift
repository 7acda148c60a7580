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

    @Test(
        "BEY-14: a proxy that refuses a tunnel is .cannotConnect with its status and reason, and nothing was sent",
        arguments: [403, 407, 502]
    )
    func refusedTunnel(status: Int) async throws {
        let server = try proxy()
        server.route("CONNECT", "*") { _ in
            let line = MockResponse.Fault.statusLine("HTTP/1.1 \(status) No way")
            return MockResponse(statusCode: status, headers: ["X-Squid-Error": "E"], fault: line)
        }
        for credentials in ["", "user:secret@"] {
            let proxy = ProxyConfiguration.url(try url(server, credentials: credentials))
            let contents = try await outcome("https://target.invalid/a/b", through: proxy)
            let error = try #require(contents.end?.error)
            expect(error.code, equals: .cannotConnect, "\(error)")
            expect(error.phase == .connect && !error.mayHaveReachedServer, "\(error)")
            expect(error.message?.hasSuffix(": \(status) No way"), equals: true, "\(error)")
            expect(error.statusCode == status && error.headers["X-Squid-Error"] == "E", "\(error)")
            expect(contents.head == nil && contents.faults.isEmpty, "\(error)")
        }
        expect(server.requests.allSatisfy { $0.method == "CONNECT" })
    }

    @Test("BEY-14: what a proxy says to CONNECT is bounded, and odd fields are no error")
    func oddTunnel() async throws {
        let server = try proxy()
        for odd in ["no field", " folded", "Content-Length: x, y", ": no name"] {
            let error = try await tunnelError(server, "HTTP/1.1 403 No\r\n\(odd)\r\nX-A: a\r\n\r\n")
            expect(
                error.code == .cannotConnect && error.statusCode == 403 && error.phase == .connect,
                "\(odd): \(error)"
            )
            let whole = try await tunnelError(server, "HTTP/1.1 200 Yes\r\n\(odd)\r\nX-A: a\r\n\r\n")
            expect(whole.code != .invalidRequest && !whole.mayHaveReachedServer, "\(odd): \(whole)")
        }
        let line = "X-A: \(String(repeating: "a", count: 1_000))\r\n"
        let long = try await tunnelError(server, "HTTP/1.1 200 Yes\r\n" + String(repeating: line, count: 300))
        expect(long.code == .badServerResponse && long.phase == .connect && !long.mayHaveReachedServer, "\(long)")
    }

    private func tunnelError(_ server: MockServer, _ answer: String) async throws -> NetworkError {
        server.route("CONNECT", "*") { _ in .fault(.raw(Data(answer.utf8))) }
        return try #require(await outcome("https://target.invalid/", through: .url(url(server))).end?.error)
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
