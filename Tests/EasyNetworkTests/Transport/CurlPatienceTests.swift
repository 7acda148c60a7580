#if os(Linux)
import Testing

@testable import EasyNetwork

@Suite("CurlPatience")
struct CurlPatienceTests {
    @Test("BEY-11: the loop looks soon after something has moved, then ever less often, and not without transfers")
    func waits() {
        var patience = CurlPatience()
        #expect(patience.wait(underWay: 0, hasMoved: false) == .max)
        let quiet = (0..<9).map { patience.wait(underWay: 1, hasMoved: $0 == 0) }
        #expect(quiet == [10, 20, 40, 80, 160, 320, 640, 1_000, 1_000])
        #expect(patience.wait(underWay: 0, hasMoved: true) == .max)
        #expect(patience.wait(underWay: 2, hasMoved: true) == 10)
        #expect(patience.wait(underWay: 2, hasMoved: true) == 10)
    }
}
#endif
