import Foundation

/// A charset that the system reads: CoreFoundation on Apple's platforms, elsewhere `iconv` of the C library, since
/// Foundation knows a dozen charsets there.
struct SystemCharset: Equatable {
    let name: String
    #if canImport(Darwin)
    private let encoding: String.Encoding
    #endif

    /// - Parameter name: a name from the IANA registry of character sets, in any case.
    /// - Returns: nil when it is not known here.
    init?(name: String) {
        // A slash, say, means something else to iconv.
        let isName = name.utf8.allSatisfy { $0.isLetter || $0.isDigit || "-_.:+()".utf8.contains($0) }
        guard isName, (2...64).contains(name.utf8.count) else { return nil }
        self.name = name
        #if canImport(Darwin)
        let encoding = CFStringConvertIANACharSetNameToEncoding(name as CFString)
        guard encoding != kCFStringEncodingInvalidId else { return nil }
        self.encoding = String.Encoding(rawValue: CFStringConvertEncodingToNSStringEncoding(encoding))
        #else
        guard TextConverter(from: name) != nil else { return nil }
        #endif
    }

    /// Nil when the bytes are no whole text in this charset.
    func decode(_ bytes: Data) -> String? {
        #if canImport(Darwin)
        String(data: bytes, encoding: encoding)
        #else
        TextConverter(from: name)?.text(of: bytes)
        #endif
    }
}

#if !canImport(Darwin)
/// `iconv` from one charset to UTF-8, for one text.
private final class TextConverter {
    private let converter: iconv_t

    /// - Returns: nil for a charset that is not known here.
    init?(from charset: String) {
        guard let converter = iconv_open("UTF-8", charset), converter != iconv_t(bitPattern: -1) else { return nil }
        self.converter = converter
    }

    deinit {
        iconv_close(converter)
    }

    func text(of bytes: Data) -> String? {
        bytes.withUnsafeBytes { bytes in
            // iconv does not write there; its declaration is older than const.
            var next = UnsafeMutablePointer(mutating: bytes.bindMemory(to: CChar.self).baseAddress)
            var left = bytes.count
            var piece = [CChar](repeating: 0, count: 16_384)
            var text = ""
            // Then it gives what it holds back.
            var isAtEnd = false
            while true {
                let before = left
                var failure: Int32?
                let decoded = piece.withUnsafeMutableBytes { buffer in
                    var place = buffer.bindMemory(to: CChar.self).baseAddress
                    var room = buffer.count
                    let result =
                        isAtEnd
                        ? iconv(converter, nil, nil, &place, &room) : iconv(converter, &next, &left, &place, &room)
                    if result == -1 { failure = errno }
                    // It writes whole characters only.
                    return String(validating: buffer.dropLast(room), as: UTF8.self)
                }
                guard let decoded else { return nil }
                text += decoded
                if let failure {
                    // A piece that is full is taken away, and it goes on. Anything else is wrong, and so is no progress.
                    guard failure == E2BIG, !decoded.isEmpty || left < before else { return nil }
                } else if isAtEnd {
                    return text
                } else {
                    isAtEnd = true
                }
            }
        }
    }
}
#endif
