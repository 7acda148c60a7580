import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("XMLTree")
struct XMLTreeTests {
    private func xml(_ text: String, type: String? = nil) throws -> XMLTree {
        try xml(Data(text.utf8), type: type)
    }

    private func xml(_ bytes: Data, type: String? = nil) throws -> XMLTree {
        var headers = HTTPHeaders()
        headers["Content-Type"] = type
        return try NetworkResponse(headers: headers, body: bytes).xml()
    }

    @Test("RSP-2: elements, attributes and text of every kind, in order")
    func tree() throws {
        let root = try xml(
            """
            <?xml version="1.0" encoding="utf-8"?>
            <!-- a --><?style x?>
            <feed id="7" lang='é'>a<b>1 &lt; 2</b> <b k="&quot;&#10;"/><![CDATA[<&]]>&amp;<!-- c --><?p q?>z</feed>
            """
        )
        expect(root.name, equals: "feed")
        expect(root.namespace == nil)
        expect(root.attributes, equals: ["id": "7", "lang": "é"])
        expect(root.elements.map(\.name), equals: ["b", "b"])
        expect(root["b"]?.text, equals: "1 < 2")
        expect(root.elements("b")[1].attributes["k"], equals: "\"\n")
        expect(root.elements("c").isEmpty)
        expect(root.text, equals: "a1 < 2 <&&z")
        expect(root.children.count, equals: 5)
        expect(root.children.last, equals: .text("<&&z"))
        expect(root["x"]?["y"]?.text == nil)
    }

