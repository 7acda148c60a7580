import EasyNetworkOpenAPI
import Foundation
import SampleSupport
import Testing

@testable import Generate

/// Puts a text behind all texts of a document, as who writes it can.
private struct Infection {
    let text: String

    /// The words of the text alone, of which names are made as they are of the text.
    var harmless: Infection {
        let scalars = text.unicodeScalars.map { scalar in
            if scalar.isASCII { return scalar.properties.isAlphabetic || "0"..."9" ~= scalar ? String(scalar) : " " }
            return scalar.properties.generalCategory == .format ? "" : " u\(String(scalar.value, radix: 16)) "
        }
        return Infection(text: scalars.joined())
    }

    private static let structure: Set = ["openapi", "$id", "$anchor", "type", "in", "format", "style"]
    private static let named: Set = ["properties", "schemas", "securitySchemes", "variables", "mapping"]

    func document(_ json: JSON, key: String = "", isPath: Bool = false) -> JSON {
        switch json.value {
        case .string(let value):
            if Self.structure.contains(key) || isPath && key == "name" { return json }
            // The first three words name a server.
            let start = key == "description" ? "One of many " : ""
            guard value.hasPrefix("#/") else {
                return key == "$ref" ? json : JSON(.string(start + value + text), offset: 0)
            }
            let escaped = text.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
            return JSON(.string(value.hasPrefix("#/components/schemas/") ? value + escaped : value), offset: 0)
        case .array(let elements):
            return JSON(.array(elements.map { document($0, key: key) }), offset: 0)
        case .object(let members):
            let isPath = json["in"]?.string == "path"
            let infected = members.map { member in
                (
                    key: Self.named.contains(key) ? member.key + text : member.key,
                    value: document(member.value, key: Self.named.contains(key) ? "" : member.key, isPath: isPath)
                )
            }
            return JSON(.object(infected), offset: 0)
        default: return json
        }
    }
}

@Suite("Generate and hostile texts")
struct HostileTextTests {
    private static let injection = "static let pwned = 1"

    static let texts = [
        "\n    \(injection)\n    ///", "\r    \(injection)\r\n\(injection)\u{B}\(injection)\u{C}\(injection)",
        "\u{85}\(injection)\u{2028}\(injection)\u{2029}\(injection)",
        "\u{0}\(injection)\u{1B}[2K\(injection)\u{7F}\u{9F}\(injection)", "\"\n\(injection)", "\\",
        "\\\"; \(injection) //", "\\(\(injection))", "\"\"\"\n\(injection)\n\"\"\"",
        "*/ \(injection) /* \"# \(injection) #\"", "`; \(injection) `}\n\(injection)\n{${\(injection)}<#\(injection)#>",
        "\u{202E}\(injection)\u{2066}\u{200B}\(injection)",
    ]

    private func files(_ json: JSON, isPublic: Bool) throws -> [(name: String, text: String)] {
        let document = try OpenAPIDocument(Data(json.text.utf8))
        return OpenAPIWriter(name: "API", isPublic: isPublic).output(of: document).files
    }

    @Test("BEY-25: a text of a document ends in a comment, a literal or a name, and adds no code", arguments: texts)
    func documents(text: String) throws {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("OpenAPI")
        for name in try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() {
            let json = try JSON.parse(Data(contentsOf: folder.appendingPathComponent(name)))
            let infection = Infection(text: text)
            let found = try files(infection.document(json), isPublic: true)
            let expected = try files(infection.harmless.document(json), isPublic: true)
            #expect(found.map(\.name) == expected.map(\.name), "\(name)")
            for (found, expected) in zip(found, expected) {
                let (swift, harmless) = (SwiftText(found.text), SwiftText(expected.text))
                #expect(swift.faults == [], "\(name), \(found.name)")
                let difference = swift.lines.difference(from: harmless.lines)
                #expect(difference.isEmpty, "\(name), \(found.name): \(difference)")
                #expect(found.name.wholeMatch(of: /[A-Za-z0-9+]+\.swift/) != nil, "\(found.name)")
            }
            #expect(found.contains { $0.text.contains("pwned") } || !text.contains("pwned"))
        }
    }

