import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("HTTPInvalidation")
struct HTTPInvalidationTests {
    private func urls(
        _ method: String = "POST",
        _ status: Int = 200,
        _ response: String = "",
        target: String = "https://a.example/items/1?x=1"
    ) throws -> [String] {
        let target = try #require(URL(string: target))
        return HTTPHeaders.lines(response).invalidatedURLs(
            method: NetworkService.Method(rawValue: method),
            target: target,
            status: status
        ).map(\.absoluteString)
    }

    @Test(
        "BEY-10: RFC 9111, section 4.4: unsafe and unknown methods invalidate",
        arguments: [
            ("POST", true), ("PUT", true), ("DELETE", true), ("PATCH", true), ("LOCK", true), ("FOO", true),
            ("GET", false), ("HEAD", false), ("OPTIONS", false), ("TRACE", false),
        ]
    )
    func methods(name: String, isUnsafe: Bool) throws {
        try expect(urls(name), equals: (isUnsafe ? ["https://a.example/items/1?x=1"] : []))
    }

    @Test(
        "BEY-10: RFC 9111, section 4.4: responses without an error invalidate",
        arguments: [100, 200, 204, 299, 301, 399, 400, 503]
    )
    func statuses(status: Int) throws {
        try expect(urls("PUT", status).isEmpty, equals: !(200..<400).contains(status))
        try expect(urls("PUT", status, "Location: /other").isEmpty, equals: !(200..<400).contains(status))
    }

    private static let namedURLs: [(String, [String])] = [
        ("Location: /new", ["https://a.example/new"]), ("Location: 2", ["https://a.example/items/2"]),
        ("Content-Location: ?y=1#part", ["https://a.example/items/1?y=1"]),
        ("location: HTTPS://A.example:443/new", ["https://A.example:443/new"]),
        ("Location: /l | Content-Location: /c", ["https://a.example/l", "https://a.example/c"]),
        ("Location: https://a.example/x/../y", ["https://a.example/y"]),
        ("Location: /with space", ["https://a.example/with%20space"]),
        ("Location: /list?filter[name]=a%20b", ["https://a.example/list?filter%5Bname%5D=a%20b"]),
        ("Location: https://b.example/new", []), ("Location: http://a.example/new", []),
        ("Location: https://a.example:444/new", []), ("Location: //b.example/new", []),
        ("Location: https://user@b.example/", []), ("Location: mailto:a@a.example", []),
        ("Location: ?x=1", []), ("Location:", []), ("Content-Location: https://", []),
    ]

    @Test(
        "BEY-10: RFC 9111, section 4.4: Location and Content-Location of the same origin are invalidated",
        arguments: namedURLs
    )
    func named(fields: String, expected: [String]) throws {
        try expect(urls("POST", 201, fields), equals: ["https://a.example/items/1?x=1"] + expected)
    }

    @Test("BEY-10: RFC 9111, section 4.4: a repeated URL counts once")
    func repeated() throws {
        let fields = Array(repeating: "Location: /new | Content-Location: /other", count: 1_000).joined(
            separator: " | "
        )
        try expect(urls("POST", 201, fields).dropFirst(), equals: ["https://a.example/new", "https://a.example/other"])
    }

    @Test("BEY-10: RFC 9111, section 4.4: the fragment of the target is removed")
    func fragment() throws {
        try expect(urls(target: "https://a.example/a#b"), equals: ["https://a.example/a"])
    }
}
