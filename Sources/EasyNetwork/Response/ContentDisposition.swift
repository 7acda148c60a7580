import Foundation

/// The file name that a `Content-Disposition` proposes (RFC 6266).
///
/// Invalid parameters are skipped, because the name is only a proposal. The name is kept as the server wrote it, and
/// can be a path; see ``SafeFileName``.
struct ContentDisposition: Equatable {
    /// The parameter `filename*`, otherwise `filename`. Nil if neither is valid and not empty. If one is repeated, the
    /// first counts.
    let fileName: String?

    /// - Returns: nil if there is no valid `Content-Disposition`.
    init?(_ headers: HTTPHeaders) {
        guard let first = headers.single("Content-Disposition", .first, ContentDisposition.init(_:)) else { return nil }
        self = first
    }

    /// - Parameter fieldValue: the value of one header field. The result is nil if the value does not begin with a
    ///   type.
    init?(_ fieldValue: String) {
        var reader = HTTPFieldReader(Self.restored(fieldValue.fieldText).trimmed)
        self.init(&reader)
    }

    init?(_ reader: inout HTTPFieldReader) {
        guard reader.token() != nil, reader.isAtSeparator(UInt8(ascii: ";")) else { return nil }
        var plain: String?
        var extended: String?
        reader.skipBlanks()
        while reader.take(UInt8(ascii: ";")) {
            guard let (name, text, isQuoted) = Self.parameter(&reader), !text.isEmpty else { continue }
            if name.isEqualIgnoringASCIICase(to: "filename*"), !isQuoted {
                extended = extended ?? Self.extendedText(text)
            } else if name.isEqualIgnoringASCIICase(to: "filename") {
                plain = plain ?? text
            }
        }
        fileName = extended ?? plain
    }

    /// Reads to the end of the parameter, whether it is valid or not.
    private static func parameter(_ reader: inout HTTPFieldReader) -> (name: String, text: String, isQuoted: Bool)? {
        defer { reader.skip(to: UInt8(ascii: ";")) }
        reader.skipBlanks()
        guard let name = reader.token() else { return nil }
        reader.skipBlanks()
        guard reader.take(UInt8(ascii: "=")) else { return nil }
        reader.skipBlanks()
        // Many servers omit quotes that the grammar requires.
        guard reader.next == UInt8(ascii: "\"") else { return (name, reader.text(upTo: UInt8(ascii: ";")), false) }
        guard let text = reader.quotedString() else {
            reader.position += 1
            return nil
        }
        return reader.isAtSeparator(UInt8(ascii: ";")) ? (name, text, true) : nil
    }

    /// Returns the string in UTF-8 if its bytes were read as ISO 8859-1, as some transports do.
    private static func restored(_ text: String) -> String {
        let scalars = text.unicodeScalars
        guard scalars.contains(where: { $0.value > 0x7F }), scalars.allSatisfy({ $0.value < 0x100 })
        else { return text }
        return String(bytes: scalars.map { UInt8($0.value) }, encoding: .utf8) ?? text
    }

    /// Returns the string of a value with a charset: `UTF-8'en'%E2%82%AC.txt` (RFC 8187, section 3.2). ISO 8859-1 comes
    /// from the previous standard (RFC 5987, section 3.2). Nil if the string is empty or invalid.
    private static func extendedText(_ value: String) -> String? {
        let parts = value.split(separator: "'", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, !parts[2].isEmpty else { return nil }
        // Brackets are allowed, because JavaScript's `encodeURIComponent` does not escape them.
        guard parts[2].utf8.allSatisfy({ HTTPSyntax.isTokenByte($0) || "()".utf8.contains($0) }) else { return nil }
        let charsets: [String: String.Encoding] = ["utf-8": .utf8, "iso-8859-1": .isoLatin1]
        let bytes = PercentEncoding.decode(parts[2].utf8)
        // A valid escape is two bytes longer than the byte that it represents. An invalid one is not shortened.
        guard let charset = charsets[parts[0].lowercased()],
            bytes.count == parts[2].utf8.count - 2 * parts[2].utf8.count(where: { $0 == UInt8(ascii: "%") })
        else { return nil }
        return String(bytes: bytes, encoding: charset)
    }
}
