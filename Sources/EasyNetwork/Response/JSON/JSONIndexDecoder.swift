import Foundation

/// A decoder that reads `Decodable` types from a ``JSONIndex``, with the strategies, values and errors of a
/// `JSONDecoder`.
///
/// There is one object for each nested value, which the value's decoders and containers share. Coding paths are created
/// only for errors, or on request.
///
/// The differences from Foundation's decoder: the whole text is checked, including values that are not decoded;
/// trailing commas are errors; `0e9` is zero; the error of a number that does not fit names its place, even inside
/// `init(from:)`; `allKeys` have the order of the text.
final class JSONIndexDecoder: Decoder {
    /// The part that all decoders of one text share.
    final class Source {
        let index: JSONIndex
        let dates: JSONDecoder.DateDecodingStrategy
        let data: JSONDecoder.DataDecodingStrategy
        let floats: JSONDecoder.NonConformingFloatDecodingStrategy
        let keys: JSONDecoder.KeyDecodingStrategy
        /// Whether keys are used as they are in the text.
        let isPlain: Bool
        let userInfo: [CodingUserInfoKey: Any]

        init(_ index: JSONIndex, _ decoder: JSONDecoder) {
            self.index = index
            dates = decoder.dateDecodingStrategy
            data = decoder.dataDecodingStrategy
            floats = decoder.nonConformingFloatDecodingStrategy
            keys = decoder.keyDecodingStrategy
            isPlain = if case .useDefaultKeys = keys { true } else { false }
            userInfo = decoder.userInfo
        }
    }

    /// The step from a value to a nested one.
    enum Step {
        /// The value itself.
        case none
        case index(Int)
        case key(any CodingKey)
    }

    let source: Source
    let position: Int
    private let parent: JSONIndexDecoder?
    private let step: Step
    // Only one thread uses a decoder, and no host code runs while these properties change. The exclusivity checks, a
    // sixth of the total time, are therefore unnecessary.
    /// The position of the key at which a search begins; 0 before the first keyed container.
    @exclusivity(unchecked) private var hint = 0
    /// The number of searches that did not find the key after the hint.
    @exclusivity(unchecked) private var strays = 0
    /// The position of each key's value, for objects in which a search from the hint would be wrong or slow.
    @exclusivity(unchecked) private var table: [String: Int]?

    init(_ source: Source, _ position: Int, in parent: JSONIndexDecoder?, _ step: Step) {
        self.source = source
        self.position = position
        self.parent = parent
        self.step = step
    }

    /// Decodes as `decoder` would. A decoder of a subclass, or one that reads JSON5, decodes itself.
    ///
    /// - Parameter index: the index over the body, or the error of its text.
    static func decode<T: Decodable>(
        _ type: T.Type,
        from body: Data,
        as decoder: JSONDecoder,
        _ index: @autoclosure () -> Result<JSONIndex, JSONSyntaxError>
    ) throws -> T {
        guard canStand(for: decoder) else { return try decoder.decode(type, from: body) }
        switch index() {
        case .success(let index):
            return try JSONIndexDecoder(Source(index, decoder), 0, in: nil, .none).decode(type)
        case .failure(let error):
            let description = "The given data was not valid JSON."
            throw DecodingError.dataCorrupted(
                .init(codingPath: [], debugDescription: description, underlyingError: error)
            )
        }
    }

    private static func canStand(for decoder: JSONDecoder) -> Bool {
        #if canImport(Darwin)
        // Check the name, because Linux has no such case.
        if String(describing: decoder.dateDecodingStrategy).hasPrefix("formatted") { return false }
        #endif
        return Swift.type(of: decoder) == JSONDecoder.self && !decoder.allowsJSON5 && !decoder.assumesTopLevelDictionary
    }
}

// MARK: - Decoder

extension JSONIndexDecoder {
    var userInfo: [CodingUserInfoKey: Any] { source.userInfo }

    @inline(__always)
    var reader: JSONReader { source.index.reader }

    var codingPath: [any CodingKey] { parent?.path(step) ?? [] }

    func path(_ step: Step) -> [any CodingKey] {
        switch step {
        case .none: codingPath
        case .index(let index): codingPath + [JSONKey(index: index)]
        case .key(let key): codingPath + [key]
        }
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        guard reader.kind(position) == .object else { throw mismatch(with: .object, at: position, .none) }
        if hint == 0 { prepareKeys() }
        return KeyedDecodingContainer(JSONKeyedContainer(decoder: self))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        guard reader.kind(position) == .array else { throw mismatch(with: .array, at: position, .none) }
        return JSONUnkeyedContainer(decoder: self, position: position + 1)
    }

