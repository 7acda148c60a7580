import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("StoredResponse: freshness")
struct HTTPFreshnessTests {
    private func freshness(_ fields: String, status: Int = 200, delay: TimeInterval = 0) -> StoredResponse {
        StoredResponse(
            NetworkCache.Entry(
                key: "k",
                statusCode: status,
                headers: .lines(fields),
                requestedAt: Arrival.date - delay,
                receivedAt: Arrival.date
            )
        )
    }

    private static let explicitLifetimes: [(String, TimeInterval)] = [
        ("Cache-Control: max-age=60", 60.0),
        ("Cache-Control: max-age=60 | Expires: \(Arrival.text(9))", 60),
        ("Cache-Control: max-age=0 | Expires: \(Arrival.text(9))", 0),
        ("Cache-Control: max-age=x | Expires: \(Arrival.text(9))", 0),
        ("Cache-Control: s-maxage=60", 0),
        ("Cache-Control: s-maxage=60 | Expires: \(Arrival.text(9))", 9),
        ("Expires: \(Arrival.text(90)) | Date: \(Arrival.text(30))", 60),
        ("Expires: \(Arrival.text(90))", 90),
        ("Expires: \(Arrival.text(90)) | Date: yesterday", 90),
        ("Expires: \(Arrival.text(-1))", 0),
        ("Expires: \(Arrival.text(90)) | Date: \(Arrival.text(100))", 0),
        ("Expires: Thursday, 01-Jan-26 12:01:00 GMT", 60),
        ("Expires: Thu Jan  1 12:01:00 2026", 60),
        ("Expires: THU, 01 JAN 2026 12:01:00 gmt", 60),
    ]

    @Test(
        "BEY-10: RFC 9111, section 4.2.1: max-age has precedence over Expires, which is relative to Date",
        arguments: explicitLifetimes
    )
    func explicit(fields: String, lifetime: TimeInterval) {
        expect(freshness(fields).lifetime, equals: lifetime)
    }

    @Test(
        "BEY-10: RFC 9111, section 5.3: an invalid Expires is in the past",
        arguments: [
            "0", "-1", "", "never", "Thu, 01 Jan 2026 12:01:00 UTC", "Thu, 01 Jan 2026 12:01:00 EST",
            "Thu 01 Jan 2026 12:01:00 GMT", "Thu,  01 Jan  2026 12:01:00 GMT", "Thu, 1 Jan 2026 12:01:00 GMT",
            "Thu, 01-Jan-2026 12:01:00 GMT", "Thu, 01 Jan 2026 12.01.00 GMT", "Thu, 01 Jan 2026 12:1:00 GMT",
            "\(Arrival.text(60)), \(Arrival.text(60))",
        ]
    )
    func invalidExpires(value: String) {
        // With a date of modification, which has no effect here.
        let freshness = freshness("Expires: \(value) | Last-Modified: \(Arrival.text(-9_000))")
        expect(freshness.lifetime == 0 && freshness.isLifetimeExplicit)
        expect(!freshness.isFresh(at: Arrival.date))
    }

    private static let heuristicLifetimes: [(String, Int, TimeInterval)] = [
        ("Last-Modified: \(Arrival.text(-1_000))", 200, 100.0),
        ("Last-Modified: \(Arrival.text(-1_000)) | Date: \(Arrival.text(-500))", 200, 50),
        ("Last-Modified: \(Arrival.text(-1_000_000))", 200, 86_400),
        ("Last-Modified: \(Arrival.text(1_000))", 200, 0),
        ("Last-Modified: once", 200, 0),
        ("ETag: \"a\"", 200, 0),
        ("Last-Modified: \(Arrival.text(-1_000))", 404, 100),
        ("Last-Modified: \(Arrival.text(-1_000))", 302, 0),
        ("Last-Modified: \(Arrival.text(-1_000))", 599, 0),
        ("Last-Modified: \(Arrival.text(-1_000)) | Cache-Control: public", 599, 100),
        ("Last-Modified: \(Arrival.text(-1_000)) | Cache-Control: max-age=0", 200, 0),
        ("Last-Modified: \(Arrival.text(-1_000)) | Expires: \(Arrival.text(-1))", 200, 0),
    ]

