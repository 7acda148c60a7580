import Foundation
import Testing

@testable import EasyNetworkDiagnostics
@testable import TestSupport

@Suite("A text of JSON")
struct JSONTextTests {
    @Test("DIA-1: it has the shortest digits of a number, and a comma between values")
    func numbers() {
        let values = [
            0, 1, -1, 10, 0.5, -0.25, 12.345, 0.001, 0.01, 100.1, 2_147_483.647, -2_147_483.648, 2_147_483.648, 0.1234,
            1 / 3, 1e-7, 1e20, .greatestFiniteMagnitude,
        ]
        var text = JSONText()
        text.array { text in
            for value in values { text.object { $0.add("a", value) } }
            text.object { text in
                text.add("b", Double.nan)
                text.array("c")
                text.add("d", UInt64.max)
            }
        }
        let objects = values.map { #"{"a":\#($0)}"# } + [#"{"b":null,"c":[],"d":\#(UInt64.max)}"#]
        expect(String(decoding: text.bytes, as: UTF8.self), equals: "[" + objects.joined(separator: ",") + "]")
    }

    @Test("BEY-25: any text reads back as it was, as a key and as a value, and adds no line")
    func texts() throws {
        let scalars = (0...0x3100).compactMap(Unicode.Scalar.init) + ["\u{FEFF}", "\u{FFFF}", "\u{1F600}", "\u{E0001}"]
        let texts = scalars.map { "\"\($0)\u{301}," } + ["\"}]", "\\", "\\u0022", "</script>"]
        var json = JSONText()
        json.object { object in
            for (index, text) in texts.enumerated() { object.add(key: "\(index)\(text)") { $0.add(text) } }
        }
        expect(!json.bytes.contains { $0 < 0x20 })
        let read = try JSONDecoder().decode([String: String].self, from: Data(json.bytes))
        expect(read.count, equals: texts.count)
        let isSame = texts.enumerated().allSatisfy { index, text in
            read["\(index)\(text)"].map { Array($0.utf8) == Array(text.utf8) } == true
        }
        expect(isSame)
    }
}
