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
/// Types are strict: a Bool is no Int, 1.5 is no Int, an Int is a Double only if it is exact, and a text is no number.
/// Arrays and dictionaries are read element by element. Of repeated keys the last one counts.
///
/// It is a view: made of a ``NetworkResponse``, it reads the bytes of the body through an index, without dictionaries.
/// Reading the keys in the order in which the server writes them is the quickest. It is used by one thread at a time.
public final class JSONObject {
    let node: JSONNode
    /// Where the next key is most likely found.
    private var hint: Int

    init(_ index: JSONIndex, _ position: Int) {
        node = .indexed(index, position)
        hint = position + 1
    }

    /// - Returns: nil if the value is no object.
    init?(_ node: JSONNode) {
        switch node {
        case .indexed(let index, let position):
            guard index.kind(position) == .object else { return nil }
            hint = position + 1
            self.node = node
        case .tree(let value):
            guard let object = value as? [String: Any] else { return nil }
            hint = 0
            self.node = .tree(object)
        }
    }

    /// The value of a required key.
    ///
    /// - Parameters:
    ///   - key: a key of this object, or else a dotted path into objects below: `"owner.name"`.
    ///   - type: default the type of the context. ``JSONObject`` is a view of an object below.
    /// - Throws: ``ResponseMapperError/missing(key:)`` if there is no such key,
    ///   ``ResponseMapperError/mismatch(key:expected:found:)`` if its value is null or of another type.
    @inlinable
    public func required<T>(_ key: String, as type: T.Type = T.self) throws(ResponseMapperError) -> T {
        if let value = plain(key, as: type) { return value }
        guard let value = try value(key, as: type) else { throw .missing(key: key) }
        return value
    }

    /// The value of an optional key; nil if it is missing or null.
    ///
    /// - Throws: ``ResponseMapperError/mismatch(key:expected:found:)`` if the value is of another type.
    @inlinable
    public func optional<T>(_ key: String, as type: T.Type = T.self) throws(ResponseMapperError) -> T? {
        if let value = plain(key, as: type) { return value }
        if isNull(key) { return nil }
        return try value(key, as: type)
    }

    /// The value of a key as ``NetworkResponse/json()`` returns it: `[String: Any]`, `[Any]`, `String`, `NSNumber` or
    /// `NSNull`; nil if there is no such key.
    public subscript(key: String) -> Any? {
        switch node {
        case .indexed(let index, _): position(key).map(index.tree)
        case .tree(let value): (value as? [String: Any])?[key]
        }
    }

    /// The object with all that is in it, as ``NetworkResponse/json()`` returns it.
    public var dictionary: [String: Any] { node.tree as? [String: Any] ?? [:] }

    // MARK: The quick way

    /// A value of the most frequent types; nil if it is another one. The compiler of the program knows the type, and
    /// leaves one of the lines.
    @inlinable
    func plain<T>(_ key: String, as type: T.Type) -> T? {
        if T.self == String.self { return string(key) as? T }
        if T.self == Int.self { return integer(key) as? T }
        if T.self == Double.self { return double(key) as? T }
        if T.self == Bool.self { return bool(key) as? T }
        return nil
    }

    @usableFromInline
    func string(_ key: String) -> String? {
        guard case .indexed(let index, _) = node, let position = position(key) else { return nil }
        return index.string(position)
    }

    @usableFromInline
    func integer(_ key: String) -> Int? {
        guard case .indexed(let index, _) = node, let position = position(key) else { return nil }
        return index.integer(position)
    }

    @usableFromInline
    func double(_ key: String) -> Double? {
        guard case .indexed(let index, _) = node, let position = position(key), index.kind(position) == .number else {
            return nil
        }
        return index.double(position)
    }

    @usableFromInline
    func bool(_ key: String) -> Bool? {
        guard case .indexed(let index, _) = node, let position = position(key) else { return nil }
        return index.bool(position)
    }

    // MARK: The other way

    private func position(_ key: String) -> Int? {
        guard case .indexed(let index, let object) = node else { return nil }
        return index.value(of: key, in: object, from: &hint, last: true)
    }

    @usableFromInline
    func isNull(_ key: String) -> Bool { node.attribute(key)?.isNull ?? true }

    /// - Returns: nil if there is no such key.
    @usableFromInline
    func value<T>(_ key: String, as type: T.Type) throws(ResponseMapperError) -> T? {
        let found: JSONNode?
        if case .indexed(let index, _) = node, let position = position(key) {
            found = .indexed(index, position)
        } else {
            found = node.attribute(key)
        }
        guard let found else { return nil }
        if let value = found.read(as: type) { return value }
        throw .mismatch(key: key, expected: String(describing: type), found: found.kind)
    }
}

/// Reading a dictionary as ``JSONObject`` reads an object.
extension [String: Any] {
    /// The value of a required key, as by ``JSONObject/required(_:as:)``.
    public func required<T>(_ key: String, as type: T.Type = T.self) throws(ResponseMapperError) -> T {
        guard let value = try view.value(key, as: type) else { throw .missing(key: key) }
        return value
    }

    /// The value of an optional key, as by ``JSONObject/optional(_:as:)``.
    public func optional<T>(_ key: String, as type: T.Type = T.self) throws(ResponseMapperError) -> T? {
        view.isNull(key) ? nil : try view.value(key, as: type)
    }

    private var view: JSONObject {
        // A dictionary is an object.
        JSONObject(.tree(self)).unsafelyUnwrapped
    }
}
