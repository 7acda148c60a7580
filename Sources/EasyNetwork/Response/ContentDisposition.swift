/// What a `Content-Disposition` says of the name under which the answer is to be kept (RFC 6266).
///
/// Read with more patience than the grammar has, since it is only a proposal: a parameter that is not sound is passed
/// over, and the others count. The name is as the server wrote it, and may be a path; see ``SafeFileName``.
struct ContentDisposition: Equatable {
    /// The parameter `filename*` before `filename`; nil when neither is there, sound and not empty. Of several the first
    /// counts.
    let fileName: String?

    /// - Parameter fieldValue: the value of one header field; nil comes back when it begins with no disposition type.
    init?(_ fieldValue: String) {
        var reader = HTTPFieldReader(Self.restored(fieldValue).trimmed)
        self.init(&reader)
    }

    init?(_ reader: inout HTTPFieldReader) {
        guard reader.token() != nil, reader.isAtParameterEnd() else { return nil }
        var plain: String?
        var extended: String?
        while reader.skipParameterEnd() {
            guard let (name, value) = Self.parameter(&reader) else { continue }
            if name.isEqualIgnoringASCIICase(to: "filename*") {
                extended = extended ?? ExtendedValue(value)?.text.nonEmpty
            } else if name.isEqualIgnoringASCIICase(to: "filename") {
                plain = plain ?? value.text.nonEmpty
            }
        }
        fileName = extended ?? plain
    }

    fileprivate struct Value {
        var text: String
        var isQuoted: Bool
    }

    /// Reads to the end of the parameter, whatever it is.
    private static func parameter(_ reader: inout HTTPFieldReader) -> (name: String, value: Value)? {
        defer { reader.skipParameter() }
        reader.skipBlanks()
        guard let name = reader.token() else { return nil }
        reader.skipBlanks()
        guard reader.take(UInt8(ascii: "=")) else { return nil }
        reader.skipBlanks()
        guard reader.next == UInt8(ascii: "\"") else { return (name, Value(text: reader.bareText(), isQuoted: false)) }
        guard let text = reader.quotedString() else {
            reader.position += 1
            return nil
        }
        return reader.isAtParameterEnd() ? (name, Value(text: text, isQuoted: true)) : nil
    }

    /// The text as UTF-8 when its bytes are, but were taken for ISO 8859-1, as some ways from the wire do.
    private static func restored(_ text: String) -> String {
        let scalars = text.unicodeScalars
        guard scalars.contains(where: { $0.value > 0x7F }), scalars.allSatisfy({ $0.value < 0x100 }) else {
            return text
        }
        return String(wholeUTF8: scalars.map { UInt8($0.value) }) ?? text
    }
}

/// A value with its charset: `UTF-8'en'%E2%82%AC.txt` (RFC 8187, section 3.2).
private struct ExtendedValue {
    let text: String

    init?(_ value: ContentDisposition.Value) {
        let parts = value.text.split(separator: "'", maxSplits: 2, omittingEmptySubsequences: false)
        guard !value.isQuoted, parts.count == 3, let bytes = Self.bytes(parts[2]) else { return nil }
        switch parts[0].lowercased() {
        case "utf-8":
            guard let text = String(wholeUTF8: bytes) else { return nil }
            self.text = text
        case "iso-8859-1":
            text = String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
        default:
            return nil
        }
    }

    /// - Returns: nil for an escape that is none, and for what must be escaped. What JavaScript's `encodeURIComponent`
    ///   leaves as it is passes: servers use it where the grammar asks for more.
    private static func bytes(_ text: Substring) -> [UInt8]? {
        var rest = Array(text.utf8)[...]
        var bytes: [UInt8] = []
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "%") {
                let digits = rest.prefix(2)
                guard digits.count == 2, digits.allSatisfy(\.isHexDigit) else { return nil }
                bytes += UInt8(String(decoding: digits, as: UTF8.self), radix: 16).map { [$0] } ?? []
                rest = rest.dropFirst(2)
            } else if HTTPSyntax.isTokenByte(byte) || byte == UInt8(ascii: "(") || byte == UInt8(ascii: ")") {
                bytes.append(byte)
            } else {
                return nil
            }
        }
        return bytes
    }
}

extension HTTPFieldReader {
    fileprivate func isAtParameterEnd() -> Bool {
        let rest = bytes[position...].first { $0 != UInt8(ascii: " ") && $0 != UInt8(ascii: "\t") }
        return rest == nil || rest == UInt8(ascii: ";")
    }

    /// - Returns: whether another parameter comes.
    fileprivate mutating func skipParameterEnd() -> Bool {
        skipBlanks()
        return take(UInt8(ascii: ";"))
    }

    /// Up to the next semicolon: many servers leave out the quotes that blanks and brackets in a name ask for.
    fileprivate mutating func bareText() -> String {
        let text = bytes[position...].prefix { $0 != UInt8(ascii: ";") }
        position = text.endIndex
        return String(decoding: text, as: UTF8.self).trimmed
    }

    /// Moves to the semicolon, but not to one in quotes.
    fileprivate mutating func skipParameter() {
        while let byte = next, byte != UInt8(ascii: ";") {
            if byte != UInt8(ascii: "\"") || quotedString() == nil { position += 1 }
        }
    }
}

extension String {
    /// - Returns: nil when the bytes are not UTF-8, where `init(decoding:as:)` puts in replacements.
    fileprivate init?(wholeUTF8 bytes: [UInt8]) {
        self.init(decoding: bytes, as: UTF8.self)
        guard utf8.elementsEqual(bytes) else { return nil }
    }

    fileprivate var nonEmpty: String? { isEmpty ? nil : self }
}
