/// A struct that a mapper makes from an answer.
public protocol ParsedItem: Sendable {}

/// Turns JSON, as ``NetworkResponse/json()`` gives it, into an item.
public protocol ResponseMapperProtocol {
    associatedtype Item
    static func process(_ json: Any?) throws -> Item
}

/// The base of mappers that read a JSON object into a struct.
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
/// It has no state; everything happens on the caller's thread.
open class ResponseMapper<Item: ParsedItem> {
    public init() {}

    /// Gives the JSON object to `parse`.
    ///
    /// - Parameter parse: makes the item; nil means that an attribute is missing.
    /// - Throws: ``ResponseMapperError/invalid`` when the JSON is no object, ``ResponseMapperError/missingAttribute`` when
    ///   `parse` returns nil, and what `parse` throws.
    public static func process(_ json: Any?, parse: (_ json: [String: Any]) throws -> Item?) throws -> Item {
        guard let object = json as? [String: Any] else { throw ResponseMapperError.invalid }
        guard let item = try parse(object) else { throw ResponseMapperError.missingAttribute }
        return item
    }
}

/// Turns a JSON array into structs, with a mapper for the elements.
///
/// ```swift
/// let users = try ArrayResponseMapper.process(try response.json(), mapper: UserMapper.process)
/// ```
public final class ArrayResponseMapper<Item: ParsedItem> {
    private init() {}

    /// Maps every element; the first that fails ends it.
    ///
    /// - Throws: ``ResponseMapperError/invalid`` when the JSON is no array,
    ///   ``ResponseMapperError/element(index:underlying:)`` with what `mapper` threw.
    public static func process(_ json: Any?, mapper: (Any?) throws -> Item) throws -> [Item] {
        guard let array = json as? [Any] else { throw ResponseMapperError.invalid }
        var items: [Item] = []
        items.reserveCapacity(array.count)
        for (index, element) in array.enumerated() {
            do {
                items.append(try mapper(element))
            } catch {
                throw ResponseMapperError.element(index: index, underlying: error)
            }
        }
        return items
    }

    /// Maps what can be mapped, and reports the rest.
    ///
    /// - Throws: ``ResponseMapperError/invalid`` when the JSON is no array.
    public static func processLeniently(_ json: Any?, mapper: (Any?) throws -> Item) throws -> LenientResult {
        guard let array = json as? [Any] else { throw ResponseMapperError.invalid }
        var result = LenientResult()
        for (index, element) in array.enumerated() {
            do {
                result.items.append(try mapper(element))
            } catch {
                result.failures.append((index, error))
            }
        }
        return result
    }

    /// What ``processLeniently(_:mapper:)`` could map, and what it could not.
    public struct LenientResult: Sendable {
        /// The mapped elements, in order.
        public var items: [Item] = []
        /// The index of each element that was skipped, and why, in order.
        public var failures: [(index: Int, error: any Error)] = []
    }
}
