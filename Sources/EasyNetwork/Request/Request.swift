import Foundation

/// A request without a type of its own, for a call that is made in one place.
///
/// ```swift
/// func users(_ queue: NetworkQueue) async throws -> [User] {
///     try await queue.perform(Request<[User]>("users", params: ["page": 2]))
/// }
/// func remove(_ user: Int, _ queue: NetworkQueue) async throws {
///     try await queue.perform(Request<Void>(.delete, "users/\(user)"))
/// }
/// nonisolated struct User: Decodable { let name: String }
/// ```
///
/// The item is `Decodable`, `Data`, a ``NetworkResponse`` or `Void`, read as in ``APIRequest``; another one is made by
/// `item`. A request that is made in several places, or kept in an outbox, is better a type that is an ``APIRequest``.
public struct Request<Item: Sendable>: APIRequest {
    public var api: String
    public var method: NetworkService.Method
    public var query: NetworkService.QueryType
    public var params: [String: any Sendable]?
    public var headers: [String: String]?
    public var body: RequestBody?
    public var options: RequestOptions
    private let makeItem: (@Sendable (NetworkResponse) throws -> Item)?

    /// A GET.
    ///
    /// - Parameters: see ``init(_:_:params:query:headers:body:options:item:)``.
    public init(
        _ api: String,
        params: [String: any Sendable]? = nil,
        query: NetworkService.QueryType = .automatic,
        headers: [String: String]? = nil,
        options: RequestOptions = RequestOptions(),
        item: (@Sendable (NetworkResponse) throws -> Item)? = nil
    ) {
        self.init(.get, api, params: params, query: query, headers: headers, options: options, item: item)
    }

    /// A request of any method.
    ///
    /// - Parameters:
    ///   - method: of the message.
    ///   - api: see ``BaseAPIRequest/api``. Text from elsewhere is put into it as `"files/\(segment: name)"`.
    ///   - params: see ``BaseAPIRequest/params``. Default nil.
    ///   - query: the place of the parameters. Default ``NetworkService/QueryType/automatic``.
    ///   - headers: see ``BaseAPIRequest/headers``. Default nil.
    ///   - body: the body, if it does not come from `params`. Default nil.
    ///   - options: all the rest. Default: that of the host.
    ///   - item: makes the item on a background thread, see ``APIRequest/item(from:)``. Default nil: it is decoded.
    public init(
        _ method: NetworkService.Method,
        _ api: String,
        params: [String: any Sendable]? = nil,
        query: NetworkService.QueryType = .automatic,
        headers: [String: String]? = nil,
        body: RequestBody? = nil,
        options: RequestOptions = RequestOptions(),
        item: (@Sendable (NetworkResponse) throws -> Item)? = nil
    ) {
        (self.method, self.api, self.params, self.query) = (method, api, params, query)
        (self.headers, self.body, self.options, makeItem) = (headers, body, options, item)
    }

    private static var isReadable: Bool {
        Item.self == Void.self || Item.self == NetworkResponse.self || Item.self is any Decodable.Type
    }

    /// Refuses a request whose item nothing can make.
    ///
    /// - Throws: ``NetworkError/Code/invalidRequest``, which says how to make one.
    public func validateParameters() throws {
        guard makeItem != nil || Self.isReadable else {
            throw NetworkError(
                code: .invalidRequest,
                message: "\(Item.self) is not Decodable; say how to make one: Request(…, item: { response in … })"
            )
        }
    }

    public func item(from response: NetworkResponse) throws -> Item {
        if let makeItem { return try makeItem(response) }
        let item: Any =
            switch Item.self {
            case is Void.Type: ()
            case is NetworkResponse.Type: response
            case is Data.Type: response.body
            case let type as any Decodable.Type: try response.decode(type)
            default: NSNull()
            }
        // Any other type was refused before it was sent.
        guard let item = item as? Item else { throw NetworkError(code: .cannotParseResponse) }
        return item
    }
}

extension String.StringInterpolation {
    /// Puts a text from elsewhere into a path, as one segment of it: every byte that is not a letter, a digit, `-`,
    /// `.`, `_` or `~` is percent-encoded (RFC 3986, section 2.3), the slash included.
    ///
    /// ```swift
    /// func file(_ name: String) -> String { "files/\(segment: name)" }   // "a/b?" becomes "files/a%2Fb%3F"
    /// ```
    ///
    /// Of a segment that is empty, `.` or `..`, which would lead to another resource, the request ends with
    /// ``NetworkError/Code/invalidRequest``; nothing is sent.
    public mutating func appendInterpolation(segment value: some CustomStringConvertible) {
        let text = value.description
        let isOther = text.isEmpty || text == "." || text == ".."
        appendLiteral(isOther ? URLBuilder.refusedSegment : PercentEncoding.encode(text, .unreserved))
    }
}
