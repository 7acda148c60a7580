#if os(Linux)
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

/// Tests of both socket transports that a mock in the same process cannot cover.
@Suite("Nginx: every transport", .serialized, .enabled(if: NginxServer.isInstalled), .timeLimit(.minutes(10)))
struct NginxEveryTransportTests {
    typealias Kind = TransportFixture.Kind

    static let kinds: [Kind] = [.curl, .urlSession]

    /// A transport with the default configuration.
    static func transport(_ kind: Kind) -> any NetworkTransport {
        kind == .curl ? CurlTransport(TransportConfiguration(proxy: .none)) : URLSessionTransport()
    }

    static func outcome(
        _ transport: any NetworkTransport,
        _ path: String,
        ipv6: Bool = false,
        method: NetworkService.Method = .get,
        body: TransportBody = .none
    ) async throws -> Recording.Contents {
        let url = try await NginxServer.shared.url(.http, path, ipv6: ipv6)
        let request = TransportRequest(method: method, url: url, body: body, deadlines: TransportDeadlines(idle: nil))
        let recording = Recording {}
        let exchange = transport.start(request) { recording.note($0) }
        defer { withExtendedLifetime(transport) {} }
        return await RecordedExchange(exchange: exchange, recording: recording).end()
    }

    @Test("BEY-14: an IPv6 address for a host", .enabled(if: NginxServer.hasIPv6), arguments: kinds)
    func ipv6(kind: Kind) async throws {
        let contents = try await Self.outcome(Self.transport(kind), "/small", ipv6: true)
        await TransportCapability.ipv6Literals.check(kind) { failures in
            if !contents.isSmall { failures.append(("", contents)) }
        }
    }

    @Test("BEY-14: 64 at once are all whole", arguments: kinds)
    func manyAtOnce(kind: Kind) async throws {
        let transport = Self.transport(kind)
        for _ in 0..<2 {
            let outcomes = try await together(64) { _ in try await Self.outcome(transport, "/ranges") }
            expect(outcomes.allSatisfy { $0.body == NginxServer.rangesData && $0.end?.error == nil })
        }
    }

    @Test("BEY-14: thousands in a row go over a few connections", arguments: kinds)
    func inARow(kind: Kind) async throws {
        let transport = Self.transport(kind)
        var connections: Set<Int> = []
        for number in 0..<(Sanitizer.isThere ? 1_000 : TestLoad.count(10_000)) {
            // Every hundredth request asks for its connection's number.
            let isEcho = number % 100 == 0
            let contents = try await Self.outcome(transport, isEcho ? "/echo-protocol" : "/small")
            if isEcho, let connection = contents.connection {
                connections.insert(connection)
            } else {
                try #require(contents.isSmall, "\(number): \(contents)")
            }
        }
        // Sequential requests need one connection; a late return may cause another one.
        expect((1...10).contains(connections.count))
    }

    #if compiler(>=6.2)
    @Test("BEY-1: a gibibyte up in flat memory and down, over URLSessionTransport, too", .enabled(if: TestLoad.isFull))
    func gibibyte() async {
        await #expect(processExitsWith: .success) {
            let transport = URLSessionTransport()
            try await expect(Self.outcome(transport, "/small").isSmall)
            let file = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
            defer { try? FileManager.default.removeItem(at: file) }
            try Data().write(to: file)
            let handle = try FileHandle(forWritingTo: file)
            // A sparse file takes no space on the disk.
            try handle.truncate(atOffset: UInt64(NginxServer.bigCount))
            try handle.close()
            let before = try PeakMemory.now()
            let upload = try await Self.outcome(transport, "/upload", method: .put, body: .file(file))
            expect(Int(upload.text) ?? 0 > NginxServer.bigCount, "\(upload)")
            let growth = try PeakMemory.now() - before
            expect(growth < 64 << 20 || Sanitizer.isThere, "\(growth >> 20) MiB more")

            // URLSession has no back-pressure (see the table), so the amount of buffered data depends on timing.
            let url = try await NginxServer.shared.url(.http, "/big", ipv6: false)
            let (count, ended) = (Locked(0), Gate())
            let request = TransportRequest(url: url, deadlines: TransportDeadlines(idle: nil))
            let exchange = transport.start(request) { event in
                if case .body(let data) = event { count.withLock { $0 += data.count } }
                if case .end = event { ended.open() }
            }
            await ended.opened()
            withExtendedLifetime(exchange) {}
            expect(count.withLock { $0 }, equals: NginxServer.bigCount)
        }
    }
    #endif
}
#endif
