import Foundation

/// A single pass over a JSON text that creates the words of a ``JSONIndex``.
struct JSONScanner {
    private let bytes: UnsafeRawBufferPointer
    /// The offset at which the text begins.
    private let start: Int
    private var offset: Int
    private var depth = 0
    /// The words so far. An array would check its owner for each word. The capacity suffices for ordinary JSON.
    private var words: UnsafeMutableBufferPointer<JSONWord>
    private var count = 0

    init(bytes: UnsafeRawBufferPointer, start: Int) {
        self.bytes = bytes
        self.start = start
        offset = start
        words = .allocate(capacity: bytes.count / 8 + 32)
    }

    /// Returns the words of the whole text, which the caller deallocates.
    mutating func scan() throws(JSONSyntaxError) -> UnsafeMutableBufferPointer<JSONWord> {
        do throws(JSONSyntaxError) {
            skipSpace()
            try value()
            skipSpace()
            guard offset == bytes.count else { throw failure("expected the end of the text") }
            append(.null, 0, 0)
            return words
        } catch {
            words.deallocate()
            throw error
        }
    }

    @inline(__always)
    private mutating func append(_ kind: JSONWord.Kind, _ count: Int, _ place: Int) {
        if self.count == words.count { grow() }
        words.initializeElement(at: self.count, to: JSONWord(kind, count: count, place: place))
        self.count += 1
    }

    @inline(never)
    private mutating func grow() {
        let larger = UnsafeMutableBufferPointer<JSONWord>.allocate(capacity: words.count * 2)
        _ = larger.moveInitialize(fromContentsOf: words)
        words.deallocate()
        words = larger
    }

    // MARK: Values

