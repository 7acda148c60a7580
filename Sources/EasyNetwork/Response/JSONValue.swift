import Foundation

/// A value as it is written into a query, a form or JSON, or read from JSON. Types with one meaning become one case, so
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
    /// A number or a Bool, told apart: `as?` reads an `NSNumber` of 1 as both. Nil for another value, and for an
    /// integer of more than 64 bits.
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
            if let integer = Int64(exactly: value) {
                self = .integer(integer)
            } else if let integer = UInt64(exactly: value) {
                self = .unsigned(integer)
            } else {
                return nil
            }
        case let value as any BinaryFloatingPoint: self = .double(Double(value))
        default: return nil
        }
    }

    init(_ number: NSNumber) {
        if number.isBoolean {
            self = .bool(number.boolValue)
        } else if let number = number as? NSDecimalNumber {
            self = .decimal(number.decimalValue)
        } else {
            switch UInt8(bitPattern: Int8(number.objCType.pointee)) {
            case UInt8(ascii: "d"): self = .double(number.doubleValue)
            case UInt8(ascii: "f"): self = Self.shortest(number.floatValue)
            case UInt8(ascii: "Q"):
                let integer = number.uint64Value
                self = Int64(exactly: integer).map { .integer($0) } ?? .unsigned(integer)
            default: self = .integer(number.int64Value)
            }
        }
    }

    /// Converts by the shortest digits of the Float, so that 0.1 stays 0.1 and does not become 0.10000000149011612.
    private static func shortest(_ value: Float) -> JSONValue {
        .double(Double(value.description) ?? Double(value))
    }
}

extension NSNumber {
    /// Whether the number was made from a Bool.
    fileprivate var isBoolean: Bool {
        #if canImport(Darwin)
        CFGetTypeID(self) == CFBooleanGetTypeID()
        #else
        type(of: self) == Self.booleanClass
        #endif
    }

    #if !canImport(Darwin)
    /// Foundation's private subclass for Bools.
    private static let booleanClass: NSNumber.Type = type(of: NSNumber(value: true))
    #endif
}

/// The name of the kind of a JSON value, for messages.
func jsonKind(of value: Any) -> String {
    switch JSONValue(number: value) {
    case .bool: return "Bool"
    case .integer, .unsigned: return "Int"
    case .double: return "Double"
    case .decimal: return "Decimal"
    default: break
    }
    switch value {
    case is NSNull: return "null"
    case is String: return "String"
    case is [String: Any]: return "object"
    case is [Any]: return "array"
    default: return String(describing: type(of: value))
    }
}

// MARK: - Reading

/// Reads a JSON value as a type, more strictly than `as?`, to which 1, 1.0 and true are equal: a Bool is no number, an
/// integer has no fraction, and nothing is rounded or cut off.
///
/// - Returns: nil if the value is of another type, or does not fit.
func readJSON<T>(_ value: Any, as type: T.Type = T.self) -> T? {
    // The fast way for most values: a dynamic cast to a protocol costs far more.
    if Swift.type(of: value) == type { return value as? T }
    switch type {
    case is Bool.Type:
        guard case .bool(let flag) = JSONValue(number: value) else { return nil }
        return flag as? T
    case let type as any FixedWidthInteger.Type: return JSONValue(number: value)?.integer(type) as? T
    case let type as any BinaryFloatingPoint.Type: return JSONValue(number: value)?.floatingPoint(type) as? T
    case is Decimal.Type: return JSONValue(number: value)?.decimal as? T
    case let type as any JSONContainer.Type: return type.read(value) as? T
    default: return value as? T
    }
}

extension JSONValue {
    fileprivate func integer<T: FixedWidthInteger>(_ type: T.Type) -> T? {
        switch self {
        case .integer(let value): T(exactly: value)
        case .unsigned(let value): T(exactly: value)
        case .double(let value): T(exactly: value)
        case .decimal(let value): T(value.description)
        default: nil
        }
    }

    fileprivate func floatingPoint<T: BinaryFloatingPoint>(_ type: T.Type) -> T? {
        switch self {
        case .integer(let value): T(exactly: value)
        case .unsigned(let value): T(exactly: value)
        case .double(let value): T(value)
        case .decimal(let value): T(NSDecimalNumber(decimal: value).doubleValue)
        default: nil
        }
    }

    fileprivate var decimal: Decimal? {
        switch self {
        case .integer(let value): Decimal(value)
        case .unsigned(let value): Decimal(value)
        // By its digits: `Decimal(0.1)` is not 0.1.
        case .double(let value): Decimal(string: value.description)
        case .decimal(let value): value
        default: nil
        }
    }
}

/// A generic type whose elements ``readJSON(_:as:)`` reads one by one.
private protocol JSONContainer {
    static func read(_ value: Any) -> Self?
}

extension Optional: JSONContainer {
    fileprivate static func read(_ value: Any) -> Wrapped?? {
        value is NSNull ? .some(nil) : readJSON(value, as: Wrapped.self).map { .some($0) }
    }
}

extension Array: JSONContainer {
    fileprivate static func read(_ value: Any) -> [Element]? {
        guard let values = value as? [Any] else { return nil }
        if Element.self == Any.self { return values as? [Element] }
        var result: [Element] = []
        result.reserveCapacity(values.count)
        for value in values {
            guard let element = readJSON(value, as: Element.self) else { return nil }
            result.append(element)
        }
        return result
    }
}

extension Dictionary: JSONContainer where Key == String {
    fileprivate static func read(_ value: Any) -> [String: Value]? {
        guard let values = value as? [String: Any] else { return nil }
        if Value.self == Any.self { return values as? [String: Value] }
        var result: [String: Value] = [:]
        result.reserveCapacity(values.count)
        for (key, value) in values {
            guard let value = readJSON(value, as: Value.self) else { return nil }
            result[key] = value
        }
        return result
    }
}

extension [any CodingKey] {
    /// The place of a value, for messages: `users[3].age: `; empty for the whole.
    var place: String {
        let text = reduce(into: "") { text, key in
            if let index = key.intValue {
                text += "[\(index)]"
            } else {
                text += text.isEmpty ? key.stringValue : ".\(key.stringValue)"
            }
        }
        // A path of a hundred levels is long, and its beginning shows where to look.
        return text.isEmpty ? "" : (text.count > 200 ? text.prefix(200) + "…" : text) + ": "
    }
}

extension String {
    /// At most 40 scalars of a server's text on one line, for messages.
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
