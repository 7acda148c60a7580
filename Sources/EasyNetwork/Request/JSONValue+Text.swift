import Foundation

extension JSONValue {
    /// Returns the value as JSON with sorted keys and unescaped slashes: the same bytes that a `JSONEncoder` makes of
    /// it at a much higher cost. All numbers must be finite, as in converted parameters.
    func json() -> Data {
        var text: [UInt8] = []
        write(to: &text)
        return Data(text)
    }

    private func write(to text: inout [UInt8]) {
        switch self {
        case .null: text += "null".utf8
        case .bool(let value): text += (value ? "true" : "false").utf8
        case .integer(let value): text += String(value).utf8
        case .unsigned(let value): text += String(value).utf8
        case .double(let value):
            let digits = value.description
            text += digits.utf8.dropLast(digits.hasSuffix(".0") ? 2 : 0)
        case .decimal(let value): text += value.description.utf8
        case .string(let value): text.append(quoted: value)
        case .array(let values):
            text.append(UInt8(ascii: "["))
            for (index, value) in values.enumerated() {
                if index > 0 { text.append(UInt8(ascii: ",")) }
                value.write(to: &text)
            }
            text.append(UInt8(ascii: "]"))
        case .object(let members):
            text.append(UInt8(ascii: "{"))
            // Sort keys by their bytes, as JSONEncoder does.
            let sorted = members.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
            for (index, (key, value)) in sorted.enumerated() {
                if index > 0 { text.append(UInt8(ascii: ",")) }
                text.append(quoted: key)
                text.append(UInt8(ascii: ":"))
                value.write(to: &text)
            }
            text.append(UInt8(ascii: "}"))
        }
    }
}