    func singleValueContainer() -> any SingleValueDecodingContainer { self }

    func nested(_ position: Int, _ step: Step) -> JSONIndexDecoder {
        JSONIndexDecoder(source, position, in: self, step)
    }

    func context(_ description: String, _ step: Step = .none) -> DecodingError.Context {
        DecodingError.Context(codingPath: path(step), debugDescription: description)
    }

    /// - Parameter kind: the expected kind, an array or an object.
    fileprivate func mismatch(with kind: JSONWord.Kind, at position: Int, _ step: Step) -> DecodingError {
        let type: Any.Type = kind == .array ? [Any].self : [String: Any].self
        guard reader.isNull(position) else { return mismatch(type, at: position, step) }
        let name = kind == .array ? "unkeyed" : "keyed"
        return .valueNotFound(type, context("Cannot get \(name) decoding container -- found null value instead", step))
    }

    func mismatch(_ type: Any.Type, at position: Int, _ step: Step) -> DecodingError {
        let found =
            switch reader.kind(position) {
            case .null: "null"
            case .bool: "bool"
            case .integer, .number: "number"
            case .ascii, .text: "a string"
            case .array: "an array"
            case .object: "a dictionary"
            }
        return .typeMismatch(type, context("Expected to decode \(type) but found \(found) instead.", step))
    }

    private func null(_ type: Any.Type, _ step: Step) -> DecodingError {
        .valueNotFound(type, context("Cannot get value of type \(type) -- found null value instead", step))
    }

    /// Returns the error with an empty path, because Foundation treats such a number as an error of the text.
    private func unfit(_ type: Any.Type, at position: Int, _ step: Step) -> DecodingError {
        let number = (reader.digits(position) ?? "").quotable
        let description = "\(path(step).place)the number \(number) does not fit in \(type)."
        return .dataCorrupted(.init(codingPath: [], debugDescription: description))
    }
}

extension JSONIndexDecoder: SingleValueDecodingContainer {
    func decodeNil() -> Bool { reader.isNull(position) }

    func decode<T: JSONScalar>(_ type: T.Type) throws -> T { try scalar(type, at: position, .none) }

    func decode<T: Decodable>(_ type: T.Type) throws -> T { try read(type, at: position, .none) }

    // The library has its own overloads for these two types, which are preferred to generic ones.
    @available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
    func decode(_ type: Int128.Type) throws -> Int128 { try scalar(type, at: position, .none) }
    @available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
    func decode(_ type: UInt128.Type) throws -> UInt128 { try scalar(type, at: position, .none) }

    /// The date of a string in the most common form of RFC 3339, read without creating the string.
    var fixedDate: Date? { reader.fixedDate(position) }

    /// The value as a number, or nil, without an error, for another value.
    var number: Double? { Double.read(reader, position) ?? Double.convert(reader, position) }
}

// MARK: - Values

/// An array, which is read faster than by its own `init(from:)`, or a dictionary with String keys, which no strategy
/// changes.
private protocol JSONCollection {
    typealias Step = JSONIndexDecoder.Step
    static func read(_ position: Int, of parent: JSONIndexDecoder, _ step: Step) throws -> Self
}

extension Array: JSONCollection where Element: Decodable {
    fileprivate static func read(_ position: Int, of parent: JSONIndexDecoder, _ step: Step) throws -> [Element] {
        let reader = parent.reader
        guard reader.kind(position) == .array else { throw parent.mismatch(with: .array, at: position, step) }
        let decoder = parent.nested(position, step)
        let end = reader.end(position)
        var element = position + 1
        return try [Element](unsafeUninitializedCapacity: reader.count(position)) { buffer, count in
            while count < buffer.count, element < end {
                buffer.initializeElement(at: count, to: try decoder.read(Element.self, at: element, .index(count)))
                count += 1
                element = reader.next(element)
            }
        }
    }
}

extension Dictionary: JSONCollection where Key == String, Value: Decodable {
    fileprivate static func read(_ position: Int, of parent: JSONIndexDecoder, _ step: Step) throws -> [String: Value] {
        let reader = parent.reader
        guard reader.kind(position) == .object else { throw parent.mismatch(with: .object, at: position, step) }
        let decoder = parent.nested(position, step)
        var result: [String: Value] = [:]
        result.reserveCapacity(reader.count(position))
        try reader.forEach(in: position) { key in
            let name = reader.string(key) ?? ""
            let value = try decoder.read(Value.self, at: key + 1, .key(JSONKey(stringValue: name)))
            // If a key is repeated, its first value counts.
            if let first = result.updateValue(value, forKey: name) { result[name] = first }
        }
        return result
    }
}

