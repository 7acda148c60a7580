import Foundation
import Testing

@testable import EasyNetwork

@Suite("SetCookie")
struct SetCookieTests {
    @Test("SEC-1: name, value and attributes are read without regard to case and blanks")
    func attributes() throws {
        let read = try #require(
            SetCookie(
                "  SID =  31d4=d96; ;PATH=/a b ; domain=.Example.COM; Secure ; HttpOnly=no;max-age= 60; SameSite=Lax;x"
                    + "; Expires=Sun, 06 Nov 1994 08:49:37 GMT"
            )
        )
        #expect(read.name == "SID")
        #expect(read.value == "31d4=d96")
        #expect(read.path == "/a b")
        #expect(read.domain == "example.com")
        #expect(read.isSecure)
        #expect(read.isHTTPOnly)
        #expect(read.maximumAge == 60)
        #expect(read.expires == Date(timeIntervalSince1970: 784_111_777))
    }

    @Test("SEC-1: quotes and commas belong to the value, and an empty value is one")
    func values() {
        #expect(SetCookie(#"a="b,c d""#)?.value == #""b,c d""#)
        #expect(SetCookie("a=")?.value == "")
        #expect(SetCookie("a=ä")?.value == "ä")
        #expect(SetCookie("a==;")?.value == "=")
    }

    @Test(
        "SEC-1: what has no name, a control character, or too many bytes is no cookie",
        arguments: ["", ";", "a", "=b", " =b", ";a=b", "a=b\u{0}", "a=\u{7}", "a=b;\u{1F}", "a=b\r\nX: y", "a=\u{7F}"]
    )
    func noCookie(field: String) {
        #expect(SetCookie(field) == nil)
    }

    @Test("SEC-1: 4,096 bytes of name and value are kept, and no more")
    func length() {
        let value = String(repeating: "x", count: 4_095)
        #expect(SetCookie("a=\(value); Path=/")?.value == value)
        #expect(SetCookie("a=\(value)x") == nil)
        #expect(SetCookie("a=ä" + value.dropLast(1)) == nil)
    }

    @Test("SEC-1: an attribute that cannot be understood is passed over, of the others the last counts")
    func lastAttribute() throws {
        let read = try #require(
            SetCookie(
                "a=b; max-age=5; max-age=x; max-age=; max-age=1.5; max-age=+9; path=/x; path=y; domain=a.b; domain="
                    + "; expires=Sun, 06 Nov 1994 08:49:37 GMT; expires=soon; path=/"
                    + String(repeating: "p", count: 1_024)
            )
        )
        #expect(read.maximumAge == 5)
        #expect(read.path == nil)
        #expect(read.domain == "a.b")
        #expect(read.expires != nil)
        #expect(SetCookie("a=b; max-age=-1; max-age=7")?.maximumAge == 7)
        #expect(SetCookie("a=b; max-age=-7")?.maximumAge == -7)
        #expect(SetCookie("a=b; max-age=-")?.maximumAge == nil)
    }
}
