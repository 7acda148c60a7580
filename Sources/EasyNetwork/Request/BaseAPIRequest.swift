import Foundation

/// A value that describes one request. Everything but ``api`` has a default.
///
/// ```swift
/// struct Search: BaseAPIRequest {
///     let text: String
///     var api: String { "search" }
///     var params: [String: Any]? { ["q": text, "limit": 20] }
///     var options: RequestOptions { RequestOptions(timeout: 5) }
/// }
/// ```
///
/// ``params`` and ``headers`` may be declared with any type that can be read as such; another type is an error of the
/// request. The other properties must have exactly the types that they have here: `let method = "POST"`, a text, is another property
/// to Swift, and the default applies. Swift warns of that if the extension that declares the conformance also computes the
/// property. A property with the name of an option, such as `let timeout = 5`, is one of your own, too: options are set
/// in ``options`` alone.
///
/// The properties are read when the request is built: once for each time it is sent, on the thread that sends it, which
/// for an operation is a thread of its queue. The ``RequestOptions/priority`` is read when the operation is created, the
/// ``RequestOptions/repeatPolicy`` then and together with ``RequestOptions/repeatKey`` when the operation is added to a
/// queue and when it starts. With a policy other than ``RepeatPolicy/allow`` the request is also built on the thread that
/// adds the operation and on the one that starts it.
public protocol BaseAPIRequest: Sendable {
    /// The type of ``params``, as they are declared.
    associatedtype Params = [String: Any]?
    /// The type of ``headers``, as they are declared.
    associatedtype Headers = [String: String]?

    /// The path below the host's base URL, or an absolute http or https URL.
    ///
    /// It may have a query, which is kept, and a fragment, which stays last. Escaped bytes are left as they are;
    /// characters that a URL may not hold (spaces, Unicode, control characters) are percent-encoded. A `..` leads to
    /// the parent folder, as in any URL: percent-encode text from other sources before you insert it.
    var api: String { get }

    /// Default ``NetworkService/Method/get``.
    var method: NetworkService.Method { get }

    /// The place of the parameters. Default ``NetworkService/QueryType/automatic``: by the method, and as the host
    /// says.
    var query: NetworkService.QueryType { get }

    /// The parameters: a dictionary with String keys, an `Encodable` value, or an optional of one. Default nil.
    ///
    /// A value in a dictionary may be a Bool, a number, a String, a Date (by default sent as ISO 8601 in UTC), a Data (as
    /// Base64), a URL, a UUID, an enum with such a raw value, nil or `NSNull`, an array, or a dictionary with String
    /// keys. Anything else is ``NetworkError/Code/invalidRequest``, with a message that names the place.
    ///
    /// An `Encodable` value follows the same rules. A nil property of it is left out, unless its type encodes it. The
    /// elements of a Set come in any order.
    ///
    /// ```swift
    /// var params: [String: String] { filter }
    /// ```
    var params: Params { get }

    /// Header fields, which replace those of the host; the case of the names does not count: a dictionary of Strings,
    /// ``HTTPHeaders``, or an optional of one. Default nil.
    var headers: Headers { get }

    /// The body, if it does not come from ``params``. Default nil.
    var body: RequestBody? { get }

    /// Refuses parameters before anything is sent. Called when the request is built. Default: all pass.
    ///
    /// - Throws: any error; all but a ``NetworkError`` become ``NetworkError/Code/invalidRequest``.
    func validateParameters() throws

    /// All the rest. Default: that of the host.
    var options: RequestOptions { get }
}

extension BaseAPIRequest {
    public var method: NetworkService.Method { .get }
    public var query: NetworkService.QueryType { .automatic }
    public var body: RequestBody? { nil }
    public var options: RequestOptions { .standard }
    public func validateParameters() throws {}

    /// The header fields of a request that sends JSON and accepts JSON.
    public func defaultJsonHeader() -> [String: String] {
        ["Content-Type": "application/json", "Accept": "application/json"]
    }
}

// Not for all requests: for one of unknown type Swift would take these for its own properties.
extension BaseAPIRequest where Params == [String: Any]? {
    /// No parameters.
    public var params: [String: Any]? { nil }
}

extension BaseAPIRequest where Headers == [String: String]? {
    /// No header fields.
    public var headers: [String: String]? { nil }
}

extension NetworkService {
    /// The place of a request's parameters.
    ///
    /// ```swift
    /// var query: NetworkService.QueryType { .json }
    /// ```
    public enum QueryType: Hashable, Sendable {
        /// For POST, PUT and PATCH that of ``HostSettings/query``, by default ``form``, since their parameters may be
        /// secrets that do not belong in a URL. For other methods, and for a request with a ``BaseAPIRequest/body``,
        /// ``path``.
        case automatic
        /// The query of the URL: `?page=2&tags%5B%5D=new`. Not for secrets: servers and proxies write URLs into their
        /// logs.
        case path
        /// The body, as JSON with sorted keys; `Content-Type: application/json`.
        case json
        /// The body, as a form of a browser; `Content-Type: application/x-www-form-urlencoded`.
        case form
    }
}

/// A request that takes all properties from another request, except for those that it declares itself. Filters and
/// interceptors see the other request.
///
/// ```swift
/// struct Ranged: RequestWrapper {
///     let wrapped: any BaseAPIRequest
///     var options: RequestOptions { wrapped.options.with { $0.priority = .high } }
/// }
/// ```
protocol RequestWrapper: BaseAPIRequest {
    /// The other request.
    var wrapped: any BaseAPIRequest { get }
    /// Whether the cache may store an accepted answer. Default true.
    func mayStore(_ response: NetworkResponse) -> Bool
}

// Each property of BaseAPIRequest is here: for a missing one the default would hide that of the wrapped request.
extension RequestWrapper {
    func mayStore(_ response: NetworkResponse) -> Bool { true }
    public var api: String { wrapped.api }
    public var method: NetworkService.Method { wrapped.method }
    public var query: NetworkService.QueryType { wrapped.query }
    public var params: Any { wrapped.params }
    public var headers: Any { wrapped.headers }
    public var body: RequestBody? { wrapped.body }
    public var options: RequestOptions { wrapped.options }
    public func validateParameters() throws { try wrapped.validateParameters() }
}

extension BaseAPIRequest {
    /// The request as its user created it, for filters, interceptors and notifications that look for its type.
    var asMade: any BaseAPIRequest {
        (self as? any RequestWrapper)?.wrapped.asMade ?? self
    }
}
