import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("HTTPReuse")
struct HTTPReuseTests {
    private func reuse(
        _ response: String,
        _ request: String = "",
        after seconds: TimeInterval,
        method: NetworkService.Method = .get
    ) -> HTTPReuse {
        StoredResponse.stub(response).reuse(for: method, .lines(request), at: Arrival.date + seconds)
    }

    private static let ofAnswers: [(String, HTTPReuse, HTTPReuse)] = [
        ("Cache-Control: max-age=60", .fresh, .revalidate),
        ("Cache-Control: max-age=60, must-revalidate", .fresh, .revalidate),
        ("Cache-Control: max-age=60, immutable", .fresh, .revalidate),
        ("Cache-Control: max-age=60, no-cache", .revalidate, .revalidate),
        ("Cache-Control: max-age=60, no-cache=\"Set-Cookie\"", .fresh, .revalidate),
        ("Cache-Control: max-age=60, no-store", .unusable, .unusable),
        ("Cache-Control: max-age=60, no-store, must-understand", .fresh, .revalidate),
        ("Cache-Control: max-age=60, proxy-revalidate", .fresh, .revalidate),
        ("Cache-Control: max-age=60 | Age: 20", .revalidate, .revalidate),
        ("Cache-Control: s-maxage=60", .revalidate, .revalidate),
        ("Expires: \(Arrival.text(60))", .fresh, .revalidate),
        ("Last-Modified: never", .revalidate, .revalidate),
    ]

    @Test(
        "BEY-10: RFC 9111, sections 4 and 5.2.2: the directives of a response after 50 and 70 seconds",
        arguments: ofAnswers
    )
    func answers(fields: String, at50: HTTPReuse, at70: HTTPReuse) {
        expect(reuse("ETag: \"a\" | \(fields)", after: 50), equals: at50)
        expect(reuse("ETag: \"a\" | \(fields)", after: 70), equals: at70)
    }

    private static let ofRequests: [(String, HTTPReuse, HTTPReuse)] = [
        ("", .fresh, .revalidate),
        ("Cache-Control: no-cache", .revalidate, .revalidate),
        ("Pragma: no-cache", .revalidate, .revalidate),
        ("Cache-Control: no-store", .unusable, .unusable),
        ("Cache-Control: max-age=0", .revalidate, .revalidate),
        ("Cache-Control: max-age=49", .revalidate, .revalidate),
        ("Cache-Control: max-age=50", .fresh, .revalidate),
        ("Cache-Control: max-age=500", .fresh, .revalidate),
        ("Cache-Control: max-age=x", .revalidate, .revalidate),
        ("Cache-Control: min-fresh=10", .fresh, .revalidate),
        ("Cache-Control: min-fresh=11", .revalidate, .revalidate),
        ("Cache-Control: min-fresh=x", .revalidate, .revalidate),
        ("Cache-Control: max-stale", .fresh, .stale),
        ("Cache-Control: max-stale=10", .fresh, .stale),
        ("Cache-Control: max-stale=9", .fresh, .revalidate),
        ("Cache-Control: max-stale=x", .fresh, .revalidate),
        ("Cache-Control: max-stale, max-age=70", .fresh, .stale),
        ("Cache-Control: max-stale, max-age=69", .fresh, .revalidate),
        ("Cache-Control: max-stale, min-fresh=1", .fresh, .revalidate),
        ("Cache-Control: only-if-cached", .fresh, .revalidate),
        ("Cache-Control: only-if-cached, max-stale", .fresh, .stale),
        ("Cache-Control: only-if-cached, no-cache", .revalidate, .revalidate),
        ("Cache-Control: only-if-cached, no-store", .unusable, .unusable),
        ("Cache-Control: only-if-cached | Foo: 1", .varies, .varies),
        ("Foo: 1", .varies, .varies),
    ]

    @Test(
        "BEY-10: RFC 9111, section 5.2.1: the directives of a request for a response with a lifetime of 60 seconds, after 50 and 70",
        arguments: ofRequests
    )
    func requests(fields: String, at50: HTTPReuse, at70: HTTPReuse) {
        let stored = "ETag: \"a\" | Cache-Control: max-age=60 | Vary: Foo"
        expect(reuse(stored, fields, after: 50), equals: at50)
        expect(reuse(stored, fields, after: 70), equals: at70)
    }

    @Test(
        "BEY-10: RFC 9111, section 4.2.4: must-revalidate and no-cache have precedence over max-stale",
        arguments: ["must-revalidate", "no-cache"]
    )
    func strict(directive: String) {
        let stored = "ETag: \"a\" | Cache-Control: max-age=60, stale-while-revalidate=90, \(directive)"
        expect(reuse(stored, "Cache-Control: max-stale", after: 70), equals: .revalidate)
        expect(reuse(stored, after: 70), equals: .revalidate)
    }

    private static let staleAnswers: [(String, TimeInterval, HTTPReuse)] = [
        ("", 60, .staleWhileRevalidate),
        ("", 70, .staleWhileRevalidate),
        ("", 90, .staleWhileRevalidate),
        ("", 90.5, .revalidate),
        ("", 59, .fresh),
        ("Cache-Control: max-age=500", 70, .revalidate),
        ("Cache-Control: min-fresh=0", 70, .revalidate),
        ("Cache-Control: no-cache", 70, .revalidate),
        ("Cache-Control: max-stale", 70, .staleWhileRevalidate),
        ("Cache-Control: max-stale=40", 95, .stale),
        // The validation request must not be sent.
        ("Cache-Control: only-if-cached", 70, .revalidate),
        ("Cache-Control: only-if-cached, max-stale", 70, .stale),
    ]

