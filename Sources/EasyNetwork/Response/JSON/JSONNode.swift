import Foundation

/// A JSON value: a position in an index, or a value as `JSONSerialization` returns it. The same rules apply to both.
enum JSONNode {
    case indexed(JSONIndex, Int)
    case tree(Any)

    /// - Parameter value: a value of a tree, a node, or a view that a mapper received.
    init(_ value: Any) {
        switch value {
        case let object as JSONObject: self = object.node
        case let node as JSONNode: self = node
        default: self = .tree(value)
        }
    }

    /// The value that a mapper receives: a view of an object, the node of an array, otherwise a value of a tree.
    var view: Any {
        guard case .indexed(let index, let position) = self else { return tree }
        switch index.reader.kind(position) {
        case .object: return JSONObject(index, position)
        case .array: return self
        default: return tree
        }
    }
}

// MARK: - Reading

extension JSONNode {
    /// Returns what one of the two functions reads: from an index, or from a tree.
    @inline(__always)
    private func read<T>(_ indexed: (JSONReader, Int) -> T, _ tree: (Any) -> T) -> T {
        switch self {
        case .indexed(let index, let position): indexed(index.reader, position)
        case .tree(let value): tree(value)
        }
    }

    var isNull: Bool { read({ $0.isNull($1) }, { $0 is NSNull }) }

    var isObject: Bool { read({ $0.kind($1) == .object }, { $0 is [String: Any] }) }

    var string: String? { read({ $0.string($1) }, { $0 as? String }) }

    /// A number or a Bool.
    var scalar: JSONValue? { read({ $0.scalar($1) }, { JSONValue(number: $0) }) }

    /// The value as `JSONSerialization` returns it.
    var tree: Any { read({ $0.tree($1) }, { $0 }) }

    /// The elements of an array, or nil for another value.
    var elements: Elements? {
        guard case .indexed(let index, let array) = self else {
            return (tree as? [Any]).map { Elements(index: nil, tree: $0, count: $0.count, position: 0, end: $0.count) }
        }
        let reader = index.reader
        guard reader.kind(array) == .array else { return nil }
        return Elements(index: index, tree: [], count: reader.count(array), position: array + 1, end: reader.end(array))
    }

    struct Elements: Sequence, IteratorProtocol {
        fileprivate let index: JSONIndex?
        fileprivate let tree: [Any]
        let count: Int
        /// The position of the next element, in the index or in the tree.
        fileprivate var position: Int
        fileprivate let end: Int

        mutating func next() -> JSONNode? {
            guard position < end else { return nil }
            defer { position = index?.reader.next(position) ?? position + 1 }
            return index.map { .indexed($0, position) } ?? .tree(tree[position])
        }
    }

    /// The members of an object, or nil for another value. If a key is repeated, its last value counts.
    var members: [String: JSONNode]? {
        guard case .indexed(let index, let object) = self else {
            return (tree as? [String: Any])?.mapValues { .tree($0) }
        }
        let reader = index.reader
        guard reader.kind(object) == .object else { return nil }
        var members: [String: JSONNode] = [:]
        members.reserveCapacity(reader.count(object))
        reader.forEach(in: object) { members[reader.string($0) ?? ""] = .indexed(index, $0 + 1) }
        return members
    }

    func member(_ key: String) -> JSONNode? {
        guard case .indexed(let index, let object) = self else {
            return (tree as? [String: Any])?[key].map { .tree($0) }
        }
        guard index.reader.kind(object) == .object else { return nil }
        var hint = object + 1
        return index.reader.value(of: key, in: object, from: &hint).map { .indexed(index, $0) }
    }

    /// Returns whether an object has the key more than once.
    func repeats(_ key: String) -> Bool {
        guard case .indexed(let index, let position) = self, index.reader.kind(position) == .object,
            index.reader.words[position].isMarked
        else { return false }
        var count = 0
        index.reader.forEach(in: position) { if index.reader.string($0) == key { count += 1 } }
        return count > 1
    }

