import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("RetryPolicy and Retry-After")
struct RetryAfterTests {
    /// Sun, 06 Nov 1994 08:49:37 GMT
    private static let now = Date(timeIntervalSince1970: 784_111_777)

    private func seconds(_ headers: HTTPHeaders) -> TimeInterval? {
        RetryPolicy.retryAfter(headers, now: Self.now)
    }

    @Test(
        "BEY-8: Retry-After is a number of seconds or a date",
        arguments: [
            ("120", 120.0), ("0", 0), (" 7 \t", 7), ("00012", 12), ("Sun, 06 Nov 1994 08:50:37 GMT", 60),
            ("Sunday, 06-Nov-94 09:49:37 GMT", 3_600), ("Sun Nov  6 08:49:47 1994", 10),
        ]
    )
    func forms(value: String, seconds: TimeInterval) {
        expect(self.seconds(["Retry-After": value]), equals: seconds)
    }

    @Test("BEY-8: a date in the past asks for no wait")
    func past() {
        expect(seconds(["Retry-After": "Sun, 06 Nov 1994 08:00:00 GMT"]), equals: 0)
    }

    @Test("BEY-8: more seconds than a Double can hold are a finite number")
    func huge() throws {
        let wait = try #require(seconds(["Retry-After": String(repeating: "9", count: 400)]))
        expect(wait.isFinite)
        expect(wait > 1e300)
    }

    @Test(
        "BEY-8: any other value is ignored",
        arguments: ["", " ", "-1", "+5", "1.5", "soon", "12 seconds", "1e3", "١٢", "Sun, 06 Nov 1994"]
    )
    func garbage(value: String) {
        expect(seconds(["Retry-After": value]) == nil)
    }

    @Test("BEY-8: the longest wait of several fields counts, and invalid fields do not")
    func several() {
        let headers: HTTPHeaders = ["Retry-After": "3", "retry-after": "soon", "RETRY-AFTER": "9", "Age": "100"]
        expect(seconds(headers), equals: 9)
        expect(seconds(HTTPHeaders()) == nil)
    }
}
