import Foundation

extension JSONValue {
    /// The value as JSON with sorted keys and plain slashes: the bytes that a `JSONEncoder` makes of it, which costs
    /// far more.
    ///
    /// - Throws: for a number that is not finite.
    func json() throws(EncodingError) -> Data {
        var text = JSONText()
        try write(to: &text)
        return Data(text.bytes)
    }

    private func write(to text: inout JSONText) throws(EncodingError) {
        switch self {
        case .null: text.bytes += "null".utf8
        case .bool(let value): text.bytes += (value ? "true" : "false").utf8
        case .integer(let value): text.bytes += String(value).utf8
        case .unsigned(let value): text.bytes += String(value).utf8
        case .double(let value):
            guard value.isFinite else { throw .notFinite(value) }
            let digits = value.description
            text.bytes += digits.utf8.dropLast(digits.hasSuffix(".0") ? 2 : 0)
        case .decimal(let value):
            guard value.isFinite else { throw .notFinite(value) }
            text.bytes += value.description.utf8
        case .string(let value): text.add(quoted: value)
        case .array(let values):
            text.bytes.append(UInt8(ascii: "["))
            for (index, value) in values.enumerated() {
                if index > 0 { text.bytes.append(UInt8(ascii: ",")) }
                try value.write(to: &text)
            }
            text.bytes.append(UInt8(ascii: "]"))
        case .object(let members):
            text.bytes.append(UInt8(ascii: "{"))
            // As JSONEncoder sorts them: by their bytes.
            let sorted = members.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
            for (index, (key, value)) in sorted.enumerated() {
                if index > 0 { text.bytes.append(UInt8(ascii: ",")) }
                text.add(quoted: key)
                text.bytes.append(UInt8(ascii: ":"))
                try value.write(to: &text)
            }
            text.bytes.append(UInt8(ascii: "}"))
        }
    }
}
