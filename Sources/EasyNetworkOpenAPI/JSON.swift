import Foundation

/// A JSON value with its place and the order of its keys, for programs that read files written by people.
///
/// Foundation's parsers lose the order of keys. On Linux, they also accept a comma before a bracket, and report no
/// place if the file ends too early.
package struct JSON: Sendable {
    package enum Value: Sendable {
        case null
        case bool(Bool)
        case integer(Int)
        case double(Double)
        case string(String)
        case array([JSON])
        case object([(key: String, value: JSON)])
    }

    package let value: Value
    /// The number of bytes before the value.
    package let offset: Int

    package init(_ value: Value, offset: Int) {
        (self.value, self.offset) = (value, offset)
    }

    /// - Parameters:
    ///   - data: JSON in UTF-8, with or without a byte order mark.
    ///   - hasUniqueKeys: Whether a repeated key in an object is an error.
    package static func parse(_ data: Data, hasUniqueKeys: Bool = false) throws(InputError) -> JSON {
        if String(data: data, encoding: .utf8) == nil {
            let offset = zip(data, String(decoding: data, as: UTF8.self).utf8).enumerated().first { $1.0 != $1.1 }?
                .offset
            throw InputError(message: "the text is not UTF-8", offset: offset ?? 0)
        }
        var parser = Parser(bytes: Array(data), hasUniqueKeys: hasUniqueKeys)
        return try parser.document()
    }
}

extension JSON {
    /// The value of a key, or the last one if the key is repeated. `nil` for a value that is not an object.
    package subscript(key: String) -> JSON? { members?.last { $0.key == key }?.value }

    package var members: [(key: String, value: JSON)]? {
        if case .object(let members) = value { members } else { nil }
    }

    package var elements: [JSON]? {
        if case .array(let elements) = value { elements } else { nil }
    }

    package var string: String? {
        if case .string(let text) = value { text } else { nil }
    }

    package var bool: Bool? {
        if case .bool(let value) = value { value } else { nil }
    }

    package var integer: Int? {
        if case .integer(let value) = value { value } else { nil }
    }

    package var number: Double? {
        switch value {
        case .integer(let value): Double(value)
        case .double(let value): value
        default: nil
        }
    }

    package var isNull: Bool {
        if case .null = value { true } else { false }
    }

    /// The value as JSON, on one line.
    package var text: String {
        switch value {
        case .null: "null"
        case .bool(let value): "\(value)"
        case .integer(let value): "\(value)"
        case .double(let value): value == value.rounded() && abs(value) < 1e15 ? "\(Int(value))" : "\(value)"
        case .string(let value): Self.quoted(value)
        case .array(let elements): "[\(elements.map(\.text).joined(separator: ","))]"
        case .object(let members):
            "{\(members.map { "\(Self.quoted($0.key)):\($0.value.text)" }.joined(separator: ","))}"
        }
    }

    private static func quoted(_ text: String) -> String {
        text.unicodeScalars.reduce(into: "\"") { result, scalar in
            switch scalar {
            case "\"", "\\": result += "\\\(scalar)"
            case "\n": result += "\\n"
            case _ where scalar.value < 0x20:
                let digits = String(scalar.value, radix: 16)
                result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: result.unicodeScalars.append(scalar)
            }
        } + "\""
    }
}

extension String {
    /// The string as a Swift literal, with escapes for all characters that an editor would not show.
    package var literal: String { "\"\(escaped)\"" }

    /// The string as it is written inside a Swift literal.
    package var escaped: String {
        unicodeScalars.reduce(into: "") { result, scalar in
            if scalar == "\"" || scalar == "\\" { result += "\\" }
            result += scalar.shown
        }
    }
}

extension Unicode.Scalar {
    /// The character, or an escape if an editor does not show it or a terminal would obey it.
    fileprivate var shown: String {
        switch properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .nonspacingMark, .privateUse, .unassigned:
            "\\u{\(String(value, radix: 16, uppercase: true))}"
        default: String(self)
        }
    }
}