    private mutating func value() throws(JSONSyntaxError) {
        switch byte {
        case UInt8(ascii: "\""): try string()
        case UInt8(ascii: "{"): try object()
        case UInt8(ascii: "["): try array()
        case UInt8(ascii: "t"): try literal("true", .bool)
        case UInt8(ascii: "f"): try literal("false", .bool)
        case UInt8(ascii: "n"): try literal("null", .null)
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): try number()
        default: throw failure("expected a value")
        }
    }

    private mutating func object() throws(JSONSyntaxError) {
        let position = try open()
        var count = 0
        if !skip(UInt8(ascii: "}")) {
            repeat {
                skipSpace()
                guard byte == UInt8(ascii: "\"") else { throw failure("expected a key in quotes") }
                let key = self.count
                try string()
                skipSpace()
                guard skip(UInt8(ascii: ":")) else { throw failure("expected a colon") }
                skipSpace()
                do throws(JSONSyntaxError) {
                    try value()
                } catch {
                    throw error.inside(String(decoding: reader.bytes(key).prefix(100), as: UTF8.self))
                }
                count += 1
                skipSpace()
            } while skip(UInt8(ascii: ","))
            guard skip(UInt8(ascii: "}")) else { throw failure("expected a comma or }") }
        }
        try close(position, .object, count)
        if reader.mayRepeatKeys(position) { words[position].mark() }
    }

    /// A reader of the words so far. An empty text has no values, so this property is not used for it.
    private var reader: JSONReader { JSONReader(words: words, text: bytes.baseAddress.unsafelyUnwrapped) }

    private mutating func array() throws(JSONSyntaxError) {
        let position = try open()
        var count = 0
        if !skip(UInt8(ascii: "]")) {
            repeat {
                skipSpace()
                do throws(JSONSyntaxError) {
                    try value()
                } catch {
                    throw error.inside("[\(count)]")
                }
                count += 1
                skipSpace()
            } while skip(UInt8(ascii: ","))
            guard skip(UInt8(ascii: "]")) else { throw failure("expected a comma or ]") }
        }
        try close(position, .array, count)
    }

    /// - Returns: the position of the container.
    private mutating func open() throws(JSONSyntaxError) -> Int {
        depth += 1
        guard depth <= JSONIndex.maximumDepth else {
            throw failure("nested deeper than \(JSONIndex.maximumDepth) levels", found: false)
        }
        offset += 1
        skipSpace()
        append(.null, 0, 0)
        return count - 1
    }

    private mutating func close(_ position: Int, _ kind: JSONWord.Kind, _ count: Int) throws(JSONSyntaxError) {
        depth -= 1
        guard count < JSONWord.maximumCount else { throw failure("more values than 500 million", found: false) }
        words[position] = JSONWord(kind, count: count, place: self.count)
    }

    private mutating func literal(_ text: StaticString, _ kind: JSONWord.Kind) throws(JSONSyntaxError) {
        let count = text.utf8CodeUnitCount
        guard bytes.count - offset >= count, let start = bytes.baseAddress,
            memcmp(start + offset, text.utf8Start, count) == 0
        else { throw failure("expected a value") }
        append(kind, count, offset)
        offset += count
    }

    private mutating func number() throws(JSONSyntaxError) {
        let start = offset
        var kind = JSONWord.Kind.integer
        var mayOverflow = false
        if byte == UInt8(ascii: "-") { offset += 1 }
        if byte == UInt8(ascii: "0") {
            offset += 1
            guard !byte.isDigit else { throw failure("a number must not begin with 0", found: false) }
        } else {
            try digits()
        }
        if byte == UInt8(ascii: ".") {
            kind = .number
            offset += 1
            try digits()
        }
        if byte | 0x20 == UInt8(ascii: "e") {
            kind = .number
            mayOverflow = true
            offset += 1
            if byte == UInt8(ascii: "+") || byte == UInt8(ascii: "-") { offset += 1 }
            try digits()
        }
        guard offset - start < JSONWord.maximumCount else {
            throw failure("a number is longer than 500 MB", found: false)
        }
        if mayOverflow || offset - start > 300 {
            guard Self.double(UnsafeRawBufferPointer(rebasing: bytes[start..<offset])).isFinite else {
                throw failure("a number is too large", found: false)
            }
        }
        append(kind, offset - start, start)
    }

    private mutating func digits() throws(JSONSyntaxError) {
        guard byte.isDigit else { throw failure("expected a digit") }
        repeat { offset += 1 } while byte.isDigit
    }

    private mutating func string() throws(JSONSyntaxError) {
        offset += 1
        let start = offset
        var kind = JSONWord.Kind.ascii
        var isEscaped = false
        while true {
            skipPlainText()
            switch byte {
            case UInt8(ascii: "\""):
                guard offset - start < JSONWord.maximumCount else {
                    throw failure("a string is longer than 500 MB", found: false)
                }
                append(kind, offset - start, start)
                if isEscaped { words[count - 1].mark() }
                offset += 1
                return
            case UInt8(ascii: "\\"):
                kind = .text
                isEscaped = true
                try escape()
            case 0x80...:
                kind = .text
                repeat {
                    let count = Self.countOfUTF8(bytes, at: offset)
                    guard count > 0 else { throw failure("invalid UTF-8", found: false) }
                    offset += count
                } while byte >= 0x80
            case _ where offset == bytes.count: throw failure("a string has no closing quote", found: false)
            case 0..<0x20: throw failure("a control character in a string must be escaped", found: false)
            default: offset += 1
            }
        }
    }

    /// Skips printable ASCII except quotes and backslashes, eight bytes at a time.
    @inline(__always)
    private mutating func skipPlainText() {
        let ones: UInt64 = 0x0101_0101_0101_0101
        while offset + 8 <= bytes.count {
            let word = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
            let quote = word ^ (ones &* 0x22)
            let backslash = word ^ (ones &* 0x5C)
            // The top bit is set in each byte that is a quote, a backslash, a control character or outside ASCII. Bits
            // above the first such byte can be wrong, but only the first byte counts.
            let found =
                ((quote &- ones) & ~quote | (backslash &- ones) & ~backslash | (word &- ones &* 0x20) & ~word | word)
                & (ones &* 0x80)
            guard found == 0 else {
                offset += found.trailingZeroBitCount / 8
                return
            }
            offset += 8
        }
    }

    private mutating func escape() throws(JSONSyntaxError) {
        offset += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"),
            UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
            offset += 1
        case UInt8(ascii: "u"):
            guard let unit = Self.codeUnit(bytes, at: offset + 1) else { throw failure("expected four hex digits") }
            offset += 5
            guard 0xD800...0xDFFF ~= unit else { return }
            guard unit < 0xDC00, byte == UInt8(ascii: "\\"), offset + 1 < bytes.count,
                bytes[offset + 1] == UInt8(ascii: "u"), let low = Self.codeUnit(bytes, at: offset + 2),
                0xDC00...0xDFFF ~= low
            else { throw failure("a surrogate has no pair", found: false) }
            offset += 6
        default: throw failure("unknown escape")
        }
    }

    // MARK: Bytes

    /// The next byte, or 0 after the last one.
    @inline(__always)
    private var byte: UInt8 { offset < bytes.count ? bytes[offset] : 0 }

    @inline(__always)
    private mutating func skip(_ character: UInt8) -> Bool {
        guard byte == character else { return false }
        offset += 1
        return true
    }

    @inline(__always)
    private mutating func skipSpace() {
        while true {
            switch byte {
            case 0x20, 0x0A, 0x0D, 0x09: offset += 1
            default: return
            }
        }
    }

    /// - Parameter found: whether the message contains the character at the place.
    private func failure(_ reason: String, found: Bool = true) -> JSONSyntaxError {
        let next = String(decoding: bytes[offset..<min(offset + 4, bytes.count)], as: UTF8.self).prefix(1)
        let addition = next.isEmpty ? ", but the text ends" : ", found \"\(String(next).quotable)\""
        let before = bytes[start..<offset]
        let lineStart = before.lastIndex(of: 0x0A).map { $0 + 1 } ?? start
        return JSONSyntaxError(
            reason: found ? reason + addition : reason,
            offset: offset,
            line: before.reduce(1) { $1 == 0x0A ? $0 + 1 : $0 },
            column: before[lineStart...].reduce(1) { $1 & 0xC0 == 0x80 ? $0 : $0 + 1 }
        )
    }
}

