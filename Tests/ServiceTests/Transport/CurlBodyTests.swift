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

    @Test("REQ-4: a file that has become longer is refused before its last bytes, as one that became shorter is")
    func changedFile() throws {
        let folder = TestFolder()
        let file = folder.write("0123456789", to: "a")
        var buffer = [UInt8](repeating: 0, count: 8)
        func read(_ body: CurlBody) throws -> Int? { try buffer.withUnsafeMutableBytes { try body.read(into: $0) } }
        let whole = try #require(try CurlBody(.file(file)) {})
        try expect(read(whole) == 8 && read(whole) == 2 && read(whole) == 0)
        for (text, word) in [("0123456789a", "longer"), ("0123456", "shorter")] {
            folder.write("0123456789", to: "a")
            let body = try #require(try CurlBody(.file(file)) {})
            try expect(read(body), equals: 8)
            // In place: another file under the same name would not be read.
            let handle = try FileHandle(forWritingTo: file)
            try handle.truncate(atOffset: 0)
            try handle.write(contentsOf: Data(text.utf8))
            try handle.close()
            let error = #expect(throws: NetworkError.self) { try read(body) }
            expect(error?.code == .invalidRequest && error?.message?.contains(word) == true)
        }
    }
}
#endif
