/// Reads the value of a header field piece by piece: tokens, quoted strings and the commas of lists (RFC 9110, sections
/// 5.6.1 to 5.6.4).
///
/// A parser may put the position back to read something twice. Fields come from anyone, so reading one must not cost more
/// than a few times its length, whatever stands in it: see ``readCount``.
struct HTTPFieldReader {
    let bytes: [UInt8]
    var position = 0 {
        didSet { readCount += abs(position - oldValue) }
    }
    /// How many bytes have been passed, forwards and back: the cost of reading, which tests compare with the length.
    private(set) var readCount = 0
    /// The first quote that has no closing one. Every quote behind it is escaped in its string, so the string that would
    /// begin there has no end either, and is not searched for one.
    private var unclosedQuote: Int?

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
    /// - Returns: nil, and nothing is read, when the last quote is missing.
    mutating func quotedString() -> String? {
        guard position < unclosedQuote ?? .max else { return nil }
        var text: [UInt8] = []
        var index = position + 1
        while index < bytes.count, bytes[index] != UInt8(ascii: "\"") {
            if bytes[index] == UInt8(ascii: "\\") { index += 1 }
            if index < bytes.count { text.append(bytes[index]) }
            index += 1
        }
        guard index < bytes.count else {
            readCount += bytes.count - position
            unclosedQuote = position
            return nil
        }
        position = index + 1
        return String(decoding: text, as: UTF8.self)
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
