#if os(Linux)
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("CurlBody")
struct CurlBodyTests {
    @Test(
        "REQ-4: a stream that can be read once only is not begun again on a new connection",
        arguments: [true, false]
    )
    func rewind(isReplayable: Bool) async throws {
        let arrived = Gate()
        let stream = TransportBodyStream(isReplayable: isReplayable) { InputStream(data: Data("x".utf8)) }
        let body = try #require(try CurlBody(.stream(stream)) { arrived.open() })
        expect(body.rewind())
        var buffer = [UInt8](repeating: 0, count: 8)
        try expect(buffer.withUnsafeMutableBytes { try body.read(into: $0) } == nil)
        await arrived.opened()
        try expect(buffer.withUnsafeMutableBytes { try body.read(into: $0) }, equals: 1)
        expect(body.rewind(), equals: isReplayable)
    }
}
#endif
