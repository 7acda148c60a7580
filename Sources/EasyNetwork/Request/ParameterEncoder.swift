import Foundation

/// Makes parameters of an `Encodable`, and ends at one that holds itself.
///
/// Encoders of Foundation would write dates and bytes in their own ways, and overflow the stack in a circle.
struct ParameterEncoder: Encoder {
    fileprivate let node: ParameterNode
    fileprivate let place: ParameterPath
    let userInfo: [CodingUserInfoKey: Any]
    /// Whether only the depth counts, and no value is refused.
    fileprivate let isProbe: Bool
    /// How many values there are at this place that hold one other, and nothing else.
    private let wrappers: Int

    private init(
        node: ParameterNode,
        place: ParameterPath,
        userInfo: [CodingUserInfoKey: Any] = [:],
        isProbe: Bool = false,
        wrappers: Int = 0
    ) {
        self.node = node
        self.place = place
        self.userInfo = userInfo
        self.isProbe = isProbe
        self.wrappers = wrappers
    }

    /// - Throws: ``NetworkError/Code/invalidRequest``, also for what is no object at its outermost level.
    static func object(
        from value: any Encodable,
        styles: ParameterStyles
    ) throws(NetworkError) -> [String: ParameterValue] {
        let node = ParameterNode()
        let place = ParameterPath(styles: styles)
        do {
            try value.encode(to: ParameterEncoder(node: node, place: place))
        } catch {
            throw (error as? NetworkError)
                ?? EncodingFailure.networkError(for: error, encoding: type(of: value), as: "parameters")
        }
        guard case .object(let values) = try node.value(at: place) else {
            throw NetworkError(
                code: .invalidRequest,
                message: "parameters of type \(type(of: value)) have no keys; send what is no object as a body"
            )
        }
        return values
    }

    /// Finds out whether another encoder would come to an end.
    ///
    /// - Throws: only when the value lies too deep in itself; other errors are for the other encoder to find.
    static func checkDepth(_ value: any Encodable, _ userInfo: [CodingUserInfoKey: Any]) throws(NetworkError) {
        let probe = ParameterEncoder(node: ParameterNode(), place: ParameterPath(), userInfo: userInfo, isProbe: true)
        do {
            try value.encode(to: probe)
        } catch let error as NetworkError where error.underlying is ParameterPath.TooDeep {
            throw error
        } catch {}
    }

    var codingPath: [any CodingKey] { place.steps }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        if !isProbe { node.becomeObject() }
        return KeyedEncodingContainer(KeyedParameters(encoder: self))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        if !isProbe { node.becomeArray() }
        return UnkeyedParameters(encoder: self, count: node.count)
    }

    func singleValueContainer() -> any SingleValueEncodingContainer {
        SingleParameter(encoder: self)
    }

    /// - Parameter index: nil for a key of an object, which may have a number as well.
    fileprivate func nested(_ key: String, index: Int? = nil) -> ParameterEncoder {
        let inside = place.deeper()
        return ParameterEncoder(
            // A probe keeps nothing.
            node: isProbe ? node : node.child(key),
            place: index.map(inside.appending) ?? inside.appending(key),
            userInfo: userInfo,
            isProbe: isProbe
        )
    }

    fileprivate func encode<Value: Encodable>(_ value: Value) throws {
        if Self.isScalar(Value.self) {
            if !isProbe { node.content = .value(try ParameterValue(value, at: place)) }
            return
        }
        guard !place.isTooDeep, wrappers < ParameterPath.deepest else { throw place.tooDeep() }
        let encoder = ParameterEncoder(
            node: node,
            place: place,
            userInfo: userInfo,
            isProbe: isProbe,
            wrappers: wrappers + 1
        )
        try value.encode(to: encoder)
    }

    fileprivate func encodeNil() {
        if !isProbe { node.content = .value(.null) }
    }

    /// Whether a type is written in one way, whatever it would do itself.
    fileprivate static func isScalar(_ type: any Encodable.Type) -> Bool {
        type == String.self || type == Int.self || type == Bool.self || type == Double.self || type == Float.self
            || type == Date.self || type == Data.self || type == URL.self || type == Decimal.self
            || type is any BinaryInteger.Type
    }
}

