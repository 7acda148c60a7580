import Foundation

/// A request whose response is decoded into a typed item.
///
/// ```swift
/// struct GetUser: APIRequest {
///     typealias Item = User               // Decodable: read from JSON
///     let id: Int
///     var api: String { "users/\(id)" }
/// }
/// ```
///
/// Implement ``item(from:)`` to use a mapper:
///
/// ```swift
/// func item(from response: NetworkResponse) throws -> User { try UserMapper.process(response.json()) }
/// ```
public protocol APIRequest: BaseAPIRequest {
    /// The type that ``item(from:)`` makes from the response.
    associatedtype Item: Sendable

    /// Makes the item from an accepted response. The call runs on a background thread, once for each delivered
    /// response.
    ///
    /// By default, a `Decodable` item is decoded from JSON. A ``NetworkResponse`` item is the response itself, a `Data`
    /// item is its body, and `Void` ignores the response.
    ///
    /// - Throws: any error. Errors other than ``NetworkError`` become ``NetworkError/Code/cannotParseResponse``.
    func item(from response: NetworkResponse) throws -> Item
}

extension APIRequest where Item: Decodable {
    public func item(from response: NetworkResponse) throws -> Item { try response.decode(Item.self) }
}

extension APIRequest where Item == NetworkResponse {
    public func item(from response: NetworkResponse) throws -> Item { response }
}

extension APIRequest where Item == Data {
    public func item(from response: NetworkResponse) throws -> Item { response.body }
}

extension APIRequest where Item == Void {
    public func item(from response: NetworkResponse) throws -> Item { () }
}