    @Test("BEY-25: a text of a sample or of recorded traffic adds no code either", arguments: texts)
    func samples(text: String) throws {
        let harmless = Infection(text: text).harmless.text
        func escaped(_ text: String) -> String {
            text.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
        }
        func lines(_ text: String, isMapper: Bool) throws -> [[String]] {
            let quoted = JSON(.string("key" + text), offset: 0).text
            let sample = "{\(quoted): {\(quoted): 1}, \"b\": \(quoted)}"
            let inner = JSON(.string(sample), offset: 0).text
            let type = JSON(.string("application/json;" + text), offset: 0).text
            let url = "https://host/a\(escaped(text))/b?c\(escaped(text))=\(escaped(text))"
            let content = "{\"mimeType\": \(type), \"text\": \(inner)}"
            let method = JSON(.string("POST" + text), offset: 0).text
            let har = """
                {"log": {"entries": [{"request": {"method": \(method), "url": "\(url)", "postData": \(content)},
                "response": {"status": 200, "content": \(content)}}]}}
                """
            var arguments = Arguments(file: "a.json", name: "a\(text)", path: "path\(text)", usesMappers: isMapper)
            var texts = [try Generate.text(for: arguments, Data(sample.utf8))]
            arguments = Arguments(file: "a.har", usesMappers: isMapper)
            texts.append(try Generate.text(for: arguments, Data(har.utf8)))
            return texts.map { text in
                let swift = SwiftText(text)
                #expect(swift.faults == [])
                return swift.lines
            }
        }
        for isMapper in [false, true] {
            #expect(try lines(text, isMapper: isMapper) == lines(harmless, isMapper: isMapper))
        }
    }

    @Test("BEY-25: a type of a body or a status that is none leaves out its operation, in one line with its place")
    func left() throws {
        let text = """
            {"openapi": "3.1.0", "info": {"title": "T", "version": "1"}, "paths": {
            "/a": {"post": {"requestBody": {"content": {"text/x\\nlet a = 1": {}}}, "responses": {}}},
            "/b": {"get": {"responses": {"2\\" let": {"description": ""}}}},
            "/c": {"get": {"operationId": "c", "responses": {"x-own": 1, "2xx": {"description": ""}}}}}}
            """
        let output = OpenAPIWriter(name: "API", isPublic: false).output(of: try OpenAPIDocument(Data(text.utf8)))
        let places = InputError.places(of: output.notes, in: Data(text.utf8))
        let notes = zip(output.notes, places).map { "\($1.line):\($1.column) \($0.message)" }
        #expect(
            notes == [
                #"2:66 POST /a is left out: "text/x\u{A}let a = 1" is not a media type"#,
                #"3:41 GET /b is left out: "2" let" is not a response status; use 100 to 599, a class such as 2XX, or default"#,
            ]
        )
        #expect(output.requestCount == 1)
    }

    @Test("BEY-25: a variable of a server is put where its name is, also where an escape looks like it")
    func servers() throws {
        let text = #"""
            {"openapi": "3.1.0", "paths": {}, "servers": [{"url": "https://{a}.h/{b}\u202e{c}",
            "variables": {"202E": {"default": "1"}, "a": {"default": "{b}"}, "b": {}}}]}
            """#
        let output = OpenAPIWriter(name: "API", isPublic: false).output(of: try OpenAPIDocument(Data(text.utf8)))
        #expect(output.files[0].text.contains(#"Server(text: "https://\(a).h/\(b)\u{202E}{c}")"#))
        #expect(output.files[0].text.contains(#"(_202e: String = "1", a: String = "{b}", b: String = "")"#))
    }

    @Test("BEY-25: a message stays one line, and short, whatever it repeats")
    func messages() {
        let error = InputError(message: "a\n\u{1B}[2K\u{2028}" + String(repeating: "b", count: 1_000), offset: 0)
        #expect(error.message.hasPrefix(#"a\u{A}\u{1B}[2K\u{2028}bbb"#) && error.message.count < 600)
    }
}
