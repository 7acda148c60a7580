import Foundation

extension JSONValue {
    /// The maximum nesting of containers. Deeper nesting means that a container contains itself.
    static let maximumDepth = 100

    /// Converts the parameters of a request.
    ///
    /// - Parameter encoder: converts dates. Defaults to ISO 8601.
    /// - Throws: ``NetworkError/Code/invalidRequest`` with the place of a value that cannot be sent.
    static func object(
        from parameters: [String: Any],
        _ encoder: QueryEncoder = QueryEncoder()
    ) throws(NetworkError) -> [String: JSONValue] {
        do {
            return try members(parameters.lazy.map { ($0.key, $0.value) }, encoder, 0)
        } catch {
            throw .parameter(error)
        }
    }

    /// - Throws: see ``object(from:_:)``.
    init(parameter value: Any) throws(NetworkError) {
        do {
            self = try Self.parameter(value, QueryEncoder(), 0)
        } catch {
            throw .parameter(error)
        }
    }

    /// - Parameter depth: the number of containers around the value.
    fileprivate static func parameter(
        _ value: Any,
        _ encoder: QueryEncoder,
        _ depth: Int
    ) throws(EncodingError) -> JSONValue {
        // Recognize objects by their class: `as?` would convert an NSNumber to any Swift number, and to a Bool.
        if type(of: value) is AnyClass {
            switch value {
            case let value as NSNumber: return try finite(JSONValue(value))
            case is NSNull: return .null
            case let value as NSArray: return .array(try elements(value.shallowElements, encoder, depth))
            case let value as NSDictionary: return .object(try members(value.shallowPairs, encoder, depth))
            default: break
            }
        }
        switch value {
        case let value as String: return .string(value)
        case let value as any ParameterContainer: return try value.parameter(encoder, depth)
        case let value as Substring: return .string(String(value))
        case let value as Character: return .string(String(value))
        case let value as Date: return try date(value, encoder, depth)
        case let value as URL: return .string(value.absoluteString)
        case let value as UUID: return .string(value.uuidString)
        case let value as Data: return .string(value.base64EncodedString())
        default: break
        }
        if let value = JSONValue(number: value) { return try finite(value) }
        if type(of: value) == AnyHashable.self, let value = value as? AnyHashable {
            return try parameter(value.base, encoder, depth)
        }
        if let value = value as? any RawRepresentable {
            guard depth < maximumDepth else { throw .tooDeep(value) }
            // Count this as a level, so that the recursion ends for a type that is its own raw value.
            return try parameter(value.rawValue, encoder, depth + 1)
        }
        throw .invalid(value, "a value of type \(type(of: value)) cannot be sent")
    }

    /// - Throws: if the date, or the value that the encoder makes of it, cannot be sent.
    static func date(_ date: Date, _ encoder: QueryEncoder, _ depth: Int) throws(EncodingError) -> JSONValue {
        if let encodeDate = encoder.encodeDate {
            guard depth < maximumDepth else { throw .tooDeep(date) }
            // Count this as a level, so that the recursion ends if the closure makes a Date from a Date.
            return try parameter(encodeDate(date), encoder, depth + 1)
        }
        guard let text = date.rfc3339Text else {
            throw .invalid(date, "a date outside of the years 1 to 9999 cannot be sent")
        }
        return .string(text)
    }

    /// - Throws: if the number is not finite, because JSON cannot represent it.
    private static func finite(_ number: JSONValue) throws(EncodingError) -> JSONValue {
        switch number {
        case .double(let value) where !value.isFinite: throw .notFinite(value)
        case .decimal(let value) where !value.isFinite: throw .notFinite(value)
        default: return number
        }
    }

    fileprivate static func elements(
        _ values: some Sequence,
        _ encoder: QueryEncoder,
        _ depth: Int
    ) throws(EncodingError) -> [JSONValue] {
        guard depth < maximumDepth else { throw .tooDeep(values) }
        var result: [JSONValue] = []
        result.reserveCapacity(values.underestimatedCount)
        for value in values {
            do {
                result.append(try parameter(value, encoder, depth + 1))
            } catch {
                throw error.under([JSONKey(intValue: result.count)])
            }
        }
        return result
    }

    fileprivate static func members<Key>(
        _ pairs: some Sequence<(Key, Any)>,
        _ encoder: QueryEncoder,
        _ depth: Int
    ) throws(EncodingError) -> [String: JSONValue] {
        guard depth < maximumDepth else { throw .tooDeep(pairs) }
        var result: [String: JSONValue] = [:]
        result.reserveCapacity(pairs.underestimatedCount)
        for (key, value) in pairs {
            guard let name = key as? String else {
                throw .invalid(key, "keys must be Strings, but one is of type \(type(of: key))")
            }
            do {
                result[name] = try parameter(value, encoder, depth + 1)
            } catch {
                throw error.under([JSONKey(stringValue: name)])
            }
        }
        return result
    }
}

