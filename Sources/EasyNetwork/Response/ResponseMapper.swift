import Foundation

/// A struct that a mapper makes from an answer.
///
/// ```swift
/// struct User: ParsedItem { let id: Int; let name: String? }
/// ```
public protocol ParsedItem: Sendable {}

/// A mapper from JSON, as ``NetworkResponse/json()`` returns it, to an item.
///
/// ```swift
/// final class UserMapper: ResponseMapper<User>, ResponseMapperProtocol {
///     static func process(_ json: Any?) throws -> User {
///         try process(json) { json in User(id: try json.required("id"), name: try json.required("name")) }
///     }
/// }
/// ```
public protocol ResponseMapperProtocol {
    /// The type that the mapper makes.
    associatedtype Item
    /// Makes the item from JSON.
    ///
    /// - Throws: any error, for example a ``ResponseMapperError``.
    static func process(_ json: Any?) throws -> Item
}

/// The base class of mappers from a JSON object to a struct.
///
/// ```swift
/// struct User: ParsedItem { let id: Int; let name: String? }
///
/// final class UserMapper: ResponseMapper<User>, ResponseMapperProtocol {
///     static func process(_ json: Any?) throws -> User {
///         try process(json) { json in
///             User(id: try json.required("id"), name: try json.optional("name"))
///         }
///     }
/// }
/// ```
///
/// It has no state, and runs on the caller's thread.
open class ResponseMapper<Item: ParsedItem> {
    /// Creates a mapper. Its methods are static, so that a program needs no instance.
    public init() {}

    /// Passes the JSON object to `parse`.
    ///
    /// - Parameters:
    ///   - json: the value that ``NetworkResponse/json()`` returns.
    ///   - parse: returns the item; nil means that an attribute is missing.
    /// - Throws: ``ResponseMapperError/invalid`` if the JSON is no object, ``ResponseMapperError/missingAttribute`` if
    ///   `parse` returns nil, and the errors of `parse`.
    public static func process(_ json: Any?, parse: (_ json: [String: Any]) throws -> Item?) throws -> Item {
        guard let object = json as? [String: Any] else { throw ResponseMapperError.invalid }
        guard let item = try parse(object) else { throw ResponseMapperError.missingAttribute }
        return item
    }
}

/// A mapper from a JSON array to structs, with a mapper for the elements.
///
/// ```swift
/// let users = try ArrayResponseMapper.process(try response.json(), mapper: UserMapper.process)
/// ```
public final class ArrayResponseMapper<Item: ParsedItem> {
    private init() {}

    /// Maps every element.
    ///
    /// - Throws: ``ResponseMapperError/invalid`` if the JSON is no array, and
    ///   ``ResponseMapperError/element(index:underlying:)`` for the first element that `mapper` throws at.
    public static func process(_ json: Any?, mapper: (Any?) throws -> Item) throws -> [Item] {
        guard let array = json as? [Any] else { throw ResponseMapperError.invalid }
        return try array.enumerated().map { index, element in
            do {
                return try mapper(element)
            } catch {
                throw ResponseMapperError.element(index: index, underlying: error)
            }
        }
    }

    /// Maps the elements that can be mapped, and reports the others.
    ///
    /// - Returns: the mapped elements, in order, and the index of each element that was skipped with the reason, in
    ///   order.
    /// - Throws: ``ResponseMapperError/invalid`` if the JSON is no array.
    public static func processLeniently(
        _ json: Any?,
        mapper: (Any?) throws -> Item
    ) throws -> (items: [Item], failures: [(index: Int, error: any Error)]) {
        guard let array = json as? [Any] else { throw ResponseMapperError.invalid }
        var items: [Item] = []
        var failures: [(index: Int, error: any Error)] = []
        items.reserveCapacity(array.count)
        for (index, element) in array.enumerated() {
            do {
                items.append(try mapper(element))
            } catch {
                failures.append((index, error))
            }
        }
        return (items, failures)
    }
}

// MARK: - Reading objects

