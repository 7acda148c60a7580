import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("NetworkResponse")
struct NetworkResponseTests {
    private struct Answer: Decodable, Equatable {
        struct User: Decodable, Equatable {
            var name: String
            var age: Int
        }
        var users: [User]
    }

    private func response(_ body: String, type: String? = nil, status: Int = 200) -> NetworkResponse {
        var headers: HTTPHeaders = ["X-Id": "7"]
        headers["Content-Type"] = type
        return NetworkResponse(statusCode: status, headers: headers, body: Data(body.utf8))
    }

    @Test("RSP-7: an answer has sensible defaults and keeps what it is given")
    func defaults() {
        let response = NetworkResponse()
        expect(response.statusCode, equals: 200)
        expect(response.headers.isEmpty)
        expect(response.body.isEmpty)
        expect(response.source, equals: .network)
        expect(response.url == nil)
        let sources: Set<NetworkResponse.Source> = [.network, .cache, .revalidated, .joined]
        expect(sources.count, equals: 4)
    }

    @Test("RSP-7: an answer is a value: changes of a copy, or of the bytes it was made from, do not reach it")
    func immutable() throws {
        var body = Data("[1]".utf8)
        var headers: HTTPHeaders = ["A": "1"]
        let response = NetworkResponse(headers: headers, body: body)
        body[1] = UInt8(ascii: "2")
        headers["A"] = "2"
        var copy = response
        copy.source = .cache
        copy.trailers = ["B": "1"]
        copy.decoder = .propertyList
        try expect(response.json() as? [Int], equals: [1])
        expect(response.headers, equals: ["A": "1"])
        expect(response.source, equals: .network)
        expect(response.trailers.isEmpty)
        try expect(response.decode([Int].self), equals: [1])
        // Each call parses the body again, so results share no state.
        let first = try #require(try response.json() as? [Int])
        expect(first + [2], equals: [1, 2])
        try expect(response.json() as? [Int], equals: [1])
    }