/// A container of the standard library, read one level at a time. A cast to `[String: Any]` would lose the nil values
/// of a dictionary of optionals, and would cast every element.
private protocol ParameterContainer {
    func parameter(_ encoder: QueryEncoder, _ depth: Int) throws(EncodingError) -> JSONValue
}

extension Optional: ParameterContainer {
    fileprivate func parameter(_ encoder: QueryEncoder, _ depth: Int) throws(EncodingError) -> JSONValue {
        guard let value = self else { return .null }
        return try JSONValue.parameter(value, encoder, depth)
    }
}

extension ParameterContainer where Self: RandomAccessCollection {
    fileprivate func parameter(_ encoder: QueryEncoder, _ depth: Int) throws(EncodingError) -> JSONValue {
        .array(try JSONValue.elements(self, encoder, depth))
    }
}

extension Array: ParameterContainer {}
extension ArraySlice: ParameterContainer {}

extension Dictionary: ParameterContainer {
    fileprivate func parameter(_ encoder: QueryEncoder, _ depth: Int) throws(EncodingError) -> JSONValue {
        .object(try JSONValue.members(lazy.map { ($0.key, $0.value as Any) }, encoder, depth))
    }
}

// On Linux, every way to read an element of an NSArray or NSDictionary converts the containers in it to Swift's, at all
// levels, and overflows the stack if one contains itself. The mirrors show the elements as they are stored.

extension NSArray {
    fileprivate var shallowElements: [Any] {
        #if !canImport(Darwin)
        let stored = Mirror(reflecting: self).children
        // A subclass can store its elements elsewhere.
        if stored.count == count { return stored.map { unboxed($0.value) } }
        #endif
        return map { $0 }
    }
}

extension NSDictionary {
    fileprivate var shallowPairs: [(Any, Any)] {
        #if !canImport(Darwin)
        let stored = Mirror(reflecting: self).children.compactMap { child -> (Any, Any)? in
            let sides = Mirror(reflecting: child.value).children.map(\.value)
            return sides.count == 2 ? (unboxed(sides[0]), unboxed(sides[1])) : nil
        }
        if stored.count == count { return stored }
        #endif
        return map { ($0.key, $0.value) }
    }
}

#if !canImport(Darwin)
/// Returns the Swift value in the object that Foundation stores for it, or the object itself if it is one of
/// Foundation's.
private func unboxed(_ value: Any) -> Any {
    switch value {
    case is NSArray, is NSDictionary, is NSNumber, is NSNull: value
    default: NSArray(object: value).object(at: 0)
    }
}
#endif

extension EncodingError {
    static func invalid(_ value: Any, _ reason: String) -> EncodingError {
        .invalidValue(value, Context(codingPath: [], debugDescription: reason))
    }

    static func notFinite(_ value: Any) -> EncodingError {
        invalid(value, "\(value) cannot be sent, because it is not finite")
    }

    static func tooDeep(_ value: Any) -> EncodingError {
        invalid(value, "values are nested more than \(JSONValue.maximumDepth) levels deep; does one contain itself?")
    }

    /// Returns the error of a value whose container is at this path.
    func under(_ path: [any CodingKey]) -> EncodingError {
        guard case .invalidValue(let value, let context) = self else { return self }
        let place = path + context.codingPath
        return .invalidValue(value, Context(codingPath: place, debugDescription: context.debugDescription))
    }

    /// The place, such as `filter.tags[3]: `, and the reason.
    fileprivate var parts: (place: String, reason: String) {
        guard case .invalidValue(_, let context) = self else { return ("", wording) }
        if let inner = context.underlyingError as? EncodingError { return inner.parts }
        return (context.codingPath.place, context.debugDescription)
    }
}

extension NetworkError {
    /// Returns the error of a parameter that cannot be sent.
    static func parameter(_ error: EncodingError) -> NetworkError {
        let (place, reason) = error.parts
        return .invalidRequest(place.isEmpty ? reason : "parameter \(place)\(reason)")
    }

    /// Returns the error of an `Encodable` value that cannot be sent.
    ///
    /// - Parameter role: the role of the value in the message, `parameters` or `a body`.
    static func encodable(_ error: any Error, _ type: Any.Type, as role: String) -> NetworkError {
        let (place, reason) = (error as? EncodingError)?.parts ?? ("", error.wording)
        let message = "\(role) of type \(type) cannot be encoded: \(place)\(reason)".withoutFullStop
            .replacingOccurrences(of: "LimitedEncodable<\(type)>", with: "\(type)")
        return .invalidRequest(message, underlying: error)
    }
}
