/// The character rules of RFC 9110, sections 5.6 and 11.2.
package enum HTTPSyntax {
    /// Returns whether the bytes are a token. Methods and field names are tokens.
    package static func isToken(_ bytes: some Collection<UInt8>) -> Bool {
        !bytes.isEmpty && bytes.allSatisfy(isTokenByte)
    }

    package static func isTokenByte(_ byte: UInt8) -> Bool {
        byte.isLetter || byte.isDigit || "!#$%&'*+-.^_`|~".utf8.contains(byte)
    }

    /// Returns whether the bytes are a token68, such as any kind of Base64 (section 11.2).
    static func isToken68(_ bytes: some Collection<UInt8>) -> Bool {
        let letters = bytes.prefix(while: isToken68Byte)
        return !letters.isEmpty && bytes[letters.endIndex...].allSatisfy { $0 == UInt8(ascii: "=") }
    }

    static func isToken68Byte(_ byte: UInt8) -> Bool {
        byte.isLetter || byte.isDigit || "-._~+/".utf8.contains(byte)
    }

    /// Returns whether the bytes are valid in a field value: without control characters except tabs.
    package static func isFieldValue(_ bytes: some Collection<UInt8>) -> Bool {
        bytes.allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }
    }
}

// A field value consists of bytes, nearly always ASCII or UTF-8. In any other value, each byte beyond ASCII is stored
// as a private-use character from U+10FE80 to U+10FEFF. The value and every part of it are therefore sent back to the
// server unchanged.
extension String {
    private static let keptBytes: ClosedRange<UInt32> = 0x10FE80...0x10FEFF

    /// Creates a string from the bytes of a field value, and preserves these bytes.
    package init(fieldBytes bytes: some Collection<UInt8>) {
        self.init(decoding: bytes, as: UTF8.self)
        // If the bytes differ, invalid ones have been replaced.
        guard !utf8.elementsEqual(bytes) || hasKeptBytes else { return }
        let kept = bytes.flatMap { $0 < 0x80 ? [$0] : [0xF4, 0x8F, 0xB8 | $0 >> 6, 0x80 | $0 & 0x3F] }
        self.init(decoding: kept, as: UTF8.self)
    }

    /// The bytes of a field value, as they are sent.
    package var fieldBytes: [UInt8] {
        guard hasKeptBytes else { return Array(utf8) }
        return unicodeScalars.flatMap { scalar in
            let isKept = Self.keptBytes.contains(scalar.value)
            return isKept ? [UInt8(truncatingIfNeeded: scalar.value)] : Array(String(scalar).utf8)
        }
    }

    /// A field value for display. Bytes that are not UTF-8 are read as ISO 8859-1, the former charset of fields.
    package var fieldText: String {
        guard hasKeptBytes else { return self }
        let bytes = fieldBytes
        let text = String(decoding: bytes, as: UTF8.self)
        return text.utf8.elementsEqual(bytes)
            ? text : String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
    }

    package var hasKeptBytes: Bool {
        // In UTF-8, each of these characters begins with this byte, which hardly any string contains.
        utf8Bytes { $0.hasByte { $0 == 0xF4 ? 1 : 0 } } && unicodeScalars.contains { Self.keptBytes.contains($0.value) }
    }
}

/// A reader of header field values: tokens, quoted strings and lists (RFC 9110, sections 5.6.1 to 5.6.4).
///
/// A parser can move the position back to read a part twice. The cost of reading a hostile value stays proportional to
/// its length; ``readCount`` measures it.
struct HTTPFieldReader {
    let bytes: [UInt8]
    var position = 0 {
        didSet { readCount += abs(position - oldValue) }
    }
    /// The number of bytes passed, forwards and backwards. Tests compare it with the length.
    private(set) var readCount = 0
    /// The position of the first quote that is never closed. A string that begins after it has no end either, so the
    /// reader does not search for one.
    private var unclosedQuote: Int?

    init(_ value: String) {
        bytes = Array(value.utf8)
    }

    var next: UInt8? {
        position < bytes.count ? bytes[position] : nil
    }

    var isAtEnd: Bool { position == bytes.count }

    /// Reads a token.
    ///
    /// - Returns: Nil, with nothing read, if no token is next.
    mutating func token() -> String? {
        let token = bytes[position...].prefix(while: HTTPSyntax.isTokenByte)
        position = token.endIndex
        return token.isEmpty ? nil : String(decoding: token, as: UTF8.self)
    }

    /// Reads the text between quotes. The opening quote must be next.
    ///
    /// - Returns: Nil, with nothing read, if the closing quote is missing.
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
        while let byte = next, byte == UInt8(ascii: ",") || byte.isBlank { position += 1 }
    }

    /// Moves to the next separator outside of quotes. A quote that is not closed counts as an ordinary byte.
    mutating func skip(to separator: UInt8) {
        while let byte = next, byte != separator {
            if byte != UInt8(ascii: "\"") || quotedString() == nil { position += 1 }
        }
    }

    /// Reads the text up to a separator, without the blanks around it.
    mutating func text(upTo separator: UInt8) -> String {
        let text = bytes[position...].prefix { $0 != separator }
        position = text.endIndex
        return String(decoding: text, as: UTF8.self).trimmed
    }

    /// Reads the elements of a list.
    mutating func elements() -> [String] {
        var elements: [String] = []
        skipListSeparators()
        while !isAtEnd {
            let start = position
            skip(to: UInt8(ascii: ","))
            elements.append(String(decoding: bytes[start..<position], as: UTF8.self).trimmed)
            skipListSeparators()
        }
        return elements
    }

    /// Returns whether the element of the list ends here, apart from blanks.
    func isAtSeparator(_ separator: UInt8 = UInt8(ascii: ",")) -> Bool {
        let rest = bytes[position...].first { $0 != UInt8(ascii: " ") && $0 != UInt8(ascii: "\t") }
        return rest == nil || rest == separator
    }
}

