import Foundation

/// A wrapper whose encoding throws an error if the value contains itself. Foundation's encoders overflow the stack
/// instead.
///
/// The encoder that gets this wrapper encodes the value once. Values that Foundation's encoders treat specially (dates,
/// bytes, dictionaries with String keys, …) reach the encoder unchanged, so that its strategies apply.
package struct LimitedEncodable<Value: Encodable>: Encodable {
    let value: Value
    /// The number of containers around the value.
    var depth = 0
    /// The number of single-value containers around the value, counted from the innermost keyed or unkeyed container.
    var wrappers = 0

    package func encode(to encoder: any Encoder) throws {
        if isScalar(Value.self) {
            var container = encoder.singleValueContainer()
            try container.encode(value)
        } else if let dictionary = value as? any StringKeyedDictionary {
            try dictionary.encode(to: encoder, depth: depth)
        } else {
            let limit = JSONValue.maximumDepth
            guard depth <= limit, wrappers <= limit else {
                throw EncodingError.tooDeep(value).under(encoder.codingPath)
            }
            try value.encode(to: LimitedEncoder(base: encoder, depth: depth, wrappers: wrappers))
        }
    }
}

/// Returns whether encoders write the type as a single value without nested values.
private func isScalar(_ type: any Encodable.Type) -> Bool {
    type == String.self || type == Int.self || type == Bool.self || type == Double.self || type == Float.self
        || type == Date.self || type == Data.self || type == URL.self || type == Decimal.self
        || type is any BinaryInteger.Type
}

/// A dictionary whose keys are not changed by Foundation's encoders, whatever their key strategy.
private protocol StringKeyedDictionary {
    func encode(to encoder: any Encoder, depth: Int) throws
}

extension Dictionary: StringKeyedDictionary where Key == String, Value: Encodable {
    fileprivate func encode(to encoder: any Encoder, depth: Int) throws {
        var container = encoder.singleValueContainer()
        try container.encode(mapValues { LimitedEncodable(value: $0, depth: depth + 1) })
    }
}

private struct LimitedEncoder: Encoder, SingleValueEncodingContainer {
    let base: any Encoder
    let depth: Int
    var wrappers = 0

    var codingPath: [any CodingKey] { base.codingPath }
    var userInfo: [CodingUserInfoKey: Any] { base.userInfo }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        KeyedEncodingContainer(LimitedKeyedContainer(base: base.container(keyedBy: type), depth: depth + 1))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        LimitedUnkeyedContainer(base: base.unkeyedContainer(), depth: depth + 1)
    }

    func singleValueContainer() -> any SingleValueEncodingContainer { self }

    func encodeNil() throws {
        var container = base.singleValueContainer()
        try container.encodeNil()
    }

    func encode<Value: Encodable>(_ value: Value) throws {
        var container = base.singleValueContainer()
        try container.encode(LimitedEncodable(value: value, depth: depth, wrappers: wrappers + 1))
    }
}

private struct LimitedKeyedContainer<Key: CodingKey>: KeyedEncodingContainerProtocol {
    var base: KeyedEncodingContainer<Key>
    let depth: Int

    var codingPath: [any CodingKey] { base.codingPath }

    mutating func encodeNil(forKey key: Key) throws { try base.encodeNil(forKey: key) }

    mutating func encode<Value: Encodable>(_ value: Value, forKey key: Key) throws {
        if isScalar(Value.self) { return try base.encode(value, forKey: key) }
        try base.encode(LimitedEncodable(value: value, depth: depth), forKey: key)
    }

    mutating func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type,
        forKey key: Key
    ) -> KeyedEncodingContainer<Nested> {
        let nested = base.nestedContainer(keyedBy: type, forKey: key)
        return KeyedEncodingContainer(LimitedKeyedContainer<Nested>(base: nested, depth: depth + 1))
    }

    mutating func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
        LimitedUnkeyedContainer(base: base.nestedUnkeyedContainer(forKey: key), depth: depth + 1)
    }

    mutating func superEncoder() -> any Encoder { LimitedEncoder(base: base.superEncoder(), depth: depth) }

    mutating func superEncoder(forKey key: Key) -> any Encoder {
        LimitedEncoder(base: base.superEncoder(forKey: key), depth: depth)
    }
}

private struct LimitedUnkeyedContainer: UnkeyedEncodingContainer {
    var base: any UnkeyedEncodingContainer
    let depth: Int

    var codingPath: [any CodingKey] { base.codingPath }
    var count: Int { base.count }

    mutating func encodeNil() throws { try base.encodeNil() }

    mutating func encode<Value: Encodable>(_ value: Value) throws {
        if isScalar(Value.self) { return try base.encode(value) }
        try base.encode(LimitedEncodable(value: value, depth: depth))
    }

    mutating func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type) -> KeyedEncodingContainer<Nested> {
        let nested = base.nestedContainer(keyedBy: type)
        return KeyedEncodingContainer(LimitedKeyedContainer<Nested>(base: nested, depth: depth + 1))
    }

    mutating func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer {
        LimitedUnkeyedContainer(base: base.nestedUnkeyedContainer(), depth: depth + 1)
    }

    mutating func superEncoder() -> any Encoder { LimitedEncoder(base: base.superEncoder(), depth: depth) }
}
