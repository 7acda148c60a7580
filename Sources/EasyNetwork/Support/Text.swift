import Foundation

extension String {
    /// Compares strings as header names and URL schemes are compared: only A to Z have two cases.
    @inline(__always)
    package func isEqualIgnoringASCIICase(to other: String) -> Bool {
        // This method is inlined, because headers are searched by name often, and most names differ in length.
        utf8.count == other.utf8.count && hasLetters(of: other)
    }

    /// - Parameter other: A string of the same length.
    private func hasLetters(of other: String) -> Bool {
        utf8Bytes { left in
            other.utf8Bytes { right in
                zip(left, right).allSatisfy { $0 == $1 || $0.lowercasedASCII == $1.lowercasedASCII }
            }
        }
    }
}

extension Unicode.Scalar {
    /// Whether the scalar shows something: it is not a blank, line break, control character or formatting mark.
    var isVisible: Bool {
        ![.control, .format, .lineSeparator, .paragraphSeparator, .spaceSeparator, .unassigned]
            .contains(properties.generalCategory)
    }
}

extension UInt8 {
    /// Returns 1 for this character, otherwise 0.
    @inline(__always)
    func equals(_ character: Unicode.Scalar) -> UInt8 {
        self == UInt8(ascii: character) ? 1 : 0
    }

    /// 1 for an ASCII control character except DEL, otherwise 0.
    @inline(__always)
    var isControl: UInt8 {
        self < 0x20 ? 1 : 0
    }

    package var lowercasedASCII: UInt8 {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(self) ? self | 0x20 : self
    }
}

extension String {
    /// Passes the string's UTF-8 bytes to `body`, without a copy if the string stores UTF-8.
    @inline(__always)
    func utf8Bytes<Result>(_ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
        if let result = utf8.withContiguousStorageIfAvailable(body) { return result }
        // On Apple platforms, a string that was bridged from an NSString does not store UTF-8.
        var text = self
        return text.withUTF8(body)
    }

    /// Compares the bytes. This is stricter than `==`, for which composed and decomposed letters are equal.
    package func hasSameBytes(as other: String) -> Bool {
        utf8.count == other.utf8.count && utf8Bytes { $0.has(other, at: 0) }
    }
}

extension UnsafeBufferPointer<UInt8> {
    /// Returns whether `matches` is not 0 for at least one byte. The loop reads all bytes and has no branches, which a
    /// `Bool` would need, so the processor compares many bytes at once.
    @inline(__always)
    func hasByte(_ matches: (UInt8) -> UInt8) -> Bool {
        var found: UInt8 = 0
        for byte in self { found |= matches(byte) }
        return found != 0
    }

    /// Returns whether one of these ASCII characters is among the bytes.
    func hasByte(of characters: String) -> Bool {
        guard let baseAddress else { return false }
        return characters.utf8.contains { memchr(baseAddress, Int32($0), count) != nil }
    }

    /// Returns whether the bytes from `start` begin with the string's UTF-8 bytes.
    func has(_ text: String, at start: Int) -> Bool {
        text.utf8Bytes { bytes in
            guard count - start >= bytes.count else { return false }
            guard let own = baseAddress, let others = bytes.baseAddress else { return bytes.isEmpty }
            return memcmp(own + start, others, bytes.count) == 0
        }
    }
}

extension Data {
    /// The bytes in hexadecimal: two lower-case digits for each.
    var hexadecimal: String {
        let digits = Array("0123456789abcdef".utf8)
        return String(decoding: flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }
}

extension Error {
    /// The error's description without its final period, for use in a longer sentence.
    var wording: String {
        if let text = (self as? any LocalizedError)?.errorDescription { return text.withoutFullStop }
        // Foundation describes its own errors only by domain and number, so use their localized description.
        let isFoundations = self is CocoaError || self is POSIXError || type(of: self) is NSError.Type
        return (isFoundations ? localizedDescription : String(describing: self).withoutAddresses).withoutFullStop
    }
}

extension String {
    /// The string without the addresses that Swift prints for objects, and without the unnamed contexts of type names,
    /// as in `App.(unknown context at $55d0f5).Refusal`.
    var withoutAddresses: String {
        guard contains("(unknown context at $") || contains(": 0x") else { return self }
        return replacingOccurrences(of: #"\(unknown context at \$\w+\)\."#, with: "", options: .regularExpression)
            .replacingOccurrences(of: #": 0x\w+>"#, with: ">", options: .regularExpression)
    }

    /// The string without a period at its end.
    var withoutFullStop: String {
        hasSuffix(".") ? String(dropLast()) : self
    }

    /// Returns the string for use in a message, a log or a terminal: limited in length, without control characters
    /// except tabs, and without marks that change the direction of writing (Unicode Standard Annex 9).
    ///
    /// Otherwise a string from a server could forge lines of a log, send commands to a terminal, or hide its contents.
    ///
    /// - Parameters:
    ///   - limit: The maximum length in Unicode scalars, because a character can consist of any number of them. An
    ///     ellipsis replaces the rest.
    ///   - keepsLines: Whether a line break becomes `\n` instead of a space. Defaults to `false`.
    package func cleaned(limit: Int = 2_000, keepsLines: Bool = false) -> String {
        // Return most strings unchanged.
        let isPlain = utf8Bytes { !$0.hasByte { $0.isControl | $0.equals("\u{7F}") | $0 >> 7 } }
        if isPlain, utf8.count <= limit { return self }
        var result = String.UnicodeScalarView()
        var count = 0
        var previous: Unicode.Scalar?
        for scalar in unicodeScalars {
            defer { previous = scalar }
            var scalar = scalar
            switch scalar.value {
            case 0x0A where previous == "\r": continue
            case 0x0A...0x0D, 0x85, 0x2028, 0x2029: scalar = keepsLines ? "\n" : " "
            case 0x09: break
            case 0..<0x20, 0x7F...0x9F, 0x061C, 0x200E, 0x200F, 0x202A...0x202E, 0x2066...0x206F: continue
            default: break
            }
            guard count < limit else { return String(result) + "…" }
            result.append(scalar)
            count += 1
        }
        return String(result)
    }
}
