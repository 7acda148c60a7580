import Foundation

/// Reading a JSON object key by key, with errors that name the key.
///
/// ```swift
/// static func process(_ json: Any?) throws -> User {
///     try process(json) { json in
///         User(id: try json.required("id"), city: try json.optional("address.city"))
///     }
/// }
/// ```
///
/// Types are taken strictly: a Bool is no Int, 1.5 is no Int, and an Int is a Double only if it is exact. Strings are not
/// read as numbers. Arrays and dictionaries are read element by element.
extension [String: Any] {
    /// The value of a key that has to be there.
    ///
    /// - Parameters:
    ///   - key: a key of this object, or else a dotted path into objects below: `"owner.name"`.
    ///   - type: default what the context asks for.
    /// - Throws: ``ResponseMapperError/missing(key:)`` when there is no such key,
    ///   ``ResponseMapperError/mismatch(key:expected:found:)`` when its value is null or of another type.
    public func required<T>(_ key: String, as type: T.Type = T.self) throws(ResponseMapperError) -> T {
        guard let value = attribute(key) else { throw .missing(key: key) }
        return try read(value, key, as: type)
    }

    /// The value of a key that may be missing or null: nil comes back then.
    ///
    /// - Throws: ``ResponseMapperError/mismatch(key:expected:found:)`` when there is a value of another type.
    public func optional<T>(_ key: String, as type: T.Type = T.self) throws(ResponseMapperError) -> T? {
        guard let value = attribute(key), !(value is NSNull) else { return nil }
        return try read(value, key, as: type)
    }

    private func read<T>(_ value: Any, _ key: String, as type: T.Type) throws(ResponseMapperError) -> T {
        if let result = readJSON(value, as: type) { return result }
        throw .mismatch(key: key, expected: String(describing: type), found: JSONKind.name(of: value))
    }

    private func attribute(_ key: String) -> Any? {
        if let value = self[key] { return value }
        guard key.utf8.contains(UInt8(ascii: ".")) else { return nil }
        var value: Any? = self
        for part in key.split(separator: ".", omittingEmptySubsequences: false) {
            value = (value as? [String: Any])?[String(part)]
        }
        return value
    }
}
