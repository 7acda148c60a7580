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
/// `item`. The compiler knows which: in generic code write `Item: Decodable`, and in modules that are on the main actor by
/// default `nonisolated struct` for the item. A request that is made in several places, or kept in an outbox, is better a type that is an ``APIRequest``.
public struct Request<Item: Sendable>: APIRequest {
    public var api: String
    public var method: NetworkService.Method
    public var query: NetworkService.QueryType
    public var params: [String: any Sendable]?
    public var headers: [String: String]?
    public var body: RequestBody?
    public var options: RequestOptions
    private let makeItem: @Sendable (NetworkResponse) throws -> Item

    /// A GET of an item of any type.
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

    /// A request of any method, for an item of any type.
    ///
    /// - Parameters:
    ///   - method: of the message.
    ///   - api: see ``BaseAPIRequest/api``. Text from elsewhere is put into it as `"files/\(segment: name)"`.
    ///   - params: see ``BaseAPIRequest/params``. Default nil.
    ///   - query: the place of the parameters. Default ``NetworkService/QueryType/automatic``.
    ///   - headers: see ``BaseAPIRequest/headers``. Default nil.
    ///   - body: the body, if it does not come from `params`. Default nil.
    ///   - options: all the rest. Default: that of the host.
    ///   - item: makes the item on a background thread, see ``APIRequest/item(from:)``. Without it the item has to be
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
    /// A GET of an item that is decoded, or of `Data`.
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

    /// A request of any method, for an item that is decoded, or for `Data`.
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
        self.init(
            method,
            api,
            params: params,
            query: query,
            headers: headers,
            body: body,
            options: options,
            item: Self.decoded
        )
    }

    private static func decoded(_ response: NetworkResponse) throws -> Item {
        // The body itself, as that of each request.
        if Item.self == Data.self, let body = response.body as? Item { return body }
        return try response.decode(Item.self)
    }
}

extension Request where Item == NetworkResponse {
    /// A GET of the response itself.
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

    /// A request of any method, for the response itself.
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
        self.init(
            method,
            api,
            params: params,
            query: query,
            headers: headers,
            body: body,
            options: options,
            item: { $0 }
        )
    }
}

extension Request where Item == Void {
    /// A GET whose answer is not read.
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

    /// A request of any method, whose answer is not read.
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
        self.init(
            method,
            api,
            params: params,
            query: query,
            headers: headers,
            body: body,
            options: options,
            item: { _ in }
        )
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
    /// A segment that is empty, `.` or `..` would lead to another resource. The request ends with
    /// ``NetworkError/Code/invalidRequest`` and is not sent, even if the string is in its query, headers or body.
    public mutating func appendInterpolation(segment value: some CustomStringConvertible) {
        let text = value.description
        let isOther = text.isEmpty || text == "." || text == ".."
        appendLiteral(isOther ? SegmentMark.text : PercentEncoding.encode(text, .unreserved))
    }
}
