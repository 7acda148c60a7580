import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("CookieStore")
struct CookieStoreTests {
    private static let start = Date(timeIntervalSince1970: 1_000_000_000)

    /// A store with the cookies of several responses.
    private struct World {
        var store = CookieStore()
        var now = start

        mutating func set(_ url: String, _ fields: String...) throws {
            let headers = HTTPHeaders(fields.map { .init(name: "set-cookie", value: $0) })
            _ = store.store(headers, from: try #require(URL(string: url)), at: now)
        }

        mutating func sent(_ url: String) throws -> String? {
            store.header(for: try #require(URL(string: url)), at: now)
        }
    }

    @Test("SEC-3: a cookie is sent to its host, and with a domain to all hosts below it, never to others")
    func domains() throws {
        var world = World()
        try world.set(
            "https://www.example.com/",
            "host=1",
            "wide=2; Domain=example.com",
            "same=3; Domain=.WWW.example.com"
        )
        try expect(world.sent("https://www.example.com/"), equals: "host=1; wide=2; same=3")
        try expect(world.sent("https://WWW.EXAMPLE.com"), equals: "host=1; wide=2; same=3")
        try expect(world.sent("https://example.com/"), equals: "wide=2")
        try expect(world.sent("https://a.www.example.com/"), equals: "wide=2; same=3")
        try expect(world.sent("https://badexample.com/") == nil)
        try expect(world.sent("https://com/") == nil)
        try expect(world.sent("https://www.example.com:8443/"), equals: "host=1; wide=2; same=3")
    }

    @Test("SEC-3: a server cannot set a cookie for a domain that is not above it, nor for a single label")
    func foreignDomains() throws {
        var world = World()
        try world.set(
            "https://www.example.com/",
            "a=1; Domain=other.com",
            "b=1; Domain=api.example.com",
            "c=1; Domain=com",
            "d=1; Domain=.com.",
            "e=1; Domain=ww.example.com"
        )
        expect(world.store.count, equals: 0)
        try world.set("http://localhost:8080/", "a=1; Domain=localhost")
        expect(world.store.cookies(at: world.now).map(\.isHostOnly), equals: [true])
        try expect(world.sent("http://a.localhost/") == nil)
        try expect(world.sent("http://localhost/"), equals: "a=1")
    }

    @Test("SEC-3: the cookies of an address are for that address only")
    func addresses() throws {
        var world = World()
        try world.set("http://127.0.0.1/", "a=1; Domain=127.0.0.1", "b=1; Domain=0.0.1", "c=1; Domain=1")
        try expect(world.sent("http://127.0.0.1/"), equals: "a=1")
        expect(world.store.cookies(at: world.now).map(\.isHostOnly), equals: [true])
        try world.set("http://[::1]:80/", "six=1")
        try expect(world.sent("http://[::1]/"), equals: "six=1")
    }

    @Test("SEC-3: longer paths go first, then older cookies; a replacement keeps the age")
    func order() throws {
        var world = World()
        try world.set("https://h.example/a/b/c", "one=1; Path=/", "two=2", "three=3; Path=/a", "four=4; Path=/")
        try world.set("https://h.example/a/b/c", "one=new; Path=/", "other=5; Path=/x")
        try expect(world.sent("https://h.example/a/b/c"), equals: "two=2; three=3; one=new; four=4")
        try expect(world.sent("https://h.example/a"), equals: "three=3; one=new; four=4")
        try expect(world.sent("https://h.example/ab"), equals: "one=new; four=4")
        try expect(world.sent("https://h.example"), equals: "one=new; four=4")
    }

    @Test("SEC-3: a cookie expires by Max-Age, or else by Expires")
    func expiry() throws {
        var world = World()
        try world.set(
            "https://h.example/",
            "age=1; Max-Age=10; Expires=Sun, 06 Nov 1994 08:49:37 GMT",
            "date=1; Expires=Sun, 09 Sep 2001 01:46:50 GMT",
            "session=1",
            "past=1; Expires=Sun, 06 Nov 1994 08:49:37 GMT",
            "far=1; Max-Age=\(String(repeating: "9", count: 400))"
        )
        world.now = Self.start + 9.9
        try expect(world.sent("https://h.example/"), equals: "age=1; date=1; session=1; far=1")
        world.now = Self.start + 10
        try expect(world.sent("https://h.example/"), equals: "session=1; far=1")
        expect(world.store.cookies(at: world.now).map(\.name), equals: ["session", "far"])
        try world.set("https://h.example/", "session=; Max-Age=0", "far=1; Max-Age=-5")
        try expect(world.sent("https://h.example/") == nil)
    }

    @Test("SEC-3: a secure cookie is sent over https only, and only https sets or hides it")
    func secure() throws {
        var world = World()
        try world.set("https://h.example/", "s=1; Secure; Path=/a", "p=1")
        try expect(world.sent("http://h.example/a"), equals: "p=1")
        try expect(world.sent("https://h.example/a"), equals: "s=1; p=1")
        try world.set(
            "http://h.example/",
            "t=1; Secure",
            "s=evil; Path=/a",
            "s=evil; Path=/a/b",
            "p=2",
            "s=sound; Path=/"
        )
        try expect(world.sent("https://h.example/a/b"), equals: "s=1; p=2; s=sound")
        try world.set("http://a.h.example/", "s=evil; Domain=h.example; Path=/a")
        try expect(world.sent("https://h.example/a"), equals: "s=1; p=2; s=sound")
    }

    @Test("SEC-3: the prefixes __Secure- and __Host- of a name are enforced")
    func prefixes() throws {
        var world = World()
        try world.set(
            "https://www.example.com/a/b",
            "__Secure-a=1",
            "__Host-b=1; Secure",
            "__Host-c=1; Secure; Path=/a",
            "__Host-d=1; Secure; Path=/; Domain=www.example.com",
            "__host-e=1; Path=/",
            "__Secure-ok=1; Secure; Domain=example.com",
            "__Host-ok=1; Secure; Path=/"
        )
        try world.set("http://www.example.com/", "__Secure-f=1; Secure", "__Host-g=1; Secure; Path=/")
        // A default path does not count as a named one.
        try world.set("https://www.example.com/", "__Host-h=1; Secure")
        expect(world.store.cookies(at: world.now).map(\.name), equals: ["__Secure-ok", "__Host-ok"])
    }

    @Test("SEC-3: of more than fifty cookies of a domain the least recently used are removed, expired ones first")
    func limitPerDomain() throws {
        var world = World()
        for index in 0..<50 {
            try world.set("https://h.example/p\(index)/x", "c\(index)=1; Max-Age=\(index == 7 ? 5 : 99)")
        }
        try world.set("https://other.example/", "safe=1")
        try expect(world.sent("https://h.example/p0/x"), equals: "c0=1")
        world.now += 6
        try world.set("https://h.example/", "new1=1")
        expect(world.store.count, equals: 51)
        try expect(world.sent("https://h.example/p1/x"), equals: "c1=1; new1=1")
        try world.set("https://h.example/", "new2=1")
        expect(world.store.count, equals: 51)
        // c7 has expired, c0 and c1 have been used: the next is c2.
        expect(Set(world.store.cookies(at: world.now).map(\.name)).isDisjoint(with: ["c7", "c2"]))
        try expect(world.sent("https://h.example/p0/x"), equals: "c0=1; new1=1; new2=1")
    }

    @Test("SEC-3: the first two hundred fields of a response are read")
    func manyFields() throws {
        var world = World()
        let fields = HTTPHeaders((0..<300).map { .init(name: "Set-Cookie", value: "c\($0)=v") })
        _ = world.store.store(fields, from: try #require(URL(string: "http://h.example/")), at: world.now)
        expect(world.store.cookies(at: world.now).map(\.name), equals: (150..<200).map { "c\($0)" })
    }

    @Test("SEC-3: of more than three thousand cookies the least recently used are removed")
    func limit() throws {
        var world = World()
        for index in 0..<3_000 { try world.set("https://h\(index).example/", "c=1") }
        try expect(world.sent("https://h0.example/"), equals: "c=1")
        try world.set("https://new.example/", "c=1")
        expect(world.store.count, equals: 3_000)
        try expect(world.sent("https://h0.example/"), equals: "c=1")
        try expect(world.sent("https://h1.example/") == nil)
        try expect(world.sent("https://new.example/"), equals: "c=1")
    }

    @Test("SEC-3: only persistent cookies are a reason to write the file")
    func fileIsDue() throws {
        var store = CookieStore()
        let url = try #require(URL(string: "https://h.example/"))
        func set(_ field: String) -> Bool { store.store(["Set-Cookie": field], from: url, at: Self.start) }
        let due = [set("a=1"), set("a=2; Max-Age=5"), set("a=3"), set("a=4"), set("b=1; Max-Age=0"), set("bad")]
        expect(due, equals: [false, true, true, false, false, false])
        let hasRemoved = store.remove { _ in true }
        expect(hasRemoved)
        expect(store.count, equals: 0)
    }

    @Test("SEC-3: other schemes have no cookies")
    func otherSchemes() throws {
        var world = World()
        try world.set("ftp://h.example/", "a=1")
        try world.set("file:///h", "a=1")
        expect(world.store.count, equals: 0)
        try expect(world.sent("ftp://h.example/") == nil)
    }

    @Test(
        "SEC-3: whatever a server sends, the stored cookies are valid, counted, and sent to no other server",
        arguments: UInt64(1)...UInt64(TestLoad.count(20, part: 4))
    )
    func garbage(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let pieces = [
            "a", "b", "__Host-", "__Secure-", "=", "=", ";", "; ", "Domain", "Path", "Max-Age", "Expires", "Secure",
            "example.com", "www.example.com", ".", "com", "/", "/x", "1", "-", "99999999999999999999", "\t", " ", "é",
            ",",
            "\u{0}", "Sun, 06 Nov 2094 08:49:37 GMT", "\"", "127.0.0.1",
        ]
        let hosts = ["www.example.com", "example.com", "127.0.0.1", "localhost", "a.b.c.example.com"]
        var store = CookieStore()
        for _ in 0..<1_000 {
            let count = Int.random(in: 0...10, using: &generator)
            let field = (0..<count).compactMap { _ in pieces.randomElement(using: &generator) }.joined()
            let host = try #require(hosts.randomElement(using: &generator))
            let scheme = Bool.random(using: &generator) ? "https" : "http"
            let url = try #require(URL(string: "\(scheme)://\(host)/x/y"))
            _ = store.store(["Set-Cookie": field], from: url, at: Self.start)
            if let header = store.header(for: url, at: Self.start) {
                expect(HTTPSyntax.isFieldValue(header.utf8), "seed \(seed)")
            }
        }
        let cookies = store.cookies(at: Self.start)
        expect(cookies.count, equals: store.count, "seed \(seed)")
        expect(!cookies.isEmpty, "seed \(seed)")
        for cookie in cookies {
            // Reading a file goes through the same check.
            #expect(throws: Never.self, "seed \(seed)") { try cookie.check() }
            expect(Cookie.canonicalDomain(cookie.domain), equals: cookie.domain, "seed \(seed)")
        }
        let elsewhere = try #require(URL(string: "https://evil.com/x/y"))
        expect(store.header(for: elsewhere, at: Self.start) == nil, "seed \(seed)")
    }
}

@Suite("Cookie: hosts and paths")
struct CookieDomainTests {
    @Test(
        "SEC-3: a host is in its domain and the domains above it, an address only in itself",
        arguments: [
            ("example.com", "example.com", true), ("a.example.com", "example.com", true),
            ("a.b.example.com", "example.com", true), ("badexample.com", "example.com", false),
            ("example.com", "a.example.com", false), ("1.2.3.4", "3.4", false), ("1.2.3.4", "1.2.3.4", true),
            ("[::1]", "1]", false), ("example.com", "", false), ("a.example.com.", "example.com", false),
            ("x.0x7f", "0x7f", false), ("a.3com", "3com", true),
        ]
    )
    func domains(host: String, domain: String, isIn: Bool) {
        expect(Cookie.hostMatches(host, domain: domain), equals: isIn)
    }

    @Test(
        "SEC-3: a path is below another by whole segments",
        arguments: [
            ("/", "/", true), ("/a", "/", true), ("/a/b", "/a", true), ("/a/b", "/a/", true), ("/ab", "/a", false),
            ("/a", "/a/", false), ("/", "/a", false), ("/A", "/a", false), ("/a/", "/a", true),
        ]
    )
    func paths(requested: String, path: String, isBelow: Bool) {
        expect(Cookie.pathMatches(requested, path: path), equals: isBelow)
    }

    @Test(
        "SEC-3: a cookie without a path has the folder of the request",
        arguments: [("/a/b/c", "/a/b"), ("/a/b/", "/a/b"), ("/a", "/"), ("/", "/"), ("", "/"), ("a/b", "/")]
    )
    func defaultPaths(requested: String, path: String) {
        expect(Cookie.defaultPath(requested), equals: path)
    }

    @Test("SEC-3: single labels are public suffixes, also with dots around them")
    func suffixes() {
        for domain in ["com", "com.", ".", "", "localhost"] { expect(Cookie.isPublicSuffix(domain)) }
        for domain in ["example.com", "co.uk"] { expect(!Cookie.isPublicSuffix(domain)) }
    }
}