extension JSONIndexDecoder {
    @inline(__always)
    func scalar<T: JSONScalar>(_ type: T.Type, at position: Int, _ step: @autoclosure () -> Step) throws -> T {
        if let value = T.read(reader, position) { return value }
        return try rareScalar(type, at: position, step())
    }

    @inline(never)
    private func rareScalar<T: JSONScalar>(_ type: T.Type, at position: Int, _ step: Step) throws -> T {
        if let value = T.convert(reader, position) { return value }
        switch reader.kind(position) {
        case .null where type != Bool.self: throw null(type, step)
        case .integer where type is any Numeric.Type, .number where type is any Numeric.Type:
            throw unfit(type, at: position, step)
        case .ascii, .text:
            guard case .convertFromString(let infinity, let negative, let nan) = source.floats,
                let float = type as? any (BinaryFloatingPoint & JSONScalar).Type
            else { break }
            for (text, value) in [(infinity, Double.infinity), (negative, -.infinity), (nan, .nan)]
            where reader.bytes(position).elementsEqual(text.utf8) {
                if let value = float.init(value) as? T { return value }
            }
        default: break
        }
        throw mismatch(type, at: position, step)
    }

    func read<T: Decodable>(_ type: T.Type, at position: Int, _ step: @autoclosure () -> Step) throws -> T {
        if T.self == String.self { return cast(try scalar(String.self, at: position, step())) }
        if T.self == Int.self { return cast(try scalar(Int.self, at: position, step())) }
        if T.self == Double.self { return cast(try scalar(Double.self, at: position, step())) }
        if T.self == Bool.self { return cast(try scalar(Bool.self, at: position, step())) }
        if T.self == Int64.self { return cast(try scalar(Int64.self, at: position, step())) }
        if T.self == Int32.self { return cast(try scalar(Int32.self, at: position, step())) }
        if T.self == UInt8.self { return cast(try scalar(UInt8.self, at: position, step())) }
        if T.self == UInt64.self { return cast(try scalar(UInt64.self, at: position, step())) }
        if T.self == Float.self { return cast(try scalar(Float.self, at: position, step())) }
        if T.self == [String].self { return cast(try [String].read(position, of: self, step())) }
        if T.self == [Int].self { return cast(try [Int].read(position, of: self, step())) }
        if T.self == [Double].self { return cast(try [Double].read(position, of: self, step())) }
        if T.self == [Bool].self { return cast(try [Bool].read(position, of: self, step())) }
        if T.self == Date.self || T.self == URL.self || T.self == Data.self || T.self == Decimal.self {
            guard !reader.isNull(position) else { throw null(T.self, step()) }
            if T.self == Date.self { return cast(try date(at: position, step())) }
            if T.self == URL.self { return cast(try url(at: position, step())) }
            if T.self == Data.self { return cast(try data(at: position, step())) }
            return cast(try decimal(at: position, step()))
        }
        if T.self == [String: String].self { return cast(try [String: String].read(position, of: self, step())) }
        if T.self == [String: Int].self { return cast(try [String: Int].read(position, of: self, step())) }
        if T.self == [String: Double].self { return cast(try [String: Double].read(position, of: self, step())) }
        // Arrays and dictionaries are one pointer. Checking every type would cost more than decoding a number.
        if MemoryLayout<T>.size == MemoryLayout<Int>.size, let type = T.self as? any JSONCollection.Type {
            return try collection(type, at: position, step())
        }
        // Use `type` and not `T`: the caller can pass the type of a subclass as the type of its superclass.
        return try type.init(from: nested(position, step()))
    }

    @inline(never)
    private func collection<T>(_ type: any JSONCollection.Type, at position: Int, _ step: Step) throws -> T {
        let value = try type.read(position, of: self, step)
        guard let value = value as? T else { throw mismatch(T.self, at: position, step) }
        return value
    }

    /// Returns the value as the type that it is known to have. `as!` would cost more than decoding a number.
    @inline(__always)
    private func cast<Value, T>(_ value: Value) -> T {
        precondition(T.self == Value.self)
        // Both types are the same, so nothing is reinterpreted.
        return unsafeBitCast(value, to: T.self)
    }