// MARK: - Text

extension JSONScanner {
    /// Returns the number of bytes of a character that is not ASCII, or 0 if it is invalid UTF-8 (RFC 3629, section 4).
    private static func countOfUTF8(_ bytes: UnsafeRawBufferPointer, at start: Int) -> Int {
        func isContinuation(_ index: Int, _ range: ClosedRange<UInt8> = 0x80...0xBF) -> Bool {
            index < bytes.count && range ~= bytes[index]
        }
        let first = bytes[start]
        switch first {
        case 0xC2...0xDF: return isContinuation(start + 1) ? 2 : 0
        case 0xE0...0xEF:
            let second: ClosedRange<UInt8> = first == 0xE0 ? 0xA0...0xBF : first == 0xED ? 0x80...0x9F : 0x80...0xBF
            return isContinuation(start + 1, second) && isContinuation(start + 2) ? 3 : 0
        case 0xF0...0xF4:
            let second: ClosedRange<UInt8> = first == 0xF0 ? 0x90...0xBF : first == 0xF4 ? 0x80...0x8F : 0x80...0xBF
            return isContinuation(start + 1, second) && isContinuation(start + 2) && isContinuation(start + 3) ? 4 : 0
        default: return 0
        }
    }

    private static func codeUnit(_ bytes: UnsafeRawBufferPointer, at start: Int) -> UInt16? {
        guard start + 4 <= bytes.count else { return nil }
        let digits = bytes[start..<(start + 4)]
        return digits.allSatisfy(\.isHexDigit) ? digits.reduce(0) { $0 << 4 | UInt16($1.hexDigitValue) } : nil
    }