    @Test("RSP-2: JSON of every kind, bare values and byte order marks included")
    func json() throws {
        expect((try response(#"{"a":[1]}"#).json() as? [String: [Int]]), equals: ["a": [1]])
        try expect(response("[1,2]").json() as? [Int], equals: [1, 2])
        try expect(response("\"é\"").json() as? String, equals: "é")
        try expect(response("7").json() as? Int, equals: 7)
        try expect(response("null").json() is NSNull)
        try expect(response("\u{FEFF}{}").json() as? [String: Int], equals: [:])
        let slice = (Data("junk".utf8) + Data("[3]".utf8)).dropFirst(4)
        try expect(NetworkResponse(body: slice).json() as? [Int], equals: [3])
    }

    @Test(
        "RSP-2: a body that is no JSON is an error with status, headers and body",
        arguments: ["", "{", "<html>", "[1 2]", String(repeating: "[", count: 100_000)]
    )
    func badJSON(_ body: String) {
        let error = #expect(throws: NetworkError.self) { try response(body, status: 503).json() }
        expect(error?.code, equals: .cannotParseResponse)
        expect(error?.statusCode, equals: 503)
        expect(error?.headers["x-id"], equals: "7")
        expect(error?.responseBody, equals: Data(body.utf8.prefix(NetworkError.responseBodyLimit)))
        expect(error?.message?.contains(body.isEmpty ? "empty" : "not JSON"), equals: true)
    }

    @Test("RSP-2: the error of a body that is no JSON names its media type")
    func otherThanJSON() {
        for (type, words) in [
            ("text/html; charset=utf-8", "the body is not JSON but text/html"),
            ("application/json", "the body is not JSON: expected a value, found \"<\" at line 1, column 1"),
            ("application/problem+json", "the body is not JSON: "), (nil, "the body is not JSON: "),
        ] as [(String?, String)] {
            let page = response("<html>", type: type)
            let decoded = #expect(throws: NetworkError.self) { try page.decode(Answer.self) }
            expect(decoded?.message?.hasPrefix(words), equals: true)
            let read = #expect(throws: NetworkError.self) { try page.json() }
            expect(read?.message?.hasPrefix(words), equals: true)
            expect(read?.message, equals: decoded?.message)
        }
    }

    @Test("RSP-2: a Decodable is decoded, also with a custom JSONDecoder")
    func decode() throws {
        let users = [Answer.User(name: "a", age: 1)]
        try expect(response(#"{"users":[{"name":"a","age":1}]}"#).decode(Answer.self), equals: Answer(users: users))
        try expect(response("5").decode(Int.self), equals: 5)
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .iso8601
        let date = try response(#"["1970-01-01T00:00:01Z"]"#).decode([Date].self, using: decoder)
        expect(date, equals: [Date(timeIntervalSince1970: 1)])
    }

    @Test(
        "RSP-2: a failed decoding names the place, the expected and the found type",
        arguments: [
            (#"{"users":[{"name":"a","age":1},{"age":1}]}"#, #"users[1]: no value for key "name""#),
            (#"{"users":[{"name":"a","age":"x"}]}"#, "users[0].age: expected Int but found String"),
            (#"{"users":[{"name":true,"age":1}]}"#, "users[0].name: expected String but found Bool"),
            (#"{"users":[{"name":null,"age":1}]}"#, "users[0].name: expected String but found null"),
            (#"{"users":{}}"#, "users: expected array but found object"), ("[]", "expected object but found array"),
            (#"{"users":[7]}"#, "users[0]: expected object but found Int"), ("{}", #"no value for key "users""#),
            ("<html>", "not JSON"), ("", "the body is empty"),
        ]
    )
    func decodingErrors(_ body: String, _ message: String) throws {
        let error = #expect(throws: NetworkError.self) { try response(body, status: 201).decode(Answer.self) }
        expect(error?.code, equals: .cannotParseResponse)
        expect(error?.message?.contains(message), equals: true, "\(error?.message ?? "nil")")
        expect(error?.message?.hasSuffix("."), equals: false)
        expect(error?.statusCode, equals: 201)
        expect(error?.responseBody, equals: Data(body.utf8))
        expect(body.isEmpty || error?.underlying is DecodingError)
    }

    @Test("RSP-2: the error that an initializer throws is kept")
    func customDecodingErrors() {
        enum Colour: String, Decodable { case red }
        let unknown = #expect(throws: NetworkError.self) { try response(#"["red","blue"]"#).decode([Colour].self) }
        expect(
            unknown?.message?.hasPrefix("[1]: Cannot initialize Colour"),
            equals: true,
            "\(unknown?.message ?? "nil")"
        )
        struct Picky: Decodable {
            init(from decoder: any Decoder) throws { throw ResponseMapperError.missing(key: "colour") }
        }
        let error = #expect(throws: NetworkError.self) { try response("{}").decode(Picky.self) }
        expect(error?.message, equals: #"no value for key "colour""#)
        expect(error?.underlying as? ResponseMapperError, equals: .missing(key: "colour"))
    }

    @Test(
        "RSP-2: text in the charset the server names",
        arguments: [
            (nil, "é😀".utf8.map { $0 }, "é😀"), ("text/html", [0xC3, 0xA9], "é"), ("text/plain", [], ""),
            ("text/plain; charset=UTF-8", [0xC3, 0xA9], "é"), ("text/plain;charset=\"utf-8\"", [0xC3, 0xA9], "é"),
            ("text/plain; charset=utf-8", [0xEF, 0xBB, 0xBF, 0x61], "a"), ("text/plain; charset=latin1", [0xE9], "é"),
            ("text/plain; boundary=x; Charset=ISO-8859-1", [0x61, 0xE9], "aé"),
            ("text/plain; charset=windows-1252", [0x80, 0xE9], "€é"), ("text/plain; charset=windows-1251", [0xCF], "П"),
            ("text/plain; charset=us-ascii", [0x61], "a"), ("text/plain; charset=iso-8859-2", [0xB3], "ł"),
            ("text/plain; charset=utf-16", [0x61, 0x00], "a"), ("text/plain; charset=utf-16be", [0x00, 0x61], "a"),
            ("text/plain; charset=utf-16", [0xFE, 0xFF, 0x00, 0x61], "a"),
            ("text/plain; charset=utf-16le", [0x3D, 0xD8, 0x00, 0xDE], "😀"),
            ("text/plain", [0xFF, 0xFE, 0x61, 0x00], "a"),
            ("text/plain; charset=latin1", [0xEF, 0xBB, 0xBF, 0x61], "a"),
            ("text/plain; charset=shift_jis", [0x82, 0xA0], "あ"), ("text/plain; charset=", [0x61], "a"),
            ("charset", [0x61], "a"), ("text/plain; charset=GBK", [0xC4, 0xE3, 0x61], "你a"),
            ("text/plain; charset=gb18030", [0x95, 0x32, 0x82, 0x36, 0xC4, 0xE3], "𠀀你"),
            // Text with this label is mostly GBK.
            ("text/plain; charset=gb2312", [0xC4, 0xE3, 0xE9, 0x46], "你镕"),
            ("text/plain; charset=Big5", [0xA4, 0xA4], "中"), ("text/plain; charset=euc-jp", [0xA4, 0xA2], "あ"),
            ("text/plain; charset=euc-kr", [0xB0, 0xA1], "가"), ("text/plain; charset=koi8-r", [0xC1], "а"),
            ("text/plain; charset=ISO-8859-15", [0xA4], "€"), ("text/plain; charset=iso-8859-7", [0xE1], "α"),
            ("text/plain; charset=windows-1255", [0xE0], "א"), ("text/plain; charset=gbk", [], ""),
            ("text/plain; x=\"; charset=latin1\"", [0xC3, 0xA9], "é"),
            ("text/plain; charset=\"l\\atin1\"", [0xE9], "é"),
            ("text/plain; charset = \"Latin1\" ; x", [0xE9], "é"),
            ("text/plain; charset=latin1, text/html", [0x61], "a"),
            ("text/plain; charset=utf8mb4", [0xC3, 0xA9], "é"), ("text/plain; charset='utf-8'", [0xC3, 0xA9], "é"),
            ("text/plain; charset=()", [0xC3, 0xA9], "é"),
            ("text/plain; charset=iso-2022-jp", [0x1B, 0x24, 0x42, 0x24, 0x22, 0x1B, 0x28, 0x42], "あ"),
        ] as [(String?, [UInt8], String)]
    )
    func text(_ type: String?, _ bytes: [UInt8], _ expected: String) throws {
        var headers = HTTPHeaders()
        headers["Content-Type"] = type
        try expect(NetworkResponse(headers: headers, body: Data(bytes)).text(), equals: expected)
        let slice = Data([0x7A] + bytes).dropFirst()
        try expect(NetworkResponse(headers: headers, body: slice).text(), equals: expected)
    }

    @Test(
        "RSP-2: bytes that are invalid in the charset, or in UTF-8 if it is unknown, are errors that name it",
        arguments: [
            ("utf-8", [0xFF]), ("utf-8", [0x61, 0xC3]), ("us-ascii", [0xE9]), ("windows-1252", [0x81]),
            ("utf-16le", [0x61]), ("utf-16le", [0x00, 0xD8]), ("utf-16be", [0xDC, 0x00, 0x00, 0x61]),
            ("x-klingon", [0xFF]), ("()", [0xFF]), ("utf8mb4", [0xFF]), ("gbk", [0xC4]), ("gbk", [0x61, 0xFF, 0x61]),
            ("euc-jp", [0xFF]),
            ("big5", [0xA4]), ("iso-8859-7", [0xFF]), ("gbk//ignore", [0xFF]), ("utf-8//translit", [0xFF]),
            ("-", [0xFF]),
            ("../../x", [0xFF]), (String(repeating: "x", count: 10_000), [0xFF]),
        ] as [(String, [UInt8])]
    )
    func badText(_ charset: String, _ bytes: [UInt8]) {
        let response = NetworkResponse(headers: ["Content-Type": "text/plain; charset=\(charset)"], body: Data(bytes))
        let error = #expect(throws: NetworkError.self) { try response.text() }
        expect(error?.code, equals: .cannotParseResponse)
        expect(error?.message?.contains(charset.prefix(40)), equals: true)
    }

    @Test("RSP-2: a long text in a charset of the system is complete, with a last character that iconv holds back")
    func longText() throws {
        let bytes = Data("a".utf8) + Data((0..<400_000).map { $0.isMultiple(of: 2) ? 0xC4 : 0xE3 })
        let response = NetworkResponse(headers: ["Content-Type": "text/plain; charset=gbk"], body: bytes)
        try expect(response.text(), equals: "a" + String(repeating: "你", count: 200_000))
        #if os(Linux)
        let type: HTTPHeaders = ["Content-Type": "text/plain; charset=big5-hkscs"]
        try expect(NetworkResponse(headers: type, body: Data([0x88, 0x66])).text(), equals: "\u{CA}")
        #endif
    }

    @Test("RSP-6: the error of a mapper becomes a NetworkError, completed from the answer")
    func mappingErrors() {
        let answer = response("{}", status: 200)
        let element = ResponseMapperError.element(index: 3, underlying: ResponseMapperError.missing(key: "id"))
        let mapped = answer.mappingError(element)
        expect(mapped.code, equals: .cannotParseResponse)
        expect(mapped.message, equals: #"element 3: no value for key "id""#)
        expect(mapped.statusCode, equals: 200)
        expect(mapped.underlying as? ResponseMapperError, equals: element)
        let own = answer.mappingError(NetworkError(code: .refused, message: "m"))
        expect(own.code, equals: .refused)
        expect(own.statusCode, equals: 200)
        expect(own.responseBody, equals: Data("{}".utf8))
        expect(answer.mappingError(NetworkError(code: .refused, statusCode: 500)).responseBody == nil)
        struct Other: LocalizedError { var errorDescription: String? { "Too odd." } }
        expect(answer.mappingError(Other()).message, equals: "Too odd")
    }
}