    private func date(at position: Int, _ step: Step) throws -> Date {
        switch source.dates {
        case .secondsSince1970: return Date(timeIntervalSince1970: try scalar(Double.self, at: position, step))
        case .millisecondsSince1970:
            return Date(timeIntervalSince1970: try scalar(Double.self, at: position, step) / 1_000)
        case .iso8601:
            if let date = reader.fixedDate(position) { return date }
            let text = try scalar(String.self, at: position, step)
            if let date = try? Date.ISO8601FormatStyle().parse(text) { return date }
            throw DecodingError.dataCorrupted(context("Expected date string to be ISO8601-formatted.", step))
        case .custom(let convert): return try convert(nested(position, step))
        default: return Date(timeIntervalSinceReferenceDate: try scalar(Double.self, at: position, step))
        }
    }

    private func data(at position: Int, _ step: Step) throws -> Data {
        switch source.data {
        case .base64:
            if let data = Data(base64Encoded: try scalar(String.self, at: position, step)) { return data }
            throw DecodingError.dataCorrupted(context("Encountered Data is not valid Base64.", step))
        case .custom(let convert): return try convert(nested(position, step))
        default: return try Data(from: nested(position, step))
        }
    }

    private func url(at position: Int, _ step: Step) throws -> URL {
        if let url = URL(string: try scalar(String.self, at: position, step)) { return url }
        throw DecodingError.dataCorrupted(context("Invalid URL string.", step))
    }

    private func decimal(at position: Int, _ step: Step) throws -> Decimal {
        if let decimal = reader.shortDecimal(position) { return decimal }
        guard let digits = reader.digits(position) else { throw mismatch(Decimal.self, at: position, step) }
        if let decimal = Decimal(string: digits), decimal.isFinite { return decimal }
        throw unfit(Decimal.self, at: position, step)
    }
}

// MARK: - Keys

extension JSONIndexDecoder {
    private func prepareKeys() {
        hint = position + 1
        let needsTable =
            if source.isPlain {
                reader.words[position].isMarked
            } else if case .convertFromSnakeCase = source.keys {
                reader.mayRepeatKeys(position, isSnakeCase: true)
            } else {
                true
            }
        if needsTable { makeTable() }
    }

    private func makeTable() {
        var table: [String: Int] = [:]
        table.reserveCapacity(reader.count(position))
        let path = source.isPlain ? [] : codingPath
        reader.forEach(in: position) { key in
            let name = convertedKey(key, path)
            if let first = table.updateValue(key + 1, forKey: name) { table[name] = first }
        }
        self.table = table
    }

    private func convertedKey(_ position: Int, _ path: [any CodingKey]) -> String {
        let key = reader.string(position) ?? ""
        switch source.keys {
        case .convertFromSnakeCase: return key.convertedFromSnakeCase
        case .custom(let convert): return convert(path + [JSONKey(stringValue: key)]).stringValue
        default: return key
        }
    }

    /// Returns all keys, each once.
    func keys<Key: CodingKey>(_ type: Key.Type) -> [Key] {
        // Use the table for keys that a custom strategy made, because the strategy could make other ones the next time.
        if case .custom = source.keys, let table { return table.keys.compactMap(Key.init) }
        var keys: [Key] = []
        keys.reserveCapacity(reader.count(position))
        reader.forEach(in: position) { position in
            let name = convertedKey(position, [])
            if table == nil || table?[name] == position + 1, let key = Key(stringValue: name) { keys.append(key) }
        }
        return keys
    }

    /// - Parameter isKept: whether the next search begins at the same key again.
    @inline(__always)
    func value(of key: String, isKept: Bool = false) -> Int? {
        if table != nil { return table?[key] }
        let start = hint
        var next = start
        let found =
            source.isPlain
            ? reader.value(of: key, in: position, from: &next)
            : reader.value(ofSnakeCase: key, in: position, from: &next)
        if isKept { return found }
        hint = next
        // The keys are requested in another order than the text's, or many are absent.
        if found == nil || next <= start {
            strays += 1
            if strays >= 8, reader.count(position) > 16 { makeTable() }
        }
        return found
    }

    func absent(_ key: some CodingKey) -> DecodingError {
        .keyNotFound(key, context("No value associated with key \(key) (\"\(key.stringValue)\")."))
    }

    /// Returns a decoder that can outlive the container. It decodes null if the key is absent.
    func superDecoder(_ key: some CodingKey) -> JSONIndexDecoder {
        nested(value(of: key.stringValue) ?? reader.next(0), .key(key))
    }
}
