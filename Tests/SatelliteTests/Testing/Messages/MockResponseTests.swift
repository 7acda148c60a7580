import EasyNetwork
import Foundation
import Testing

@testable import EasyNetworkTesting
@testable import TestSupport

@Suite("MockResponse")
struct MockResponseTests {
    private struct User: Encodable {
        var name: String
        var age: Double
    }

    private func text(_ response: MockResponse) -> String? {
        guard case .data(let data) = response.body else { return nil }
        return String(bytes: data, encoding: .utf8)
    }

    @Test("BEY-11: JSON from a literal, from any value and from a struct")
    func json() {
        expect(text(.json(["b": 1, "a": "x/y"])), equals: #"{"a":"x/y","b":1}"#)
        expect(text(.json(["b": 1, "a": 2])), equals: #"{"a":2,"b":1}"#)
        expect(text(.json([1, "a"] as [Any])), equals: #"[1,"a"]"#)
        expect(text(.json("a" as Any)), equals: #""a""#)
        expect(text(.json("a")), equals: #""a""#)
        expect(text(.json(NSNull())), equals: "null")
        expect(text(.json(User(name: "Ada", age: 36))), equals: #"{"age":36,"name":"Ada"}"#)
        expect(MockResponse.json(["a": 1], status: 201).statusCode, equals: 201)
        expect(MockResponse.json(["a": 1]).headers, equals: ["Content-Type": "application/json"])
        let typed = MockResponse.json(["a": 1], headers: ["content-type": "application/problem+json"])
        expect(typed.headers.map(\.value), equals: ["application/problem+json"])
    }

    @Test("BEY-11: a value that is no JSON becomes a 500 with the reason")
    func noJSON() {
        let none: Int? = nil
        for response in [
            MockResponse.json(Date() as Any), .json(["a": Data()] as [String: Any]), .json([1: 2] as Any),
            .json(Double.nan as Any),
            .json(User(name: "", age: .infinity)), .json(["a": none as Any]),
        ] {
            // Some versions of Foundation encode an optional inside `Any` as null.
            if response.statusCode == 200 {
                expect(text(response), equals: #"{"a":null}"#)
            } else {
                expect(response.statusCode, equals: 500)
                expect(
                    text(response)?.hasPrefix(#"{"error":"the scripted response cannot be sent: the value of"#),
                    equals: true
                )
            }
        }
    }

    @Test("BEY-11: framing follows from the body, whatever the scripted headers")
    func framing() {
        let lies: HTTPHeaders = ["content-length": "99", "Transfer-Encoding": "gzip", "A": "b"]
        let data = ResponsePlan(MockResponse(headers: lies, body: .data(Data("ab".utf8))), method: "GET")
        expect(data.headers, equals: ["A": "b", "Content-Length": "2"])
        let chunks = ResponsePlan(MockResponse(headers: lies, body: .chunks([Data("ab".utf8)])), method: "GET")
        expect(chunks.headers, equals: ["A": "b", "Transfer-Encoding": "chunked"])
        let none = ResponsePlan(
            MockResponse(statusCode: 204, headers: lies, body: .data(Data("ab".utf8))),
            method: "GET"
        )
        expect(none.headers, equals: ["A": "b"])
        expect(none.pieces.isEmpty)
    }

    @Test("BEY-11: a large body is sent separately, a small one together with the head")
    func segments() {
        let small = ResponsePlan(.data(Data(count: 1000)), method: "GET").wire(closing: false, minorVersion: 1)
        expect(small.count, equals: 1)
        let big = ResponsePlan(.data(Data(count: 1_000_000)), method: "GET").wire(closing: false, minorVersion: 1)
        expect(big.map(\.count), equals: ["HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n".utf8.count, 1_000_000])
    }
}
