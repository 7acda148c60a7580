import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("URLBuilder")
struct URLBuilderTests {
    struct Case: CustomStringConvertible, Sendable {
        let api: String
        let base: String?
        let query: String?
        let url: String

        init(_ api: String, _ base: String?, _ url: String) {
            (self.api, self.base, self.query, self.url) = (api, base, nil, url)
        }

        init(_ api: String, _ base: String?, _ query: String, _ url: String) {
            (self.api, self.base, self.query, self.url) = (api, base, query, url)
        }

        var description: String { "\(base ?? "nil") + \(api.debugDescription) ? \(query ?? "nil")" }
    }

    static let joins: [Case] = [
        // The seam.
        Case("users", "https://h", "https://h/users"), Case("/users", "https://h", "https://h/users"),
        Case("users", "https://h/", "https://h/users"), Case("/users", "https://h/", "https://h/users"),
        Case("users", "https://h/v1", "https://h/v1/users"), Case("/users", "https://h/v1/", "https://h/v1/users"),
        Case("//users", "https://h/v1//", "https://h/v1/users"), Case("users/", "https://h/v1", "https://h/v1/users/"),
        Case("a//b", "https://h/v1", "https://h/v1/a//b"), Case("", "https://h/v1", "https://h/v1"),
        Case("", "https://h/v1/", "https://h/v1/"), Case("", "https://h", "https://h"),
        Case("/", "https://h/v1", "https://h/v1/"), Case("/", "https://h/v1/", "https://h/v1/"),
        Case("users", "https://h:8443/v1", "https://h:8443/v1/users"),
        Case("users", "http://[::1]:8080/v1", "http://[::1]:8080/v1/users"),
        // Never another host.
        Case("//evil.example/x", "https://h", "https://h/evil.example/x"),
        Case("/\\evil.example", "https://h", "https://h/%5Cevil.example"),
        Case("@evil.example", "https://h", "https://h/@evil.example"), Case(":80/x", "https://h", "https://h/:80/x"),
        Case(".evil.example", "https://h", "https://h/.evil.example"),
        Case("https:/x", "https://h", "https://h/https:/x"),
        Case("x?u=https://evil.example", "https://h", "https://h/x?u=https://evil.example"),
        Case("1http://x", "https://h", "https://h/1http://x"),
        // Queries and fragments.
        Case("users?a=1", "https://h", "https://h/users?a=1"), Case("users", "https://h", "b=2", "https://h/users?b=2"),
        Case("users?a=1", "https://h/v1?k=0", "b=2", "https://h/v1/users?k=0&a=1&b=2"),
        Case("users#top", "https://h", "b=2", "https://h/users?b=2#top"),
        Case("users?a=1#top?x", "https://h", "b=2", "https://h/users?a=1&b=2#top?x"),
        Case("users#a#b", "https://h", "https://h/users#a%23b"), Case("users?a?b", "https://h", "https://h/users?a?b"),
        Case("users?", "https://h", "https://h/users?"), Case("users?", "https://h", "b=2", "https://h/users?b=2"),
        Case("?a=1", "https://h/v1", "https://h/v1?a=1"), Case("?a=1", "https://h", "https://h?a=1"),
        Case("#f", "https://h/v1/", "https://h/v1/#f"), Case("users", "https://h/v1#f", "https://h/v1/users"),
        Case("users", "https://h/v1?", "https://h/v1/users?"),
        Case("users?a=%5B%5D+", "https://h", "https://h/users?a=%5B%5D+"),
        // Bytes.
        Case("a%20b/%2F%e9", "https://h", "https://h/a%20b/%2F%e9"),
        Case("100%/%zz/%4", "https://h", "https://h/100%25/%25zz/%254"),
        Case("a b", "https://h", "https://h/a%20b"),
        Case("é/😀?q=é", "https://h", "https://h/%C3%A9/%F0%9F%98%80?q=%C3%A9"),
        Case("a\"<>[]^`{|}\\", "https://h", "https://h/a%22%3C%3E%5B%5D%5E%60%7B%7C%7D%5C"),
        Case("q?a=[1]|\"x y\"", "https://h", "https://h/q?a=%5B1%5D%7C%22x%20y%22"),
        Case("a\r\n\t\u{0}b", "https://h", "https://h/a%0D%0A%09%00b"),
        Case("a?\u{301}b=1", "https://h", "https://h/a?%CC%81b=1"),
        Case("users/batch:get", "https://h", "https://h/users/batch:get"),
        Case("batch:get", "https://h", "https://h/batch:get"),
        Case("a;v=1/b,c/!$&'()*+~", "https://h", "https://h/a;v=1/b,c/!$&'()*+~"),
        Case("a/../b", "https://h/v1", "https://h/v1/a/../b"),
        // Absolute.
        Case("https://other/x?a=1", "https://h/v1?k=0", "b=2", "https://other/x?a=1&b=2"),
        Case("http://other", nil, "http://other"), Case("HTTPS://Other/X", nil, "https://Other/X"),
        Case("https://other:81/x#f", nil, "b=2", "https://other:81/x?b=2#f"),
        Case("https://[2001:db8::1]:8443/x", nil, "https://[2001:db8::1]:8443/x"),
        Case("https://other:/x", nil, "https://other/x"),
        Case("https://other?a=1", nil, "https://other?a=1"),
        Case("https://other/a b?c d#e f", nil, "https://other/a%20b?c%20d#e%20f"),
        Case("https://127.0.0.1:0/x", nil, "https://127.0.0.1:0/x"),
        Case("https://a_b.example/", nil, "https://a_b.example/"),
    ]