    @Test(
        "BEY-10: RFC 9111, section 4.2.2: the heuristic lifetime is a tenth of the time since the last modification, at most a day",
        arguments: heuristicLifetimes
    )
    func heuristic(fields: String, status: Int, lifetime: TimeInterval) {
        expect(freshness(fields, status: status).lifetime, equals: lifetime)
    }

    @Test(
        "BEY-10: RFC 9110, section 15.1: these statuses have a heuristic lifetime",
        arguments: 200...599
    )
    func heuristicStatuses(status: Int) {
        let known = [200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501]
        let lifetime = freshness("Last-Modified: \(Arrival.text(-1_000))", status: status).lifetime
        expect((lifetime > 0), equals: known.contains(status))
    }

    private static let initialAges: [(String, TimeInterval, TimeInterval)] = [
        ("", 0.0, 0.0),
        ("", 7, 7),
        ("Age: 10", 7, 17),
        ("Date: \(Arrival.text(-30)) | Age: 10", 7, 30),
        ("Date: \(Arrival.text(-30)) | Age: 40", 7, 47),
        // The server's clock is ahead.
        ("Date: \(Arrival.text(3_600))", 0, 0),
        ("Date: \(Arrival.text(3_600)) | Age: 5", 0, 5),
        ("Date: today | Age: 5", 0, 5),
        // The own clock was set back during the request.
        ("Age: 5", -100, 5),
    ]

    @Test(
        "BEY-10: RFC 9111, section 4.2.3: the age is the larger one of that by Date and that by Age with the delay",
        arguments: initialAges
    )
    func initialAge(fields: String, delay: TimeInterval, age: TimeInterval) {
        let freshness = freshness(fields, delay: delay)
        expect(freshness.initialAge, equals: age)
        expect(freshness.age(at: Arrival.date) == age && freshness.age(at: Arrival.date + 3) == age + 3)
    }

    @Test(
        "BEY-10: RFC 9111, section 5.1: the first member of Age counts, if it is a number",
        arguments: [
            ("Age: abc", 0.0), ("Age: -7200", 0), ("Age: 7200.0", 0), ("Age: 5, 0", 5), ("Age: 0, 5", 0),
            ("Age: 5 | Age: 0", 5), ("Age: 0 | Age: 5", 0), ("Age: 5;x=1", 0), ("Age:", 0), ("Age: , 5", 0),
            ("Age: 2147483649", 2_147_483_648), ("Age: \"5\"", 0),
        ]
    )
    func ageField(fields: String, age: TimeInterval) {
        expect(freshness(fields).initialAge, equals: age)
    }

    @Test("BEY-10: RFC 9111, section 4.2: a response is fresh while its age is less than its lifetime")
    func boundary() {
        let freshness = freshness("Cache-Control: max-age=60 | Age: 10")
        expect(freshness.isFresh(at: Arrival.date + 49.5) && freshness.staleness(at: Arrival.date + 49.5) == -0.5)
        expect(!freshness.isFresh(at: Arrival.date + 50) && freshness.staleness(at: Arrival.date + 50) == 0)
        expect(freshness.staleness(at: Arrival.date + 65), equals: 15)
    }

    @Test("BEY-10: RFC 9111, section 4.2.3: an entry from the future is not fresh after the clock was set back")
    func clockSetBack() {
        let freshness = freshness("Cache-Control: max-age=60")
        expect(freshness.isFresh(at: Arrival.date - 5))
        expect(!freshness.isFresh(at: Arrival.date - 60))
        expect(!freshness.isFresh(at: .distantPast) && !freshness.isFresh(at: .distantFuture))
        expect(!freshness.isFresh(at: Date(timeIntervalSince1970: .nan)))
    }
}