    /// Returns the value at a dotted path into nested objects, or nil if there is none, or if the path has no dot.
    func value(atPath path: String) -> JSONNode? {
        guard path.utf8Bytes({ $0.contains(UInt8(ascii: ".")) }) else { return nil }
        return path.split(separator: ".", omittingEmptySubsequences: false).reduce(self) { $0?.member(String($1)) }
    }

    /// The name of the value's kind, for error messages.
    var kind: String {
        switch scalar {
        case .bool: return "Bool"
        case .integer, .unsigned: return "Int"
        case .double: return "Double"
        case .decimal: return "Decimal"
        default: break
        }
        if case .indexed(let index, let position) = self, [.ascii, .text].contains(index.reader.kind(position)) {
            return "String"
        }
        if isNull { return "null" }
        if isObject { return "object" }
        if elements != nil { return "array" }
        return string == nil ? String(describing: type(of: tree)) : "String"
    }
}

// MARK: - Reading as a type

extension JSONNode {
    /// Reads the value as a type, more strictly than `as?`, for which 1, 1.0 and true are equal: a Bool is not a
    /// number, an integer has no fraction, and nothing is rounded or truncated.
    ///
    /// - Returns: nil if the value has another type, or does not fit.
    func read<T>(as type: T.Type = T.self) -> T? {
        // Handle most values quickly: a dynamic cast to a protocol costs far more.
        if case .tree(let value) = self, Swift.type(of: value) == type { return value as? T }
        switch type {
        case is String.Type: return string as? T
        case is Bool.Type: return bool as? T
        case is JSONObject.Type: return JSONObject(self) as? T
        case is Date.Type: return date as? T
        case is [String].Type: return array(of: String.self) { $1.reader.string($0) } as? T
        case is [Int].Type: return array(of: Int.self) { $1.reader.integer($0) } as? T
        case is [Double].Type: return array(of: Double.self) { $1.reader.exactDouble($0) } as? T
        case is [Bool].Type: return array(of: Bool.self) { $1.reader.bool($0) } as? T
        case is [JSONObject].Type:
            return array(of: JSONObject.self) { $1.reader.kind($0) == .object ? JSONObject($1, $0) : nil } as? T
        case let type as any FixedWidthInteger.Type: return scalar?.integer(type) as? T
        case let type as any BinaryFloatingPoint.Type: return floatingPoint(type) as? T
        case is Decimal.Type: return decimal as? T
        case let type as any JSONContainer.Type: return type.read(self) as? T
        default: return tree as? T
        }
    }

    private struct Misfit: Error {}

    /// - Throws: if ``read(as:)`` returns nil.
    fileprivate func value<T>() throws -> T {
        guard let value = read(as: T.self) else { throw Misfit() }
        return value
    }

    private var bool: Bool? { if case .bool(let flag) = scalar { flag } else { nil } }

    private var date: Date? {
        if case .indexed(let index, let position) = self, let date = index.reader.fixedDate(position) { return date }
        return string.flatMap { Date(rfc3339Text: $0) }
    }

    private func floatingPoint<T: BinaryFloatingPoint>(_ type: T.Type) -> T? {
        guard case .indexed(let index, let position) = self, index.reader.kind(position) == .number else {
            return scalar?.floatingPoint(type)
        }
        // The value nearest to the digits as written; a `Double` might not preserve all of them.
        return index.reader.double(position).map { T($0) }
    }

    private var decimal: Decimal? {
        guard case .indexed(let index, let position) = self else { return scalar?.decimal }
        return index.reader.digits(position).flatMap { Decimal(string: $0) }
    }

