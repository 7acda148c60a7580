import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("SetCookie")
struct SetCookieTests {
    private static let date = Date(timeIntervalSince1970: 700_000_000)

    /// The cookie that a field sets.
    private func cookie(_ field: String, from url: String = "https://www.example.com/a/b") -> Cookie? {
        URL(string: url).flatMap(CookieRequest.init).flatMap { Cookie(field, from: $0, at: Self.date) }
    }

    @Test("SEC-3: name, value and attributes are read in any case and with spaces around them")
    func attributes() throws {
        let attributes =
            "PATH=/a b ; domain=.Example.COM; Secure ; HttpOnly=no; SameSite=Lax;x; Expires=Sun, 06 Nov 1994 08:49:37 GMT"
        let read = try #require(cookie("  SID =  31d4=d96; ;" + attributes))
        expect(read.name, equals: "SID")
        expect(read.value, equals: "31d4=d96")
        expect(read.path, equals: "/a b")
        expect(read.domain == "example.com" && !read.isHostOnly)
        expect(read.isSecure)
        expect(read.isHTTPOnly)
        expect(read.expires, equals: Date(timeIntervalSince1970: 784_111_777))
        expect(cookie("a=b; \(attributes);max-age= 60")?.expires, equals: Self.date + 60)
    }

    @Test("SEC-3: quotes and commas belong to the value, which may be empty")
    func values() {
        expect(cookie(#"a="b,c d""#)?.value, equals: #""b,c d""#)
        expect(cookie("a=")?.value, equals: "")
        expect(cookie("a=ä")?.value, equals: "ä")
        expect(cookie("a==;")?.value, equals: "=")
    }

    @Test(
        "SEC-3: a field without a name or with a control character is not a cookie",
        arguments: ["", ";", "a", "=b", " =b", ";a=b", "a=b\u{0}", "a=\u{7}", "a=b;\u{1F}", "a=b\r\nX: y", "a=\u{7F}"]
    )
    func noCookie(field: String) {
        expect(cookie(field) == nil)
    }

    @Test("SEC-3: name and value may have 4,096 bytes together")
    func length() {
        let value = String(repeating: "x", count: 4_095)
        expect(cookie("a=\(value); Path=/")?.value, equals: value)
        expect(cookie("a=\(value)x") == nil)
        expect(cookie("a=ä" + value.dropLast(1)) == nil)
    }

    @Test("SEC-3: the last valid attribute of a name counts")
    func lastAttribute() throws {
        let ages = "max-age=5; max-age=x; max-age=; max-age=1.5; max-age=+9"
        let long = "path=/" + String(repeating: "p", count: 1_024)
        let read = try #require(
            cookie("a=b; \(ages); path=/x; path=y; domain=a.b; domain=; domain=.; \(long)", from: "https://x.a.b/c/d")
        )
        expect(read.expires, equals: Self.date + 5)
        expect(read.path, equals: "/c")
        expect(read.domain, equals: "a.b")
        let dates = "expires=Sun, 06 Nov 1994 08:49:37 GMT; expires=soon"
        expect(cookie("a=b; \(dates)")?.expires, equals: Date(timeIntervalSince1970: 784_111_777))
        expect(cookie("a=b; max-age=-1; max-age=7")?.expires, equals: Self.date + 7)
        expect(cookie("a=b; max-age=-7")?.expires, equals: .distantPast)
        expect(cookie("a=b; max-age=-")?.expires, equals: .some(nil))
    }

    @Test(
        "SEC-3: a date is read in any form that servers write",
        arguments: [
            "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
            "Sun, 06-Nov-1994 08:49:37 GMT", "06 NOVEMBER 1994 8:49:37", "1994 Nov 6 08:49:37", "08:49:37 6 nov 94",
            "6-nov-1994;08:49:37", "Sun,06/Nov/1994/08:49:37", "Nov 6th 1994 08:49:37Z", "06 Nov 1994 08:49:37 PST",
            "00008:49:37 06 Nov 1994 08:49:37", "Nov Dec 6 1994 08:49:37 09:50:38",
        ]
    )
    func forms(text: String) {
        expect(Date(cookieText: text), equals: Date(timeIntervalSince1970: 784_111_777))
    }

    @Test("SEC-3: a year of two digits is of this century up to 69")
    func centuries() {
        expect(Date(cookieText: "01 Jan 69 00:00:00"), equals: Date(cookieText: "01 Jan 2069 00:00:00"))
        expect(Date(cookieText: "01 Jan 70 00:00:00"), equals: Date(timeIntervalSince1970: 0))
        expect(Date(cookieText: "01 Jan 1601 00:00:00") != nil)
    }

    @Test(
        "SEC-3: a text without one of the parts, or with a day that does not exist, is not a date",
        arguments: [
            "", "tomorrow", "06 Nov 1994", "06 1994 08:49:37", "Nov 1994 08:49:37", "06 Nov 08:49:37",
            "31 Feb 1994 08:49:37", "00 Nov 1994 08:49:37", "32 Nov 1994 08:49:37", "06 Nov 1600 08:49:37",
            "06 Nov 1994 24:00:00", "06 Nov 1994 08:60:00", "06 Nov 1994 08:49:60", "06 Nov 19945 08:49:37",
            "006 Nov 1994 08:49", "06 Növ 1994 08:49:37", "06 Nov 1994 08:49:377", "06 No 1994 08:49:37",
        ]
    )
    func noDate(text: String) {
        expect(Date(cookieText: text) == nil)
    }
}
