#if os(Linux)
import Foundation
import Testing

@testable import EasyNetwork

@Suite("CurlStreamBody")
struct CurlStreamBodyTests {
    @Test(
        "REQ-4: once begun, a stream that can be read once is not begun again on a new connection",
        arguments: [true, false]
    )
    func rewind(isReplayable: Bool) async throws {
        let arrived = Gate()
        let stream = TransportBodyStream(isReplayable: isReplayable) { InputStream(data: Data("x".utf8)) }
        let body = CurlStreamBody(stream) { arrived.open() }
        #expect(body.rewind())
        var buffer = [UInt8](repeating: 0, count: 8)
        #expect(try buffer.withUnsafeMutableBytes { try body.read(into: $0) } == nil)
        await arrived.opened()
        #expect(try buffer.withUnsafeMutableBytes { try body.read(into: $0) } == 1)
        #expect(body.rewind() == isReplayable)
    }
}
#endif
