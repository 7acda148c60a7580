import Foundation

/// A request with a typed answer.
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
    /// The type of the answer, which ``item(from:)`` makes.
    associatedtype Item: Sendable

    /// Makes the item from an accepted answer. It is called on a background thread, once for each delivered answer.
    ///
    /// By default a `Decodable` item is decoded from JSON; a ``NetworkResponse`` is the answer itself, and `Data` its
    /// body; `Void` ignores it.
    ///
    /// - Throws: any error; all but a ``NetworkError`` become ``NetworkError/Code/cannotParseResponse``.
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
