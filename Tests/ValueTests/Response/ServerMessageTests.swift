import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("ServerMessage")
struct ServerMessageTests {
    @Test(
        "RSP-6: the server's message is found in common forms of JSON",
        arguments: [
            (#"{"error":"no"}"#, "no"), (#"{"error":{"message":"no","code":1}}"#, "no"), (#"{"message":" no "}"#, "no"),
            (#"{"error":"invalid_grant","error_description":"The token expired"}"#, "The token expired"),
            (#"{"status":400,"error":"Bad Request","message":"name is empty"}"#, "name is empty"),
            (#"{"title":"Forbidden","detail":"Not yours"}"#, "Not yours"), (#"{"title":"Forbidden"}"#, "Forbidden"),
            (#"{"errors":["no","never"]}"#, "no"), (#"{"errors":[{"message":"no"}]}"#, "no"),
            (#"{"error":true,"message":"no"}"#, "no"), (#"{"error":"","title":"no"}"#, "no"),
            (#"{"message":7}"#, nil), (#"{"errors":[]}"#, nil), (#"{"errors":{"a":1}}"#, nil), (#"["no"]"#, nil),
            (#"{"message":null}"#, nil), ("{", nil), ("", nil), ("\"no\"", nil),
        ] as [(String, String?)]
    )
    func json(_ body: String, _ expected: String?) {
        for type in ["application/json", "application/problem+json", nil] {
            var headers = HTTPHeaders()
            headers["Content-Type"] = type
            expect(NetworkResponse(headers: headers, body: Data(body.utf8)).serverMessage, equals: expected)
        }
    }

    @Test(
        "RSP-6: a short plain text is a message; HTML and long texts are not",
        arguments: [
            ("text/plain", " Not here.\n", "Not here."),
            ("text/plain; charset=latin1", "Not h\u{E9}re", "Not h\u{E9}re"),
            ("text/html", "Not here", nil), ("text/plain", "<html><p>Not here", nil),
            ("text/html", #"{"error":"x"}"#, nil),
            ("text/plain", String(repeating: "x", count: 200), String(repeating: "x", count: 200)),
            ("text/plain", String(repeating: "x", count: 201), nil), ("text/plain", "  \n", nil),
            ("image/png", "no", nil),
            ("text/plain", #"{"error":"no"}"#, "no"),
        ] as [(String, String, String?)]
    )
    func plain(_ type: String, _ body: String, _ expected: String?) throws {
        let encoding: String.Encoding = type.contains("latin1") ? .isoLatin1 : .utf8
        let data = try #require(body.data(using: encoding))
        expect(NetworkResponse(headers: ["Content-Type": type], body: data).serverMessage, equals: expected)
    }

    @Test("RSP-6: a long message is cut")
    func cut() {
        let body = Data(#"{"error":"\#(String(repeating: "x", count: 5_000))"}"#.utf8)
        expect(NetworkResponse(body: body).serverMessage, equals: String(repeating: "x", count: 200) + "…")
    }

    @Test(
        "BEY-17, RSP-6: a plain text that is none in its charset has no message, and its error is made nevertheless",
        arguments: [
            "text/plain", "text/plain; charset=us-ascii", "text/plain; charset=klingon", "text/plain; charset=euc-jp",
        ]
    )
    func noText(_ type: String) {
        let bytes = Data("N\u{E3}o".unicodeScalars.map { UInt8($0.value) })
        let response = NetworkResponse(statusCode: 404, headers: ["Content-Type": type], body: bytes)
        expect(response.serverMessage == nil)
        expect(response.error(.unacceptableStatus).statusCode, equals: 404)
        let error = #expect(throws: NetworkError.self) { try response.text() }
        expect(error?.code == .cannotParseResponse && error?.responseBody == bytes && error?.serverMessage == nil)
    }
}
