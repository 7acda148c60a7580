import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("The rules of RedirectPolicy")
struct RedirectPolicyRulesTests {
    private func redirect(
        from address: String = "https://a.example/b/c/d;p?q",
        _ status: Int = 302,
        to location: String,
        method: NetworkService.Method = .get,
        headers: HTTPHeaders = HTTPHeaders(),
        body: TransportBody = .none,
        policy: RedirectPolicy = RedirectPolicy(),
        count: Int = 0
    ) throws -> TransportRequest? {
        let url = try #require(URL(string: address))
        let message = TransportRequest(method: method, url: url, headers: headers, body: body)
        let response = NetworkResponse(statusCode: status, headers: ["Location": location])
        return try policy.redirect(of: message, by: response, count: count)
    }

    private func target(_ location: String, from address: String = "https://a.example/b/c/d;p?q") throws -> String? {
        try redirect(from: address, to: location)?.url.absoluteString
    }

    private func failure(_ make: () throws -> TransportRequest?) -> String {
        let error = #expect(throws: NetworkError.self) { try make() }
        expect(error?.code == .redirectFailed && error?.statusCode == 302)
        return error?.message ?? ""
    }

    @Test(
        "SEC-2: a relative Location is resolved as RFC 3986, section 5.4, has it",
        arguments: [
            ("g", "https://a.example/b/c/g"), ("./g", "https://a.example/b/c/g"), ("g/", "https://a.example/b/c/g/"),
            ("/g", "https://a.example/g"), ("//g.example", "https://g.example"),
            ("?y", "https://a.example/b/c/d;p?y"), ("g?y", "https://a.example/b/c/g?y"),
            ("#s", "https://a.example/b/c/d;p?q#s"), ("g#s", "https://a.example/b/c/g#s"),
            (";x", "https://a.example/b/c/;x"), ("", "https://a.example/b/c/d;p?q"), (".", "https://a.example/b/c/"),
            ("..", "https://a.example/b/"), ("../g", "https://a.example/b/g"), ("../..", "https://a.example/"),
            ("../../g", "https://a.example/g"), ("../../../g", "https://a.example/g"),
            ("/./g", "https://a.example/g"), ("/../g", "https://a.example/g"), ("g.", "https://a.example/b/c/g."),
            ("./../g", "https://a.example/b/g"), ("g;x=1/../y", "https://a.example/b/c/y"),
            ("https://other.example:8443/x?y=%20", "https://other.example:8443/x?y=%20"),
            ("/with space/é", "https://a.example/with%20space/%C3%A9"), (" /g ", "https://a.example/g"),
            ("https://[::1]:81/g", "https://[::1]:81/g"), ("12:30", "https://a.example/b/c/12:30"),
            ("https://g.example/x/../y/./z/..?a/../b", "https://g.example/y/?a/../b"),
            ("//g.example/../g", "https://g.example/g"), ("https://g.example/a/../../b", "https://g.example/b"),
            ("https://a.example//x/..//y", "https://a.example///y"),
            ("https://bücher.example/ü", "https://xn--bcher-kva.example/%C3%BC"),
            ("//BÜCHER.example:81", "https://xn--bcher-kva.example:81"),
            ("/list?filter[name]=a%20b", "https://a.example/list?filter%5Bname%5D=a%20b"),
            ("//[::1]/a[1]?b=%2F#c%20[d]#e", "https://[::1]/a%5B1%5D?b=%2F#c%20%5Bd%5D%23e"),
            ("g[1]%20", "https://a.example/b/c/g%5B1%5D%20"), ("?a=[//]%20", "https://a.example/b/c/d;p?a=%5B//%5D%20"),
        ]
    )
    func relative(location: String, expected: String) throws {
        try expect(target(location), equals: expected)
    }

    @Test("SEC-2: the fragment of the request stays if the Location has none (RFC 9110, section 10.2.2)")
    func fragment() throws {
        try expect(target("/g", from: "https://a.example/b#part"), equals: "https://a.example/g#part")
        try expect(target("/g#own", from: "https://a.example/b#part"), equals: "https://a.example/g#own")
    }

    @Test("SEC-2: methods and bodies after RFC 9110, section 15.4")
    func methods() throws {
        let body = TransportBody.data(Data("x".utf8))
        let others = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH"].map(NetworkService.Method.init)
        func after(_ status: Int) throws -> [String] {
            try others.map { method in
                let content = method == .get || method == .head ? TransportBody.none : body
                let next = try #require(try redirect(status, to: "/g", method: method, body: content))
                return next.method.rawValue + (next.body == .none ? "" : "+")
            }
        }
        let kept = ["GET", "HEAD", "POST+", "PUT+", "DELETE+", "PATCH+"]
        try expect(after(307) == kept && after(308) == kept)
        try expect(after(303), equals: ["GET", "HEAD", "GET", "GET", "GET", "GET"])
        let browsers = ["GET", "HEAD", "GET", "PUT+", "DELETE+", "PATCH+"]
        try expect(after(301) == browsers && after(302) == browsers)
        let headers: HTTPHeaders = ["Content-Type": "a/b", "Content-Language": "de", "Accept": "c/d"]
        try expect(
            redirect(303, to: "/g", method: .put, headers: headers, body: body)?.headers,
            equals: [
                "Accept": "c/d"
            ]
        )
        try expect(redirect(307, to: "/g", method: .put, headers: headers, body: body)?.headers, equals: headers)
        let described: HTTPHeaders = [
            "Content-MD5": "x", "Content-Range": "x", "Content-Disposition": "x", "Content-Digest": "x", "Digest": "x",
            "Repr-Digest": "x", "Last-Modified": "x",
        ]
        let next = try redirect(302, to: "/g", method: .post, headers: described, body: body)
        expect(next?.headers, equals: HTTPHeaders())
    }