    @Test("RSP-2: elements have their namespace, however their prefix is written")
    func namespaces() throws {
        let one = try xml(#"<a xmlns="urn:a" xmlns:p="urn:p" p:k="1" k="2"><p:b/><c xmlns=""><d/></c><e/></a>"#)
        let other = try xml(
            #"<x:a xmlns:x="urn:a" xmlns:p="urn:p" p:k="1" k="2"><b xmlns="urn:p"/><c><d/></c><x:e/></x:a>"#
        )
        expect(one, equals: other)
        expect(one.hashValue, equals: other.hashValue)
        expect(one.namespace, equals: "urn:a")
        expect(one.attributes, equals: ["p:k": "1", "k": "2"])
        expect(one["b", namespace: "urn:p"] != nil)
        expect(one["b", namespace: "urn:a"] == nil)
        expect(one["c"]?.namespace == nil)
        expect(one["c"]?["d"]?.namespace == nil)
        expect(one.elements("e", namespace: "urn:a").count, equals: 1)
        try expect(xml(#"<a xmlns="relative"/>"#).namespace, equals: "relative")
        try expect(xml(#"<a xml:lang="??" xml:space="odd"/>"#).attributes["xml:lang"], equals: "??")
    }

    @Test(
        "RSP-2: a body that is no XML is an error with line and column",
        arguments: [
            ("<a>\n<b>\n</a>", 3, "<b>"), ("<a>\n<b>te", 2, "ends inside <b>"), ("<a/>\n<b/>", 2, "after the last"),
            ("<a>x&nbsp;y</a>", 1, "entity"), ("<a k='1' k='2'/>", 1, "42"), ("<a>a & b</a>", 1, "libxml2"),
            ("\n\n<a k='<'/>", 3, "libxml2"), ("<a>]]></a>", 1, "62"), ("hello", 1, "no element"),
            ("<a>\u{1}</a>", 1, "libxml2"), ("<a>&#0;</a>", 1, "libxml2"),
            ("<a><!-- a -- b --></a>", 1, "libxml2"), ("<html><br></html>", 1, "<br>"), ("<q:b/>", 1, "prefix"),
            ("<a q:k='1'/>", 1, "prefix"), ("<a xmlns:p=''/>", 1, "200"), ("<a:/>", 1, "202"), ("<:a/>", 1, "202"),
            ("<a:b:c xmlns:a='urn:a'/>", 1, "202"), ("<a xmlns:xml='urn:x'/>", 1, "200"),
            ("<a xmlns:p='urn:x' xmlns:q='urn:x' p:k='' q:k=''/>", 1, "203"), ("<a k=1/>", 1, "libxml2"),
            ("<!DOCTYPE a SYSTEM 'x'>\n<a>&nbsp;</a>", 2, "entity"), ("<!-- x", 1, "libxml2"),
            ("<a/><?xml version='1.0'?>", 1, "libxml2"), ("<a>\n<!DOCTYPE a></a>", 2, "libxml2"),
        ]
    )
    func broken(_ text: String, _ line: Int, _ reason: String) throws {
        let error = #expect(throws: NetworkError.self) { try xml(text) }
        expect(error?.code, equals: .cannotParseResponse)
        expect(error?.responseBody, equals: Data(text.utf8))
        expect(error?.underlying != nil)
        let message = error?.message ?? "nil"
        expect(message.hasPrefix("the body is not XML: line \(line), column "), "\(message)")
        expect(message.contains(reason), "\(message)")
        expect(message.hasSuffix("."), equals: false)
    }

    @Test("RSP-2: a processing instruction without content, at which the parser stops the process, is refused")
    func emptyInstructions() throws {
        for text in ["<?x?><a/>", "<a><?x?></a>", "<a/>\n<?é?>", "<a k='>'><b/><?x?></a>", "<?xml?><a/>"] {
            let error = #expect(throws: NetworkError.self) { try xml(text) }
            expect(error?.message?.contains("without content"), equals: true, "\(error?.message ?? "nil")")
        }
        try expect(xml("<a k='?x?>'>1<![CDATA[<?x?>]]><!-- <?x?> --><?x ?></a>").text, equals: "1<?x?>")
    }

    @Test("RSP-2: an empty body and one of white space are errors")
    func empty() {
        for text in ["", " \n"] { #expect(throws: NetworkError.self) { try xml(text) } }
    }

    @Test("RSP-2: nothing outside the document is loaded, and no entity multiplies")
    func entities() throws {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("EasyNetwork-\(UUID()).txt")
        try Data("outside".utf8).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        let laughs = (1...9).map { "<!ENTITY l\($0) \"\(String(repeating: "&l\($0 - 1);", count: 10))\">" }.joined()
        for text in [
            "<!DOCTYPE a [<!ENTITY l0 \"ha\">\(laughs)]><a>&l9;</a>",
            "<?xml version='1.0'?><!-- x --><?p q?>\n <!DOCTYPE a [<!ENTITY e SYSTEM \"\(file.absoluteString)\">]><a>&e;</a>",
            "<!DOCTYPE a SYSTEM '>' [<!ENTITY e SYSTEM \"\(file.absoluteString)\">]><a>&e;</a>",
            "<!DOCTYPE a [<!ENTITY % p SYSTEM \"\(file.absoluteString)\"> %p;]><a/>",
            "<!DOCTYPE a [<!ATTLIST a k CDATA 'v'>]><a/>",
        ] {
            let error = #expect(throws: NetworkError.self) { try xml(text) }
            expect(error?.message?.contains("document type"), equals: true, "\(error?.message ?? "nil")")
            let utf16 = Data(text.utf16.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] })
            #expect(throws: NetworkError.self) { try xml(Data([0xFE, 0xFF]) + utf16) }
        }
        // Documents whose encoding a parser might misdetect.
        let entity = "<!DOCTYPE a [<!ENTITY e SYSTEM \"\(file.absoluteString)\">]><a>&e;</a>"
        let wide = Data(entity.utf16.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] })
        let mark = Data([0xEF, 0xBB, 0xBF])
        for (bytes, type) in [
            (Data("<!DOCTYPE a>\(entity)".utf8), nil), (mark + mark + Data(entity.utf8), nil),
            (wide, "text/xml; charset=utf-8"), (Data([0, 0x3C, 0, 0x3F]) + wide, "text/xml; charset=utf-8"),
            (wide, "text/xml; charset=latin1"), (Data([0xFF, 0xFE, 0xFF, 0xFE]) + wide, nil),
            (Data([0xFF, 0xFE, 0, 0]) + wide, nil), (Data("<a>\u{0}</a>".utf8), nil),
            (Data("<a/>\(entity)".utf8), nil),
        ] as [(Data, String?)] {
            let error = #expect(throws: NetworkError.self) { try xml(bytes, type: type) }
            let reason = error?.message ?? "nil"
            expect(reason.contains("document type") || reason.contains("a character that XML"), "\(reason)")
        }
        let declared =
            "<!DOCTYPE html PUBLIC \"-//W3C//DTD XHTML 1.0 Strict//EN\"\n \"\(file.absoluteString)\">\n<a>x</a>"
        try expect(xml(declared).text, equals: "x")
    }

    @Test("RSP-2: depth and number of attributes are bounded, and a large document costs no more than its length")
    func limits() throws {
        func nested(_ depth: Int) -> Data {
            Data((String(repeating: "<a>", count: depth) + String(repeating: "</a>", count: depth)).utf8)
        }
        try expect(xml(nested(128)).elements.count, equals: 1)
        for depth in [129, 1_000, 100_000] {
            let error = #expect(throws: NetworkError.self) { try xml(nested(depth)) }
            expect(error?.message?.contains("nested deeper than 128 levels"), equals: true)
        }
        // libxml2 compares each attribute with all previous ones.
        func wide(_ count: Int) -> Data {
            Data("<a>\n <b \((0..<count).map { "k\($0)='>'" }.joined(separator: " "))/></a>".utf8)
        }
        try expect(xml(wide(10_000)).elements[0].attributes.count, equals: 10_000)
        for count in [10_001, 1_000_000] {
            let error = #expect(throws: NetworkError.self) { try xml(wide(count)) }
            expect(error?.message?.contains("more than 10,000 attributes"), equals: true)
        }
        let declarations = (0..<5_000).map { "xmlns:p\($0)='urn:\($0)'" }.joined(separator: " ")
        let children = String(repeating: "<b xmlns:z='urn:z'/>", count: 20_000)
        try expect(xml("<a \(declarations)>\(children)</a>").elements.count, equals: 20_000)
        try expect(xml("<a>\(String(repeating: "&amp;x", count: 200_000))</a>").children.count, equals: 1)
    }

    @Test(
        "RSP-2: a byte order mark beats Content-Type, that beats the document, and without all it is UTF-8 (RFC 7303)",
        arguments: [
            ("application/xml", nil, "<a>\u{E9}</a>", .utf8), (nil, nil, "<a>\u{E9}</a>", .utf8),
            ("text/xml", nil, "<a>\u{E9}</a>", .utf8),
            ("text/xml; charset=iso-8859-1", nil, "<a>\u{E9}</a>", .isoLatin1),
            ("application/xml", nil, "<?xml version='1.0' encoding='ISO-8859-1'?><a>\u{E9}</a>", .isoLatin1),
            ("application/xml", nil, "<?xml version='1.0' encoding = \"windows-1252\" ?><a>\u{E9}</a>", .windowsCP1252),
            ("application/xml;charset=utf-8", nil, "<?xml version='1.0' encoding='latin1'?><a>\u{E9}</a>", .utf8),
            ("application/xml;charset=latin1", [0xEF, 0xBB, 0xBF], "<?xml version='1.0'?><a>\u{E9}</a>", .utf8),
            ("application/xml", [0xFE, 0xFF], "<?xml version='1.0' encoding='utf-16'?><a>\u{E9}</a>", .utf16BigEndian),
            ("text/xml;charset=utf-8", [0xFF, 0xFE], "<a>\u{E9}</a>", .utf16LittleEndian),
            ("application/xml;charset=utf-16be", nil, "<a>\u{E9}</a>", .utf16BigEndian),
            ("application/xml", nil, "<?xml version='1.0' encoding='utf-16'?><a>\u{E9}</a>", .utf16LittleEndian),
            ("application/xml", nil, "<?xml version='1.0' encoding='utf-16'?><a>\u{E9}</a>", .utf16BigEndian),
            // The declared encoding is not the actual one.
            ("application/xml", nil, "<?xml version='1.0' encoding='utf-16'?><a>\u{E9}</a>", .utf8),
        ] as [(String?, [UInt8]?, String, String.Encoding)]
    )
    func charsets(_ type: String?, _ mark: [UInt8]?, _ text: String, _ encoding: String.Encoding) throws {
        let bytes = try #require(text.data(using: encoding))
        try expect(xml(Data(mark ?? []) + bytes, type: type).text, equals: "é")
        try expect(xml((Data([0]) + Data(mark ?? []) + bytes).dropFirst(), type: type).text, equals: "é")
    }

    @Test("RSP-2: bytes that are invalid in the charset, and an unknown charset, are errors that name it")
    func badCharsets() {
        let cut = Data("<a>é</a>".utf8.prefix(4))
        for (bytes, type, name) in [
            (cut, nil, "utf-8"), (Data("<a/>".utf8) + [0xFF], "text/xml; charset=x-klingon", "x-klingon"),
            (Data("<?xml version='1.0' encoding='ebcdic'?><a/>".utf8) + [0xFF], nil, "ebcdic"),
            (Data([0xFE, 0xFF, 0]), nil, "utf-16be"),
        ] as [(Data, String?, String)] {
            let error = #expect(throws: NetworkError.self) { try xml(bytes, type: type) }
            expect(error?.message?.contains(name), equals: true, "\(error?.message ?? "nil")")
        }
    }

    @Test("RSP-2: a request whose item is a tree needs nothing more")
    func item() throws {
        struct GetFeed: APIRequest {
            typealias Item = XMLTree
            var api: String { "feed" }
        }
        try expect(GetFeed().item(from: NetworkResponse(body: Data("<a>x</a>".utf8))).text, equals: "x")
    }

    @Test("RSP-2: random trees survive writing and reading, and no change of bytes is a crash")
    func roundTrip() throws {
        let seed = UInt64.random(in: 0 ... .max)
        print("XMLTreeTests.roundTrip: seed \(seed)")
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<200 {
            let tree = randomTree(depth: 4, &generator)
            let text = write(tree)
            try expect(xml(text), equals: tree, "seed \(seed): \(text)")
            var bytes = Data(text.utf8)
            for _ in 0..<3 {
                bytes[Int.random(in: 0..<bytes.count, using: &generator)] = .random(in: 0...255, using: &generator)
                _ = try? xml(bytes)
            }
        }
    }

    private func randomTree(depth: Int, _ generator: inout SeededGenerator) -> XMLTree {
        let names = ["a", "b-1", "é", "_c", "d.e"]
        let texts = ["x", " ", "<&>\"'", "]]>", "\n\t", "😀", "&amp;"]
        var attributes: [String: String] = [:]
        for name in names where Bool.random(using: &generator) {
            attributes[(Bool.random(using: &generator) ? "n:" : "") + name] = texts.randomElement(using: &generator)
        }
        var children: [XMLTree.Child] = []
        for _ in 0..<(depth == 0 ? 0 : Int.random(in: 0...4, using: &generator)) {
            if case .text = children.last {
                children.append(.element(randomTree(depth: depth - 1, &generator)))
            } else if Bool.random(using: &generator) {
                children.append(.text(texts.randomElement(using: &generator) ?? ""))
            } else {
                children.append(.element(randomTree(depth: depth - 1, &generator)))
            }
        }
        return XMLTree(
            name: names.randomElement(using: &generator) ?? "",
            namespace: Bool.random(using: &generator) ? "urn:n" : nil,
            attributes: attributes,
            children: children
        )
    }

    private func write(_ tree: XMLTree) -> String {
        func escape(_ text: String) -> String {
            text.unicodeScalars.map { "<&>\"'\n\t".unicodeScalars.contains($0) ? "&#\($0.value);" : String($0) }
                .joined()
        }
        let attributes = tree.attributes.map { " \($0)=\"\(escape($1))\"" }.joined()
        let children = tree.children.map { child in
            switch child {
            case .text(let text): escape(text)
            case .element(let element): write(element)
            }
        }
        let name = (tree.namespace == nil ? "" : "n:") + tree.name
        return "<\(name) xmlns:n='urn:n'\(attributes)>\(children.joined())</\(name)>"
    }
}
