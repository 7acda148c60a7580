import EasyNetwork
import EasyNetworkTesting
import Foundation
import Testing

@testable import TestSupport

@Suite("MockRequest")
struct MockRequestTests {
    static let targets: [(target: String, path: String, query: String?)] = [
        ("/", "/", nil),
        ("/a%20b?c=%2F?d", "/a%20b", "c=%2F?d"),
        ("/a?", "/a", ""),
        ("*", "*", nil),
        ("http://host:80/a?b", "/a", "b"),
        ("http://host?b", "/", "b"),
        ("/go?to=http://host/x", "/go", "to=http://host/x"),
        ("host:443", "host:443", nil),
        ("", "", nil),
    ]

    @Test("BEY-11: path and query are those of the target, unchanged", arguments: targets)
    func target(target: String, path: String, query: String?) {
        let request = MockRequest(method: "GET", target: target)
        expect(request.path, equals: path)
        expect(request.query, equals: query)
    }

    @Test("BEY-11: query items are percent-decoded, a plus is a plus, without an equals sign there is no value")
    func queryItems() {
        let request = MockRequest(method: "GET", target: "/?a=1&b&c=&a=x%20y%26+=z&%C3%A9=%ZZ&&")
        expect(request.queryItems.map(\.name), equals: ["a", "b", "c", "a", "é"])
        expect(request.queryItems.map(\.value), equals: ["1", nil, "", "x y&+=z", "%ZZ"])
        expect(MockRequest(method: "GET", target: "/").queryItems.isEmpty)
    }

    @Test("BEY-11: the body as JSON, fragments too; nil for other bytes")
    func json() {
        func json(_ text: String) -> Any? { MockRequest(method: "PUT", target: "/", body: Data(text.utf8)).json() }
        expect((json(#"{"a":[1]}"#) as? [String: [Int]]), equals: ["a": [1]])
        expect(json("\"a\"") as? String, equals: "a")
        expect(json("") == nil)
        expect(json("{") == nil)
    }
}
