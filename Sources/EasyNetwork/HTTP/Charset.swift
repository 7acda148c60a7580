import Foundation

/// A character set. On Linux, Foundation supports only about a dozen; the C library's `iconv` decodes the others there.
///
/// UTF-16 is decoded here, because Foundation accepts an odd number of bytes and unpaired surrogates.
enum Charset: Equatable {
    case utf8
    case utf16(bigEndian: Bool)
    case other(String.Encoding)
    #if !canImport(Darwin)
    case system(name: String)
    #endif

    /// Creates a charset. The result is nil if the system does not support it.
    ///
    /// - Parameter name: A name from the IANA registry of character sets, in any case.
    init?(name: String) {
        switch name.lowercased() {
        case "utf-8", "utf8": self = .utf8
        case "utf-16", "utf-16le": self = .utf16(bigEndian: false)
        case "utf-16be": self = .utf16(bigEndian: true)
        case "us-ascii", "ascii": self = .other(.ascii)
        case "iso-8859-1", "iso8859-1", "iso_8859-1", "latin1": self = .other(.isoLatin1)
        case "iso-8859-2", "iso8859-2", "iso_8859-2", "latin2": self = .other(.isoLatin2)
        case "windows-1250", "cp1250": self = .other(.windowsCP1250)
        case "windows-1251", "cp1251": self = .other(.windowsCP1251)
        case "windows-1252", "cp1252": self = .other(.windowsCP1252)
        case "windows-1253", "cp1253": self = .other(.windowsCP1253)
        case "windows-1254", "cp1254": self = .other(.windowsCP1254)
        case "shift_jis", "shift-jis", "sjis": self = .other(.shiftJIS)
        case "macintosh": self = .other(.macOSRoman)
        // Text with these labels is mostly GBK, a subset of GB18030 (Encoding Standard, section 4.2).
        case "gb2312", "gb_2312-80", "x-gbk": self.init(systemName: "GB18030")
        default: self.init(systemName: name)
        }
    }

    private init?(systemName: String) {
        // iconv gives a slash a special meaning, ignores brackets, and takes an empty name for the locale's charset.
        let isName = systemName.utf8.allSatisfy { $0.isLetter || $0.isDigit || "-_.:+()".utf8.contains($0) }
        guard isName, let first = systemName.utf8.first, first.isLetter || first.isDigit,
            (2...64).contains(systemName.utf8.count)
        else { return nil }
        #if canImport(Darwin)
        let encoding = CFStringConvertIANACharSetNameToEncoding(systemName as CFString)
        guard encoding != kCFStringEncodingInvalidId else { return nil }
        self = .other(String.Encoding(rawValue: CFStringConvertEncodingToNSStringEncoding(encoding)))
        #else
        guard Self.converted(Data(), from: systemName) != nil else { return nil }
        self = .system(name: systemName)
        #endif
    }

    var name: String {
        switch self {
        case .utf8: "utf-8"
        case .utf16(let bigEndian): bigEndian ? "utf-16be" : "utf-16le"
        case .other(let encoding): encoding.description
        #if !canImport(Darwin)
        case .system(let name): name
        #endif
        }
    }

    static func byteOrderMark(of bytes: Data) -> (charset: Charset, length: Int)? {
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { return (.utf8, 3) }
        if bytes.starts(with: [0xFE, 0xFF]) { return (.utf16(bigEndian: true), 2) }
        if bytes.starts(with: [0xFF, 0xFE]) { return (.utf16(bigEndian: false), 2) }
        return nil
    }

    /// Returns the decoded string; nil if any of the bytes are invalid in this charset.
    func decode(_ bytes: Data) -> String? {
        switch self {
        case .utf8: String(data: bytes, encoding: .utf8)
        case .utf16(let bigEndian): Self.utf16(bytes, bigEndian: bigEndian)
        case .other(let encoding): String(data: bytes, encoding: encoding)
        #if !canImport(Darwin)
        case .system(let name): Self.converted(bytes, from: name)
        #endif
        }
    }

    private static func utf16(_ bytes: Data, bigEndian: Bool) -> String? {
        guard bytes.count.isMultiple(of: 2) else { return nil }
        let bytes = Array(bytes)
        let units = stride(from: 0, to: bytes.count, by: 2).map { index in
            let (first, second) = (UInt16(bytes[index]), UInt16(bytes[index + 1]))
            return bigEndian ? first << 8 | second : second << 8 | first
        }
        let text = String(decoding: units, as: UTF16.self)
        // If the strings differ, an unpaired surrogate has been replaced.
        return text.utf16.elementsEqual(units) ? text : nil
    }

    #if !canImport(Darwin)
    /// Decodes bytes with iconv.
    ///
    /// - Returns: Nil if the charset is unknown, or if any of the bytes are invalid.
    private static func converted(_ bytes: Data, from charset: String) -> String? {
        guard let converter = iconv_open("UTF-8", charset), converter != iconv_t(bitPattern: -1) else { return nil }
        defer { iconv_close(converter) }
        // Each byte becomes at most one scalar, which has at most four bytes in UTF-8.
        let (capacity, isTooLarge) = bytes.count.multipliedReportingOverflow(by: 4)
        guard !isTooLarge else { return nil }
        return bytes.withUnsafeBytes { bytes in
            // iconv does not write to its input. Its declaration is older than const.
            var next = UnsafeMutablePointer(mutating: bytes.bindMemory(to: CChar.self).baseAddress)
            var left = bytes.count
            var isWhole = false
            let text = String(unsafeUninitializedCapacity: capacity) { buffer in
                buffer.withMemoryRebound(to: CChar.self) { buffer in
                    var place = buffer.baseAddress
                    var room = buffer.count
                    // The second call writes what the first call holds back.
                    isWhole =
                        iconv(converter, &next, &left, &place, &room) != -1
                        && iconv(converter, nil, nil, &place, &room) != -1
                    return buffer.count - room
                }
            }
            return isWhole ? text : nil
        }
    }
    #endif
}