/// An entity tag (RFC 9110, section 8.8.3).
struct EntityTag: Hashable, Sendable {
    /// The tag with its quotes, without `W/`. It is what a weak comparison compares (section 8.8.3.2).
    let opaqueTag: String
    let isWeak: Bool

    /// Creates a tag from the value of `ETag`. The result is nil unless the value is exactly one valid tag.
    init?(_ field: String) {
        let text = field.trimmed
        isWeak = text.hasPrefix("W/")
        opaqueTag = isWeak ? String(text.dropFirst(2)) : text
        let bytes = opaqueTag.utf8
        guard bytes.count >= 2, bytes.first == UInt8(ascii: "\""), bytes.last == UInt8(ascii: "\""),
            bytes.dropFirst().dropLast().allSatisfy({ $0 > 0x20 && $0 != 0x7F && $0 != UInt8(ascii: "\"") })
        else { return nil }
    }

    /// Creates a tag from the headers. The result is nil if they have no valid `ETag`.
    init?(_ headers: HTTPHeaders) {
        guard let tag = headers.single("ETag", .unanimous, EntityTag.init) else { return nil }
        self = tag
    }

    var text: String { isWeak ? "W/" + opaqueTag : opaqueTag }
}

/// The value of `Content-Type`: the media type and its charset (RFC 9110, section 8.3.1).
package struct MediaType: Equatable {
    /// The type and subtype in lower case: `text/html`.
    package let essence: String
    /// The value of the parameter `charset`, without quotes; nil if there is none.
    let charset: String?

    /// Creates a media type from the value of a field. The result is nil if the value does not begin with a type.
    package init?(_ field: String) {
        // A proxy, a transport or ``HTTPHeaders`` has joined repeated fields: use the last valid one.
        guard !field.utf8.contains(UInt8(ascii: ",")) else {
            var reader = HTTPFieldReader(field)
            guard let last = reader.elements().reversed().lazy.compactMap(Self.init(element:)).first else { return nil }
            self = last
            return
        }
        self.init(element: field)
    }

    private init?(element field: String) {
        let bytes = field.utf8
        let end = bytes.firstIndex(of: UInt8(ascii: ";")) ?? bytes.endIndex
        let text = field[..<end]
        // Most types are plain. Comparing characters costs far more than comparing bytes.
        let isPlain = text.utf8.allSatisfy { (0x21..<0x7F).contains($0) && $0.lowercasedASCII == $0 }
        let essence = isPlain ? String(text) : text.trimmed.lowercased()
        guard essence.utf8.contains(UInt8(ascii: "/")) else { return nil }
        self.essence = essence
        charset = end == bytes.endIndex ? nil : Self.charset(in: field[end...])
    }

    /// Creates a media type from the headers. The result is nil if they have no valid `Content-Type`.
    init?(_ headers: HTTPHeaders) {
        guard let type = headers.single("Content-Type", .last, MediaType.init(_:)) else { return nil }
        self = type
    }

    package var isJSON: Bool {
        essence == "application/json" || essence == "text/json" || essence.hasSuffix("+json")
    }

    /// Returns whether the type matches a pattern: `application/json`, `text/*` or `*/*`.
    func matches(_ pattern: String) -> Bool {
        let pattern = MediaType(pattern)?.essence ?? pattern.lowercased()
        if pattern == "*/*" || pattern == essence { return true }
        return pattern.hasSuffix("/*") && essence.hasPrefix(pattern.dropLast())
    }

    /// Returns the first valid charset.
    ///
    /// - Parameter parameters: The parameters, each with the semicolon before it.
    private static func charset(in parameters: Substring) -> String? {
        var reader = HTTPFieldReader(String(parameters))
        while reader.take(UInt8(ascii: ";")) {
            reader.skipBlanks()
            let name = reader.token()
            reader.skipBlanks()
            if name?.isEqualIgnoringASCIICase(to: "charset") == true, reader.take(UInt8(ascii: "=")) {
                reader.skipBlanks()
                let value =
                    reader.next == UInt8(ascii: "\"") ? reader.quotedString() : reader.text(upTo: UInt8(ascii: ";"))
                if let value = value?.trimmed, !value.isEmpty, reader.isAtSeparator(UInt8(ascii: ";")) { return value }
            }
            reader.skip(to: UInt8(ascii: ";"))
        }
        return nil
    }
}

extension StringProtocol {
    /// The string without ASCII whitespace at both ends. Other whitespace, such as U+00A0, can be intended.
    package var trimmed: String {
        let isWhite = { (byte: UInt8) in byte == 0x20 || (0x09...0x0D).contains(byte) }
        var bytes = Array(utf8)[...].drop(while: isWhite)
        while let last = bytes.last, isWhite(last) { bytes.removeLast() }
        return String(decoding: bytes, as: UTF8.self)
    }
}
