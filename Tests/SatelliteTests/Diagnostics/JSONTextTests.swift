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
}
