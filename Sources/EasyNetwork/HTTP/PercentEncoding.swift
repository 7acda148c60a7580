/// Percent-encoding of bytes (RFC 3986, section 2.1), with upper-case digits.
enum PercentEncoding {
    /// The bytes that a component allows without encoding, as a table for speed.
    struct Allowed: Sendable {
        private let table: [Bool]

        init(_ others: String) {
            var table = [Bool](repeating: false, count: 256)
            let alphanumerics = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
            for byte in (alphanumerics + others).utf8 { table[Int(byte)] = true }
            self.table = table
        }

        func contains(_ byte: UInt8) -> Bool { table[Int(byte)] }

        private static let subDelimiters = "!$&'()*+,;="
        /// RFC 3986, section 2.3.
        static let unreserved = Allowed("-._~")
        /// WHATWG URL, application/x-www-form-urlencoded.
        static let form = Allowed("*-._")
        static let path = Allowed("-._~" + subDelimiters + ":@/")
        static let query = Allowed("-._~" + subDelimiters + ":@/?")
        /// A reference with all its components (RFC 3986, section 4.1).
        static let reference = Allowed("-._~" + subDelimiters + ":@/?#[]")
        static let userInfo = Allowed("-._~" + subDelimiters + ":")
    }

    /// Encodes every byte that is not allowed.
    static func encode(_ text: some StringProtocol, _ allowed: Allowed) -> String {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.utf8.count)
        for byte in text.utf8 {
            if allowed.contains(byte) { bytes.append(byte) } else { append(byte, to: &bytes) }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Encodes every byte that is not allowed, and leaves existing escapes as they are. A `%` that begins no escape is
    /// encoded.
    static func mend(_ text: some StringProtocol, _ allowed: Allowed) -> String {
        // The usual case.
        if text.utf8.withContiguousStorageIfAvailable({ $0.allSatisfy(allowed.contains) }) == true {
            return String(text)
        }
        let source = Array(text.utf8)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(source.count)
        for (index, byte) in source.enumerated() {
            let escape = byte == UInt8(ascii: "%") && index + 2 < source.count
            if allowed.contains(byte) || escape && source[index + 1].isHexDigit && source[index + 2].isHexDigit {
                bytes.append(byte)
            } else {
                append(byte, to: &bytes)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static let digits = Array("0123456789ABCDEF".utf8)

    private static func append(_ byte: UInt8, to bytes: inout [UInt8]) {
        bytes.append(UInt8(ascii: "%"))
        bytes.append(digits[Int(byte >> 4)])
        bytes.append(digits[Int(byte & 15)])
    }
}

extension UInt8 {
    var isHexDigit: Bool {
        isDigit || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(lowercasedASCII)
    }

    var isDigit: Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(self)
    }

    var isLetter: Bool {
        (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(lowercasedASCII)
    }
}
