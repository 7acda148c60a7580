import Foundation

/// Finds the secrets in text of unknown format, in one pass: in URLs, parameters, header fields, JSON and XML,
/// complete or in pieces. Where the end of a secret is uncertain, the scanner replaces more rather than less.
struct RedactionScanner {
    /// The delimiter around the current URL or parameter: a quote with this number of backslashes before it, or `<`.
    private struct Enclosure {
        let end: UInt8
        let escapeCount: Int
    }

    private let redaction: Redaction
    private let bytes: UnsafeBufferPointer<UInt8>
    private let level: Int
    private let isDecoded: Bool
    private let hasEscapes: Bool

    private var result: [UInt8] = []
    /// The end of the input that has been copied to the result.
    private var copied = 0
    private var index = 0
    private var enclosure: Enclosure?
    /// Whether the scanner is inside a URL, where a colon does not precede a value.
    private var isInAddress = false
    /// Whether a name at this position would be the name of an XML element.
    private var isElement = false
    /// The start of a word that is separated from the next one by a single blank.
    private var previousWord: Int?
    /// The end of the last piece with escapes that was decoded.
    private var decodedEnd = 0

    /// Returns the bytes with their secrets replaced.
    ///
    /// - Parameters:
    ///   - level: The number of encodings around the text.
    ///   - isDecoded: Whether the text is the decoded value of a parameter, in which only `&` ends a value.
    /// - Returns: Nil if there is no secret.
    static func redacted(
        _ bytes: UnsafeBufferPointer<UInt8>,
        by redaction: Redaction,
        level: Int,
        isDecoded: Bool
    ) -> [UInt8]? {
        // Every secret has at least one of these bytes next to it.
        guard bytes.hasByte(of: "=:%<, ") else { return nil }
        var scanner = RedactionScanner(bytes, redaction, level, isDecoded)
        while scanner.index < bytes.count {
            if isNameByte(bytes[scanner.index]) { scanner.readWord() } else { scanner.readMark() }
        }
        return scanner.copied == 0 ? nil : scanner.result + bytes[scanner.copied...]
    }

    private init(_ bytes: UnsafeBufferPointer<UInt8>, _ redaction: Redaction, _ level: Int, _ isDecoded: Bool) {
        (self.bytes, self.redaction, self.level, self.isDecoded) = (bytes, redaction, level, isDecoded)
        hasEscapes = bytes.hasByte(of: "%")
    }

    /// Replaces the bytes, and continues after them.
    private mutating func replace(_ range: Range<Int>, with text: String = Redaction.mark) {
        result += bytes[copied..<range.lowerBound]
        result += text.utf8
        (copied, index) = (range.upperBound, range.upperBound)
    }

    // MARK: - Parts

    private mutating func readMark() {
        let byte = bytes[index]
        index += 1
        isElement = byte == UInt8(ascii: "<") || isElement && byte == UInt8(ascii: ":")
        if byte != UInt8(ascii: " ") { previousWord = nil }
        switch byte {
        case 0...0x20, UInt8(ascii: ">"):
            (enclosure, isInAddress) = (nil, false)
        case UInt8(ascii: "<"):
            (enclosure, isInAddress) = (Enclosure(end: UInt8(ascii: ">"), escapeCount: 0), false)
        case UInt8(ascii: "\""), UInt8(ascii: "'"):
            enclosure = enclosure?.end == byte ? nil : Enclosure(end: byte, escapeCount: escapeCount(before: index - 1))
            isInAddress = false
        case UInt8(ascii: ":"):
            guard let count = countOfSlashes(at: index) else { break }
            index += count
            isInAddress = true
            if let end = endOfUserInformation(from: index) { replace(index..<end) }
        case UInt8(ascii: "="):
            readEncoded(isValue: true)
        default: break
        }
    }

