import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("Dates")
struct DatesTests {
    private static let now = Date(timeIntervalSince1970: 1_767_225_600)

    @Test(
        "BEY-10: the three forms of a date are read, and what servers make of them",
        arguments: [
            "Sun, 6 Nov 1994 08:49:37 GMT", "Sunday, 6-Nov-94 08:49:37 GMT", "Sun Nov 6 08:49:37 1994",
            "Sun, 06 Nov 1994 08:49:37 UTC", "Sun, 06 Nov 1994 08:49:37 +0000", "Sun, 6 Nov 1994 08:49:37 utc",
            "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
            "sun, 06 nov 1994 08:49:37 gmt",
        ]
    )
    func threeForms(text: String) {
        expect(Date(httpText: text, now: Self.now), equals: Date(timeIntervalSince1970: 784_111_777))
    }

    @Test(
        "BEY-10: other texts are not dates",
        arguments: [
            "", " ", "Sun", "Sun, 06 Nov 1994 08:49:37 PST", "Sun, 06 Nov 1994 08:49:37 +0100",
            "Sun, 006 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37 +00000", "Sun, 06 Nov 1994 08:49:37",
            "Sun, 31 Apr 1994 08:49:37 GMT",
            "Sun, 29 Feb 1995 08:49:37 GMT", "Sun, 06 Nov 1994 24:00:00 GMT", "Sun, 06 Nov 1994 08:60:00 GMT",
            "Sun, 06 Nov 1994 08:49:61 GMT", "Sun, 06 Nov 94 08:49:37 GMT", "Sun, 6 Nov 199４ 08:49:37 GMT",
            "Xyz, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nev 1994 08:49:37 GMT", "Sun, -6 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 0000 08:49:37 GMT", "1994-11-06T08:49:37Z", "Sun, 06 Nov 1994 8:49:37 GMT",
            "Sunday, 06-Nov-1994 08:49:37 GMT", "Sunday, 06-Nov 08:49:37 GMT", "Sun Nov 6 08:49 1994",
        ]
    )
    func noDate(text: String) {
        expect(Date(httpText: text, now: Self.now) == nil)
    }

    @Test("BEY-10: a year of two digits is at most fifty years ahead")
    func twoDigits() throws {
        // Now is the first of January 2026.
        let ahead = try #require(Date(httpText: "Friday, 01-Jan-76 00:00:00 GMT", now: Self.now))
        expect(ahead.httpText, equals: "Wed, 01 Jan 2076 00:00:00 GMT")
        let past = try #require(Date(httpText: "Friday, 02-Jan-76 00:00:00 GMT", now: Self.now))
        expect(past.httpText, equals: "Fri, 02 Jan 1976 00:00:00 GMT")
        let endOfCentury = Date(timeIntervalSince1970: 3_786_912_000)
        let next = try #require(Date(httpText: "Friday, 02-Jan-10 00:00:00 GMT", now: endOfCentury))
        expect(next.httpText, equals: "Thu, 02 Jan 2110 00:00:00 GMT")
        for now in [Date.distantPast, .distantFuture, Date(timeIntervalSince1970: .infinity)] {
            expect(Date(httpText: "Friday, 02-Jan-10 00:00:00 GMT", now: now) != nil)
        }
    }

    @Test("BEY-10: a leap second is the first second of the next minute")
    func leapSecond() {
        let date = Date(httpText: "Sat, 31 Dec 2016 23:59:60 GMT", now: Self.now)
        expect(date, equals: Date(timeIntervalSince1970: 1_483_228_800))
    }

    @Test("BEY-10: days agree with Foundation's calendar, and a written date can be read", arguments: UInt64(1)...3)
    func roundTrip(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = try #require(TimeZone(identifier: "UTC"))
        for _ in 0..<500 {
            // From 1600 on, where both calendars agree, to 9999.
            let seconds = Int.random(in: -11_676_096_000...253_402_300_799, using: &generator)
            let date = Date(timeIntervalSince1970: TimeInterval(seconds))
            let text = date.httpText
            expect(Date(httpText: text, now: Self.now), equals: date, "seed \(seed)")
            let parts = calendar.dateComponents([.year, .month, .day, .hour, .minute, .second, .weekday], from: date)
            let day = ["", "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"][parts.weekday ?? 0]
            let expected = CivilDate(
                year: parts.year ?? 0,
                month: parts.month ?? 0,
                day: parts.day ?? 0,
                hour: parts.hour ?? 0,
                minute: parts.minute ?? 0,
                second: parts.second ?? 0
            ).date
            expect(expected, equals: date, "seed \(seed)")
            expect(text.hasPrefix(day), "seed \(seed)")
        }
    }

    @Test("BEY-10: a date outside of the years 1 to 9999 is written as the nearest one")
    func extremes() {
        expect(Date(timeIntervalSince1970: .infinity).httpText, equals: "Fri, 31 Dec 9999 23:59:59 GMT")
        expect(Date(timeIntervalSince1970: -.infinity).httpText, equals: "Mon, 01 Jan 0001 00:00:00 GMT")
        expect(Date(timeIntervalSince1970: .nan).httpText, equals: "Thu, 01 Jan 1970 00:00:00 GMT")
    }

    @Test("DIA-1: a timestamp has milliseconds, which are cut off, before 1970 too")
    func timestamps() {
        expect(Date(timeIntervalSince1970: 1_709_210_096.25).timestamp, equals: "2024-02-29T12:34:56.250Z")
        expect(Date(timeIntervalSince1970: -0.0625).timestamp, equals: "1969-12-31T23:59:59.937Z")
        expect(Date(timeIntervalSince1970: 999_999_999.9995).timestamp, equals: "2001-09-09T01:46:39.999Z")
        expect(Date(timeIntervalSince1970: .nan).timestamp, equals: "1970-01-01T00:00:00.000Z")
    }
}
