import Foundation

/// A type that is read from a JSON value more strictly than `as?` does, to which 1, 1.0 and true are all alike.
protocol JSONReadable {
    /// Nil when the value is of another kind, or does not fit.
    static func read(_ value: Any) -> Self?
}

/// A JSON value as a value of the type; nil when it is none.
func readJSON<T>(_ value: Any, as type: T.Type = T.self) -> T? {
    // Most values are of the very type; looking for a conformance costs far more.
    if Swift.type(of: value) == type { return value as? T }
    if let readable = type as? any JSONReadable.Type { return readable.read(value) as? T }
    return value as? T
}

extension Bool: JSONReadable {
    static func read(_ value: Any) -> Bool? {
        guard case .boolean(let value) = JSONNumber(value) else { return nil }
        return value
    }
}

extension FixedWidthInteger {
    /// A number without fraction that fits; never a Bool.
    static func read(_ value: Any) -> Self? {
        switch JSONNumber(value) {
        case .integer(let value): Self(exactly: value)
        case .unsigned(let value): Self(exactly: value)
        case .double(let value): Self(exactly: value)
        case .decimal(let value): Self(value.description)
        case .boolean, nil: nil
        }
    }
}

extension Int: JSONReadable {}
extension Int8: JSONReadable {}
extension Int16: JSONReadable {}
extension Int32: JSONReadable {}
extension Int64: JSONReadable {}
extension UInt: JSONReadable {}
extension UInt8: JSONReadable {}
extension UInt16: JSONReadable {}
extension UInt32: JSONReadable {}
extension UInt64: JSONReadable {}

extension BinaryFloatingPoint {
    /// Any number; an integer only if it is exact.
    static func read(_ value: Any) -> Self? {
        switch JSONNumber(value) {
        case .integer(let value): Self(exactly: value)
        case .unsigned(let value): Self(exactly: value)
        case .double(let value): Self(value)
        case .decimal(let value): Self(NSDecimalNumber(decimal: value).doubleValue)
        case .boolean, nil: nil
        }
    }
}

extension Double: JSONReadable {}
extension Float: JSONReadable {}
extension CGFloat: JSONReadable {}

extension Decimal: JSONReadable {
    static func read(_ value: Any) -> Decimal? {
        switch JSONNumber(value) {
        case .integer(let value): Decimal(value)
        case .unsigned(let value): Decimal(value)
        // By way of the digits: 0.1 as a Double is no 0.1.
        case .double(let value): Decimal(string: value.description)
        case .decimal(let value): value
        case .boolean, nil: nil
        }
    }
}

extension Optional: JSONReadable {
    static func read(_ value: Any) -> Wrapped?? {
        value is NSNull ? .some(nil) : readJSON(value, as: Wrapped.self).map { .some($0) }
    }
}

extension Array: JSONReadable {
    static func read(_ value: Any) -> [Element]? {
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

extension Dictionary: JSONReadable where Key == String {
    static func read(_ value: Any) -> [String: Value]? {
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
