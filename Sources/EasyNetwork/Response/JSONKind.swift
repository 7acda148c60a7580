import Foundation

/// A number as it is, told apart from a Bool: to `as?` an `NSNumber` of 1 is both.
enum JSONNumber: Equatable {
    case boolean(Bool)
    case integer(Int64)
    case unsigned(UInt64)
    case double(Double)
    case decimal(Decimal)

    /// Nil for what is no number and no Bool, and for an integer beyond 64 bits.
    init?(_ value: Any) {
        if type(of: value) is AnyClass {
            guard let number = value as? NSNumber else { return nil }
            self.init(number)
            return
        }
        switch value {
        case let value as Int: self = .integer(Int64(value))
        case let value as Bool: self = .boolean(value)
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
            self = .boolean(number.boolValue)
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

    /// By way of the shortest digits that mean the same Float: 0.1 stays 0.1 and does not become 0.10000000149011612.
    private static func shortest(_ value: Float) -> JSONNumber {
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

/// Names for the kinds of JSON values, for messages.
enum JSONKind {
    static func name(of value: Any) -> String {
        switch JSONNumber(value) {
        case .boolean: return "Bool"
        case .integer, .unsigned: return "Int"
        case .double: return "Double"
        case .decimal: return "Decimal"
        case nil: break
        }
        switch value {
        case is NSNull: return "null"
        case is String: return "String"
        case is [String: Any]: return "object"
        case is [Any]: return "array"
        default: return String(describing: type(of: value))
        }
    }
}