    /// - Parameter plain: returns an element of an index in its usual form, or nil if ``read(as:)`` must read the
    ///   element.
    /// - Returns: nil if the value is not an array, or if an element has another type.
    @inline(__always)
    fileprivate func array<Element>(of type: Element.Type, _ plain: (Int, JSONIndex) -> Element?) -> [Element]? {
        guard case .indexed(let index, let array) = self else {
            return try? (tree as? [Any])?.map { try JSONNode.tree($0).value() }
        }
        let reader = index.reader
        guard reader.kind(array) == .array else { return nil }
        var result: [Element] = []
        result.reserveCapacity(reader.count(array))
        var position = array + 1
        while position < reader.end(array) {
            guard let element = plain(position, index) ?? JSONNode.indexed(index, position).read(as: type) else {
                return nil
            }
            result.append(element)
            position = reader.next(position)
        }
        return result
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
        // Convert the digits: `Decimal(0.1)` is not 0.1.
        case .double(let value): Decimal(string: value.description)
        case .decimal(let value): value
        default: nil
        }
    }
}

/// A generic type whose elements ``JSONNode/read(as:)`` reads one by one.
private protocol JSONContainer {
    static func read(_ node: JSONNode) -> Self?
}

extension Optional: JSONContainer {
    fileprivate static func read(_ node: JSONNode) -> Wrapped?? {
        node.isNull ? .some(nil) : node.read(as: Wrapped.self).map { .some($0) }
    }
}

extension Array: JSONContainer {
    fileprivate static func read(_ node: JSONNode) -> [Element]? {
        Element.self == Any.self ? node.tree as? [Element] : node.array(of: Element.self) { _, _ in nil }
    }
}

extension Dictionary: JSONContainer where Key == String {
    fileprivate static func read(_ node: JSONNode) -> [String: Value]? {
        if Value.self == Any.self { return node.tree as? [String: Value] }
        return try? node.members?.mapValues { try $0.value() }
    }
}

// MARK: - Values of an index

extension JSONReader {
    /// Returns a number or a Bool, with the kinds of numbers that `JSONSerialization` distinguishes, or nil for another
    /// value.
    func scalar(_ position: Int) -> JSONValue? {
        switch kind(position) {
        case .bool: return .bool(count(position) == 4)
        case .integer:
            if let value = integer(position, as: Int64.self) { return .integer(value) }
            if let value = integer(position, as: UInt64.self) { return .unsigned(value) }
            return fraction(position)
        case .number: return fraction(position)
        default: return nil
        }
    }

    private func fraction(_ position: Int) -> JSONValue? {
        // A Double represents about 17 digits.
        let isLong = bytes(position).prefix { $0 | 0x20 != UInt8(ascii: "e") }.count > 17
        if isLong, let digits = digits(position), let value = Decimal(string: digits), value.isFinite {
            return .decimal(value)
        }
        return double(position).map { .double($0) }
    }

    /// Returns the value as `JSONSerialization` does: a dictionary, an array, a `String`, an `NSNumber` or `NSNull`. If
    /// a key is repeated, its last value counts.
    func tree(_ position: Int) -> Any {
        switch kind(position) {
        case .null: return NSNull()
        case .ascii, .text: return string(position) ?? ""
        case .bool, .integer, .number: return scalar(position)?.number ?? NSNull()
        case .array:
            var array: [Any] = []
            array.reserveCapacity(count(position))
            forEach(in: position) { array.append(tree($0)) }
            return array
        case .object:
            var object: [String: Any] = [:]
            object.reserveCapacity(count(position))
            forEach(in: position) { object[string($0) ?? ""] = tree($0 + 1) }
            return object
        }
    }
}

extension JSONValue {
    fileprivate var number: NSNumber? {
        switch self {
        case .bool(let value): NSNumber(value: value)
        case .integer(let value): NSNumber(value: value)
        case .unsigned(let value): NSNumber(value: value)
        case .double(let value): NSNumber(value: value)
        case .decimal(let value): NSDecimalNumber(decimal: value)
        default: nil
        }
    }
}