    private mutating func readWord() {
        let start = index
        if readEncoded(isValue: false) { return }
        var end = start
        while end < bytes.count, Self.isNameByte(bytes[end]) { end += 1 }
        index = end
        let before = previousWord
        previousWord = end < bytes.count && bytes[end] == UInt8(ascii: " ") ? start : nil
        if isElement, readElement(start..<end) { return }
        if byte(end) != UInt8(ascii: ":") { isElement = false }
        if readCredential(behind: start..<end) { return }

        // The name can be in quotes, with blanks after it.
        var next = end
        while byte(next) == UInt8(ascii: "\\") { next += 1 }
        if let quote = byte(next), "\"'`".utf8.contains(quote) { next += 1 } else { next = end }
        while isBlank(next) { next += 1 }
        switch byte(next) {
        case UInt8(ascii: "="): readParameter(start..<end, equals: next, before)
        case UInt8(ascii: ":"):
            guard !isInAddress, countOfSlashes(at: next + 1) == nil else { break }
            if isSecret(start..<end) || isSecretKey(start..<end, before) {
                readField(colon: next)
            } else {
                readNamedValue(start..<end, from: next + 1)
            }
        case UInt8(ascii: ","):
            if isFirstOfPair(start..<end), isSecret(start..<end) { readField(colon: next) }
        default: break
        }
    }

    /// Reads a piece with escapes: a URL, a form or JSON in a parameter or a path.
    ///
    /// - Returns: Whether the piece was replaced.
    @discardableResult
    private mutating func readEncoded(isValue: Bool) -> Bool {
        guard hasEscapes, index >= decodedEnd else { return false }
        let ends = isValue ? "&\"<>\\" + (isDecoded ? "" : "#") : "/?#&=\"<>\\"
        let end =
            bytes[index...].firstIndex { $0 <= 0x20 && !(isDecoded && isValue) || ends.utf8.contains($0) }
            ?? bytes.count
        decodedEnd = end
        guard bytes[index..<end].contains(UInt8(ascii: "%")),
            let text = redaction.redacted(encoded: bytes[index..<end], level: level)
        else { return false }
        replace(index..<end, with: text)
        return true
    }

    /// Reads an XML element: `<password>…</password>`, with or without a prefix or attributes.
    ///
    /// - Returns: Whether the element was replaced.
    private mutating func readElement(_ name: Range<Int>) -> Bool {
        guard isSecret(name), let next = byte(name.upperBound), next == UInt8(ascii: ">") || next <= 0x20 else {
            return false
        }
        let start = name.upperBound + 1
        guard let tagEnd = bytes[name.upperBound...].firstIndex(of: UInt8(ascii: ">")) else {
            replace(start..<bytes.count)
            return true
        }
        if bytes[tagEnd - 1] == UInt8(ascii: "/") {
            replace(start..<(tagEnd - 1))
            return true
        }
        var end: Int?
        var position = tagEnd + 1
        while end == nil, let slash = bytes[position...].firstIndex(of: UInt8(ascii: "/")) {
            position = slash + 1
            guard bytes[slash - 1] == UInt8(ascii: "<") else { continue }
            let closing = bytes[position...].prefix { $0 != UInt8(ascii: ">") && $0 > 0x20 }
            let own = closing.lastIndex(of: UInt8(ascii: ":")).map { $0 + 1 } ?? closing.startIndex
            if closing[own...].elementsEqual(bytes[name]) { end = slash - 1 }
        }
        // A sentence can contain `<token>` as a placeholder.
        if end == nil, next == UInt8(ascii: ">") {
            guard let first = byte(start), first > 0x20, !"\"'`.,;)".utf8.contains(first) else { return false }
        }
        replace(start..<(end ?? bytes.count))
        return true
    }

    /// Reads text after `Bearer` or `Basic` that looks like a credential, and not like the next word of a sentence.
    ///
    /// - Returns: Whether the text was replaced.
    private mutating func readCredential(behind word: Range<Int>) -> Bool {
        guard byte(word.upperBound) == UInt8(ascii: " "), Self.isScheme(bytes[word]) else { return false }
        let start = word.upperBound + 1
        let text = bytes[start...].prefix(while: HTTPSyntax.isToken68Byte)
        let isCapital = { (byte: UInt8) in byte.isLetter && byte.lowercasedASCII != byte }
        let hasCapitals = text.dropFirst().contains(where: isCapital) && text.contains { $0.isLetter && !isCapital($0) }
        guard text.count >= 16 || hasCapitals || text.contains(where: \.isDigit) else { return false }
        replace(start..<(bytes[text.endIndex...].firstIndex { $0 != UInt8(ascii: "=") } ?? bytes.count))
        return true
    }

