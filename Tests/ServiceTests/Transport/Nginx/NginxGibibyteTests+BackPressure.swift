#if os(Linux) && compiler(>=6.2)
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

extension NginxGibibyteTests {
    @Test(
        "BEY-1: a reader that pauses holds the server back, and no others, then gets the rest, over HTTP/1.1"
    )
    func resumesOverHTTP1() async {
        await #expect(processExitsWith: .success) { try await Gibibyte(.http).backPressure(cancels: false) }
    }

    @Test("BEY-1: a reader that pauses holds the server back, and no others, then gets the rest, over HTTP/2")
    func resumesOverHTTP2() async {
        await #expect(processExitsWith: .success) { try await Gibibyte(.https2).backPressure(cancels: false) }
    }

    @Test("BEY-1: a download whose reader has paused is cancelled, over HTTP/1.1")
    func cancelsOverHTTP1() async {
        await #expect(processExitsWith: .success) { try await Gibibyte(.http).backPressure(cancels: true) }
    }

    @Test("BEY-1: a download whose reader has paused is cancelled, over HTTP/2")
    func cancelsOverHTTP2() async {
        await #expect(processExitsWith: .success) { try await Gibibyte(.https2).backPressure(cancels: true) }
    }
}
#endif
