import EasyNetwork
import Foundation
import Testing

@testable import EasyNetworkTesting
@testable import TestSupport

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite("Gzip")
struct GzipTests {
    @Test("BEY-11: the checksum is the standard's check value, and many zeros at once equal zeros one by one")
    func checksum() {
        var check = CRC32()
        check.append("123456789".utf8)
        expect(check.value, equals: 0xCBF4_3926)
        for count in [0, 1, 2, 3, 255, 1_000] {
            var (one, all) = (CRC32(), CRC32())
            one.append([7])
            all.append([7])
            one.append([UInt8](repeating: 0, count: count))
            all.appendZeros(count)
            expect(one.value, equals: all.value, "\(count) zeros")
        }
    }

    @Test("BEY-11: stored bytes and zeros are gzip to the bit, confirmed by another reader")
    func golden() {
        expect(Gzip.stored(Data("ab".utf8)).base64EncodedString(), equals: "H4sIAAAAAAAA/wECAP3/YWJtSIOeAgAAAA==")
        expect(Gzip.zeros(0).base64EncodedString(), equals: "H4sIAAAAAAAA/+3AgQAAAACAoP2pF6kBAAAAAAAAAAA=")
        let thousand =
            "H4sIAAAAAAAA/+3AgQAAAACAoP2pF6mqqqqqqqqqqqqqqqqqqqqqqqqqqqqq"
            + "qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqgIGgBcLBugDAAA="
        expect(Gzip.zeros(1_000).base64EncodedString(), equals: thousand)
        expect(Gzip.zeros(1 << 30).count, equals: 1_040_480)
    }

    @Test("BEY-11: a bomb inflates to its size", arguments: [0, 1, 258, 259, 260, 517, 1_033, 100_000, 20_000_003])
    func bomb(count: Int) async throws {
        let server = try MockServer()
        server.route("GET", "/") { _ in .inflationBomb(count) }
        let (data, _) = try await URLSession.shared.data(from: server.baseURL)
        expect(data, equals: Data(count: count))
        expect(Gzip.zeros(count).count <= 110 + count / 1_032)
    }

    @Test("BEY-11: stored gzip of several blocks is read, and a cut one lacks only its end")
    func stored() async throws {
        let data = Data((0..<200_000).map { UInt8(truncatingIfNeeded: $0 / 7) })
        let server = try MockServer()
        server.route("GET", "/") { _ in .gzip(data) }
        let (read, _) = try await URLSession.shared.data(from: server.baseURL)
        expect(read, equals: data)
        let whole = Gzip.stored(data)
        for missing in [0, 1, 8, 100_000, 999_999] {
            let response = MockResponse.gzip(data, missing: missing)
            let sight = try await MockServer.sight(
                of: response,
                request: "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
            )
            let sent = whole.dropLast(missing)
            let head = "Content-Encoding: gzip\r\nContent-Length: \(sent.count)\r\nConnection: close\r\n\r\n"
            expect(sight.bytes, equals: Data("HTTP/1.1 200 OK\r\n\(head)".utf8) + sent)
        }
    }
}