    /// Reads `name=value`, `name="a value"` or `name = value`.
    private mutating func readParameter(_ name: Range<Int>, equals: Int, _ before: Int?) {
        let isDirect = equals == name.upperBound
        guard isSecretParameter(name, mayBeWord: isDirect) || !isDirect && isSecretKey(name, before) else {
            readNamedValue(name, from: equals + 1)
            return
        }
        // In a settings file, a value extends to the end of its line.
        let isLine = !isDirect || isFirstInLine(name.lowerBound)
        var start = equals + 1
        while isLine, isBlank(start) { start += 1 }
        guard start < bytes.count, !skipMark(at: start) else { return }
        let end = endOfParameter(from: start, isLine: isLine)
        if end > start { replace(start..<end) }
    }

    /// Reads `Name: value` or `"name": "value"`.
    private mutating func readField(colon: Int) {
        var start = colon + 1
        while isBlank(start) { start += 1 }
        // A value on the next line is indented.
        while isLineEnd(start), isBlank(start + 1) || isLineEnd(start + 1) {
            start += 1
            while isBlank(start) { start += 1 }
        }
        guard start < bytes.count, !isLineEnd(start), !skipMark(at: start) else { return }
        if let end = endOfQuotes(from: start) {
            replace(start..<end)
            return
        }
        // JSON, a YAML block and a PEM key continue on the next lines.
        let goesOn = "{[|>".utf8.contains(bytes[start]) || bytes.has("-----", at: start)
        let end = goesOn ? bytes.count : bytes[start...].firstIndex { $0 == 0x0A || $0 == 0x0D } ?? bytes.count
        let value = bytes[start..<end]
        guard value.contains(where: { $0.isLetter || $0.isDigit || $0 >= 0x80 }) else { return }
        // A mapper's message names types, and contains no value.
        let text = String(decoding: value, as: UTF8.self)
        if text.hasPrefix("expected "), text.contains(" but found ") { return }
        replace(start..<end, with: Redaction.credentials(text))
    }

    /// Reads `name="password"` in a form or a page, or `"name": "password"`. The value is somewhere after it.
    private mutating func readNamedValue(_ name: Range<Int>, from start: Int) {
        guard name.count == 4, bytes[name].elementsEqual("name".utf8) else { return }
        let from = bytes[start...].firstIndex { !($0 == 0x20 || "\"'\\".utf8.contains($0)) } ?? bytes.count
        let to = bytes[from...].firstIndex { !Self.isNameByte($0) } ?? bytes.count
        guard to > from, isSecret(from..<to) else { return }
        guard bytes[to...].contains(where: { $0.isLetter || $0.isDigit }) else { return }
        replace(to..<bytes.count, with: " " + Redaction.mark)
    }

    /// Skips a secret that has already been replaced.
    ///
    /// - Returns: Whether there was one.
    private mutating func skipMark(at start: Int) -> Bool {
        let value = bytes[start...].prefix { !isEndOfMark($0) }
        let isMark = value.elementsEqual(Redaction.mark.utf8)
        let rest = value.endIndex + 1
        let isCredential =
            !isMark && rest < bytes.count && Redaction.isScheme(value) && bytes.has(Redaction.mark, at: rest)
        let end = isCredential ? rest + Redaction.mark.utf8.count : value.endIndex
        guard isMark || isCredential && (end == bytes.count || isEndOfMark(bytes[end])) else { return false }
        index = end
        return true
    }

    private func isEndOfMark(_ byte: UInt8) -> Bool {
        byte <= 0x20 || "&#/\"'<>\\,;.)]}".utf8.contains(byte)
    }
}

// MARK: - Names

extension RedactionScanner {
    private func isSecret(_ name: Range<Int>) -> Bool {
        if redaction.isSecret(UnsafeBufferPointer(rebasing: bytes[name])) { return true }
        // In a key such as `\u0074oken`, the word begins after the backslash.
        let backslash = UInt8(ascii: "\\")
        guard name.lowerBound > 0, bytes[name.lowerBound - 1] == backslash else { return false }
        let before = bytes[..<name.lowerBound].lastIndex { $0 != backslash && !Self.isNameByte($0) }
        return redaction.isSecret(escaped: bytes[(before.map { $0 + 1 } ?? 0)..<name.upperBound])
    }

    /// Returns whether the name begins a pair, as in `["Authorization", "…"]`.
    private func isFirstOfPair(_ name: Range<Int>) -> Bool {
        let quote = name.lowerBound - 1
        guard quote > 0, "\"'".utf8.contains(bytes[quote]) else { return false }
        let before = bytes[..<quote].last { $0 != UInt8(ascii: "\\") }
        return before == UInt8(ascii: "[") || before == UInt8(ascii: "(")
    }

