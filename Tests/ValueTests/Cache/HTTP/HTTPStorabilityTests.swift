import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("HTTPStorability")
struct HTTPStorabilityTests {
    private func storability(
        _ response: String,
        status: Int = 200,
        request: String = "",
        method: NetworkService.Method = .get
    ) -> HTTPStorability {
        StoredResponse.stub(response, request: request, status: status)
            .storability(method: method, request: .lines(request))
    }

    private static let kept: [(String, Int)] = [
        ("Cache-Control: max-age=60", 200), ("Cache-Control: max-age=60", 302), ("Cache-Control: max-age=60", 599),
        ("Cache-Control: max-age=60", 500), ("Expires: \(Arrival.text(60))", 403),
        ("Cache-Control: private, max-age=60", 200), ("Cache-Control: private=\"x\", max-age=60", 200),
        ("ETag: \"a\"", 200), ("Last-Modified: \(Arrival.text(-10))", 404),
        ("ETag: \"a\" | Cache-Control: public", 302),
        ("ETag: \"a\" | Cache-Control: private", 302), ("ETag: \"a\" | Cache-Control: no-cache", 200),
        ("ETag: \"a\" | Cache-Control: max-age=0", 200), ("Cache-Control: max-age=60 | Set-Cookie: a=b", 200),
        ("Cache-Control: max-age=60 | Vary: Accept, Cookie", 200),
        ("Cache-Control: max-age=60 | Content-Range: bytes 0-1/9", 200),
        ("Cache-Control: max-age=60 | Content-Range: bytes */9", 416),
        ("Cache-Control: max-age=0, stale-while-revalidate=60", 200),
        ("Cache-Control: max-age=0, stale-if-error=60", 200),
    ]

    @Test(
        "BEY-10: RFC 9111, section 3: storable responses",
        arguments: kept
    )
    func storable(fields: String, status: Int) {
        expect(storability(fields, status: status), equals: .storable)
        expect(storability(fields, status: status, request: "Authorization: Bearer x | Cookie: a=b"), equals: .storable)
    }

    private static let refused: [(String, Int, HTTPStorability)] = [
        ("Cache-Control: max-age=60", 103, .notStorable),
        ("Cache-Control: max-age=60", 304, .notStorable),
        ("Cache-Control: max-age=60", 206, .unrelated),
        ("Cache-Control: max-age=60 | Content-Range: bytes 0-1/9", 206, .unrelated),
        ("Cache-Control: max-age=60", 401, .notStorable), ("Cache-Control: max-age=60", 407, .notStorable),
        ("Cache-Control: max-age=60, No-Store | ETag: \"a\"", 200, .notStorable),
        ("Cache-Control: max-age=60 | Vary: *", 200, .notStorable),
        ("Cache-Control: max-age=60 | Vary: Accept | Vary: , *", 200, .notStorable),
        ("Cache-Control: max-age=60 | Vary: a b", 200, .notStorable),
        ("ETag: \"a\"", 302, .notStorable), ("Last-Modified: \(Arrival.text(-10))", 599, .notStorable),
        ("Cache-Control: s-maxage=60 | ETag: \"a\"", 302, .notStorable),
        ("", 200, .notStorable), ("Cache-Control: max-age=0", 200, .notStorable), ("Expires: 0", 200, .notStorable),
        ("Cache-Control: no-cache, max-age=60", 200, .notStorable), ("ETag: *", 200, .notStorable),
        ("Cache-Control: no-cache, stale-if-error=60", 200, .notStorable),
        // No field of a connection (RFC 9110, section 7.6.1).
        ("Connection: Cache-Control | Cache-Control: no-store, max-age=60", 200, .notStorable),
        ("Cache-Control: max-age=0, must-revalidate, stale-if-error=60", 200, .notStorable),
    ]

    @Test(
        "BEY-10: RFC 9111, section 3: responses that are not storable, and whether they outdate the stored one",
        arguments: refused
    )
    func notStorable(fields: String, status: Int, expected: HTTPStorability) {
        expect(storability(fields, status: status), equals: expected)
    }

    @Test(
        "BEY-10: RFC 9111, section 3: only responses to GET are stored",
        arguments: ["HEAD", "POST", "PUT", "OPTIONS", "X"]
    )
    func methods(name: String) {
        expect(
            storability("Cache-Control: max-age=60", method: NetworkService.Method(rawValue: name)),
            equals: .unrelated
        )
    }

    @Test("BEY-10: RFC 9111, section 5.2.1.5: no-store in the request")
    func requestNoStore() {
        expect(storability("Cache-Control: max-age=60", request: "Cache-Control: no-store"), equals: .unrelated)
    }

    @Test("BEY-10: RFC 9111, section 5.2.2.3: must-understand overrides no-store for known statuses only")
    func mustUnderstand() {
        let fields = "Cache-Control: max-age=60, no-store, must-understand"
        expect(storability(fields), equals: .storable)
        expect(storability(fields, status: 599), equals: .notStorable)
        expect(storability("Cache-Control: max-age=60, must-understand", status: 599), equals: .notStorable)
    }

    @Test(
        "BEY-10: RFC 9111, section 3.3: a response to a condition or a range is stored only if it is complete",
        arguments: ["Range: bytes=0-1", "If-Match: \"a\"", "If-None-Match: *", "If-Unmodified-Since: x", "If-Range: x"]
    )
    func conditions(field: String) {
        let stored = "Cache-Control: max-age=60"
        expect(storability(stored, request: field), equals: .storable)
        expect(storability(stored, status: 412, request: field), equals: .unrelated)
        expect(storability(stored, status: 416, request: field), equals: .unrelated)
        expect(storability(stored, status: 404, request: field), equals: .unrelated)
    }

    @Test("BEY-10: RFC 9111, section 3.3: a part that was asked for is stored if it can be used without validation")
    func parts() {
        let part = "ETag: \"a\" | Content-Range: bytes 0-1/9"
        expect(
            storability("\(part) | Cache-Control: max-age=60", status: 206, request: "Range: bytes=0-1"),
            equals: .storable
        )
        expect(storability(part, status: 206, request: "Range: bytes=0-1"), equals: .notStorable)
        expect(storability("\(part) | Cache-Control: max-age=60", status: 206), equals: .unrelated)
    }

    @Test(
        "BEY-10: RFC 5861, section 4: a response that is never fresh is stored for requests that accept stale ones",
        arguments: ["max-stale", "max-stale=60", "stale-if-error=60"]
    )
    func tolerantRequests(directive: String) {
        expect(storability("", request: "Cache-Control: \(directive)"), equals: .storable)
        expect(storability("Cache-Control: no-cache", request: "Cache-Control: \(directive)"), equals: .notStorable)
    }
}
