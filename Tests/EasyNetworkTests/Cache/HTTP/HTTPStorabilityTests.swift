import Foundation
import Testing

@testable import EasyNetwork

@Suite("HTTPStorability")
struct HTTPStorabilityTests {
    private func obstacle(
        _ response: String,
        status: Int = 200,
        request: String = "",
        method: NetworkService.Method = .get
    ) -> HTTPStorability.Obstacle? {
        HTTPStorability.obstacle(
            to: .stub(response, request: request, status: status),
            CacheControl(response: .lines(response)),
            method: method,
            request: .lines(request)
        )
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
        #expect(obstacle(fields, status: status) == nil)
        #expect(obstacle(fields, status: status, request: "Authorization: Bearer x | Cookie: a=b") == nil)
    }

    private static let refused: [(String, Int, HTTPStorability.Obstacle)] = [
        ("Cache-Control: max-age=60", 103, .status),
        ("Cache-Control: max-age=60", 304, .status),
        ("Cache-Control: max-age=60", 206, .partial),
        ("Cache-Control: max-age=60 | Content-Range: bytes 0-1/9", 206, .partial),
        ("Cache-Control: max-age=60", 401, .challenge), ("Cache-Control: max-age=60", 407, .challenge),
        ("Cache-Control: max-age=60, No-Store | ETag: \"a\"", 200, .noStore),
        ("Cache-Control: max-age=60 | Vary: *", 200, .vary),
        ("Cache-Control: max-age=60 | Vary: Accept | Vary: , *", 200, .vary),
        ("Cache-Control: max-age=60 | Vary: a b", 200, .vary),
        ("ETag: \"a\"", 302, .notCacheable), ("Last-Modified: \(Arrival.text(-10))", 599, .notCacheable),
        ("Cache-Control: s-maxage=60 | ETag: \"a\"", 302, .notCacheable),
        ("", 200, .useless), ("Cache-Control: max-age=0", 200, .useless), ("Expires: 0", 200, .useless),
        ("Cache-Control: no-cache, max-age=60", 200, .useless), ("ETag: *", 200, .useless),
        ("Cache-Control: no-cache, stale-if-error=60", 200, .useless),
        ("Cache-Control: max-age=0, must-revalidate, stale-if-error=60", 200, .useless),
    ]

    @Test(
        "BEY-10: RFC 9111, section 3: responses that are not storable, with their reasons",
        arguments: refused
    )
    func notStorable(fields: String, status: Int, reason: HTTPStorability.Obstacle) {
        #expect(obstacle(fields, status: status) == reason)
    }

    @Test(
        "BEY-10: RFC 9111, section 3: only responses to GET are stored",
        arguments: ["HEAD", "POST", "PUT", "OPTIONS", "X"]
    )
    func methods(name: String) {
        #expect(obstacle("Cache-Control: max-age=60", method: NetworkService.Method(rawValue: name)) == .method)
    }

    @Test("BEY-10: RFC 9111, section 5.2.1.5: no-store in the request")
    func requestNoStore() {
        #expect(obstacle("Cache-Control: max-age=60", request: "Cache-Control: no-store") == .requestNoStore)
    }

    @Test("BEY-10: RFC 9111, section 5.2.2.3: must-understand overrides no-store for known statuses only")
    func mustUnderstand() {
        let fields = "Cache-Control: max-age=60, no-store, must-understand"
        #expect(obstacle(fields) == nil)
        #expect(obstacle(fields, status: 599) == .mustUnderstand)
        #expect(obstacle("Cache-Control: max-age=60, must-understand", status: 599) == .mustUnderstand)
    }

    @Test(
        "BEY-10: RFC 9111, section 3.3: a response to a condition or a range is stored only if it is complete",
        arguments: ["Range: bytes=0-1", "If-Match: \"a\"", "If-None-Match: *", "If-Unmodified-Since: x", "If-Range: x"]
    )
    func conditions(field: String) {
        let stored = "Cache-Control: max-age=60"
        #expect(obstacle(stored, request: field) == nil)
        #expect(obstacle(stored, status: 412, request: field) == .condition)
        #expect(obstacle(stored, status: 416, request: field) == .condition)
        #expect(obstacle(stored, status: 404, request: field) == .condition)
    }

    @Test(
        "BEY-10: RFC 5861, section 4: a response that is never fresh is stored for requests that accept stale ones",
        arguments: ["max-stale", "max-stale=60", "stale-if-error=60"]
    )
    func tolerantRequests(directive: String) {
        #expect(obstacle("", request: "Cache-Control: \(directive)") == nil)
        #expect(obstacle("Cache-Control: no-cache", request: "Cache-Control: \(directive)") == .useless)
    }
}
