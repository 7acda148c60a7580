#if os(Linux) && compiler(>=6.2)
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

/// Each test runs in a separate process, because it measures memory. Serialized, because together they would overload
/// processor and disk.
@Suite(
    "Nginx: a gibibyte in flat memory",
    .serialized,
    .enabled(if: NginxServer.isInstalled && TestLoad.isFull),
    .timeLimit(.minutes(10))
)
struct NginxGibibyteTests {
    @Test("BEY-1: a download over HTTP/1.1")
    func downloadOverHTTP1() async {
        await #expect(processExitsWith: .success) { try await Gibibyte(.http).download() }
    }

    @Test("BEY-1: a download over HTTP/2")
    func downloadOverHTTP2() async {
        await #expect(processExitsWith: .success) { try await Gibibyte(.https2).download() }
    }

    @Test("BEY-1: an upload of a file over HTTP/1.1")
    func fileOverHTTP1() async {
        await #expect(processExitsWith: .success) { try await Gibibyte(.http).uploadFile() }
    }

    @Test("BEY-1: an upload of a file over HTTP/2")
    func fileOverHTTP2() async {
        await #expect(processExitsWith: .success) { try await Gibibyte(.https2).uploadFile() }
    }

    @Test("BEY-1: an upload of pieces made while it goes on, over HTTP/1.1")
    func piecesOverHTTP1() async {
        await #expect(processExitsWith: .success) { try await Gibibyte(.http).uploadPieces() }
    }

    @Test("BEY-1: an upload of pieces made while it goes on, over HTTP/2")
    func piecesOverHTTP2() async {
        await #expect(processExitsWith: .success) { try await Gibibyte(.https2).uploadPieces() }
    }
}
#endif
