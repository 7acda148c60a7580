import EasyNetworkOpenAPI
import Foundation
import Testing

@testable import Generate

/// Documents whose reading ended late, or never, or in a trap.
@Suite("Generate and large documents")
struct LargeDocumentTests {
    private func output(schemas: [String], paths: String = "{}", more: String = "") throws -> OpenAPIWriter.Output {
        let components = "{\"schemas\": {\(schemas.joined(separator: ",\n"))}}"
        let text = "{\"openapi\": \"3.1.0\", \(more)\"paths\": \(paths), \"components\": \(components)}"
        return OpenAPIWriter(name: "API", isPublic: false).output(of: try OpenAPIDocument(Data(text.utf8)))
    }

    private func reference(_ name: String) -> String { ##"{"$ref": "#/components/schemas/\##(name)"}"## }

    private func code(_ output: OpenAPIWriter.Output) -> [String] {
        output.files.flatMap { SwiftText($0.text).lines }
    }

    @Test("BEY-25: a schema that is a part of another in very many ways is read once")
    func manyWays() throws {
        let steps = (1...60).map { step in
            let part = reference("G\(step - 1)")
            return
                #""G\#(step)": {"allOf": [\#(part), \#(part), \#(part)], "properties": {"p\#(step)": {"type": "string"}}}"#
        }
        let output = try output(
            schemas: [#""G0": {"type": "object", "properties": {"a": {"type": "string"}}}"#] + steps
        )
        let lines = code(output)
        let last = try #require(lines.firstIndex { $0.hasPrefix("struct G60:") })
        #expect(lines[(last + 1)...].prefix { $0 != "}" }.count == 61)
        #expect(output.notes.isEmpty)
    }

    @Test("BEY-25: a base that is one of the types that it is a part of: an enum, and structs with its members")
    func circle() throws {
        let derived = (0...1).map { index in
            #""D\#(index)": {"allOf": [\#(reference("Base")), {"type": "object", "properties": {"x\#(index)": {"type": "string"}}}]}"#
        }
        let base = """
            "Base": {"type": "object", "required": ["kind"], "properties": {"kind": {"type": "string"}},
            "discriminator": {"propertyName": "kind"}, "oneOf": [\(reference("D0")), \(reference("D1"))]}
            """
        for schemas in [[base] + derived, derived + [base]] {
            let lines = code(try output(schemas: schemas))
            for line in ["enum Base: Codable, Hashable, Sendable {", "case d0(D0)", "case d1(D1)"] {
                #expect(lines.contains(line), "\(line)")
            }
            let first = try #require(lines.firstIndex(of: "struct D0: Codable, Hashable, Sendable {"))
            #expect(lines[(first + 1)...].prefix(3) == ["var kind: String", "var x0: String?", "}"])
        }
    }

    @Test(
        "BEY-25: schemas that all lead to all others end, as parts and as alternatives",
        arguments: ["allOf", "oneOf"]
    )
    func mesh(keyword: String) throws {
        let schemas = (0..<40).map { index in
            let others = (0..<40).filter { $0 != index }.map { reference("S\($0)") }
            return #""S\#(index)": {"properties": {"p": {}}, "\#(keyword)": [\#(others.joined(separator: ", "))]}"#
        }
        #expect(try output(schemas: schemas).schemaCount == 40)
    }

    @Test("BEY-25: what is referred to by its place is not read without end, and that is noted once")
    func unnamed() throws {
        let levels = (0..<40).map { level in
            let next = ##"{"$ref": "#/x-levels/L\##(level + 1)"}"##
            return #""L\#(level)": {"type": "object", "properties": {"a": \#(next), "b": \#(next)}}"#
        }
        let more = "\"x-levels\": {\(levels.joined(separator: ", ")), \"L40\": {\"type\": \"string\"}}, "
        let root = ##""Root": {"$ref": "#/x-levels/L0"}"##
        let wide = try output(schemas: [root], more: more)
        #expect(
            wide.notes.map(\.message) == [
                "too many or too deeply nested schemas: from here on, some are not read completely"
            ]
        )
        let chain = (0..<5_000).map { level in
            ##""L\##(level)": {"type": "object", "properties": {"a": {"$ref": "#/x-levels/L\##(level + 1)"}}}"##
        }
        let deep = try output(
            schemas: [root],
            more: "\"x-levels\": {\(chain.joined(separator: ", ")), \"L5000\": {}}, "
        )
        #expect(deep.notes.map(\.message) == wide.notes.map(\.message))
    }

    @Test("BEY-25: a schema of too many levels of parts is noted")
    func levels() throws {
        let chain = (0..<150).map {
            #""A\#($0)": {"allOf": [\#(reference("A\($0 + 1)")), {"properties": {"p\#($0)": {}}}]}"#
        }
        let output = try output(schemas: chain + [#""A150": {"properties": {"a": {}}}"#])
        let message = "too many or too deeply nested schemas: from here on, some are not read completely"
        #expect(output.notes.map(\.message) == [message])
        #expect(code(output).contains("struct A100: Codable, Hashable, Sendable {"))
    }

    @Test("BEY-25: aliases that lead to themselves are values, also as a parameter")
    func aliases() throws {
        let schemas = (0..<100).map { #""A\#($0)": {"allOf": [\#(reference("A\(($0 + 1) % 100)"))]}"# }
        let path = #"{"name": "a", "in": "path", "schema": \#(reference("A7"))}"#
        let output = try output(
            schemas: schemas,
            paths: #"{"/{a}": {"get": {"operationId": "a", "parameters": [\#(path)], "responses": {}}}}"#
        )
        #expect(code(output).contains("typealias A0 = JSONValue") && code(output).contains("typealias A99 = A0"))
        #expect(
            output.notes.map(\.message) == [
                "GET /{a} is left out: the parameter \"a\" is an object in a path",
                "the schema A0 only refers to itself, so it becomes a JSONValue",
            ]
        )
    }

    @Test("BEY-25: structs that hold each other are kept apart, however many there are")
    func boxes() throws {
        let count = 3_000
        let chain = (0..<count).map { #""C\#($0)": {"properties": {"next": \#(reference("C\(($0 + 1) % count)"))}}"# }
        let free = #""Free": {"properties": {"c": \#(reference("C0"))}}"#
        let lines = code(try output(schemas: chain + [free]))
        #expect(lines.count { $0.hasPrefix("private var nextBox: Box<C") } == count)
        #expect(lines.contains("var c: C0?"))
    }

    @Test("BEY-25: thousands of equal names, values, tags and anchors are told apart in time")
    func equal() throws {
        let count = 1_000
        let keys = (0..<count).map {
            "\"a\(String(repeating: "-", count: $0 % 60))\(String(repeating: "_", count: $0 / 60))\": {}"
        }
        let values = (0..<count).map { "\"v\($0)\"" }
        let paths = (0..<count).map {
            ##""/\##($0)": {"get": {"operationId": "o", "tags": ["t\##($0)"], "responses": {"200": {"description": "", "content": {"application/json": {"schema": {"$ref": "#s"}}}}}}}"##
        }
        let output = try output(
            schemas: [
                #""Keys": {"properties": {\#(keys.joined(separator: ", "))}}"#,
                #""Values": {"enum": [\#(values.joined(separator: ", "))]}"#,
            ],
            paths: "{\(paths.joined(separator: ", "))}",
            more: #""x": {"$anchor": "s", "type": "string"}, "#
        )
        let lines = code(output)
        #expect(
            lines.contains("var a\(count): JSONValue?") && lines.contains("static let v999 = Values(rawValue: \"\")")
        )
        #expect(output.files.count == count + 2 && lines.contains("struct ORequest\(count - 1): APIRequest {"))
        #expect(output.notes.isEmpty)
    }

    @Test("BEY-25: a key that is repeated is refused with its place")
    func repeated() throws {
        let text = "{\"openapi\": \"3.1.0\", \"paths\": {}, \"components\": {\"schemas\": {\n\"A\": {}, \"A\": {}}}}"
        let error = try #require(throws: InputError.self) { try OpenAPIDocument(Data(text.utf8)) }
        #expect(error.message == "the key \"A\" is repeated" && error.place(in: Data(text.utf8)) == (2, 10))
    }

    @Test("BEY-25: the places of many mistakes are those of each")
    func places() {
        let data = Data("é\nb👩‍💻c\r\n\nd".utf8)
        let errors = [15, 0, 3, 400, 4, 2, 19].map { InputError(message: "", offset: $0) }
        let all = InputError.places(of: errors, in: data)
        #expect(all.elementsEqual(errors.map { $0.place(in: data) }, by: { $0 == $1 }))
        #expect(all[1] == (1, 1) && all[2] == (2, 1) && all[3].line == 4)
    }

    @Test("BEY-25: a path of open braces and a URL of very many segments end")
    func long() throws {
        let path = "/" + String(repeating: "{", count: 100_000)
        let output = try output(
            schemas: [],
            paths: "{\"\(path)\": {\"get\": {\"operationId\": \"a\", \"responses\": {}}}}"
        )
        #expect(output.requestCount == 1)
        let url = "https://h" + String(repeating: "/a", count: 100_000)
        let har =
            #"{"log": {"entries": [{"request": {"method": "GET", "url": "\#(url)"}, "response": {"status": 204}}]}}"#
        let error = #expect(throws: InputError.self) { try Exchange.read(JSON.parse(Data(har.utf8))) }
        #expect(error?.message == "the URL has more than 100 segments" && error?.offset == 58)
    }

    @Test("BEY-25: tags that a disk takes for one name share a file, and a long one is cut")
    func tags() throws {
        let tags = ["pets", "PETS", "schemas", "SCHEMAS", String(repeating: "t", count: 300)]
        let paths = tags.enumerated().map { #""/\#($0)": {"get": {"tags": ["\#($1)"], "responses": {}}}"# }
        let output = try output(schemas: [#""A": {}"#], paths: "{\(paths.joined(separator: ", "))}")
        let long = "API+T\(String(repeating: "t", count: 99)).swift"
        #expect(
            output.files.map(\.name) == [
                "API.swift", "API+Pets.swift", "API+SchemasRequests.swift", long, "API+Schemas.swift",
            ]
        )
        #expect(output.requestCount == 5)
    }
}
