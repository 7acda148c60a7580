#if os(Linux)
import Foundation
import Programs
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("NginxServer", .enabled(if: NginxServer.isInstalled), .timeLimit(.minutes(10)))
struct NginxServerTests {
    private let transport = CurlTransport()

    private func outcome(_ request: TransportRequest) async -> Recording.Contents {
        let recording = Recording {}
        let exchange = transport.start(request) { recording.note($0) }
        return await RecordedExchange(exchange: exchange, recording: recording).end()
    }

    private func text(_ url: URL) async -> String {
        String(decoding: await outcome(TransportRequest(url: url)).body, as: UTF8.self)
    }

    @Test("BEY-6: without TLS it answers on 127.0.0.1, and on ::1", arguments: [false, true])
    func plain(ipv6: Bool) async throws {
        guard !ipv6 || NginxServer.hasIPv6 else { return }
        let server = try await NginxServer.shared
        let outcome = await outcome(TransportRequest(url: server.url(.http, "/small", ipv6: ipv6)))
        expect(outcome.head?.statusCode, equals: 200)
        expect(outcome.body.count, equals: 1_024)
        expect(outcome.end?.error == nil)
    }

    @Test("SEC-1: an authority that the system does not know is refused", arguments: NginxServer.Listener.allCases)
    func unknownAuthority(listener: NginxServer.Listener) async throws {
        guard listener != .http else { return }
        let server = try await NginxServer.shared
        for ipv6 in NginxServer.hasIPv6 ? [false, true] : [false] {
            let outcome = await outcome(TransportRequest(url: server.url(listener, "/small", ipv6: ipv6)))
            expect(outcome.code, equals: .tls)
            expect(outcome.head == nil)
        }
    }

    @Test("BEY-6: the second request goes over the connection of the first")
    func connectionIsKept() async throws {
        let server = try await NginxServer.shared
        let first = await text(server.url(.http, "/echo-protocol")).split(separator: " ")
        let second = await text(server.url(.http, "/echo-protocol")).split(separator: " ")
        expect(first.count == 3 && first.first == "HTTP/1.1" && first.last == "1")
        expect(second.count == 3 && second.dropLast() == first.dropLast() && second.last == "2")
    }

    @Test("The listeners serve their protocols")
    func locations() async throws {
        let server = try await NginxServer.shared
        await expect(text(server.url(.http, "/text")), equals: NginxServer.text)
        await expect(outcome(TransportRequest(url: server.url(.http, "/ranges"))).body, equals: NginxServer.rangesData)
        let redirect = await outcome(TransportRequest(url: server.url(.http, "/redirect"))).head
        expect(redirect?.statusCode == 302 && redirect?.headers["Location"] == "/small")
        var upload = TransportRequest(method: .put, url: server.url(.http, "/upload"))
        upload.body = .data(Data(repeating: 1, count: 3_000_000))
        let length = Int(String(decoding: await outcome(upload).body, as: UTF8.self)) ?? 0
        expect((3_000_001..<3_010_000).contains(length))
        upload.url = server.url(.http, "/files/kept")
        await expect(outcome(upload).head?.statusCode, equals: 201)
        await expect(outcome(TransportRequest(url: upload.url)).body.count, equals: 3_000_000)
        await expect(outcome(TransportRequest(method: .delete, url: upload.url)).head?.statusCode, equals: 204)
    }

    @Test("A stopped server closes its ports and removes its folder; a taken port is an error at once")
    func stops() async throws {
        // Blocks this test's thread for two tenths of a second.
        let server = try NginxServer()
        let ports = NginxServer.Listener.allCases.map { server.port(of: $0) }
        #expect(throws: Nginx.PortTaken.self) { try NginxServer(ports: ports) }
        expect(FileManager.default.fileExists(atPath: server.folder.path))
        await expect(text(server.url(.http, "/echo-protocol")).hasPrefix("HTTP/1.1"))
        server.stop()
        await expect(eventually { !FileManager.default.fileExists(atPath: server.folder.path) })
        await expect(outcome(TransportRequest(url: server.url(.http, "/small"))).end?.error != nil)
    }
}
#endif