/// Reading a JSON object key by key, with errors that name the key.
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
/// Arrays and dictionaries are read element by element.
extension [String: Any] {
    /// The value of a required key.
    ///
    /// - Parameters:
    ///   - key: a key of this object, or else a dotted path into objects below: `"owner.name"`.
    ///   - type: default the type of the context.
    /// - Throws: ``ResponseMapperError/missing(key:)`` if there is no such key,
    ///   ``ResponseMapperError/mismatch(key:expected:found:)`` if its value is null or of another type.
    public func required<T>(_ key: String, as type: T.Type = T.self) throws(ResponseMapperError) -> T {
        guard let value = attribute(key) else { throw .missing(key: key) }
        return try read(value, key, as: type)
    }

    /// The value of an optional key; nil if it is missing or null.
    ///
    /// - Throws: ``ResponseMapperError/mismatch(key:expected:found:)`` if the value is of another type.
    public func optional<T>(_ key: String, as type: T.Type = T.self) throws(ResponseMapperError) -> T? {
        guard let value = attribute(key), !(value is NSNull) else { return nil }
        return try read(value, key, as: type)
    }

    private func read<T>(_ value: Any, _ key: String, as type: T.Type) throws(ResponseMapperError) -> T {
        if let result = readJSON(value, as: type) { return result }
        throw .mismatch(key: key, expected: String(describing: type), found: jsonKind(of: value))
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

// MARK: - Views

extension Result where Failure == NetworkError {
    /// A view of the value, such as the row of a list or the text of a label. A failure stays as it is.
    ///
    /// ```swift
    /// let row = operation.result?.reformed { user in "\(user.name), \(user.city)" }
    /// ```
    ///
    /// - Parameter view: makes the view, on the caller's thread. An error that is no ``NetworkError`` becomes
    ///   ``NetworkError/Code/cannotParseResponse``.
    public func reformed<View>(_ view: (Success) throws -> View) -> Result<View, NetworkError> {
        flatMap { success in
            Result<View, any Error> { try view(success) }.mapError(NetworkError.mapping)
        }
    }
}

// MARK: - Errors

/// The reason why JSON could not be mapped into a struct.
///
/// ```swift
/// do {
///     show(try UserMapper.process(json))
/// } catch ResponseMapperError.missing(let key) {
///     print("no \(key)")
/// }
/// ```
public enum ResponseMapperError: Error {
    /// The JSON has another form than the mapper reads: it is no object, or no array.
    case invalid
    /// A required attribute is missing; the mapper did not name it.
    case missingAttribute
    /// There is no value for the key.
    case missing(key: String)
    /// The value of the key is of another type.
    case mismatch(key: String, expected: String, found: String)
    /// An element of an array could not be mapped. Indices begin at 0.
    indirect case element(index: Int, underlying: any Error)
}

extension ResponseMapperError: LocalizedError {
    /// A sentence that names the key and the index.
    public var errorDescription: String? {
        phrase.prefix(1).uppercased() + phrase.dropFirst() + "."
    }

    /// The error as part of a longer sentence.
    var phrase: String {
        switch self {
        case .invalid: "the JSON is not of the expected form"
        case .missingAttribute: "an attribute is missing"
        case .missing(let key): "no value for key \"\(key)\""
        case .mismatch(let key, let expected, let found): "key \"\(key)\": expected \(expected) but found \(found)"
        case .element(let index, let underlying): "element \(index): \(Self.phrase(of: underlying))"
        }
    }

    private static func phrase(of error: any Error) -> String {
        switch error {
        case let error as ResponseMapperError: error.phrase
        case let error as NetworkError: error.message ?? error.description.withoutFullStop
        default: error.wording
        }
    }
}

extension ResponseMapperError: Equatable {
    /// Compares underlying errors by their descriptions.
    public static func == (left: ResponseMapperError, right: ResponseMapperError) -> Bool {
        switch (left, right) {
        case (.element(let leftIndex, let leftError), .element(let rightIndex, let rightError)):
            leftIndex == rightIndex && String(reflecting: leftError) == String(reflecting: rightError)
        case (.element, _), (_, .element): false
        default: String(reflecting: left) == String(reflecting: right)
        }
    }
}
