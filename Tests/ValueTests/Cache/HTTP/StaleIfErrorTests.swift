import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("HTTPReuse: stale-if-error")
struct StaleIfErrorTests {
    private func standsIn(
        _ response: String,
        _ request: String = "",
        after seconds: TimeInterval = 70,
        for error: NetworkError = NetworkError(code: .timedOut)
    ) -> Bool {
        StoredResponse.stub(response).isUsable(onError: error, of: .lines(request), at: Arrival.date + seconds)
    }

    @Test(
        "BEY-10: RFC 5861, section 4: a stale response replaces an error within the limit of response or request",
        arguments: [
            ("max-age=60, stale-if-error=10", "", true), ("max-age=60, stale-if-error=9", "", false),
            ("max-age=60", "", false), ("max-age=60", "stale-if-error=10", true),
            ("max-age=60", "stale-if-error=9", false), ("max-age=60", "stale-if-error=x", false),
            ("max-age=60, stale-if-error=10", "stale-if-error=5", false),
            ("max-age=60, stale-if-error=5", "stale-if-error=10", true),
            ("max-age=60, stale-if-error=10", "max-age=0", true),
            ("max-age=60, stale-if-error=10", "no-cache", false),
            ("max-age=60, stale-if-error=10", "no-store", false),
            ("max-age=60, stale-if-error=10, must-revalidate", "", false),
            ("max-age=60, stale-if-error=10, no-cache", "", false),
            ("max-age=60, stale-if-error=10, no-store", "", false),
            ("max-age=60, must-revalidate", "stale-if-error=10", false),
            ("max-age=60, no-cache", "stale-if-error=10", false),
            ("max-age=60, stale-if-error=10, no-cache=\"x\"", "", true),
            ("max-age=100, stale-if-error=0", "max-age=0", true),
        ]
    )
    func directives(response: String, request: String, expected: Bool) {
        let request = request.isEmpty ? "" : "Cache-Control: \(request)"
        expect(standsIn("Cache-Control: \(response)", request), equals: expected)
    }

    @Test("BEY-10: RFC 5861, section 4: the errors are a missing response, 500, 502, 503 and 504", arguments: 100...599)
    func statuses(status: Int) {
        let isError = [500, 502, 503, 504].contains(status)
        expect(
            standsIn(
                "Cache-Control: stale-if-error=99",
                for: NetworkError(code: .unacceptableStatus, statusCode: status)
            ),
            equals: isError
        )
    }

    @Test("BEY-10: RFC 5861, section 4: a response for another request does not replace an error")
    func others() {
        let stored = "Cache-Control: stale-if-error=99 | Vary: Foo"
        expect(standsIn(stored))
        expect(!standsIn(stored, "Foo: 1") && !standsIn(stored, "Range: bytes=0-1"))
    }

    @Test("BEY-10: RFC 5861, section 4: the errors of the package that are failures of the server")
    func errors() {
        let stored = "Cache-Control: stale-if-error=99"
        for code in [NetworkError.Code.cannotConnect, .notConnected, .timedOut, .connectionLost, .badServerResponse] {
            expect(standsIn(stored, for: NetworkError(code: code)))
        }
        for code in [NetworkError.Code.cancelled, .tls, .invalidRequest, .bodyTooLong, .unacceptableStatus] {
            expect(!standsIn(stored, for: NetworkError(code: code)))
        }
    }
}
