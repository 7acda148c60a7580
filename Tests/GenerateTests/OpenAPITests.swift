import EasyNetworkOpenAPI
import Foundation
import SampleSupport
import Testing

@testable import Generate

/// The folder of these tests.
private let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()

private func output(_ text: String, name: String = "API", isPublic: Bool = false) throws -> OpenAPIWriter.Output {
    OpenAPIWriter(name: name, isPublic: isPublic).output(of: try OpenAPIDocument(Data(text.utf8)))
}

/// A document with one operation, or several.
private func document(paths: String = "{}", schemas: String = "{}", version: String = "3.1.0") -> String {
    #"{"openapi": "\#(version)", "info": {"title": "T", "version": "1"}, "paths": \#(paths), "components": {"schemas": \#(schemas)}}"#
}

@Suite("Generate reads OpenAPI")
struct OpenAPITests {
    @Test(
        "TOL-2: what is written for a document is what these tests are compiled with",
        arguments: [("shop", false), ("notes", true)]
    )
    func golden(file: String, isPublic: Bool) throws {
        let text = try String(contentsOf: folder.appendingPathComponent("OpenAPI/\(file).json"), encoding: .utf8)
        let files = try output(text, name: Name.type(file), isPublic: isPublic).files
        for (name, text) in files {
            let url = folder.appendingPathComponent("Generated/\(name)")
            // To write them again: swift run Generate Tests/GenerateTests/OpenAPI/shop.json --output Tests/GenerateTests/Generated
            #expect(try String(contentsOf: url, encoding: .utf8) == text, "\(name)")
        }
        let written = try FileManager.default.contentsOfDirectory(
            atPath: folder.appendingPathComponent("Generated").path
        )
        #expect(written.filter { $0.hasPrefix(Name.type(file)) }.sorted() == files.map(\.name).sorted())
    }

