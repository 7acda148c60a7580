extension [UInt8] {
    /// Appends a string as a JSON string, with its quotes.
    package mutating func append(quoted text: String) {
        append(UInt8(ascii: "\""))
        text.utf8Bytes { bytes in
            // Most strings need no escape.
            guard bytes.hasByte({ $0.isControl | $0.equals("\"") | $0.equals("\\") }) else { return self += bytes }
            for byte in bytes { append(escaping: byte) }
        }
        append(UInt8(ascii: "\""))
    }

    private mutating func append(escaping byte: UInt8) {
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"):
            self += [UInt8(ascii: "\\"), byte]
        case 0x08: self += #"\b"#.utf8
        case UInt8(ascii: "\t"): self += #"\t"#.utf8
        case UInt8(ascii: "\n"): self += #"\n"#.utf8
        case 0x0C: self += #"\f"#.utf8
        case UInt8(ascii: "\r"): self += #"\r"#.utf8
        case 0..<0x20: self += ((byte < 16 ? #"\u000"# : #"\u00"#) + String(byte, radix: 16)).utf8
        default: append(byte)
        }
    }
}
