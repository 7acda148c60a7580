#if os(Linux)
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("CurlReport")
struct CurlReportTests {
    private static func report(_ text: String) -> CurlReport? {
        Array(text.utf8).withUnsafeBytes { CurlReport($0) }
    }

    @Test(
        "BEY-23: what libcurl tells of a stream is understood in the words of each version",
        arguments: [
            ("[HTTP/2] [3] RESET: REFUSED_STREAM (err 7)\n", CurlReport.refused),
            ("[HTTP/2] [0] MAX_CONCURRENT_STREAMS: 128\n", .streamLimit(128)),
            ("Using Stream ID: 21 (easy handle 0x55d0)\n", .stream(21)),
            ("recveived GOAWAY, error=0, last_stream=19\n", .lastStream(19)),
            ("recveived GOAWAY, error=-902, last_stream=69\n", .lastStream(69)),
            ("received GOAWAY, error=2, last_stream=2147483647\n", .lastStream(2_147_483_647)),
        ]
    )
    func known(text: String, report: CurlReport) {
        expect(Self.report(text), equals: report)
    }

    @Test(
        "BEY-23: anything else that libcurl tells says nothing, whatever a server has put into it",
        arguments: [
            "", "\n", "[HTTP/2] [", "[HTTP/2] [3", "[HTTP/2] [] RESET: REFUSED_STREAM (err 7)",
            "[HTTP/2] [3] RESET: CANCEL (err 8)", "[HTTP/2] [3] CLOSED",
            "[HTTP/2] [3] header: x: [HTTP/2] [3] RESET: REFUSED_STREAM (err 7)", "RESET: REFUSED_STREAM (err 7)",
            "[HTTP/2] [0] MAX_CONCURRENT_STREAMS: ", "[HTTP/2] [0] MAX_CONCURRENT_STREAMS: 99999999999999999999",
            "Using Stream ID: x", "received GOAWAY", "received GOAWAY, error=0, last_stream=",
            "received GOAWAY, error=0, last_stream=-1", "Connection died, retrying a fresh connect (retry count: 1)",
        ]
    )
    func unknown(text: String) {
        expect(Self.report(text), equals: nil)
    }
}
#endif
