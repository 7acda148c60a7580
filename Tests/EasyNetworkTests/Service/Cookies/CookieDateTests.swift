import Foundation
import Testing

@testable import EasyNetwork

@Suite("CookieDate")
struct CookieDateTests {
    @Test(
        "SEC-1: a cookie's date is found in whatever form servers write it",
        arguments: [
            "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
            "Sun, 06-Nov-1994 08:49:37 GMT", "06 NOVEMBER 1994 8:49:37", "1994 Nov 6 08:49:37", "08:49:37 6 nov 94",
            "6-nov-1994;08:49:37", "Sun,06/Nov/1994/08:49:37", "Nov 6th 1994 08:49:37Z", "06 Nov 1994 08:49:37 PST",
            "00008:49:37 06 Nov 1994 08:49:37", "Nov Dec 6 1994 08:49:37 09:50:38",
        ]
    )
    func forms(text: String) {
        #expect(CookieDate.parse(text) == Date(timeIntervalSince1970: 784_111_777))
    }

    @Test("SEC-1: two digits of a year are of this century up to 69")
    func centuries() {
        #expect(CookieDate.parse("01 Jan 69 00:00:00") == CookieDate.parse("01 Jan 2069 00:00:00"))
        #expect(CookieDate.parse("01 Jan 70 00:00:00") == Date(timeIntervalSince1970: 0))
        #expect(CookieDate.parse("01 Jan 1601 00:00:00") != nil)
    }

    @Test(
        "SEC-1: what lacks a piece, or is on no calendar, is no date",
        arguments: [
            "", "tomorrow", "06 Nov 1994", "06 1994 08:49:37", "Nov 1994 08:49:37", "06 Nov 08:49:37",
            "31 Feb 1994 08:49:37", "00 Nov 1994 08:49:37", "32 Nov 1994 08:49:37", "06 Nov 1600 08:49:37",
            "06 Nov 1994 24:00:00", "06 Nov 1994 08:60:00", "06 Nov 1994 08:49:60", "06 Nov 19945 08:49:37",
            "006 Nov 1994 08:49", "06 Növ 1994 08:49:37", "06 Nov 1994 08:49:377", "06 No 1994 08:49:37",
        ]
    )
    func noDate(text: String) {
        #expect(CookieDate.parse(text) == nil)
    }
}
