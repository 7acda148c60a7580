/// The character rules of RFC 9110, section 5.6.
package enum HTTPSyntax {
    /// Whether the bytes are a token, as methods and field names are.
    package static func isToken(_ bytes: some Collection<UInt8>) -> Bool {
        !bytes.isEmpty && bytes.allSatisfy(isTokenByte)
    }

    package static func isTokenByte(_ byte: UInt8) -> Bool {
        byte.isLetter || byte.isDigit || "!#$%&'*+-.^_`|~".utf8.contains(byte)
    }

    /// Whether the bytes are valid in a field value: no control characters except tabs.
    package static func isFieldValue(_ bytes: some Collection<UInt8>) -> Bool {
        bytes.allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }
    }
}

/// A reader of header field values: tokens, quoted strings and lists (RFC 9110, sections 5.6.1 to 5.6.4).
///
/// A parser may set the position back to read a part twice. The cost of reading a hostile value stays proportional to
/// its length; ``readCount`` measures it.
struct HTTPFieldReader {
    let bytes: [UInt8]
    var position = 0 {
        didSet { readCount += abs(position - oldValue) }
    }
    /// The number of bytes passed, forwards and back; tests compare it with the length.
    private(set) var readCount = 0
    /// The first quote without a closing one. No string that begins behind it has an end, so none is searched for.
    private var unclosedQuote: Int?

    init(_ value: String) {
        bytes = Array(value.utf8)
    }

    var next: UInt8? {
        position < bytes.count ? bytes[position] : nil
    }

    var isAtEnd: Bool { position == bytes.count }

    /// - Returns: nil, with nothing read, if no token is next.
    mutating func token() -> String? {
        let token = bytes[position...].prefix(while: HTTPSyntax.isTokenByte)
        position = token.endIndex
        return token.isEmpty ? nil : String(decoding: token, as: UTF8.self)
    }

    /// The text between the quotes. The opening quote must be next.
    ///
    /// - Returns: nil, with nothing read, if the closing quote is missing.
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

    /// Skips empty elements of a list (section 5.6.1).
    mutating func skipListSeparators() {
        while let byte = next, byte == UInt8(ascii: ",") || byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") {
            position += 1
        }
    }

    /// Moves to the next separator that is not in quotes. A quote that is not closed counts as any byte.
    mutating func skip(to separator: UInt8) {
        while let byte = next, byte != separator {
            if byte != UInt8(ascii: "\"") || quotedString() == nil { position += 1 }
        }
    }

    /// Whether the element of the list ends here, blanks aside.
    func isAtSeparator(_ separator: UInt8 = UInt8(ascii: ",")) -> Bool {
        let rest = bytes[position...].first { $0 != UInt8(ascii: " ") && $0 != UInt8(ascii: "\t") }
        return rest == nil || rest == separator
    }
}

/// An entity tag (RFC 9110, section 8.8.3).
struct EntityTag: Hashable, Sendable {
    /// The tag with its quotes, without `W/`.
    let opaqueTag: String
    let isWeak: Bool

    /// - Parameter field: the value of `ETag`. The result is nil if it is not exactly one valid tag.
    init?(_ field: String) {
        let text = field.trimmed
        isWeak = text.hasPrefix("W/")
        opaqueTag = isWeak ? String(text.dropFirst(2)) : text
        let bytes = opaqueTag.utf8
        guard bytes.count >= 2, bytes.first == UInt8(ascii: "\""), bytes.last == UInt8(ascii: "\""),
            bytes.dropFirst().dropLast().allSatisfy({ $0 > 0x20 && $0 != 0x7F && $0 != UInt8(ascii: "\"") })
        else { return nil }
    }

    /// - Returns: nil if there is no valid `ETag`.
    init?(_ headers: HTTPHeaders) {
        guard let field = headers["ETag"] else { return nil }
        self.init(field)
    }

    var text: String { isWeak ? "W/" + opaqueTag : opaqueTag }

    /// Compares weakly (section 8.8.3.2).
    func isWeaklyEqual(to other: EntityTag) -> Bool {
        opaqueTag == other.opaqueTag
    }
}

/// The value of `Content-Type`: the type and its charset (RFC 9110, section 8.3.1).
package struct MediaType: Equatable {
    /// Type and subtype in lower case: `text/html`.
    package let essence: String
    /// The value of the parameter `charset`, without quotes; nil if there is none.
    let charset: String?

    /// - Parameter field: the value of the header field. The result is nil if it does not begin with a type.
    package init?(_ field: String) {
        let bytes = field.utf8
        let end = bytes.firstIndex(of: UInt8(ascii: ";")) ?? bytes.endIndex
        let text = field[..<end]
        // Most are written so; characters cost far more than bytes.
        let isPlain = text.utf8.allSatisfy { (0x21..<0x7F).contains($0) && $0.lowercasedASCII == $0 }
        let essence = isPlain ? String(text) : text.trimmed.lowercased()
        guard essence.utf8.contains(UInt8(ascii: "/")) else { return nil }
        self.essence = essence
        charset = end == bytes.endIndex ? nil : field[end...].split(separator: ";").lazy.compactMap(Self.charset).first
    }

    package var isJSON: Bool {
        essence == "application/json" || essence == "text/json" || essence.hasSuffix("+json")
    }

    var isHTML: Bool {
        essence == "text/html" || essence == "application/xhtml+xml"
    }

    /// Whether the type matches a pattern: `application/json`, `text/*` or `*/*`.
    func matches(_ pattern: String) -> Bool {
        let pattern = MediaType(pattern)?.essence ?? pattern.lowercased()
        if pattern == "*/*" || pattern == essence { return true }
        return pattern.hasSuffix("/*") && essence.hasPrefix(pattern.dropLast())
    }

    private static func charset(in parameter: Substring) -> String? {
        let pair = parameter.split(separator: "=", maxSplits: 1)
        guard pair.count == 2, pair[0].trimmed.isEqualIgnoringASCIICase(to: "charset") else { return nil }
        let value = pair[1].trimmed.filter { $0 != "\"" }
        return value.isEmpty ? nil : value
    }
}

extension StringProtocol {
    /// The text without white space at both ends.
    package var trimmed: String {
        guard let first = firstIndex(where: { !$0.isWhitespace }), let last = lastIndex(where: { !$0.isWhitespace })
        else { return "" }
        return String(self[first...last])
    }
}