    private func join(_ api: String, _ base: URL?, _ query: String? = nil) throws(NetworkError) -> URL {
        let parts = try base.map { (base) throws(NetworkError) in try URLBuilder.parts(ofBase: base.absoluteString) }
        return try URLBuilder.url(api: api, base: parts, query: query)
    }

    @Test("CFG-1: base and api join, absolute URLs win, and bytes stay as they are", arguments: joins)
    func join(_ row: Case) throws {
        let base = try row.base.map { try #require(URL(string: $0)) }
        let url = try join(row.api, base, row.query)
        expect(url.absoluteString, equals: row.url)
    }

    @Test("CFG-1: a base relative to another URL is resolved")
    func relativeBase() throws {
        let base = try #require(URL(string: "v2/", relativeTo: URL(string: "https://h/")))
        try expect(join("x", base).absoluteString, equals: "https://h/v2/x")
    }

    @Test(
        "CFG-1: an invalid address is an error with the reason",
        arguments: [
            ("users", nil, "HostConfiguration.baseURL(\"https://…\")"), ("", nil, "there is no base URL"),
            ("ftp://other/x", nil, "\"ftp\""), ("file:///etc/passwd", nil, "\"file\""),
            ("javascript://h/x", "https://h", "\"javascript\""), ("https://", nil, "no host"),
            ("https:///x", "https://h", "no host"), ("https://:80/x", nil, "no host"),
            ("https://h:99999/", nil, "99999"), ("https://h:8a/", nil, "8a"), ("https://h:-1/", nil, "-1"),
            ("https://a b/", nil, "a b"), ("https://a%20b/", nil, "a%20b"), ("https://[zz]/", nil, "[zz]"),
            ("https://[::1/", nil, "host"), ("https://[::1]x/", nil, "port"),
            ("https://good.example\\@evil.example/", nil, "backslash"), ("https://h\r\nX: y/", nil, "control"),
            ("users", "ftp://h", "\"ftp\""), ("users", "h/v1", "https://"),
            ("users", "https:v1", "https://"), ("users", "file:///x", "\"file\""),
            (" https://other/x", "https://h", "blank"), ("\r\nusers", "https://h", "blank"),
            ("\u{FEFF}https://other/x", "https://h", "blank"), ("\u{A0}users", "https://h", "blank"),
            ("http://％４１.com", nil, "％４１.com"), ("http://é%41.com", nil, "host"), ("http://％00.com", nil, "host"),
        ] as [(String, String?, String)]
    )
    func refusals(_ api: String, _ base: String?, _ fragment: String) throws {
        let base = try base.map { try #require(URL(string: $0)) }
        let error = #expect(throws: NetworkError.self) { try join(api, base) }
        expect(error?.code, equals: .invalidRequest)
        expect(error?.message?.contains(fragment), equals: true, "\(error?.message ?? "nil")")
    }

    @Test(
        "SEC-4: a user or a password in an address is refused with its replacement, and is not in the message",
        arguments: ["user:s3cret@", "s3cret@", "s3cret:@", "@", ":s3cret@", "a:s3cret/1@", "a:s3cret?@", "a:s3cret#@"]
    )
    func user(user: String) throws {
        let address = "https://\(user)other/x"
        for (api, base) in [(address, "https://h"), ("users", address)] {
            let error = #expect(throws: NetworkError.self) {
                try URLBuilder.url(api: api, base: URLBuilder.parts(ofBase: base), query: nil)
            }
            let message = error?.localizedDescription ?? ""
            expect(error?.code == .invalidRequest && error?.message?.contains("s3cret") == false, "\(message)")
            expect(message.contains("RequestOptions.credential") && message.contains(".password"), "\(message)")
            expect(!message.contains("REDACTED"), "\(message)")
        }
        let url = try URLBuilder.url(
            resolving: "https://u:s3cret@other/x",
            against: #require(URL(string: "https://u:s3cret@h/")),
            what: "it"
        )
        expect(url.absoluteString, equals: "https://other/x")
    }

    @Test("CFG-1: a host in Unicode is converted for DNS, or an error if Foundation cannot")
    func unicodeHost() throws {
        do {
            let url = try URLBuilder.url(api: "https://bücher.example/ü", base: nil, query: nil)
            expect(url.absoluteString, equals: "https://xn--bcher-kva.example/%C3%BC")
        } catch {
            expect(error.message?.contains("xn--"), equals: true)
        }
    }

    @Test("CFG-2: a base URL from text is checked, and never traps")
    func base() throws {
        try expect(URLBuilder.base("https://h:8080/v1?k=1").absoluteString, equals: "https://h:8080/v1?k=1")
        try expect(URLBuilder.base("https://h/a b").absoluteString, equals: "https://h/a%20b")
        for text in [
            "", "h", "h.example/v1", "://h", "https://", "https:/h", "https://h:port", "ws://h", "https://a b", "\u{0}",
        ] {
            let error = #expect(throws: NetworkError.self, "\(text.debugDescription)") { try URLBuilder.base(text) }
            expect(error?.code, equals: .invalidRequest)
        }
    }

    @Test("RSP-6: the message of an address without base shows neither its query nor a password")
    func secrets() {
        let apis = ["login?password=secret", "user:secret@host/x", "x#secret"]
        for api in apis {
            let error = #expect(throws: NetworkError.self) { try URLBuilder.url(api: api, base: nil, query: nil) }
            expect(error?.localizedDescription.contains("secret"), equals: false)
        }
        let error = #expect(throws: NetworkError.self) { try URLBuilder.base("user:secret@host?secret") }
        expect(error?.localizedDescription.contains("secret"), equals: false)
    }

    @Test("CFG-1: random bytes in an api give a URL on the host of the base, or an error")
    func randomText() throws {
        let seed: UInt64 = 7
        var generator = SeededGenerator(seed: seed)
        let base = try #require(URL(string: "https://host.example/v1"))
        let alphabet = Array("ab/?#@:%2F\\[]. \u{0}\u{301}é😀\r\n&=+")
        for round in 0..<2_000 {
            let count = Int.random(in: 0...12, using: &generator)
            let api = String((0..<count).compactMap { _ in alphabet.randomElement(using: &generator) })
            guard let first = api.utf8.first, first > 0x20 else { continue }
            let url = try join(api, base, "q=1")
            expect(url.host, equals: "host.example", "seed \(seed), round \(round): \(api.debugDescription)")
            expect(url.absoluteString.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }, "seed \(seed), round \(round)")
            expect(url.query?.hasSuffix("q=1"), equals: true, "seed \(seed), round \(round): \(api.debugDescription)")
        }
    }
}
