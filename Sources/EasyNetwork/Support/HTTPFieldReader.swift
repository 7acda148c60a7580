/// Reads the value of a header field piece by piece: tokens, quoted strings and the commas of lists (RFC 9110, sections
/// 5.6.1 to 5.6.4).
struct HTTPFieldReader {
    let bytes: [UInt8]
    var position = 0

    init(_ value: String) {
        bytes = Array(value.utf8)
    }

    var next: UInt8? {
        position < bytes.count ? bytes[position] : nil
    }

    var isAtEnd: Bool { position == bytes.count }

    /// - Returns: nil, and nothing is read, when no token comes next.
    mutating func token() -> String? {
        let token = bytes[position...].prefix(while: HTTPSyntax.isTokenByte)
        position = token.endIndex
        return token.isEmpty ? nil : String(decoding: token, as: UTF8.self)
    }

    /// The text between the quotes, of which the first comes next.
    ///
    /// - Returns: nil when the last quote is missing.
    mutating func quotedString() -> String? {
        position += 1
        var text: [UInt8] = []
        while let byte = next {
            position += 1
            switch byte {
            case UInt8(ascii: "\""):
                return String(decoding: text, as: UTF8.self)
            case UInt8(ascii: "\\"):
                guard let escaped = next else { return nil }
                text.append(escaped)
                position += 1
            default:
                text.append(byte)
            }
        }
        return nil
    }

    mutating func take(_ byte: UInt8) -> Bool {
        guard next == byte else { return false }
        position += 1
        return true
    }

    mutating func skipBlanks() {
        while next == UInt8(ascii: " ") || next == UInt8(ascii: "\t") { position += 1 }
    }

    /// Empty elements of a list count for nothing (section 5.6.1).
    mutating func skipListSeparators() {
        while let byte = next, byte == UInt8(ascii: ",") || byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") {
            position += 1
        }
    }

    /// Whether an element of the list ends here, but for blanks.
    func isAtSeparator() -> Bool {
        let rest = bytes[position...].first { $0 != UInt8(ascii: " ") && $0 != UInt8(ascii: "\t") }
        return rest == nil || rest == UInt8(ascii: ",")
    }
}
