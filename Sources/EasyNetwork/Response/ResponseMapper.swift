import Foundation

/// A struct that a mapper makes from a response.
///
/// ```swift
/// struct User: ParsedItem { let id: Int; let name: String? }
/// ```
public protocol ParsedItem: Sendable {}

/// A mapper from JSON to an item.
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
    /// - Parameter json: a ``JSONObject``, another view, or a value as ``NetworkResponse/json()`` returns it:
    ///   ``ResponseMapper/process(_:parse:)-(_,(JSONObject)->Item?)`` and ``ArrayResponseMapper`` read all of them.
    /// - Throws: any error, for example a ``ResponseMapperError``.
    static func process(_ json: Any?) throws -> Item
}

extension ResponseMapperProtocol {
    /// Makes the item from the body of a response.
    ///
    /// ```swift
    /// func item(from response: NetworkResponse) throws -> User { try UserMapper.process(response) }
    /// ```
    ///
    /// The body is read once into an index, and the mapper gets a view of it. No dictionary is created.
    ///
    /// - Throws: ``NetworkError/Code/cannotParseResponse`` if the body is not JSON, and the errors of the mapper.
    public static func process(_ response: NetworkResponse) throws -> Item {
        try process(response.jsonNode().view as Any?)
    }
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
/// A mapper has no state, and runs on the caller's thread.
open class ResponseMapper<Item: ParsedItem> {
    /// Creates a mapper. Its methods are static, so you don't need an instance.
    public init() {}

    /// Passes the JSON object to `parse`.
    ///
    /// - Parameters:
    ///   - json: the argument of the mapper, or a value that ``NetworkResponse/json()`` returns.
    ///   - parse: returns the item, or nil if an attribute is missing.
    /// - Throws: ``ResponseMapperError/invalid`` if the JSON is not an object, ``ResponseMapperError/missingAttribute``
    ///   if `parse` returns nil, and the errors of `parse`.
    @inlinable
    public static func process(_ json: Any?, parse: (_ json: JSONObject) throws -> Item?) throws -> Item {
        guard let object = JSONObject.view(of: json) else { throw ResponseMapperError.invalid }
        guard let item = try parse(object) else { throw ResponseMapperError.missingAttribute }
        return item
    }

    /// Passes the JSON object to `parse` as a dictionary, which costs more than a ``JSONObject``.
    // Without this attribute, a closure with an untyped parameter would match both overloads.
    @_disfavoredOverload
    public static func process(_ json: Any?, parse: (_ json: [String: Any]) throws -> Item?) throws -> Item {
        try process(json) { (object: JSONObject) in try parse(object.dictionary) }
    }
}

/// A mapper from a JSON array to structs, with a mapper for the elements.
///
/// ```swift
/// let users = try ArrayResponseMapper.process(response, mapper: UserMapper.process)
/// ```
public final class ArrayResponseMapper<Item: ParsedItem> {
    private init() {}

    /// Maps every element of the array in a response's body, without creating dictionaries.
    ///
    /// - Throws: ``NetworkError/Code/cannotParseResponse`` if the body is not JSON, and the errors of
    ///   ``process(_:mapper:)``.
    public static func process(_ response: NetworkResponse, mapper: (Any?) throws -> Item) throws -> [Item] {
        try items(response.jsonNode(), mapper) { throw ResponseMapperError.element(index: $0, underlying: $1) }
    }

    /// Maps every element.
    ///
    /// - Parameters:
    ///   - json: the argument of a mapper, or a value that ``NetworkResponse/json()`` returns.
    ///   - mapper: makes an item from an element.
    /// - Throws: ``ResponseMapperError/invalid`` if the JSON is not an array, and
    ///   ``ResponseMapperError/element(index:underlying:)`` for the first element for which `mapper` throws.
    public static func process(_ json: Any?, mapper: (Any?) throws -> Item) throws -> [Item] {
        let node = json.map { JSONNode($0) }
        return try items(node, mapper) { throw ResponseMapperError.element(index: $0, underlying: $1) }
    }

    private static func items(
        _ json: JSONNode?,
        _ mapper: (Any?) throws -> Item,
        failed: (_ index: Int, _ error: any Error) throws -> Void
    ) throws -> [Item] {
        guard let elements = json?.elements else { throw ResponseMapperError.invalid }
        var items: [Item] = []
        items.reserveCapacity(elements.count)
        for (index, element) in elements.enumerated() {
            do {
                items.append(try mapper(element.view))
            } catch {
                try failed(index, error)
            }
        }
        return items
    }

    /// Maps the elements that can be mapped of the array in a response's body, and reports the others.
    ///
    /// - Throws: ``NetworkError/Code/cannotParseResponse`` if the body is not JSON, and the errors of
    ///   ``processLeniently(_:mapper:)``.
    public static func processLeniently(
        _ response: NetworkResponse,
        mapper: (Any?) throws -> Item
    ) throws -> (items: [Item], failures: [(index: Int, error: any Error)]) {
        try processLeniently(response.jsonNode().view as Any?, mapper: mapper)
    }

    /// Maps the elements that can be mapped, and reports the others.
    ///
    /// - Returns: the mapped elements, in order, and the index of each skipped element with the reason, in order.
    /// - Throws: ``ResponseMapperError/invalid`` if the JSON is not an array.
    public static func processLeniently(
        _ json: Any?,
        mapper: (Any?) throws -> Item
    ) throws -> (items: [Item], failures: [(index: Int, error: any Error)]) {
        var failures: [(index: Int, error: any Error)] = []
        let items = try items(json.map { JSONNode($0) }, mapper) { failures.append(($0, $1)) }
        return (items, failures)
    }
}

// MARK: - Results

extension Result where Failure == NetworkError {
    /// Returns a result with the transformed value, such as the row of a list or the text of a label. A failure is
    /// returned unchanged.
    ///
    /// ```swift
    /// let row = operation.result?.tryMap { user in "\(user.name), \(user.city)" }
    /// ```
    ///
    /// - Parameter transform: transforms the value, on the caller's thread. If it throws, the result is a failure. An
    ///   error that is not a ``NetworkError`` becomes ``NetworkError/Code/cannotParseResponse``.
    public func tryMap<NewSuccess>(_ transform: (Success) throws -> NewSuccess) -> Result<NewSuccess, NetworkError> {
        flatMap { success in
            Result<NewSuccess, any Error> { try transform(success) }.mapError(NetworkError.mapping)
        }
    }

    /// The former name of ``tryMap(_:)``.
    @available(*, deprecated, renamed: "tryMap(_:)")
    public func reformed<View>(_ view: (Success) throws -> View) -> Result<View, NetworkError> {
        tryMap(view)
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
    /// The JSON has another form than the mapper reads: it is not an object, or not an array.
    case invalid
    /// A required attribute is missing. The mapper did not name it.
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
        String(reflecting: left) == String(reflecting: right)
    }
}