    @Test(
        "BEY-10: RFC 5861, section 3: a stale response is used during revalidation, within the limits of response and request",
        arguments: staleAnswers
    )
    func staleWhileRevalidate(request: String, seconds: TimeInterval, expected: HTTPReuse) {
        let stored = "ETag: \"a\" | Cache-Control: max-age=60, stale-while-revalidate=30"
        expect(reuse(stored, request, after: seconds), equals: expected)
    }

    @Test("BEY-10: RFC 5861, section 3: a response without validator is used while it is requested again")
    func staleWithoutValidator() {
        let stored = "Cache-Control: max-age=60, stale-while-revalidate=30"
        expect(reuse(stored, after: 70), equals: .staleWhileRevalidate)
        expect(reuse(stored, after: 100), equals: .revalidate)
        expect(reuse(stored, "Cache-Control: no-cache", after: 10), equals: .revalidate)
    }

    @Test("BEY-10: RFC 8246, section 2: a fresh immutable response is not reloaded, except with no-cache")
    func immutable() {
        let stored = "ETag: \"a\" | Cache-Control: max-age=60, immutable"
        expect(reuse(stored, "Cache-Control: max-age=0", after: 50), equals: .fresh)
        expect(reuse(stored, "Cache-Control: no-cache", after: 50), equals: .revalidate)
        expect(reuse(stored, "Cache-Control: min-fresh=20", after: 50), equals: .revalidate)
        expect(reuse(stored, "Cache-Control: max-age=0", after: 60), equals: .revalidate)
        let guessed = "Last-Modified: \(Arrival.text(-10_000)) | Cache-Control: immutable"
        expect(reuse(guessed, after: 50), equals: .fresh)
        expect(reuse(guessed, "Cache-Control: max-age=0", after: 50) != .fresh)
    }

    @Test(
        "BEY-10: RFC 9111, section 4.3.2: the cache is not used for a request with a range or conditions",
        arguments: [
            "Range: bytes=0-1", "If-Match: \"a\"", "If-None-Match: \"a\"", "If-Modified-Since: \(Arrival.text())",
            "If-Unmodified-Since: \(Arrival.text())", "If-Range: \"a\"",
        ]
    )
    func conditional(field: String) {
        expect(reuse("ETag: \"a\" | Cache-Control: max-age=60", field, after: 1), equals: .unusable)
    }

    @Test("BEY-10: RFC 9111, section 3.3: a stored part is never used as the whole")
    func part() {
        let fields = "Cache-Control: max-age=60 | Content-Range: bytes 0-8/9"
        let stored = StoredResponse.stub(fields, request: "Range: bytes=0-", status: 206)
        func reuse(_ request: String, isPart: Bool) -> HTTPReuse {
            stored.reuse(for: .get, .lines(request), isPart: isPart, at: Arrival.date + 1)
        }
        expect(reuse("", isPart: false), equals: .unusable)
        expect(reuse("Range: bytes=2-3", isPart: true), equals: .fresh)
        expect(reuse("Range: bytes=2-3 | If-Match: \"a\"", isPart: true), equals: .unusable)
        expect(reuse("Range: bytes=2-9", isPart: true), equals: .fresh, "the end is that of the whole")
        expect(reuse("Range: bytes=9-", isPart: true), equals: .varies)
        expect(!stored.nominated.match(HTTPHeaders()))
    }

    @Test(
        "BEY-10: RFC 9111, section 4: the cache is used for GET only",
        arguments: ["HEAD", "POST", "PUT", "DELETE", "OPTIONS"]
    )
    func methods(name: String) {
        let method = NetworkService.Method(rawValue: name)
        expect(reuse("Cache-Control: max-age=60", after: 1, method: method), equals: .unusable)
    }

    private static let sentValidators: [(String, HTTPHeaders)] = [
        ("ETag: \"a\"", ["If-None-Match": "\"a\""]), ("ETag: W/\"a\"", ["If-None-Match": "W/\"a\""]),
        (
            "ETag: \"a\" | Last-Modified: \(Arrival.text(-9))",
            ["If-None-Match": "\"a\"", "If-Modified-Since": Arrival.text(-9)]
        ),
        (
            "Last-Modified: Thursday, 01-Jan-26 11:00:00 GMT",
            ["If-Modified-Since": "Thursday, 01-Jan-26 11:00:00 GMT"]
        ),
        ("ETag: * | Last-Modified: \(Arrival.text(-9))", ["If-Modified-Since": Arrival.text(-9)]),
    ]

    @Test(
        "BEY-10: RFC 9111, section 4.3.1: a validation request has the validators as they were received",
        arguments: sentValidators
    )
    func validators(fields: String, expected: HTTPHeaders) {
        let stored = "Cache-Control: no-cache | \(fields)"
        expect(reuse(stored, after: 1), equals: .revalidate)
        expect(StoredResponse.stub(stored).conditionalHeaders, equals: expected)
    }

    @Test("BEY-10: RFC 9111, section 4.3.1: the date of the response and an invalid date are not validators")
    func noValidator() {
        for fields in ["Date: \(Arrival.text())", "Last-Modified: once", "ETag: a"] {
            expect(StoredResponse.stub("Cache-Control: no-cache | \(fields)").conditionalHeaders.isEmpty)
        }
    }
}
