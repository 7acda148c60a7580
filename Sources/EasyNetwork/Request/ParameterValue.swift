import Foundation

/// A parameter as it is written into a query, a form or JSON: every type that means the same has become one here, so that
/// all encoders agree.
enum ParameterValue: Hashable, Sendable {
    case null
    case bool(Bool)
    case integer(Int64)
    case unsigned(UInt64)
    case double(Double)
    case decimal(Decimal)
    case string(String)
    case array([ParameterValue])
    case object([String: ParameterValue])

    /// The parameters of a request, normalised.
    ///
    /// - Parameter styles: how dates and bytes are written; default ISO 8601 and Base64.
    /// - Throws: ``NetworkError/Code/invalidRequest`` that names the place of a value that cannot be sent.
    static func object(
        from parameters: [String: Any],
        styles: ParameterStyles = ParameterStyles()
    ) throws(NetworkError) -> [String: ParameterValue] {
        try object(parameters.map { ($0.key, $0.value) }, at: ParameterPath(styles: styles))
    }

    /// - Throws: as ``object(from:styles:)``.
    init(_ value: Any) throws(NetworkError) {
        try self.init(value, at: ParameterPath())
    }

    init(_ value: Any, at path: ParameterPath) throws(NetworkError) {
        // Objects first, and by their class: `as?` would turn a number object into any Swift number, and into a Bool.
        if type(of: value) is AnyClass {
            try self.init(object: value, at: path)
            return
        }
        switch value {
        case let value as String: self = .string(value)
        case let value as any ParameterOptional:
            guard let wrapped = value.wrapped else {
                self = .null
                return
            }
            try self.init(wrapped, at: path)
        case let value as any ParameterArray: self = .array(try Self.array(value.elements, at: path))
        case let value as any ParameterDictionary: self = .object(try Self.object(value.pairs, at: path))
        case let value as Substring: self = .string(String(value))
        case let value as Character: self = .string(String(value))
        case let value as Date: self = try path.styles.value(of: value, at: path)
        case let value as URL: self = .string(value.absoluteString)
        case let value as UUID: self = .string(value.uuidString)
        case let value as Data: self = .string(path.styles.text(of: value))
        default: try self.init(scalar: value, at: path)
        }
    }

    private init(object value: Any, at path: ParameterPath) throws(NetworkError) {
        switch value {
        case let value as NSNumber: try self.init(JSONNumber(value), at: path)
        case is NSNull: self = .null
        case let value as NSArray: self = .array(try Self.array(value.shallowElements, at: path))
        case let value as NSDictionary: self = .object(try Self.object(value.shallowPairs, at: path))
        // The values of Swift that NSString, NSDate, NSURL, NSUUID and NSData stand for.
        case let value as String: self = .string(value)
        case let value as Date: self = try path.styles.value(of: value, at: path)
        case let value as URL: self = .string(value.absoluteString)
        case let value as UUID: self = .string(value.uuidString)
        case let value as Data: self = .string(path.styles.text(of: value))
        default: throw path.failure("a value of type \(type(of: value)) cannot be sent")
        }
    }

    /// Numbers, and enums with raw values.
    private init(scalar value: Any, at path: ParameterPath) throws(NetworkError) {
        if let number = JSONNumber(value) {
            try self.init(number, at: path)
        } else if let hashable = value as? AnyHashable, type(of: value) == AnyHashable.self {
            try self.init(hashable.base, at: path)
        } else if let raw = value as? any RawRepresentable {
            // Counted as one deeper, so that a type that is its own raw value ends as well.
            try self.init(raw.rawValue as Any, at: try path.inside())
        } else {
            throw path.failure("a value of type \(type(of: value)) cannot be sent")
        }
    }

    private init(_ number: JSONNumber, at path: ParameterPath) throws(NetworkError) {
        switch number {
        case .boolean(let value): self = .bool(value)
        case .integer(let value): self = .integer(value)
        case .unsigned(let value): self = .unsigned(value)
        case .double(let value):
            guard value.isFinite else { throw path.failure("\(value) cannot be sent, for it is not finite") }
            self = .double(value)
        case .decimal(let value):
            guard value.isFinite else { throw path.failure("\(value) cannot be sent, for it is not finite") }
            self = .decimal(value)
        }
    }

    private static func array(_ values: [Any], at path: ParameterPath) throws(NetworkError) -> [ParameterValue] {
        let inside = try path.inside()
        var result: [ParameterValue] = []
        result.reserveCapacity(values.count)
        for (index, value) in values.enumerated() {
            result.append(try ParameterValue(value, at: inside.appending(index)))
        }
        return result
    }

    private static func object(
        _ pairs: [(key: Any, value: Any)],
        at path: ParameterPath
    ) throws(NetworkError) -> [String: ParameterValue] {
        let inside = try path.inside()
        var result: [String: ParameterValue] = [:]
        result.reserveCapacity(pairs.count)
        for (key, value) in pairs {
            guard let key = key as? String else {
                throw path.failure("a key of type \(type(of: key)) cannot be sent, keys have to be strings")
            }
            result[key] = try ParameterValue(value, at: inside.appending(key))
        }
        return result
    }
}

extension ParameterValue {
    /// A value that becomes this one.
    var any: Any {
        switch self {
        case .null: NSNull()
        case .bool(let value): value
        case .integer(let value): value
        case .unsigned(let value): value
        case .double(let value): value
        case .decimal(let value): value
        case .string(let value): value
        case .array(let values): values.map(\.any)
        case .object(let values): values.mapValues(\.any)
        }
    }
}

extension ParameterValue: Encodable {
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

// The types that hold values, looked through one level at a time. Casting to `[String: Any]` instead would lose what is
// nil in a dictionary of optionals, and casts every element.

private protocol ParameterOptional {
    var wrapped: Any? { get }
}

extension Optional: ParameterOptional {
    fileprivate var wrapped: Any? { map { $0 as Any } }
}

private protocol ParameterArray {
    var elements: [Any] { get }
}

extension Array: ParameterArray {
    fileprivate var elements: [Any] { map { $0 as Any } }
}

extension ArraySlice: ParameterArray {
    fileprivate var elements: [Any] { map { $0 as Any } }
}

private protocol ParameterDictionary {
    var pairs: [(key: Any, value: Any)] { get }
}

extension Dictionary: ParameterDictionary {
    fileprivate var pairs: [(key: Any, value: Any)] { map { ($0.key, $0.value) } }
}
