import Foundation

/// A way to read bytes as text.
enum Charset: Equatable {
    case utf8
    case utf16(bigEndian: Bool)
    case other(String.Encoding)
    case system(SystemCharset)

    /// - Parameter name: a name from the IANA registry of character sets, in any case.
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
        // What is called so is mostly GBK, a part of GB18030 (Encoding Standard, section 4.2).
        case "gb2312", "gb_2312-80", "x-gbk": self.init(systemName: "GB18030")
        default: self.init(systemName: name)
        }
    }

    private init?(systemName: String) {
        guard let charset = SystemCharset(name: systemName) else { return nil }
        self = .system(charset)
    }

    var name: String {
        switch self {
        case .utf8: "utf-8"
        case .utf16(let bigEndian): bigEndian ? "utf-16be" : "utf-16le"
        case .other(let encoding): encoding.description
        case .system(let charset): charset.name
        }
    }

    static func byteOrderMark(of bytes: Data) -> (charset: Charset, length: Int)? {
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { return (.utf8, 3) }
        if bytes.starts(with: [0xFE, 0xFF]) { return (.utf16(bigEndian: true), 2) }
        if bytes.starts(with: [0xFF, 0xFE]) { return (.utf16(bigEndian: false), 2) }
        return nil
    }

    /// Nil when the bytes are no text in this charset: nothing is replaced, nothing left out.
    func decode(_ bytes: Data) -> String? {
        switch self {
        case .utf8: String(data: bytes, encoding: .utf8)
        case .utf16(let bigEndian): Self.utf16(bytes, bigEndian: bigEndian)
        case .other(let encoding): String(data: bytes, encoding: encoding)
        case .system(let charset): charset.decode(bytes)
        }
    }

    /// By hand, since Foundation lets an odd byte and a lone surrogate pass.
    private static func utf16(_ bytes: Data, bigEndian: Bool) -> String? {
        guard bytes.count.isMultiple(of: 2) else { return nil }
        let bytes = Array(bytes)
        let units = stride(from: 0, to: bytes.count, by: 2).map { index in
            let (first, second) = (UInt16(bytes[index]), UInt16(bytes[index + 1]))
            return bigEndian ? first << 8 | second : second << 8 | first
        }
        var text: [UInt8] = []
        text.reserveCapacity(bytes.count)
        let broken = transcode(
            units.makeIterator(),
            from: UTF16.self,
            to: UTF8.self,
            stoppingOnError: true,
            into: { text.append($0) }
        )
        return broken ? nil : String(decoding: text, as: UTF8.self)
    }
}
