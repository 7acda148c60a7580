import Foundation

/// A JSON object that a mapper reads key by key, with errors that name the key.
///
/// ```swift
/// struct Address: ParsedItem { let id: Int; let city: String? }
///
/// let address = try ResponseMapper<Address>.process(json) { json in
///     Address(id: try json.required("id"), city: try json.optional("address.city"))
/// }
/// ```
///
/// Types are strict: a Bool is not an Int, 1.5 is not an Int, an Int is a Double only if the conversion is exact, and a
/// string is not a number. A `Date` is a string of RFC 3339, section 5.6. Arrays and dictionaries are read element by
/// element. If a key is repeated, its last value counts.
///
/// An object that comes from a ``NetworkResponse`` is a view: it reads the bytes of the body through an index, without
/// dictionaries. Reading the keys in the order in which the server writes them is the fastest. Use an object on one
/// thread at a time.
public final class JSONObject {
    /// The index; nil for an object of a tree.
    private let index: JSONIndex?
    private let object: Int
    private let tree: [String: Any]?
    /// The most likely place of the next key. One thread uses it at a time, and no host code runs while it changes.
    @exclusivity(unchecked) private var hint = 0

    init(_ index: JSONIndex, _ position: Int) {
        (self.index, object, tree) = (index, position, nil)
        hint = position + 1
    }

    init(_ tree: [String: Any]) {
        (index, object, self.tree) = (nil, 0, tree)
    }

    /// - Returns: nil if the value is not an object.
    convenience init?(_ node: JSONNode) {
        switch node {
        case .indexed(let index, let position) where index.reader.kind(position) == .object:
            self.init(index, position)
        case .tree(let value as [String: Any]): self.init(value)
        default: return nil
        }
    }

    /// Returns a view of the value that a mapper received, or nil if it is not an object.
    @usableFromInline
    static func view(of json: Any?) -> JSONObject? {
        guard let json else { return nil }
        // A cast would cost as much as reading three values.
        func object<T>(_ value: T) -> JSONObject? {
            T.self == JSONObject.self ? unsafeBitCast(value, to: JSONObject?.self) : JSONObject(JSONNode(json))
        }
        return _openExistential(json, do: object)
    }

    var node: JSONNode { index.map { .indexed($0, object) } ?? .tree(tree ?? [:]) }

    /// Returns the value of a required key.
    ///
    /// - Parameters:
    ///   - key: a key of this object, otherwise a dotted path into nested objects: `"owner.name"`.
    ///   - type: the type of the value. Defaults to the type of the context. ``JSONObject`` is a view of a nested
    ///     object.
    /// - Throws: ``ResponseMapperError/missing(key:)`` if the key does not exist, and
    ///   ``ResponseMapperError/mismatch(key:expected:found:)`` if its value is null or of another type.
    @inlinable
    public func required<T>(_ key: String, as type: T.Type = T.self) throws(ResponseMapperError) -> T {
        let place = place(of: key)
        if let value = plain(place, as: type) { return value }
        guard let value = try value(of: key, place, as: type) else { throw .missing(key: key) }
        return value
    }

    /// Returns the value of an optional key, or `nil` if it is missing or null.
    ///
    /// - Throws: ``ResponseMapperError/mismatch(key:expected:found:)`` if the value is of another type.
    @inlinable
    public func optional<T>(_ key: String, as type: T.Type = T.self) throws(ResponseMapperError) -> T? {
        let place = place(of: key)
        if let value = plain(place, as: type) { return value }
        return isNull(key, place) ? nil : try value(of: key, place, as: type)
    }

    /// The value of a key as ``NetworkResponse/json()`` returns it: `[String: Any]`, `[Any]`, `String`, `NSNumber` or
    /// `NSNull`; `nil` if the key does not exist.
    public subscript(key: String) -> Any? {
        guard let index else { return tree?[key] }
        let place = place(of: key)
        return place < 0 ? nil : index.reader.tree(place)
    }

    /// The object and all its contents, as ``NetworkResponse/json()`` returns them.
    public var dictionary: [String: Any] { node.tree as? [String: Any] ?? [:] }

    /// Returns the position of a key's value in the index; negative if there is none.
    @usableFromInline
    func place(of key: String) -> Int { index?.reader.value(of: key, in: object, from: &hint) ?? -1 }

    // MARK: Frequent types

    /// Returns a value of one of the most frequent types, or nil for other types. The compiler specializes the method
    /// in the calling module and keeps only one of the lines.
    @inlinable
    func plain<T>(_ place: Int, as type: T.Type) -> T? {
        guard place >= 0 else { return nil }
        // A cast would cost more than the value. The comparison proves that both types are the same, so the bit cast is
        // safe.
        if T.self == String.self { return unsafeBitCast(string(place), to: T?.self) }
        if T.self == Int.self { return unsafeBitCast(integer(place), to: T?.self) }
        if T.self == Double.self { return unsafeBitCast(double(place), to: T?.self) }
        if T.self == Bool.self { return unsafeBitCast(bool(place), to: T?.self) }
        if T.self == Date.self { return unsafeBitCast(date(place), to: T?.self) }
        if T.self == JSONObject.self { return unsafeBitCast(view(place), to: T?.self) }
        return nil
    }

    @usableFromInline
    func string(_ place: Int) -> String? { index?.reader.string(place) }

    @usableFromInline
    func integer(_ place: Int) -> Int? { index?.reader.integer(place) }

    @usableFromInline
    func double(_ place: Int) -> Double? { index?.reader.exactDouble(place) }

    @usableFromInline
    func bool(_ place: Int) -> Bool? { index?.reader.bool(place) }

    @usableFromInline
    func date(_ place: Int) -> Date? { index?.reader.fixedDate(place) }

    @usableFromInline
    func view(_ place: Int) -> JSONObject? {
        index.flatMap { $0.reader.kind(place) == .object ? JSONObject($0, place) : nil }
    }

    // MARK: All types

    /// Returns the value of a key, otherwise of a dotted path.
    private func attribute(_ key: String, _ place: Int) -> JSONNode? {
        if let index, place >= 0 { return .indexed(index, place) }
        return tree?[key].map { .tree($0) } ?? node.value(atPath: key)
    }

    @usableFromInline
    func isNull(_ key: String, _ place: Int) -> Bool {
        if let index, place >= 0 { return index.reader.isNull(place) }
        return attribute(key, place)?.isNull ?? true
    }

    /// - Returns: nil if the key does not exist.
    @usableFromInline
    func value<T>(of key: String, _ place: Int, as type: T.Type) throws(ResponseMapperError) -> T? {
        guard let found = attribute(key, place) else { return nil }
        if let value = found.read(as: type) { return value }
        throw .mismatch(key: key, expected: String(describing: type), found: found.kind)
    }
}

/// Methods that read a dictionary as ``JSONObject`` reads an object.
extension [String: Any] {
    /// Returns the value of a required key, see ``JSONObject/required(_:as:)``.
    public func required<T>(_ key: String, as type: T.Type = T.self) throws(ResponseMapperError) -> T {
        try JSONObject(self).required(key, as: type)
    }

    /// Returns the value of an optional key, see ``JSONObject/optional(_:as:)``.
    public func optional<T>(_ key: String, as type: T.Type = T.self) throws(ResponseMapperError) -> T? {
        try JSONObject(self).optional(key, as: type)
    }
}
