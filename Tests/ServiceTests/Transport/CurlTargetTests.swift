#if os(Linux)
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("CurlTarget")
struct CurlTargetTests {
    @Test(
        "SEC-2: scheme, origin and credentials are those of the URL",
        arguments: [
            "http://a.example", "https://a.example:8443/path?query#fragment", "HTTP://A.example/", "http://[::1]:81/x",
            "https://user@a.example/", "https://user:pass%40word@a.example:1/x", "http://a.example?at=user@b.example",
            "http://a.example/user@b.example://x", "http://a.example#user@b.example", "https://[fe80::1%25eth0]/",
        ]
    )
    func components(_ text: String) throws {
        let url = try #require(URL(string: text))
        let target = CurlTarget(address: url.absoluteString)
        expect(target.isHTTPS == (url.scheme?.lowercased() == "https") && target.isHTTP == !target.isHTTPS)
        expect(target.hasCredentials, equals: (url.user != nil || url.password != nil))
        let origin = try #require(URL(string: target.origin))
        expect(origin.scheme == url.scheme && origin.host == url.host && origin.port == url.port)
        expect(origin.user == nil && origin.path.isEmpty && origin.query == nil && origin.fragment == nil)
    }

    @Test(
        "SEC-2: an address that is not absolute is neither http nor https",
        arguments: ["a", "/a", "http:a", "mailto:a@b.example"]
    )
    func none(_ text: String) throws {
        let target = CurlTarget(address: text)
        expect(!target.isHTTP && !target.isHTTPS && target.origin == text)
    }

    @Test("SEC-2: a relative address includes its base")
    func relative() throws {
        let url = try #require(URL(string: "b?c", relativeTo: URL(string: "http://user@a.example:81/x/")))
        let target = CurlTarget(address: url.absoluteString)
        expect(target.address == "http://user@a.example:81/x/b?c" && target.origin == "http://a.example:81")
        expect(target.hasCredentials)
    }
}
#endif
