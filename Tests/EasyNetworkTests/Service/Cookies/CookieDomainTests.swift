import Testing

@testable import EasyNetwork

@Suite("CookieDomain")
struct CookieDomainTests {
    @Test(
        "SEC-1: a host is in a domain when it is that or below it, and an address only when it is that",
        arguments: [
            ("example.com", "example.com", true), ("a.example.com", "example.com", true),
            ("a.b.example.com", "example.com", true), ("badexample.com", "example.com", false),
            ("example.com", "a.example.com", false), ("1.2.3.4", "3.4", false), ("1.2.3.4", "1.2.3.4", true),
            ("[::1]", "1]", false), ("example.com", "", false), ("a.example.com.", "example.com", false),
            ("x.0x7f", "0x7f", false), ("a.3com", "3com", true),
        ]
    )
    func domains(host: String, domain: String, isIn: Bool) {
        #expect(CookieDomain.matches(host, domain: domain) == isIn)
    }

    @Test(
        "SEC-1: a path is below another by whole segments",
        arguments: [
            ("/", "/", true), ("/a", "/", true), ("/a/b", "/a", true), ("/a/b", "/a/", true), ("/ab", "/a", false),
            ("/a", "/a/", false), ("/", "/a", false), ("/A", "/a", false), ("/a/", "/a", true),
        ]
    )
    func paths(requested: String, path: String, isBelow: Bool) {
        #expect(CookieDomain.pathMatches(requested, path: path) == isBelow)
    }

    @Test(
        "SEC-1: a cookie without a path has the folder of the request",
        arguments: [("/a/b/c", "/a/b"), ("/a/b/", "/a/b"), ("/a", "/"), ("/", "/"), ("", "/"), ("a/b", "/")]
    )
    func defaultPaths(requested: String, path: String) {
        #expect(CookieDomain.defaultPath(requested) == path)
    }

    @Test("SEC-1: single labels are public suffixes, also with dots around them")
    func suffixes() {
        for domain in ["com", "com.", ".", "", "localhost"] { #expect(CookieDomain.isPublicSuffix(domain)) }
        for domain in ["example.com", "co.uk"] { #expect(!CookieDomain.isPublicSuffix(domain)) }
    }

    @Test("SEC-1: a host is in as many domains as it has labels, of which no more are looked at than a name can have")
    func above() {
        #expect(CookieDomain.above("a.b.c") == ["a.b.c", "b.c", "c"])
        #expect(CookieDomain.above("1.2.3.4") == ["1.2.3.4"])
        #expect(CookieDomain.above("[::1.2.3.4]") == ["[::1.2.3.4]"])
        #expect(CookieDomain.above(String(repeating: "a.", count: 10_000) + "b").count == 128)
    }
}
