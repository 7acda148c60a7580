import Foundation

/// A JSON value with its place, as far as shapes and traffic need it.
///
/// Foundation's parsers lose the order of keys; on Linux they also accept a comma before a bracket, and give no place
/// for a text that ends too early.
struct JSON {
    enum Value {
        case null, bool, double
        case integer(Int)
        case string(String)
        case array([JSON])
        case object([(key: String, value: JSON)])
    }

    let value: Value
    /// The number of bytes before the value.
    let offset: Int

    /// - Parameter data: JSON in UTF-8, with or without a byte order mark.
    static func parse(_ data: Data) throws(InputError) -> JSON {
        if String(data: data, encoding: .utf8) == nil {
            let offset = zip(data, String(decoding: data, as: UTF8.self).utf8).enumerated().first { $1.0 != $1.1 }?
                .offset
            throw InputError(message: "the text is not UTF-8", offset: offset ?? 0)
        }
        var parser = Parser(bytes: Array(data))
        return try parser.document()
    }
}

/// A mistake in a file.
struct InputError: Error, Equatable {
    let message: String
    /// The number of bytes before the mistake.
    let offset: Int

    /// Line and column of the mistake in its file, counted from 1; a column is a character.
    func place(in data: Data) -> (line: Int, column: Int) {
        let lines = data.prefix(offset).split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        return (lines.count, String(decoding: lines.last ?? Data(), as: UTF8.self).count + 1)
    }
}

private struct Parser {
    let bytes: [UInt8]
    var index = 0

    /// Deeper text could overflow the stack.
    private static let maximumDepth = 100

    mutating func document() throws(InputError) -> JSON {
        _ = take("\u{FEFF}")
        let json = try value(depth: 0)
        guard index == bytes.count else { throw unexpected("the end") }
        return json
    }

    /// Reads a value with the blanks around it.
    private mutating func value(depth: Int) throws(InputError) -> JSON {
        skipBlanks()
        defer { skipBlanks() }
        let offset = index
        guard depth <= Self.maximumDepth else {
            throw InputError(message: "there are more than \(Self.maximumDepth) levels", offset: offset)
        }
        if take("{") {
            var members: [(key: String, value: JSON)] = []
            try list(until: "}") { parser throws(InputError) in
                guard parser.take("\"") else { throw parser.unexpected("a key in quotes") }
                let key = try parser.string()
                parser.skipBlanks()
                guard parser.take(":") else { throw parser.unexpected("\":\"") }
                members.append((key, try parser.value(depth: depth + 1)))
            }
            return JSON(value: .object(members), offset: offset)
        }
        if take("[") {
            var elements: [JSON] = []
            try list(until: "]") { parser throws(InputError) in elements.append(try parser.value(depth: depth + 1)) }
            return JSON(value: .array(elements), offset: offset)
        }
        if take("\"") { return JSON(value: .string(try string()), offset: offset) }
        if take("null") { return JSON(value: .null, offset: offset) }
        if take("true") || take("false") { return JSON(value: .bool, offset: offset) }
        return JSON(value: try number(), offset: offset)
    }

    /// Reads items with commas between them, up to the closing bracket.
    private mutating func list(
        until close: StaticString,
        item: (inout Parser) throws(InputError) -> Void
    ) throws(InputError) {
        skipBlanks()
        if take(close) { return }
        repeat {
            skipBlanks()
            try item(&self)
            if take(close) { return }
        } while take(",")
        throw unexpected("\",\" or \"\(close)\"")
    }

    /// Reads the rest of a string.
    private mutating func string() throws(InputError) -> String {
        let start = index - 1
        var hasEscapes = false
        while index < bytes.count, bytes[index] >= 0x20 {
            if bytes[index] == UInt8(ascii: "\"") {
                index += 1
                if !hasEscapes { return String(decoding: bytes[(start + 1)..<(index - 1)], as: UTF8.self) }
                if let text = try? JSONDecoder().decode(String.self, from: Data(bytes[start..<index])) { return text }
                throw InputError(message: "the string has an invalid escape", offset: start)
            }
            let isEscape = bytes[index] == UInt8(ascii: "\\")
            if isEscape { hasEscapes = true }
            index += isEscape ? 2 : 1
        }
        throw unexpected("the end of the string")
    }

    private mutating func number() throws(InputError) -> JSON.Value {
        let start = index
        _ = take("-")
        if !take("0") { try digits(start == index ? "a value" : "a digit") }
        let end = index
        if take(".") { try digits("a digit") }
        if take("e") || take("E") {
            _ = take("+") || take("-")
            try digits("a digit")
        }
        let text = String(decoding: bytes[start..<index], as: UTF8.self)
        if index == end, let integer = Int(text) { return .integer(integer) }
        if Double(text)?.isFinite == true { return .double }
        throw InputError(message: "the number is too large", offset: start)
    }

    private mutating func digits(_ expected: String) throws(InputError) {
        let start = index
        while index < bytes.count, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(bytes[index]) { index += 1 }
        if index == start { throw unexpected(expected) }
    }

    private mutating func skipBlanks() {
        while index < bytes.count, [0x20, 0x09, 0x0A, 0x0D].contains(bytes[index]) { index += 1 }
    }

    /// Skips the text if it comes next.
    private mutating func take(_ text: StaticString) -> Bool {
        let rest = bytes[min(index, bytes.count)...]
        guard text.withUTF8Buffer({ rest.starts(with: $0) }) else { return false }
        index += text.utf8CodeUnitCount
        return true
    }

    private func unexpected(_ expected: String) -> InputError {
        let index = min(index, bytes.count)
        let next = String(decoding: bytes[index...].prefix(4), as: UTF8.self).unicodeScalars.first
        let found = next.map { "found \(Name.literal(String($0)))" } ?? "the text ends"
        return InputError(message: "expected \(expected), but \(found)", offset: index)
    }
}
