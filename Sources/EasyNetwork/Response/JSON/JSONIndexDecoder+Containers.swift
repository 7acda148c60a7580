import Foundation

/// A key or an index in the path of a value or of a parameter.
struct JSONKey: CodingKey {
    let stringValue: String
    let intValue: Int?

    init(index: Int) { (stringValue, intValue) = ("Index \(index)", index) }
    init(stringValue: String) { (self.stringValue, intValue) = (stringValue, nil) }
    init(intValue: Int) { (stringValue, self.intValue) = ("\(intValue)", intValue) }
}

struct JSONKeyedContainer<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let decoder: JSONIndexDecoder

    var codingPath: [any CodingKey] { decoder.codingPath }
    var allKeys: [Key] { decoder.keys(Key.self) }

    func contains(_ key: Key) -> Bool { decoder.value(of: key.stringValue, isKept: true) != nil }

    func decodeNil(forKey key: Key) throws -> Bool {
        decoder.reader.isNull(try position(key, isKept: true))
    }

    @inline(__always)
    private func position(_ key: Key, isKept: Bool = false) throws -> Int {
        guard let position = decoder.value(of: key.stringValue, isKept: isKept) else { throw decoder.absent(key) }
        return position
    }

    @inline(__always)
    private func present(_ key: Key) -> Int? {
        guard let position = decoder.value(of: key.stringValue), !decoder.reader.isNull(position) else { return nil }
        return position
    }

    @inline(__always)
    private func scalar<T: JSONScalar>(_ type: T.Type, _ key: Key) throws -> T {
        try decoder.scalar(type, at: try position(key), .key(key))
    }

    @inline(__always)
    private func scalarIfPresent<T: JSONScalar>(_ type: T.Type, _ key: Key) throws -> T? {
        try present(key).map { try decoder.scalar(type, at: $0, .key(key)) }
    }

    @inline(__always)
    func decode<T: JSONScalar>(_ type: T.Type, forKey key: Key) throws -> T { try scalar(type, key) }

    // The library has its own overloads for these two types, which are preferred to generic ones.
    @available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
    func decode(_ type: Int128.Type, forKey key: Key) throws -> Int128 { try scalar(type, key) }
    @available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
    func decode(_ type: UInt128.Type, forKey key: Key) throws -> UInt128 { try scalar(type, key) }

    // The library's own overloads, which are preferred to a generic one, would search for the key three times.
    func decodeIfPresent(_ type: Bool.Type, forKey key: Key) throws -> Bool? { try scalarIfPresent(type, key) }
    func decodeIfPresent(_ type: Int.Type, forKey key: Key) throws -> Int? { try scalarIfPresent(type, key) }
    func decodeIfPresent(_ type: Double.Type, forKey key: Key) throws -> Double? { try scalarIfPresent(type, key) }
    func decodeIfPresent(_ type: String.Type, forKey key: Key) throws -> String? { try scalarIfPresent(type, key) }

    func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T {
        try decoder.read(type, at: try position(key), .key(key))
    }

    func decodeIfPresent<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T? {
        try present(key).map { try decoder.read(type, at: $0, .key(key)) }
    }

    func nestedContainer<NestedKey: CodingKey>(
        keyedBy type: NestedKey.Type,
        forKey key: Key
    ) throws -> KeyedDecodingContainer<NestedKey> {
        try decoder.nested(try position(key), .key(key)).container(keyedBy: type)
    }

    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        try decoder.nested(try position(key), .key(key)).unkeyedContainer()
    }

    func superDecoder() -> any Decoder { decoder.superDecoder(JSONKey(stringValue: "super")) }

    func superDecoder(forKey key: Key) -> any Decoder { decoder.superDecoder(key) }
}

struct JSONUnkeyedContainer: UnkeyedDecodingContainer {
    let decoder: JSONIndexDecoder
    /// The position of the next element.
    var position: Int
    var currentIndex = 0

    var codingPath: [any CodingKey] { decoder.codingPath }
    var count: Int? { decoder.reader.count(decoder.position) }
    var isAtEnd: Bool { position >= decoder.reader.end(decoder.position) }

    /// Reads the next element and moves past it, unless reading fails.
    ///
    /// - Parameter read: reads the element from the decoder of the array, by its position and its index.
    @inline(__always)
    private mutating func next<T>(
        _ type: Any.Type,
        _ what: String = "",
        _ read: (JSONIndexDecoder, Int, Int) throws -> T
    ) throws -> T {
        guard !isAtEnd else { throw atEnd(type, what) }
        let value = try read(decoder, position, currentIndex)
        advance()
        return value
    }

    private mutating func advance() {
        currentIndex += 1
        if !isAtEnd { position = decoder.reader.next(position) }
    }

    private func atEnd(_ type: Any.Type, _ what: String) -> DecodingError {
        let description = "\(what.isEmpty ? "U" : "Cannot get \(what) -- u")nkeyed container is at end."
        return .valueNotFound(type, decoder.context(description, .index(currentIndex)))
    }

    mutating func decodeNil() throws -> Bool {
        guard !isAtEnd else { throw atEnd(Never.self, "") }
        return skipsNull()
    }

    private mutating func skipsNull() -> Bool {
        guard isAtEnd || decoder.reader.isNull(position) else { return false }
        advance()
        return true
    }

    @inline(__always)
    private mutating func scalar<T: JSONScalar>(_ type: T.Type) throws -> T {
        try next(type) { try $0.scalar(type, at: $1, .index($2)) }
    }

    @inline(__always)
    mutating func decode<T: JSONScalar>(_ type: T.Type) throws -> T { try scalar(type) }

    @available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
    mutating func decode(_ type: Int128.Type) throws -> Int128 { try scalar(type) }
    @available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
    mutating func decode(_ type: UInt128.Type) throws -> UInt128 { try scalar(type) }

    mutating func decode<T: Decodable>(_ type: T.Type) throws -> T {
        try next(type) { try $0.read(type, at: $1, .index($2)) }
    }

    mutating func decodeIfPresent<T: Decodable>(_ type: T.Type) throws -> T? {
        skipsNull() ? nil : try decode(type)
    }

    mutating func nestedContainer<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        try next(KeyedDecodingContainer<Key>.self) { try $0.nested($1, .index($2)).container(keyedBy: type) }
    }

    mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
        try next((any UnkeyedDecodingContainer).self) { try $0.nested($1, .index($2)).unkeyedContainer() }
    }

    mutating func superDecoder() throws -> any Decoder {
        try next((any Decoder).self, "superDecoder()") { $0.nested($1, .index($2)) }
    }
}
