import EasyNetwork
import EasyNetworkOpenAPI
import Foundation
import Testing

@testable import EasyNetworkTesting
@testable import TestSupport

/// Documents for which a response came late or never, or which stopped the process.
@Suite("Answers from a hostile document")
struct OpenAPIBoundsTests {
    private func reference(_ name: String) -> String { ##"{"$ref": "#/components/schemas/\##(name)"}"## }

    private func document(_ schemas: String, paths: String = "{}") throws -> OpenAPIDocument {
        let text = "{\"openapi\": \"3.0.3\", \"paths\": \(paths), \"components\": {\"schemas\": {\(schemas)}}}"
        return try OpenAPIDocument(Data(text.utf8))
    }

    private func example(_ document: OpenAPIDocument, _ name: String = "S") throws -> JSON? {
        let schema = try #require(document.schema(named: name))
        let media = OpenAPIContent.Media(type: "application/json", json: JSON(.null, offset: 0), schema: schema)
        return ExampleMaker(document: document).example(of: media, named: nil)
    }

    private func mismatch(_ value: String, _ document: OpenAPIDocument, _ name: String = "S") throws -> String? {
        let schema = try #require(document.schema(named: name))
        return SchemaCheck(document: document).mismatch(try JSON.parse(Data(value.utf8)), schema)
    }

    @Test("BEY-25: the example of schemas that all refer to each other is small, and fits", arguments: [9, 60])
    func mesh(count: Int) throws {
        let schemas = (0..<count).map { index in
            let others = (0..<count).filter { $0 != index }.map { #""s\#($0)": \#(reference("S\($0)"))"# }
            return #""S\#(index)": {"properties": {"id": {"type": "string"}, \#(others.joined(separator: ", "))}}"#
        }
        let document = try document(schemas.joined(separator: ", "))
        let value = try #require(try example(document, "S0"))
        try expect(mismatch(value.text, document, "S0") == nil)
        expect(value.text.utf8.count < 100_000 && value["s1"]?["id"]?.string == "text" && value["id"] != nil)
        expect(count > 9 || value["s1"]?["s2"]?["id"]?.string == "text")
    }

    @Test("BEY-25: a base whose alternatives have it as a part is checked once for each value, and by all it says")
    func circle() throws {
        let derived = (0...1).map {
            #""D\#($0)": {"allOf": [\#(reference("S")), {"properties": {"x\#($0)": {"type": "string"}}}]}"#
        }
        let document = try document(
            """
            "S": {"type": "object", "required": ["kind"], "properties": {"kind": {"type": "string"}},
            "oneOf": [\(reference("D0")), \(reference("D1"))]}, \(derived.joined(separator: ", ")),
            "Either": {"anyOf": [\(reference("S")), \(reference("D0"))]}
            """
        )
        try expect(example(document)?.text, equals: #"{"kind":"text"}"#)
        try expect(mismatch(#"{"kind": "a", "x0": 1}"#, document) == nil)
        try expect(mismatch("{}", document), equals: "has no \"kind\"")
        let both = #"matches none of 2 schemas; for the first: .x0 is an integer, not a string"#
        try expect(mismatch(#"{"kind": "a", "x0": 1, "x1": 1}"#, document), equals: both)
        // What fitted while `S` was open is looked at again.
        try expect(mismatch("{}", document, "Either")?.hasPrefix("matches none of 2 schemas"), equals: true)
    }

    @Test("BEY-25: alternatives that all lead to all others end", arguments: ["allOf", "anyOf", "oneOf"])
    func alternatives(keyword: String) throws {
        let schemas = (0..<30).map { index in
            let others = (0..<30).filter { $0 != index }.map { reference("S\($0)") }
            return
                #""S\#(index)": {"\#(keyword)": [\#(others.joined(separator: ", ")), {"type": "string"}], "maxLength": 2}"#
        }
        let document = try document(schemas.joined(separator: ", "))
        try expect(mismatch("\"ab\"", document, "S0") == nil)
        try expect(mismatch("\"abc\"", document, "S0")?.contains("is longer than 2 characters"), equals: true)
        _ = try example(document, "S0")
    }

    @Test("BEY-25: a value that must be too large, or a part of itself, is an error that says so")
    func large() throws {
        let levels = (0..<40).map {
            #""L\#($0)": {"required": ["a", "b"], "properties": {"a": \#(reference("L\($0 + 1)")), "b": \#(reference("L\($0 + 1)"))}}"#
        }
        let lists = (0..<30).reduce(#"{"type": "string"}"#) { inner, _ in
            #"{"type": "array", "minItems": 9, "items": \#(inner)}"#
        }
        let chain = (0..<5_000).map { #""C\#($0)": {"allOf": [\#(reference("C\($0 + 1)"))]}"# }
        let schemas =
            levels + chain + [
                #""L40": {}"#, #""C5000": {}"#, #""S": \#(lists)"#,
                #""Own": {"required": ["a"], "properties": {"a": \#(reference("Own"))}}"#,
                #""Many": {"type": "array", "minItems": 9223372036854775807, "items": {"type": "integer"}}"#,
            ]
        let names = ["L0", "S", "Own", "Many"]
        let paths = names.map {
            #""/\#($0)": {"get": {"responses": {"200": {"description": "", "content": {"application/json": {"schema": \#(reference($0))}}}}}}"#
        }
        let document = try document(schemas.joined(separator: ", "), paths: "{\(paths.joined(separator: ", "))}")
        let routes = OpenAPIRoutes(document)
        for name in names {
            let answer = routes.answer(to: MockRequest(method: "GET", target: "/\(name)"))
            expect(answer.statusCode, equals: 500, "\(name)")
            guard case .data(let body) = answer.body else { continue }
            let message = "GET /\(name): the document has no example for 200, and none of bounded size can be made"
            expect(String(decoding: body, as: UTF8.self), equals: #"{"error":"\#(message)"}"#)
        }
        try expect(mismatch("1", document, "C0") == nil)
    }

    @Test("BEY-25: a pattern that needs too many steps is told so, and others are read as JavaScript does")
    func patterns() throws {
        let document = try document(
            #""S": {"type": "string", "pattern": "^(a+)+$"}, "T": {"pattern": "^\\d{3}-[A-Z]\\/x$"}, "#
                + #""U": {"pattern": "(?<"}, "V": {"pattern": "\#(String(repeating: "(", count: 100_000))"}"#
        )
        let long = String(repeating: "a", count: 60)
        try expect(mismatch("\"\(long)\"", document) == nil)
        try expect(mismatch("\"\(long)!\"", document), equals: "is not checked: ^(a+)+$ takes too long")
        try expect(mismatch("\"123-B/x\"", document, "T") == nil)
        try expect(mismatch("\"12-B/x\"", document, "T"), equals: #"does not match ^\d{3}-[A-Z]\/x$"#)
        try expect(mismatch("\"a\"", document, "U") == nil && mismatch("\"a\"", document, "V") == nil)
    }

    static let schemas: [(String, String)] = [
        (#""type": "number", "minimum": 0, "maximum": 1"#, "0.5"),
        (#""type": "string", "pattern": "^[A-Z]{3}$""#, #""AAA""#),
        (#""type": "string", "pattern": "^(?:a|b)+-\\d{2,}(\\.x)?$""#, #""a-11""#),
        (#""type": "string", "pattern": "^[^a]$", "maxLength": 3"#, #""tex""#),
        (#""type": "array", "maxItems": 0, "items": {"type": "string"}"#, "[]"),
        (#""type": "integer", "multipleOf": 5, "minimum": 1"#, "5"),
        (#""type": "number", "multipleOf": 0.25, "maximum": 0.3"#, "0"),
        (#""type": "number", "maximum": -1"#, "-1.5"),
        (#""type": "integer", "exclusiveMinimum": true, "minimum": 5"#, "6"),
        (#""type": "integer", "exclusiveMaximum": true, "maximum": 1"#, "0"),
        (#""type": "integer", "exclusiveMinimum": 5"#, "6"),
        (#""type": "integer", "minimum": 2.5"#, "3"),
        (#""type": "integer", "exclusiveMinimum": 9223372036854775807"#, "9.223372036854778e+18"),
        (#""type": "integer", "maximum": -1e300"#, "-1e+300"),
        (#""type": "array", "uniqueItems": true, "minItems": 2, "items": {"type": "string"}"#, #"["text","text2"]"#),
        (#""type": "string", "format": "email", "maxLength": 5"#, #""a@b.c""#),
        (#""type": "object", "minProperties": 1, "additionalProperties": {"type": "string"}"#, #"{"key1":"text"}"#),
        (#""type": "array", "minItems": -9223372036854775808, "maxItems": -9223372036854775808"#, "[]"),
        (#""type": "object", "minProperties": -9223372036854775808"#, "{}"),
        (#""type": "string", "minLength": -1, "maxLength": -9223372036854775808"#, #""""#),
    ]

    @Test("BEY-25: a made value is within the limits of its schema, and no limit stops the process", arguments: schemas)
    func limits(schema: String, value: String) throws {
        let document = try document("\"S\": {\(schema)}")
        let made = try #require(try example(document))
        expect(made.text, equals: value)
        let impossible = ["-9223372036854775808", "[^a]"]
        if impossible.contains(where: schema.contains) { return }
        try expect(mismatch(made.text, document) == nil)
    }

    @Test("BEY-25: limits are checked that a made value must obey")
    func checked() throws {
        let document = try document(
            #""S": {"type": "number", "multipleOf": 0.1}, "T": {"type": "array", "uniqueItems": true, "items": {}}"#
        )
        try expect(mismatch("0.3", document) == nil && mismatch("0.35", document) == "is not a multiple of 0.1")
        try expect(mismatch("[1, 2]", document, "T") == nil)
        try expect(mismatch("[1, {}, 1]", document, "T"), equals: "has an element twice")
    }

    @Test("BEY-25: a parameter whose schema is an array of itself is read")
    func list() throws {
        let parameter = #"{"name": "a", "in": "query", "schema": \#(reference("List"))}"#
        let document = try document(
            #""List": {"type": "array", "items": \#(reference("List"))}"#,
            paths: #"{"/a": {"get": {"parameters": [\#(parameter)], "responses": {"204": {"description": ""}}}}}"#
        )
        expect(
            OpenAPIRoutes(document).answer(to: MockRequest(method: "GET", target: "/a?a=b,c")).statusCode,
            equals: 204
        )
    }

    @Test("BEY-25: a request of an operation that cannot be read is told the place in the document")
    func broken() throws {
        let document = try document("", paths: #"{"/a": {"get": {"responses": {"2\" let": {}}}}}"#)
        let answer = OpenAPIRoutes(document).answer(to: MockRequest(method: "GET", target: "/a"))
        let message =
            #"{"error":"the document has an error in line 1, column 72: \"2\" let\" is not a response status; use 100 to 599, a class such as 2XX, or default"}"#
        expect(answer.statusCode == 500 && answer.body == .data(Data(message.utf8)))
    }

    @Test("BEY-25: a message repeats no more than the beginning of a long value or key")
    func messages() throws {
        let document = try document(#""S": {"additionalProperties": {"enum": ["a"]}}"#)
        let long = String(repeating: "b", count: 100_000)
        let message = try #require(try mismatch("{\"\(long)\": \"\(long)\"}", document))
        expect(message.utf8.count < 400 && message.hasSuffix("bbb…\", not one of \"a\""))
        try expect(mismatch("{\"k\": [1]}", document), equals: ".k is an array, not one of \"a\"")
    }
}
