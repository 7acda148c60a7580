#if os(Linux)
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("CurlChunkSizes")
struct CurlChunkSizesTests {
    /// Whether all is accepted, in the pieces that two cuts make.
    private static func accepts(_ text: String, _ first: Int, _ second: Int) -> Bool {
        let bytes = Array(text.utf8)
        var sizes = CurlChunkSizes()
        return [bytes[..<first], bytes[first..<second], bytes[second...]].allSatisfy { piece in
            piece.withUnsafeBytes { sizes.accept($0) }
        }
    }

    private static func check(_ text: String, isGood: Bool) {
        for first in 0...text.utf8.count {
            for second in first...text.utf8.count {
                expect(
                    accepts(text, first, second),
                    equals: isGood,
                    "\(text.debugDescription) cut at \(first), \(second)"
                )
            }
        }
    }

    @Test(
        "BEY-17: a well-formed body is accepted, wherever it is cut",
        arguments: [
            "0\r\n\r\n", "5\r\nhello\r\n0\r\n\r\n", "5;a=b\r\n\r\n0x5\r\n000 ;c=\"d\"\r\nT: 0x5\r\n\r\n",
            "00b \t\r\n0123456789a\r\n0\r\n",
            "B\n0123456789a\n0\n\n", "0\r\n\r\nHTTP/1.1 408 Request Timeout\r\n\r\n", "7FFFFFFFFFFFFFFF\r\nx", "",
        ]
    )
    func wellFormed(_ text: String) {
        Self.check(text, isGood: true)
    }

    @Test(
        "BEY-17: a malformed size is refused, wherever it is cut",
        arguments: [
            "0x5\r\n\r\n", "0 x\r\n", "0_1\r\n", "5\r\nhello\r\n0x\r\n\r\n", "\r\n", ";a\r\n", " 5\r\n", "-5\r\n",
            "+5\r\n",
            "5g\r\n", "5\rx\n", "5\r\r\n", "5 5\r\n", "\u{665}\r\n", "80000000000000000\r\n", "10000000000000000\r\n",
        ]
    )
    func malformed(_ text: String) {
        Self.check(text, isGood: false)
    }
}
#endif