    private func isSecretParameter(_ name: Range<Int>, mayBeWord: Bool) -> Bool {
        let isParameter = name.lowerBound == 0 || "?&#;".utf8.contains(bytes[name.lowerBound - 1])
        return redaction.isSecretParameter(
            String(decoding: bytes[name], as: UTF8.self),
            mayBeWord: mayBeWord && isParameter
        )
    }

    /// Returns whether the word ends a name of several words: `API key: abc`.
    private func isSecretKey(_ name: Range<Int>, _ before: Int?) -> Bool {
        guard let before, ["key", "code"].contains(String(decoding: bytes[name], as: UTF8.self).lowercased()) else {
            return false
        }
        return isSecret(before..<name.upperBound)
    }

    /// Returns whether names of parameters contain the byte. Escapes and brackets are included.
    private static func isNameByte(_ byte: UInt8) -> Bool {
        byte.isLetter || byte.isDigit || byte >= 0x80 || "_-.%[]+$".utf8.contains(byte)
    }

    private static func isScheme(_ word: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
        // No scheme in this search is longer than nine bytes.
        guard word.count <= 9, let first = word.first, "bBdDnN".utf8.contains(first) else { return false }
        return Redaction.isScheme(word)
    }
}

// MARK: - Ends

extension RedactionScanner {
    private func byte(_ index: Int) -> UInt8? { index < bytes.count ? bytes[index] : nil }

    private func isBlank(_ index: Int) -> Bool { byte(index) == 0x20 || byte(index) == 0x09 }

    private func isLineEnd(_ index: Int) -> Bool { byte(index) == 0x0A || byte(index) == 0x0D }

    private func isFirstInLine(_ index: Int) -> Bool {
        let before = bytes[..<index].last { $0 != 0x20 && $0 != 0x09 }
        return before == nil || before == 0x0A || before == 0x0D
    }

    private func escapeCount(before index: Int) -> Int {
        bytes[..<index].reversed().prefix { $0 == UInt8(ascii: "\\") }.count
    }

    /// Returns the number of bytes of two slashes, which JSON can escape; nil if there are no two slashes.
    private func countOfSlashes(at index: Int) -> Int? {
        if bytes.has("//", at: index) { return 2 }
        return bytes.has(#"\/\/"#, at: index) ? 4 : nil
    }

    /// Returns the index after a value in quotes; nil if there is no quote. JSON in a string has escapes before both
    /// quotes.
    private func endOfQuotes(from start: Int) -> Int? {
        let open = bytes[start...].firstIndex { $0 != UInt8(ascii: "\\") } ?? bytes.count
        guard let quote = byte(open), "\"'`".utf8.contains(quote) else { return nil }
        var position = open + 1
        while let close = bytes[position...].firstIndex(of: quote) {
            position = close + 1
            let isEnd = byte(position).map { !$0.isLetter && !$0.isDigit } ?? true
            if isEnd, escapeCount(before: close) == open - start { return position }
        }
        return bytes.count
    }

    private func endOfParameter(from start: Int, isLine: Bool) -> Int {
        if !isDecoded, let end = endOfQuotes(from: start) { return end }
        var position = start
        while position < bytes.count {
            let byte = bytes[position]
            if byte == UInt8(ascii: "&") { break }
            if !isDecoded {
                if isLine ? byte == 0x0A || byte == 0x0D : byte <= 0x20 || byte == UInt8(ascii: "#") { break }
                if let enclosure, byte == enclosure.end {
                    let count = escapeCount(before: position)
                    if count == enclosure.escapeCount { return position - count }
                }
            }
            position += 1
        }
        return position
    }

    /// Returns the index of the `@` after user and password, or the end of text that is cut within a password. Nil if
    /// there is no user or password.
    private func endOfUserInformation(from start: Int) -> Int? {
        let end = bytes[start...].firstIndex { $0 <= 0x20 || "/?#\"<>\\".utf8.contains($0) } ?? bytes.count
        let authority = bytes[start..<end]
        if let at = authority.lastIndex(of: UInt8(ascii: "@")) { return at }
        guard end == bytes.count, authority.first != UInt8(ascii: "["),
            let colon = authority.firstIndex(of: UInt8(ascii: ":"))
        else { return nil }
        return authority[(colon + 1)...].allSatisfy(\.isDigit) ? nil : end
    }
}
