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
/// The item is `Decodable`, `Data`, a ``NetworkResponse`` or `Void`, and is read as in ``APIRequest``. For any other
/// type, pass `item`. The compiler chooses the initializer by the item's type. In generic code, therefore write
/// `Item: Decodable`; in modules with default main-actor isolation, declare the item as a `nonisolated struct`. For a
/// request that is made in several places or kept in an outbox, declare a type that conforms to ``APIRequest`` instead.
public struct Request<Item: Sendable>: APIRequest {
    public var api: String
    public var method: NetworkService.Method
    public var query: NetworkService.QueryType
    public var params: [String: any Sendable]?
    public var headers: [String: String]?
    public var body: RequestBody?
    public var options: RequestOptions
    private let makeItem: @Sendable (NetworkResponse) throws -> Item

    /// Creates a GET request for an item of any type.
    ///
    /// - Parameters: see ``init(_:_:params:query:headers:body:options:item:)``.
    public init(
        _ api: String,
        params: [String: any Sendable]? = nil,
        query: NetworkService.QueryType = .automatic,
        headers: [String: String]? = nil,
        options: RequestOptions = RequestOptions(),
        item: @escaping @Sendable (NetworkResponse) throws -> Item
    ) {
        self.init(.get, api, params: params, query: query, headers: headers, options: options, item: item)
    }

    /// Creates a request of any method, for an item of any type.
    ///
    /// - Parameters:
    ///   - method: the HTTP method.
    ///   - api: see ``BaseAPIRequest/api``. Insert strings from other sources as `"files/\(segment: name)"`.
    ///   - params: see ``BaseAPIRequest/params``. Defaults to `nil`.
    ///   - query: the place of the parameters. Defaults to ``NetworkService/QueryType/automatic``.
    ///   - headers: see ``BaseAPIRequest/headers``. Defaults to `nil`.
    ///   - body: the body, if it does not come from `params`. Defaults to `nil`.
    ///   - options: all other settings. Defaults to the host's.
    ///   - item: makes the item on a background thread, see ``APIRequest/item(from:)``. Without it, the item must be
    ///     `Decodable`, `Data`, a ``NetworkResponse`` or `Void`.
    public init(
        _ method: NetworkService.Method,
        _ api: String,
        params: [String: any Sendable]? = nil,
        query: NetworkService.QueryType = .automatic,
        headers: [String: String]? = nil,
        body: RequestBody? = nil,
        options: RequestOptions = RequestOptions(),
        item: @escaping @Sendable (NetworkResponse) throws -> Item
    ) {
        (self.method, self.api, self.params, self.query) = (method, api, params, query)
        (self.headers, self.body, self.options, makeItem) = (headers, body, options, item)
    }

    public func item(from response: NetworkResponse) throws -> Item {
        try makeItem(response)
    }
}

extension Request where Item: Decodable {
    /// Creates a GET request for a `Decodable` item, or for `Data`.
    ///
    /// - Parameters: see ``init(_:_:params:query:headers:body:options:item:)``.
    public init(
        _ api: String,
        params: [String: any Sendable]? = nil,
        query: NetworkService.QueryType = .automatic,
        headers: [String: String]? = nil,
        options: RequestOptions = RequestOptions()
    ) {
        self.init(.get, api, params: params, query: query, headers: headers, options: options)
    }

    /// Creates a request of any method, for a `Decodable` item, or for `Data`.
    ///
    /// - Parameters: see ``init(_:_:params:query:headers:body:options:item:)``.
    public init(
        _ method: NetworkService.Method,
        _ api: String,
        params: [String: any Sendable]? = nil,
        query: NetworkService.QueryType = .automatic,
        headers: [String: String]? = nil,
        body: RequestBody? = nil,
        options: RequestOptions = RequestOptions()
    ) {
        self.init(method, api, params: params, query: query, headers: headers, body: body, options: options) {
            // Return the body itself, as every request with a `Data` item does.
            if Item.self == Data.self, let body = $0.body as? Item { return body }
            return try $0.decode(Item.self)
        }
    }
}

extension Request where Item == NetworkResponse {
    /// Creates a GET request for the response itself.
    ///
    /// - Parameters: see ``init(_:_:params:query:headers:body:options:item:)``.
    public init(
        _ api: String,
        params: [String: any Sendable]? = nil,
        query: NetworkService.QueryType = .automatic,
        headers: [String: String]? = nil,
        options: RequestOptions = RequestOptions()
    ) {
        self.init(.get, api, params: params, query: query, headers: headers, options: options)
    }

    /// Creates a request of any method, for the response itself.
    ///
    /// - Parameters: see ``init(_:_:params:query:headers:body:options:item:)``.
    public init(
        _ method: NetworkService.Method,
        _ api: String,
        params: [String: any Sendable]? = nil,
        query: NetworkService.QueryType = .automatic,
        headers: [String: String]? = nil,
        body: RequestBody? = nil,
        options: RequestOptions = RequestOptions()
    ) {
        self.init(method, api, params: params, query: query, headers: headers, body: body, options: options) { $0 }
    }
}

extension Request where Item == Void {
    /// Creates a GET request that ignores the response.
    ///
    /// - Parameters: see ``init(_:_:params:query:headers:body:options:item:)``.
    public init(
        _ api: String,
        params: [String: any Sendable]? = nil,
        query: NetworkService.QueryType = .automatic,
        headers: [String: String]? = nil,
        options: RequestOptions = RequestOptions()
    ) {
        self.init(.get, api, params: params, query: query, headers: headers, options: options)
    }

    /// Creates a request of any method that ignores the response.
    ///
    /// - Parameters: see ``init(_:_:params:query:headers:body:options:item:)``.
    public init(
        _ method: NetworkService.Method,
        _ api: String,
        params: [String: any Sendable]? = nil,
        query: NetworkService.QueryType = .automatic,
        headers: [String: String]? = nil,
        body: RequestBody? = nil,
        options: RequestOptions = RequestOptions()
    ) {
        self.init(method, api, params: params, query: query, headers: headers, body: body, options: options) { _ in }
    }
}

extension String.StringInterpolation {
    /// Inserts a string from another source into a path as one segment. Every byte except letters, digits, `-`, `.`,
    /// `_` and `~` is percent-encoded (RFC 3986, section 2.3), including the slash.
    ///
    /// ```swift
    /// func file(_ name: String) -> String { "files/\(segment: name)" }   // "a/b?" becomes "files/a%2Fb%3F"
    /// ```
    ///
    /// A segment that is empty, `.` or `..` would lead to another resource. The request then fails with
    /// ``NetworkError/Code/invalidRequest`` and is not sent, even if the string is in its query, headers or body.
    public mutating func appendInterpolation(segment value: some CustomStringConvertible) {
        let text = value.description
        let isOther = text.isEmpty || text == "." || text == ".."
        appendLiteral(isOther ? SegmentMark.text : PercentEncoding.encode(text, .unreserved))
    }
}

extension Request: CustomStringConvertible, CustomReflectable {
    /// The method and the path, without the query and the secrets that ``Redaction`` recognizes.
    public var description: String {
        let path = api.prefix { $0 != "?" && $0 != "#" }
        return "Request<\(Item.self)> \(method) \(Redaction.standard.redacted(String(path)))".cleaned()
    }

    /// A mirror without children, so that a dump has no secrets.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
