#if os(Linux) && compiler(>=6.2)
import Foundation
import Testing

@testable import EasyNetwork

/// Each in a process of its own, as it looks at the memory of the process.
@Suite("Nginx: a reader that pauses", .enabled(if: NginxServer.isInstalled), .timeLimit(.minutes(2)))
struct NginxBackPressureTests {
    @Test("BEY-1: the server is held back while others go on, then sends the rest, over HTTP/1.1")
    func resumesOverHTTP1() async {
        await #expect(processExitsWith: .success) { try await Gibibyte(.http).backPressure(cancels: false) }
    }

    @Test("BEY-1: the server is held back while others go on, then sends the rest, over HTTP/2")
    func resumesOverHTTP2() async {
        await #expect(processExitsWith: .success) { try await Gibibyte(.https2).backPressure(cancels: false) }
    }

    @Test("BEY-1: one that is held back is cancelled, over HTTP/1.1")
    func cancelsOverHTTP1() async {
        await #expect(processExitsWith: .success) { try await Gibibyte(.http).backPressure(cancels: true) }
    }

    @Test("BEY-1: one that is held back is cancelled, over HTTP/2")
    func cancelsOverHTTP2() async {
        await #expect(processExitsWith: .success) { try await Gibibyte(.https2).backPressure(cancels: true) }
    }
}
#endif
