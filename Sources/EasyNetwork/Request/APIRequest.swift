import Foundation

/// A request that knows its answer.
///
/// ```swift
/// struct GetUser: APIRequest {
///     typealias Item = User               // Decodable: read from JSON
///     let id: Int
///     var api: String { "users/\(id)" }
/// }
/// ```
///
/// Give ``item(from:)`` a body of its own to use a mapper:
///
/// ```swift
/// func item(from response: NetworkResponse) throws -> User { try UserMapper.process(response.json()) }
/// ```
public protocol APIRequest: BaseAPIRequest {
    associatedtype Item: Sendable

    /// Makes the item from an accepted answer. Called on a background thread, once for each answer that is delivered.
    ///
    /// By default a `Decodable` item is decoded from JSON, a ``NetworkResponse`` is the answer itself, `Data` its body,
    /// and `Void` nothing.
    ///
    /// - Throws: anything; what is no ``NetworkError`` becomes ``NetworkError/Code/cannotParseResponse``.
    func item(from response: NetworkResponse) throws -> Item
}

extension APIRequest where Item: Decodable {
    public func item(from response: NetworkResponse) throws -> Item {
        try response.decode(Item.self)
    }
}

extension APIRequest where Item == NetworkResponse {
    public func item(from response: NetworkResponse) throws -> Item {
        response
    }
}

extension APIRequest where Item == Data {
    public func item(from response: NetworkResponse) throws -> Item {
        response.body
    }
}

extension APIRequest where Item == Void {
    public func item(from response: NetworkResponse) throws -> Item {
        ()
    }
}