    @Test("TOL-2: what cannot be written is told with its place, and the rest is written")
    func notes() throws {
        let output = try output(
            document(
                paths: """
                    {
                    "/a/{b}": {"get": {"responses": {"200": {"description": ""}}}},
                    "/c": {"get": {"operationId": "c", "parameters": [{"name": "d", "in": "header", "schema": {"type": "object", "properties": {"e": {}}}}],
                           "responses": {"200": {"description": ""}}}},
                    "/f": {"get": {"operationId": "f", "parameters": [{"$ref": "#/components/parameters/g"}], "responses": {}}}
                    }
                    """,
                schemas:
                    ##"{"Far": {"$ref": "far.json"}, "Self": {"$ref": "#/components/schemas/Self"}, "List": {"type": "array", "items": {"$ref": "#/components/schemas/List"}}}"##
            )
        )
        #expect(output.operationCount == 3 && output.requestCount == 1)
        let messages = output.notes.map(\.message)
        #expect(
            messages == [
                "\"far.json\" is in another document: the value is a JSONValue",
                "the reference \"#/components/schemas/Self\" refers to itself: the value is a JSONValue",
                "GET /a/{b} is left out: the parameter \"b\" of the path /a/{b} is not described",
                "GET /c: the parameter \"d\" is an object in a header, and is left out",
                "GET /f is left out: there is no \"#/components/parameters/g\"",
                "the schema List only refers to itself, so it becomes a JSONValue",
            ]
        )
        #expect(output.notes.allSatisfy { $0.offset > 0 })
        let text = output.files.map(\.text).joined()
        #expect(text.contains("struct C: APIRequest {") && text.contains("typealias List = JSONValue"))
    }

    static let refused: [(String, String)] = [
        ("openapi: 3.0.0\ninfo:\n  title: A", "this is YAML; convert it to JSON first, for example by `yq -o json`"),
        (#"{"swagger": "2.0", "paths": {}}"#, "this is Swagger 2.0: convert it to OpenAPI 3.0 first"),
        (#"{"openapi": "4.0.0", "paths": {}}"#, "OpenAPI 4.0.0 is not supported; use 3.0 or 3.1"),
        (#"{"openapi": "3.0.0"}"#, "the document has no paths"),
        ("{", "expected a key in quotes, but the text ends"),
    ]

    @Test("TOL-2: another format is refused, with the way out", arguments: refused)
    func refusals(text: String, message: String) {
        let error = #expect(throws: InputError.self) { try OpenAPIDocument(Data(text.utf8)) }
        #expect(error?.message == message)
    }

    @Test(
        "TOL-2: names are Swift's, and never clash: not with each other, with keywords, or with the types that are used"
    )
    func names() throws {
        let text = try output(
            document(
                paths: """
                    {"/x/{class}": {"get": {"operationId": "Data", "parameters": [
                      {"name": "class", "in": "path", "required": true, "schema": {"type": "string"}},
                      {"name": "api", "in": "query", "schema": {"type": "string"}},
                      {"name": "a-b", "in": "query", "schema": {"type": "string"}}, {"name": "a_b", "in": "query", "schema": {"type": "string"}},
                      {"name": "state", "in": "query", "schema": {"type": "string", "enum": ["a", "A", "", "1", "self", "ü"]}}
                    ], "responses": {"200": {"description": ""}}}},
                     "/user": {"get": {"operationId": "user", "responses": {"200": {"description": ""}}}}}
                    """,
                schemas:
                    #"{"user": {"type": "object", "properties": {"State": {"type": "object", "properties": {"a": {}}}}}, "User": {"type": "string"}, "State": {"type": "string"}, "String": {"type": "object", "properties": {"b": {}}}}"#
            )
        ).files.map(\.text).joined()
        for line in [
            "struct DataItem: APIRequest {", "var `class`: String", "var api2: String? = nil", "var aB: String? = nil",
            "var aB2: String? = nil", "var state: StateItem? = nil", #"static let a = StateItem(rawValue: "a")"#,
            #"static let a2 = StateItem(rawValue: "A")"#, #"static let empty = StateItem(rawValue: "")"#,
            #"static let _1 = StateItem(rawValue: "1")"#, #"static let selfValue = StateItem(rawValue: "self")"#,
            #"static let u = StateItem(rawValue: "ü")"#, "struct User: Codable", "typealias User2 = String",
            "struct UserRequest: APIRequest {", "struct StringItem: Codable", #""a-b": aB as Any,"#,
        ] {
            #expect(text.contains(line), "\(line)")
        }
        #expect(text.contains("\\(segment: `class`)"))
    }

    // That it compiles is checked by .ci/generate.
    @Test("TOL-2: no name hides a local, a member of the protocol or another name, and no key is written twice")
    func clashes() throws {
        let text = try String(contentsOf: folder.appendingPathComponent("OpenAPI/hostile.json"), encoding: .utf8)
        let output = try output(text)
        let lines = output.files.flatMap { SwiftText($0.text).lines }
        for line in [
            "typealias Item = Answer", "struct AnswerItem: RawRepresentable, Codable, Hashable, Sendable {",
            "struct Status200: Codable, Hashable, Sendable {", "enum Answer: Hashable, Sendable {",
            "case ok(Status200)",
            "var params2: ParamsItemValue", "var headers2: HeadersItemValue? = nil",
            "struct HeadersItem: Codable, Hashable, Sendable {",
            "var declaredBody: DeclaredBodyItemValue? = nil", "var cookies2: String? = nil", "var form: FormFile",
            "self.form.append(to: &form, name: \"\")", "for part in self.part { part.append(to: &form, name: \"\") }",
            "var `unsafe`: String? = nil", "var childBox: String?", "private var childBox3: Box<Node>?",
            "self.childBox3 = child.map(Box.boxed)",
        ] { #expect(lines.contains(line), "\(line)") }
        let messages = output.notes.map(\.message)
        let cookie =
            "POST /locals/{container}: the parameter \"Cookie\" is the header of the cookie parameters, and is left out"
        #expect(messages == [cookie])
        let all = output.files.map(\.text).joined()
        #expect(all.components(separatedBy: "\"a\": a").count == 2)
    }

    @Test("TOL-2: what one schema says in several ways is one type")
    func types() throws {
        func type(_ schema: String) throws -> String? {
            let properties = #"{"type": "object", "properties": {"p": \#(schema)}, "required": ["p"]}"#
            let text = try output(
                document(
                    schemas:
                        #"{"Holder": \#(properties), "Pet": {"type": "object", "properties": {"a": {}}}, "Mark": {"type": "string", "enum": ["a"], "nullable": true}}"#
                )
            ).files.map(\.text).joined()
            return text.firstMatch(of: /struct Holder: .*\{\n +(?:\/\/\/.*\n +)*var p: (.*)/).map { String($0.1) }
        }
        let reference = ##"{"$ref": "#/components/schemas/Pet"}"##
        #expect(try type(reference) == "Pet")
        #expect(try type(#"{"allOf": [\#(reference)], "description": "D"}"#) == "Pet")
        #expect(try type(#"{"allOf": [\#(reference)], "nullable": true}"#) == "Pet?")
        #expect(try type(#"{"oneOf": [\#(reference), {"type": "null"}]}"#) == "Pet?")
        #expect(try type(#"{"anyOf": [\#(reference)], "nullable": true}"#) == "Pet?")
        #expect(try type(##"{"$ref": "#/components/schemas/Mark"}"##) == "Mark?")
        #expect(try type(#"{"type": ["string", "null"]}"#) == "String?")
        #expect(try type(#"{"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "string"}]}"#) == "String")
        #expect(try type(#"{"type": "object", "additionalProperties": \#(reference)}"#) == "[String: Pet]")
        #expect(try type(#"{"type": "object"}"#) == "[String: JSONValue]")
        #expect(try type(#"{"type": "array", "items": {"type": "array", "items": {"type": "integer"}}}"#) == "[[Int]]")
        #expect(try type(#"{"type": "array", "items": {"type": "number", "nullable": true}}"#) == "[Double?]")
        #expect(try type(#"{"enum": [1, 2.5]}"#) == "Double")
        #expect(try type(#"{"enum": ["a", 1]}"#) == "JSONValue")
        #expect(try type(#"{"const": true}"#) == "Bool")
        #expect(try type("{}") == "JSONValue" && type("true") == "JSONValue")
        #expect(try type(#"{"type": "string", "format": "date"}"#) == "String")
    }

    @Test("TOL-2: the same document gives the same text, and other modules can use it when that is asked for")
    func access() throws {
        let text = try String(contentsOf: folder.appendingPathComponent("OpenAPI/shop.json"), encoding: .utf8)
        let files = try output(text, isPublic: true).files.map(\.text)
        #expect(try output(text, isPublic: true).files.map(\.text) == files)
        let declared = files.joined().matches(of: /(?m)^ +(.*(?:struct|enum|typealias|init|func|static let) .*)$/).map {
            String($0.1)
        }
        #expect(declared.count > 80)
        for line in declared where !line.hasPrefix("///") && !line.hasPrefix("public ") && !line.hasPrefix("private ") {
            Issue.record("\(line)")
        }
    }

    @Test("TOL-2: only what differs is written, and what an earlier document left is removed, but no other file")
    func folderOfSources() throws {
        let url = FileManager.default.temporaryDirectory.appendingPathComponent("Generate-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: url) }
        let sources = SourceFolder(url)
        let (first, second) = (OpenAPIWriter.mark + "\n1", OpenAPIWriter.mark + "\n2")
        #expect(try sources.write([("A.swift", first), ("A+B.swift", first)]) == ["A.swift", "A+B.swift"])
        #expect(try sources.write([("A.swift", first), ("A+B.swift", first)]).isEmpty)
        try Data("mine".utf8).write(to: url.appendingPathComponent("A+Own.swift"))
        try Data(first.utf8).write(to: url.appendingPathComponent("C+B.swift"))
        #expect(try sources.write([("A.swift", first), ("A+D.swift", second)]) == ["A+D.swift", "A+B.swift"])
        let names = try FileManager.default.contentsOfDirectory(atPath: url.path).sorted()
        #expect(names == ["A+D.swift", "A+Own.swift", "A.swift", "C+B.swift"])
    }

    @Test("TOL-2: the words of a command line for a document")
    func arguments() throws {
        guard case .generate(let arguments) = try Arguments.parse(["api.json", "--public", "--output", "Sources/API"])
        else {
            Issue.record("no command")
            return
        }
        #expect(arguments.isPublic && arguments.output == "Sources/API" && arguments.file == "api.json")
    }
}
