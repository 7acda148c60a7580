import Foundation

/// A value to write into a query, a form or JSON, or a value from JSON. Types with the same meaning become one case, so
/// that all encoders agree.
enum JSONValue: Hashable, Sendable {
    case null
    case bool(Bool)
    case integer(Int64)
    case unsigned(UInt64)
    case double(Double)
    case decimal(Decimal)
    case string(String)
    case array([JSONValue])
    case object([String: JSONValue])
}

extension JSONValue: Encodable {
    var isContainer: Bool {
        switch self {
        case .array, .object: true
        default: false
        }
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .null: try container.encodeNil()
        case .bool(let value): try container.encode(value)
        case .integer(let value): try container.encode(value)
        case .unsigned(let value): try container.encode(value)
        case .double(let value): try container.encode(value)
        case .decimal(let value): try container.encode(value)
        case .string(let value): try container.encode(value)
        case .array(let values): try container.encode(values)
        case .object(let values): try container.encode(values)
        }
    }
}

// MARK: - Numbers

extension JSONValue {
    /// Creates a number or a Bool, which it distinguishes: `as?` reads an `NSNumber` of 1 as both. Nil for any other
    /// value, and for an integer of more than 64 bits.
    init?(number value: Any) {
        if type(of: value) is AnyClass {
            guard let number = value as? NSNumber else { return nil }
            self.init(number)
            return
        }
        switch value {
        case let value as Int: self = .integer(Int64(value))
        case let value as Bool: self = .bool(value)
        case let value as Double: self = .double(value)
        case let value as Float: self = Self.shortest(value)
        case let value as Decimal: self = .decimal(value)
        case let value as any BinaryInteger:
            let integer = Int64(exactly: value).map(Self.integer) ?? UInt64(exactly: value).map(Self.unsigned)
            guard let integer else { return nil }
            self = integer
        case let value as any BinaryFloatingPoint: self = .double(Double(value))
        default: return nil
        }
    }

    init(_ number: NSNumber) {
        switch UInt8(bitPattern: Int8(number.objCType.pointee)) {
        case _ where number.isBoolean: self = .bool(number.boolValue)
        case _ where number is NSDecimalNumber: self = .decimal(number.decimalValue)
        case UInt8(ascii: "d"): self = .double(number.doubleValue)
        case UInt8(ascii: "f"): self = Self.shortest(number.floatValue)
        case UInt8(ascii: "Q"):
            let integer = number.uint64Value
            self = Int64(exactly: integer).map(Self.integer) ?? .unsigned(integer)
        default: self = .integer(number.int64Value)
        }
    }

    /// Converts the shortest digits of the Float, so that 0.1 stays 0.1 and does not become 0.10000000149011612.
    private static func shortest(_ value: Float) -> JSONValue {
        .double(Double(value.description) ?? Double(value))
    }
}

extension NSNumber {
    /// Whether the number was made from a Bool.
    fileprivate var isBoolean: Bool { type(of: self) == Self.booleanClass }

    /// Foundation's private subclass for Bools.
    private static let booleanClass: NSNumber.Type = type(of: NSNumber(value: true))
}

extension [any CodingKey] {
    /// The place of a value in error messages: `users[3].age: `. Empty for the whole document.
    var place: String {
        let text = reduce(into: "") { text, key in
            text += key.intValue.map { "[\($0)]" } ?? (text.isEmpty ? key.stringValue : ".\(key.stringValue)")
        }
        // A path of a hundred levels is too long for a message, and its beginning shows where to look.
        return text.isEmpty ? "" : (text.count > 200 ? text.prefix(200) + "…" : text) + ": "
    }
}

extension String {
    /// The first 40 scalars of a server's string, on one line, for error messages.
    var quotable: String {
        var result = ""
        for scalar in unicodeScalars.prefix(40) {
            let isControl = scalar.properties.generalCategory == .control || scalar.properties.isBidiControl
            result +=
                isControl || "\"'\\".unicodeScalars.contains(scalar) ? scalar.escaped(asASCII: true) : String(scalar)
        }
        return unicodeScalars.count > 40 ? result + "…" : result
    }
}
