import Foundation

/// The scanners work on text that may be cut or broken anywhere, so none of them is a parser: what a secret's end would be
/// and is not there, is the end of the text. Each goes over the bytes once.
extension Redaction {
    /// `https://user:password@host` becomes `https://REDACTED@host`; slashes may be escaped, as JSON may have them, and
    /// JSON in its strings once more.
    func userInformation(in text: String) -> String {
        let bytes = Array(text.utf8)
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count)
        var index = 0
        while index < bytes.count {
            guard bytes[index] == UInt8(ascii: ":"), let start = Self.endOfSlashes(bytes, from: index + 1) else {
                result.append(bytes[index])
                index += 1
                continue
            }
            let end = bytes[start...].firstIndex { $0 <= 0x20 || "/?#\"<>\\".utf8.contains($0) } ?? bytes.count
            result += bytes[index..<start]
            if let at = bytes[start..<end].lastIndex(of: UInt8(ascii: "@")) {
                result += Self.mark.utf8
                result += bytes[at..<end]
            } else if end == bytes.count, Self.isCutInPassword(bytes[start...]) {
                result += Self.mark.utf8
            } else {
                result += bytes[start..<end]
            }
            index = end
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// A transport's words, which may quote the address of a proxy that it could not read: all of it before the last `@` may
    /// be user and password, whatever stands in them.
    func transportWords(_ text: String) -> String {
        let bytes = Array(text.utf8)
        guard let end = bytes.lastIndex(of: UInt8(ascii: "@")), let first = bytes.firstIndex(of: UInt8(ascii: "@"))
        else {
            return redacted(text)
        }
        let space = UInt8(ascii: " ")
        var start = bytes[..<first].lastIndex(of: space).map { $0 + 1 } ?? 0
        for index in bytes.indices.dropLast().prefix(while: { $0 < first }) where bytes[index] == space {
            // Quoted it is from its beginning; else a space in a password cannot be told from one before the address.
            guard "'\"".utf8.contains(bytes[index + 1]) else { continue }
            start = min(start, index + 2)
            break
        }
        let scheme = bytes[start...].prefix { $0.isLetter || $0.isDigit }
        if bytes[scheme.endIndex...].starts(with: "://".utf8) { start = scheme.endIndex + 3 }
        let words = [bytes[..<start], Array(Self.mark.utf8)[...], bytes[end...]].joined()
        return redacted(String(decoding: Array(words), as: UTF8.self))
    }

    /// Behind two slashes with or without backslashes; nil when there are none.
    private static func endOfSlashes(_ bytes: [UInt8], from start: Int) -> Int? {
        var index = start
        for _ in 0..<2 {
            while index < bytes.count, bytes[index] == UInt8(ascii: "\\") { index += 1 }
            guard index < bytes.count, bytes[index] == UInt8(ascii: "/") else { return nil }
            index += 1
        }
        return index
    }

    /// Whether the text ends behind a colon that begins no port, so that the `@` may have been cut off.
    private static func isCutInPassword(_ authority: ArraySlice<UInt8>) -> Bool {
        guard authority.first != UInt8(ascii: "["), let colon = authority.firstIndex(of: UInt8(ascii: ":")) else {
            return false
        }
        return !authority[(colon + 1)...].allSatisfy(\.isDigit)
    }

    /// `token=abc` becomes `token=REDACTED`, up to `&`, `#`, white space or a quote; a value in quotes up to the closing one.
    func pairs(in text: String) -> String {
        let bytes = Array(text.utf8)
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count)
        var nameStart = 0
        var index = 0
        while index < bytes.count {
            let byte = bytes[index]
            let name = max(nameStart, index - 100)..<index
            // Some writers of JSON escape it.
            let isEscaped =
                byte == UInt8(ascii: "\\") && Self.equalsEscaped.contains { bytes[index...].starts(with: $0) }
            let length = isEscaped ? 6 : 1
            result += bytes[index..<(index + length)]
            index += length
            if byte == UInt8(ascii: "=") || isEscaped, isSecret(bytes, name) {
                index = Self.endOfValue(bytes, from: index, copyingQuotesTo: &result)
                nameStart = index
            } else if !Self.isNameByte(byte) {
                nameStart = index
            }
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// Appends the mark, in quotes if the value was.
    private static func endOfValue(_ bytes: [UInt8], from start: Int, copyingQuotesTo result: inout [UInt8]) -> Int {
        guard start < bytes.count else { return start }
        let quote = bytes[start]
        guard quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") else {
            let end = bytes[start...].firstIndex { $0 <= 0x20 || "&#\"<>\\".utf8.contains($0) } ?? bytes.count
            if end > start { result += mark.utf8 }
            return end
        }
        result.append(quote)
        result += mark.utf8
        guard let end = bytes[(start + 1)...].firstIndex(of: quote) else { return bytes.count }
        result.append(quote)
        return end + 1
    }

    private static let equalsEscaped = [#"\u003d"#, #"\u003D"#].map { Array($0.utf8) }

    /// What names in queries, forms and attributes are made of, escapes and brackets included.
    private static func isNameByte(_ byte: UInt8) -> Bool {
        byte.isLetter || byte.isDigit || byte >= 0x80 || "_-.%[]+:$".utf8.contains(byte)
    }

    /// A parameter that is only called `key` is one to an API, and `code` is what OAuth gives a token for (RFC 6749, section
    /// 4.1.2); in JSON and XML they are mostly something else.
    private func isSecret(_ bytes: [UInt8], _ name: Range<Int>) -> Bool {
        if isSecret(bytes[name]) { return true }
        var name = bytes[name]
        // Some writers of JSON escape the ampersand before it, and XML has to.
        let isFirst = name.startIndex == 0
        let separator = isFirst ? UInt8(ascii: "&") : bytes[name.startIndex - 1]
        if separator == UInt8(ascii: "\\"), name.starts(with: "u0026".utf8) { name = name.dropFirst(5) }
        return "?&#;\\".utf8.contains(separator) && ["code", "key"].contains { name.elementsEqual($0.utf8) }
    }

    func isSecret(_ name: ArraySlice<UInt8>) -> Bool {
        guard !name.isEmpty else { return false }
        let text = String(decoding: name, as: UTF8.self)
        return isSecret(text.removingPercentEncoding ?? text)
    }

    // MARK: - Lines

    /// `Authorization: Bearer abc` at the beginning of a line becomes `Authorization: Bearer REDACTED`, as header
    /// fields and YAML have it. Lines that follow and are indented more belong to the value.
    func lines(in text: String) -> String {
        let bytes = Array(text.utf8)
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count)
        var index = 0
        while index < bytes.count {
            let end = Self.endOfLine(bytes, from: index)
            // What logs and lists put before a name.
            let start = bytes[index..<end].firstIndex { !" \t>*-".utf8.contains($0) } ?? end
            let nameEnd = bytes[start..<end].firstIndex { !Self.isNameByte($0) || $0 == UInt8(ascii: ":") } ?? end
            let colon = bytes[nameEnd..<end].firstIndex { $0 > 0x20 } ?? end
            guard colon < end, bytes[colon] == UInt8(ascii: ":"), nameEnd - start <= 100,
                isSecret(bytes[start..<nameEnd])
            else {
                result += bytes[index..<end]
                index = end
                continue
            }
            let value = bytes[(colon + 1)..<end].firstIndex { $0 > 0x20 } ?? end
            result += bytes[index..<value]
            index = Self.endOfBlock(bytes, from: end, deeperThan: start - index)
            if value < end || index > end {
                result += Self.credentials(String(decoding: bytes[value..<end], as: UTF8.self).trimmed).utf8
            }
            let lineBreak = bytes[value..<index].reversed().prefix { Self.isLineBreak($0) }
            result += lineBreak.reversed()
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// Behind its line break.
    private static func endOfLine(_ bytes: [UInt8], from start: Int) -> Int {
        guard let end = bytes[start...].firstIndex(where: isLineBreak) else { return bytes.count }
        return bytes[end...].starts(with: "\r\n".utf8) ? end + 2 : end + 1
    }

    /// Behind the last of the lines that begin here and are indented more.
    private static func endOfBlock(_ bytes: [UInt8], from start: Int, deeperThan indentation: Int) -> Int {
        var index = start
        while index < bytes.count {
            let text = bytes[index...].firstIndex { $0 != 0x20 && $0 != 0x09 } ?? bytes.count
            guard text - index > indentation else { return index }
            index = endOfLine(bytes, from: text)
        }
        return index
    }

    private static func isLineBreak(_ byte: UInt8) -> Bool {
        byte == 0x0A || byte == 0x0D
    }
}
