/// Percent-encoding of bytes (RFC 3986, section 2.1), with upper-case hexadecimal digits.
enum PercentEncoding {
    /// The bytes that a component allows without encoding, stored as a table for speed.
    struct Allowed: Sendable {
        fileprivate let table: [Bool]
        /// Whether existing escapes are kept. A `%` that does not begin an escape is encoded.
        fileprivate let keepsEscapes: Bool

        init(_ others: String, keepsEscapes: Bool = false) {
            table = (UInt8.min...UInt8.max).map { $0.isLetter || $0.isDigit || others.utf8.contains($0) }
            self.keepsEscapes = keepsEscapes
        }

        func contains(_ byte: UInt8) -> Bool { table[Int(byte)] }

        private static let subDelimiters = "!$&'()*+,;="
        /// The unreserved characters (RFC 3986, section 2.3).
        static let unreserved = Allowed("-._~")
        /// The characters of application/x-www-form-urlencoded (WHATWG URL).
        static let form = Allowed("*-._")
        static let path = Allowed("-._~" + subDelimiters + ":@/", keepsEscapes: true)
        static let query = Allowed("-._~" + subDelimiters + ":@/?", keepsEscapes: true)
        /// The characters of all components, and the delimiters between them.
        fileprivate static let reference = Allowed("-._~" + subDelimiters + ":@/?#[]", keepsEscapes: true)
    }

    /// Encodes every byte that is not allowed.
    static func encode(_ text: some StringProtocol, _ allowed: Allowed) -> String {
        if needsNone(text, allowed) { return String(text) }
        return String(decoding: encode(Array(text.utf8), allowed), as: UTF8.self)
    }

    /// Encodes the bytes that are not UTF-8 in a reference (RFC 3986, section 4.1) from a server, as they were
    /// received.
    static func mendBytes(of reference: String) -> String {
        guard reference.hasKeptBytes else { return reference }
        return String(decoding: encode(reference.fieldBytes, .reference), as: UTF8.self)
    }

    /// Decodes the escapes. A `%` that does not begin an escape stays.
    ///
    /// - Parameter isForm: Whether a `+` stands for a blank. Defaults to `false`.
    static func decode(_ bytes: some Collection<UInt8>, isForm: Bool = false) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count)
        var rest = Array(bytes)[...]
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "%"), case let digits = rest.prefix(2), digits.count == 2,
                digits.allSatisfy(\.isHexDigit)
            {
                result.append(digits.reduce(0) { $0 << 4 | $1.hexDigitValue })
                rest = rest.dropFirst(2)
            } else {
                result.append(isForm && byte == UInt8(ascii: "+") ? 0x20 : byte)
            }
        }
        return result
    }

    /// Returns whether every byte is allowed, as in most strings. It may be false of a string that is not contiguous in
    /// memory.
    static func needsNone(_ text: some StringProtocol, _ allowed: Allowed) -> Bool {
        text.utf8.withContiguousStorageIfAvailable { bytes in
            for byte in bytes where !allowed.table[Int(byte)] { return false }
            return true
        } == true
    }

    private static func encode(_ source: [UInt8], _ allowed: Allowed) -> [UInt8] {
        let digits = Array("0123456789ABCDEF".utf8)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(source.count)
        for (index, byte) in source.enumerated() {
            let mayBeEscape = allowed.keepsEscapes && byte == UInt8(ascii: "%") && index + 2 < source.count
            if allowed.contains(byte) || mayBeEscape && source[index + 1].isHexDigit && source[index + 2].isHexDigit {
                bytes.append(byte)
            } else {
                bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return bytes
    }
}

extension UInt8 {
    var isHexDigit: Bool {
        isDigit || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(lowercasedASCII)
    }

    /// The value of a hexadecimal digit.
    var hexDigitValue: UInt8 {
        isDigit ? self - UInt8(ascii: "0") : lowercasedASCII - UInt8(ascii: "a") + 10
    }

    var isDigit: Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(self)
    }

    /// Whether this is a space or a tab.
    var isBlank: Bool { self == UInt8(ascii: " ") || self == UInt8(ascii: "\t") }

    var isLetter: Bool {
        (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(lowercasedASCII)
    }
}