    @Test("SEC-1: credentials go to no other scheme, host or port")
    func credentials() throws {
        let headers: HTTPHeaders = [
            "authorization": "Bearer 1", "Cookie": "a=1", "Proxy-Authorization": "x", "Accept": "a/b",
            "Host": "a.example",
        ]
        func kept(_ location: String, from address: String = "https://a.example/b") throws -> Bool {
            let redirect = try #require(
                try redirect(
                    from: address,
                    to: location,
                    headers: headers,
                    policy: RedirectPolicy(allowsDowngrade: true)
                )
            )
            let isKept = redirect.headers["Cookie"] != nil
            expect(redirect.headers, equals: (isKept ? headers : ["Accept": "a/b"]))
            return isKept
        }
        try expect(kept("/g") && kept("https://a.example/g") && kept("https://A.EXAMPLE:443/g"))
        try expect(kept("//a.example:80/g", from: "http://a.example/b"))
        try expect(!kept("https://b.example/g") && !kept("https://a.example:444/g") && !kept("http://a.example/g"))
        try expect(!kept("https://sub.a.example/g") && !kept("//b.example/g"))
        try expect(target("https://user:secret@b.example/g"), equals: "https://b.example/g")
    }

    @Test("SEC-1: of the other fields only the standard ones go to another origin, whatever the name of a secret is")
    func ownFields() throws {
        let standard: HTTPHeaders = [
            "Accept": "a/b", "accept-language": "de", "User-Agent": "x", "Content-Type": "a/b", "Range": "bytes=0-1",
            "If-None-Match": "\"a\"", "Cache-Control": "no-cache", "Idempotency-Key": "1",
        ]
        let headers = standard.merging([
            "X-App": "5f2c", "X-Customer": "7", "X-Functions-Key": "s3cret", "Referer": "r",
        ])
        func kept(_ location: String) throws -> HTTPHeaders? {
            try redirect(307, to: location, headers: headers)?.headers
        }
        try expect(kept("https://b.example/g"), equals: standard)
        let policy = RedirectPolicy(crossOriginHeaders: ["x-customer", "Host", "X-Absent"])
        let allowed = try redirect(
            307,
            to: "https://b.example/g",
            headers: headers.merging(["Host": "h"]),
            policy: policy
        )
        expect(allowed?.headers, equals: standard.merging(["X-Customer": "7"]))
        try expect(kept("/g"), equals: headers)
    }

    @Test("SEC-2: other answers are no redirects: another status, no Location, a policy that follows none")
    func others() throws {
        for status in [200, 201, 300, 304, 305, 306, 400] { try expect(redirect(status, to: "/g") == nil) }
        try expect(redirect(to: "/g", policy: .never) == nil)
        let url = try #require(URL(string: "https://a.example"))
        let rules = RedirectPolicy()
        try expect(
            rules.redirect(of: TransportRequest(url: url), by: NetworkResponse(statusCode: 302), count: 0) == nil
        )
    }

    @Test("SEC-2: too many, downgrades, other schemes, no address are errors that say so")
    func refused() throws {
        expect(failure { try redirect(to: "/g", count: 20) }, equals: "more than 20 redirects")
        try expect(redirect(to: "/g", count: 19) != nil)
        expect(failure { try redirect(to: "http://a.example/g") }.contains("from https to http"))
        try expect(redirect(to: "http://a.example/g", policy: RedirectPolicy(allowsDowngrade: true)) != nil)
        for location in ["ftp://a.example/", "file:///etc/passwd", "javascript:alert(1)", "data:text/plain,x"] {
            expect(failure { try redirect(to: location) }.contains("only http and https"))
        }
        for location in [
            "https:///cb?token=s3cret", "https:?token=s3cret", "https:///#token=s3cret", "//ada:s3cret@/x",
            "https://ada:s3cret@a b/", "https://ada:s3cret/1@a/", "//ada:s3cret?@a",
        ] {
            expect(!failure { try redirect(to: location) }.contains("s3cret"), "\(location)")
        }
        for location in ["https://", "https:///x", "https://a b/", "https://％４１.com/", "https:a"] {
            expect(!failure { try redirect(to: location) }.isEmpty)
        }
    }
}