/// An error in a file.
package struct InputError: Error, Equatable {
    /// The message, on one line even if it quotes the file.
    package let message: String
    /// The number of bytes before the error.
    package let offset: Int

    private static let maximumLength = 500

    package init(message: String, offset: Int) {
        let scalars = message.unicodeScalars
        let start = scalars.prefix(Self.maximumLength)
        self.message = start.map(\.shown).joined() + (start.endIndex < scalars.endIndex ? "…" : "")
        self.offset = offset
    }

    /// Returns the line and column of the error in its file, counted from 1. A column is a character.
    package func place(in data: Data) -> (line: Int, column: Int) { Self.places(of: [self], in: data)[0] }

    /// Returns the places of many errors, reading the file only once.
    package static func places(of errors: [InputError], in data: Data) -> [(line: Int, column: Int)] {
        let bytes = Array(data)
        var places = Array(repeating: (line: 1, column: 1), count: errors.count)
        var (line, column, position) = (1, 1, 0)
        for index in errors.indices.sorted(by: { errors[$0].offset < errors[$1].offset }) {
            let end = min(max(errors[index].offset, position), bytes.count)
            let lines = bytes[position..<end].split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
            if lines.count > 1 { (line, column) = (line + lines.count - 1, 1) }
            column += String(decoding: lines.last ?? [], as: UTF8.self).count
            position = end
            places[index] = (line, column)
        }
        return places
    }
}

private struct Parser {
    let bytes: [UInt8]
    let hasUniqueKeys: Bool
    var index = 0

    /// The largest depth. Deeper values could overflow the stack.
    private static let maximumDepth = 100

    mutating func document() throws(InputError) -> JSON {
        _ = take("\u{FEFF}")
        let json = try value(depth: 0)
        guard index == bytes.count else { throw unexpected("the end") }
        return json
    }

    /// Reads a value and the white space around it.
    private mutating func value(depth: Int) throws(InputError) -> JSON {
        skipBlanks()
        defer { skipBlanks() }
        let offset = index
        guard depth <= Self.maximumDepth else {
            throw InputError(
                message: "the values are nested more than \(Self.maximumDepth) levels deep",
                offset: offset
            )
        }
        if take("{") {
            var members: [(key: String, value: JSON)] = []
            var keys: Set<String> = []
            try list(until: "}") { parser throws(InputError) in
                let start = parser.index
                guard parser.take("\"") else { throw parser.unexpected("a key in quotes") }
                let key = try parser.string()
                if parser.hasUniqueKeys, !keys.insert(key).inserted {
                    throw InputError(message: "the key \"\(key)\" is repeated", offset: start)
                }
                parser.skipBlanks()
                guard parser.take(":") else { throw parser.unexpected("\":\"") }
                members.append((key, try parser.value(depth: depth + 1)))
            }
            return JSON(.object(members), offset: offset)
        }
        if take("[") {
            var elements: [JSON] = []
            try list(until: "]") { parser throws(InputError) in elements.append(try parser.value(depth: depth + 1)) }
            return JSON(.array(elements), offset: offset)
        }
        if take("\"") { return JSON(.string(try string()), offset: offset) }
        if take("null") { return JSON(.null, offset: offset) }
        if take("true") { return JSON(.bool(true), offset: offset) }
        if take("false") { return JSON(.bool(false), offset: offset) }
        return JSON(try number(), offset: offset)
    }

    /// Reads items separated by commas, up to the closing bracket.
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
        if let double = Double(text), double.isFinite { return .double(double) }
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

    /// Skips the text if it is next, and returns whether it was.
    private mutating func take(_ text: StaticString) -> Bool {
        let rest = bytes[min(index, bytes.count)...]
        guard text.withUTF8Buffer({ rest.starts(with: $0) }) else { return false }
        index += text.utf8CodeUnitCount
        return true
    }

    private func unexpected(_ expected: String) -> InputError {
        let index = min(index, bytes.count)
        let next = String(decoding: bytes[index...].prefix(4), as: UTF8.self).unicodeScalars.first
        let found = next.map { "found \(String($0).literal)" } ?? "the text ends"
        return InputError(message: "expected \(expected), but \(found)", offset: index)
    }
}
