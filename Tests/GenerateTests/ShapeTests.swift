import EasyNetworkOpenAPI
import Foundation
import Testing

@testable import Generate

@Suite("Shape")
struct ShapeTests {
    private func shape(_ json: String) throws -> Shape { Shape(try JSON.parse(Data(json.utf8))) }

    @Test(
        "TOL-1: the elements of an array have one type",
        arguments: [
            ("[1, 2]", "[Int]"), ("[1, 2.0]", "[Double]"), ("[2.5, 1]", "[Double]"),
            ("[18446744073709551616]", "[Double]"),
            ("[true, null]", "[Bool?]"), ("[null]", "[JSONValue]"), ("[]", "[JSONValue]"),
            ("[1, \"a\"]", "[JSONValue]"),
            ("[1, null, {}]", "[JSONValue]"), ("[[], [1], [null]]", "[[Int?]]"), ("[[1], null]", "[[Int]?]"),
            ("[{}, null]", "[Object?]"), ("[[{}]]", "[[Object]]"), ("[{}, []]", "[JSONValue]"),
            ("\"2026-07-01T12:00:00Z\"", "String"), ("null", "JSONValue?"), ("-0", "Int"), ("1e2", "Double"),
        ]
    )
    func types(json: String, type: String) throws {
        #expect(try shape(json).type(object: "Object") == type)
    }

    @Test("TOL-1: a member is optional if an element lacks it or has null, and keeps its place")
    func members() throws {
        let list = try shape(
            #"[{"b": 1, "a": null}, {"a": "x", "b": 2.5, "c": true}, {"b": 3, "d": []}, {"b": 1, "b": 4}]"#
        )
        let types = try #require(list.members).map { "\($0.key): \($0.shape.type(object: ""))" }
        #expect(types == ["b: Double", "a: String?", "c: Bool?", "d: [JSONValue]?"])
    }

    @Test("TOL-1: the order of the elements changes no type")
    func order() throws {
        let elements = [#"{"a": 1}"#, "{}", #"{"a": [null], "b": {"c": 1}}"#, #"{"b": {"c": 0.5, "d": null}}"#, "null"]
        let types = try [elements, elements.reversed(), elements.sorted()].map { elements in
            let element = try shape("[\(elements.joined(separator: ","))]")
            let members = try #require(element.members).sorted { $0.key < $1.key }
            let inner = members.compactMap(\.shape.members).joined().map { "\($0.key): \($0.shape.type(object: ""))" }
            return members.map { "\($0.key): \($0.shape.type(object: "B"))" } + inner
        }
        #expect(types == Array(repeating: ["a: JSONValue?", "b: B?", "c: Double", "d: JSONValue?"], count: 3))
    }

    @Test(
        "TOL-1: text that is no JSON is refused with its line and column",
        arguments: [
            ("", "1:1 expected a value, but the text ends"),
            ("{\n  \"a\": tru\n}", "2:8 expected a value, but found \"t\""),
            ("[1,\n]", "2:1 expected a value, but found \"]\""),
            ("[1, 2", "1:6 expected \",\" or \"]\", but the text ends"),
            ("{\"é\" 1}", "1:6 expected \":\", but found \"1\""),
            ("{a: 1}", "1:2 expected a key in quotes, but found \"a\""),
            ("[01]", "1:3 expected \",\" or \"]\", but found \"1\""), ("[-]", "1:3 expected a digit, but found \"]\""),
            ("{\"a\":1,}", "1:8 expected a key in quotes, but found \"}\""),
            ("1 2", "1:3 expected the end, but found \"2\""),
            ("\r\n[\"👩‍💻\", \"a\nb\"]", "2:9 expected the end of the string, but found \"\\u{A}\""),
            ("[\"\\q\"]", "1:2 the string has an invalid escape"),
            ("\"\\", "1:3 expected the end of the string, but the text ends"),
            ("[1e999]", "1:2 the number is too large"),
            (String(repeating: "[", count: 200), "1:102 the values are nested more than 100 levels deep"),
        ]
    )
    func syntax(json: String, message: String) throws {
        let data = Data(json.utf8)
        let error = try #require(throws: InputError.self) { try JSON.parse(data) }
        let place = error.place(in: data)
        #expect("\(place.line):\(place.column) \(error.message)" == message)
    }

    @Test("TOL-1: bytes that are not UTF-8 are refused; a byte order mark is accepted")
    func encoding() throws {
        #expect(throws: InputError(message: "the text is not UTF-8", offset: 3)) {
            try JSON.parse(Data([0x5B, 0x31, 0x22, 0xFF, 0x22, 0x5D]))
        }
        #expect(try shape("\u{FEFF}[1]").type(object: "") == "[Int]")
    }
}