    /// Writes a checked string without its escapes.
    ///
    /// - Parameter result: a buffer for as many bytes as the string has; the result is never longer.
    /// - Returns: the number of bytes that were written.
    static func unescape(_ bytes: UnsafeRawBufferPointer, into result: UnsafeMutableBufferPointer<UInt8>) -> Int {
        var count = 0
        func append(_ byte: UInt8) {
            result[count] = byte
            count += 1
        }
        var index = 0
        while index < bytes.count {
            let byte = bytes[index]
            index += 1
            guard byte == UInt8(ascii: "\\") else {
                append(byte)
                continue
            }
            let character = bytes[index]
            index += 1
            switch character {
            case UInt8(ascii: "b"): append(0x08)
            case UInt8(ascii: "f"): append(0x0C)
            case UInt8(ascii: "n"): append(0x0A)
            case UInt8(ascii: "r"): append(0x0D)
            case UInt8(ascii: "t"): append(0x09)
            case UInt8(ascii: "u"):
                // `escape()` has checked the digits.
                let unit = UInt32(codeUnit(bytes, at: index) ?? 0)
                index += 4
                var value = unit
                if 0xD800...0xDBFF ~= unit {
                    value =
                        0x10000 + (unit - 0xD800) << 10 + (UInt32(codeUnit(bytes, at: index + 2) ?? 0xDC00) - 0xDC00)
                    index += 6
                }
                for byte in String(Unicode.Scalar(value) ?? "\u{FFFD}").utf8 { append(byte) }
            default: append(character)
            }
        }
        return count
    }
}

// MARK: - Numbers

extension JSONScanner {
    private static let powersOfTen = (0...22).map { (0..<$0).reduce(1.0) { power, _ in power * 10 } }

    /// Returns the Double nearest to checked digits.
    static func double(_ bytes: UnsafeRawBufferPointer) -> Double {
        // Up to 2^53 and 10^22, both factors are exact, so their product or quotient is the nearest Double.
        guard bytes.count <= 19, let (mantissa, exponent) = parts(of: bytes), mantissa <= 1 << 53, -22...22 ~= exponent
        else { return Double(String(decoding: bytes, as: UTF8.self)) ?? .nan }
        let magnitude =
            exponent < 0 ? Double(mantissa) / powersOfTen[-exponent] : Double(mantissa) * powersOfTen[exponent]
        return bytes[0] == UInt8(ascii: "-") ? -magnitude : magnitude
    }

    /// Returns the digits of a checked number of at most 19 bytes as an integer, and the power of ten to multiply it
    /// by. Nil if the exponent has too many digits for an Int.
    @inline(__always)
    static func parts(of bytes: UnsafeRawBufferPointer) -> (mantissa: UInt64, exponent: Int)? {
        var mantissa: UInt64 = 0
        var exponent = 0
        var index = bytes.first == UInt8(ascii: "-") ? 1 : 0
        var hasPoint = false
        scan: while index < bytes.count {
            let byte = bytes[index]
            switch byte {
            case UInt8(ascii: "."): hasPoint = true
            case UInt8(ascii: "e"), UInt8(ascii: "E"): break scan
            default:
                mantissa = mantissa &* 10 &+ UInt64(byte &- 0x30)
                if hasPoint { exponent -= 1 }
            }
            index += 1
        }
        if index < bytes.count {
            guard let written = Int(String(decoding: bytes[(index + 1)...], as: UTF8.self)) else { return nil }
            // The number is short, so the addition cannot overflow.
            exponent += written
        }
        return (mantissa, exponent)
    }
}

// MARK: - Errors

/// The reason why JSON text is invalid, with its place.
struct JSONSyntaxError: Error, Hashable {
    let reason: String
    /// The offset in bytes from the beginning of the text, including a byte order mark.
    let offset: Int
    /// The line, beginning with 1, and the column, which counts Unicode scalars.
    let line: Int
    let column: Int
    /// The keys and indices of the innermost value that had begun, beginning with the innermost.
    private(set) var steps: [String] = []
}

extension JSONSyntaxError: LocalizedError {
    fileprivate func inside(_ step: String) -> Self {
        var error = self
        error.steps.append(step)
        return error
    }

    /// The path of the innermost value that had begun: `users[3].name`. Empty for the whole document.
    var path: String {
        steps.reversed().reduce(into: "") { path, step in
            path += path.isEmpty || step.hasPrefix("[") ? step : ".\(step)"
        }
    }

    /// A phrase such as `expected a colon, found "," at line 3, column 7, in users[3].name`.
    var phrase: String {
        let path = path
        let place = path.isEmpty ? "" : ", in \(path.count > 200 ? path.prefix(200) + "…" : path)"
        return "\(reason) at line \(line), column \(column)\(place.cleaned())"
    }

    var errorDescription: String? { phrase.prefix(1).uppercased() + phrase.dropFirst() + "." }
}