/// What has been encoded at one place.
private final class ParameterNode {
    enum Content {
        case nothing
        case value(ParameterValue)
        case array([ParameterNode])
        case object([String: ParameterNode])
    }

    var content = Content.nothing

    var count: Int {
        if case .array(let nodes) = content { nodes.count } else { 0 }
    }

    // Asked for twice, a container goes on where it was; a class and its superclass may share one.

    func becomeObject() {
        if case .object = content { return }
        content = .object([:])
    }

    func becomeArray() {
        if case .array = content { return }
        content = .array([])
    }

    /// - Parameter key: of no meaning in an array.
    func child(_ key: String) -> ParameterNode {
        let child = ParameterNode()
        switch content {
        case .array(var nodes):
            content = .nothing
            nodes.append(child)
            content = .array(nodes)
        case .object(var nodes):
            content = .nothing
            nodes[key] = child
            content = .object(nodes)
        case .nothing, .value:
            break
        }
        return child
    }

    func value(at place: ParameterPath) throws(NetworkError) -> ParameterValue {
        switch content {
        // A type without properties.
        case .nothing: return .object([:])
        case .value(let value): return value
        case .array(let nodes):
            let inside = try place.inside()
            var values: [ParameterValue] = []
            for (index, node) in nodes.enumerated() { values.append(try node.value(at: inside.appending(index))) }
            return .array(values)
        case .object(let nodes):
            let inside = try place.inside()
            var values: [String: ParameterValue] = [:]
            for (key, node) in nodes { values[key] = try node.value(at: inside.appending(key)) }
            return .object(values)
        }
    }
}

private struct KeyedParameters<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let encoder: ParameterEncoder

    var codingPath: [any CodingKey] { encoder.codingPath }

    func encodeNil(forKey key: Key) throws {
        nested(key).encodeNil()
    }

    func encode<Value: Encodable>(_ value: Value, forKey key: Key) throws {
        if encoder.isProbe, ParameterEncoder.isScalar(Value.self) { return }
        try nested(key).encode(value)
    }

    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type,
        forKey key: Key
    ) -> KeyedEncodingContainer<Nested> {
        nested(key).container(keyedBy: type)
    }

    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
        nested(key).unkeyedContainer()
    }

    func superEncoder() -> any Encoder {
        encoder.nested("super")
    }

    func superEncoder(forKey key: Key) -> any Encoder {
        nested(key)
    }

    private func nested(_ key: Key) -> ParameterEncoder {
        encoder.nested(key.stringValue)
    }
}

private struct UnkeyedParameters: UnkeyedEncodingContainer {
    let encoder: ParameterEncoder
    private(set) var count: Int

    init(encoder: ParameterEncoder, count: Int) {
        self.encoder = encoder
        self.count = count
    }

    var codingPath: [any CodingKey] { encoder.codingPath }

    mutating func encodeNil() throws {
        next().encodeNil()
    }

    mutating func encode<Value: Encodable>(_ value: Value) throws {
        if encoder.isProbe, ParameterEncoder.isScalar(Value.self) {
            count += 1
        } else {
            try next().encode(value)
        }
    }

    mutating func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type) -> KeyedEncodingContainer<Nested> {
        next().container(keyedBy: type)
    }

    mutating func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer {
        next().unkeyedContainer()
    }

    mutating func superEncoder() -> any Encoder {
        next()
    }

    private mutating func next() -> ParameterEncoder {
        defer { count += 1 }
        return encoder.nested("", index: count)
    }
}

private struct SingleParameter: SingleValueEncodingContainer {
    let encoder: ParameterEncoder

    var codingPath: [any CodingKey] { encoder.codingPath }

    func encodeNil() throws {
        encoder.encodeNil()
    }

    func encode<Value: Encodable>(_ value: Value) throws {
        try encoder.encode(value)
    }
}
