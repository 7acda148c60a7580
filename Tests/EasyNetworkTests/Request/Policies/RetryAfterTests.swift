import Foundation
import Testing

@testable import EasyNetwork

@Suite("RetryAfter")
struct RetryAfterTests {
    /// Sun, 06 Nov 1994 08:49:37 GMT
    private static let now = Date(timeIntervalSince1970: 784_111_777)

    @Test(
        "BEY-8: Retry-After is a number of seconds or a date",
        arguments: [
            ("120", 120.0), ("0", 0), (" 7 \t", 7), ("00012", 12), ("Sun, 06 Nov 1994 08:50:37 GMT", 60),
            ("Sunday, 06-Nov-94 09:49:37 GMT", 3_600), ("Sun Nov  6 08:49:47 1994", 10),
        ]
    )
    func forms(value: String, seconds: TimeInterval) {
        #expect(RetryAfter(value, now: Self.now)?.seconds == seconds)
    }

    @Test("BEY-8: a date that is over asks for no wait")
    func past() {
        #expect(RetryAfter("Sun, 06 Nov 1994 08:00:00 GMT", now: Self.now)?.seconds == 0)
    }

    @Test("BEY-8: more seconds than a number can have are still a finite number")
    func huge() throws {
        let wait = try #require(RetryAfter(String(repeating: "9", count: 400), now: Self.now))
        #expect(wait.seconds.isFinite)
        #expect(wait.seconds > 1e300)
    }

    @Test(
        "BEY-8: anything else asks for nothing",
        arguments: ["", " ", "-1", "+5", "1.5", "soon", "12 seconds", "1e3", "١٢", "Sun, 06 Nov 1994"]
    )
    func garbage(value: String) {
        #expect(RetryAfter(value, now: Self.now) == nil)
    }

    @Test("BEY-8: of several fields the longest wait counts, and those that say nothing do not")
    func several() {
        let headers: HTTPHeaders = ["Retry-After": "3", "retry-after": "soon", "RETRY-AFTER": "9", "Age": "100"]
        #expect(RetryAfter(headers, now: Self.now)?.seconds == 9)
        #expect(RetryAfter(HTTPHeaders(), now: Self.now) == nil)
    }
}
