import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A value that describes one request. Everything but ``api`` has a default.
///
/// ```swift
/// struct Search: BaseAPIRequest {
///     let text: String
///     var api: String { "search" }
///     var params: [String: Any]? { ["q": text, "limit": 20] }
/// }
/// ```
///
/// A property must have exactly the type that it has here. `let timeout = 0.2` is a `Double` and not a `TimeInterval?`:
/// Swift takes it for an unrelated property, and the default applies. Write `let timeout: TimeInterval? = 0.2`. Swift
/// warns of such a property if the extension that declares the conformance also computes the property.
///
/// The properties are read when the request is built: once for each time it is sent, on the thread that sends it, which
/// for an operation is a thread of its queue. ``priority`` is read when the operation is created, ``repeatPolicy`` then
/// and together with ``repeatKey`` when the operation is added to a queue and when it starts. With a policy other than
/// ``RepeatPolicy/allow`` the request is also built on the thread that adds the operation and on the one that starts
/// it.
public protocol BaseAPIRequest: Sendable {
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

    /// The parameters. Default nil.
    ///
    /// A value may be a Bool, a number, a String, a Date (by default sent as ISO 8601 in UTC), a Data (as Base64), a
    /// URL, a UUID, an enum with such a raw value, nil or `NSNull`, an array, or a dictionary with String keys.
    /// Anything else is ``NetworkError/Code/invalidRequest``, with a message that names the place.
    var params: [String: Any]? { get }

    /// The parameters as a value of a custom type, instead of ``params``. Default nil.
    ///
    /// They go to the place that ``query`` names and follow the rules of ``params``; a request with both is
    /// ``NetworkError/Code/invalidRequest``. A nil property is left out, unless its type encodes it. The elements of a
    /// Set come in any order.
    ///
    /// ```swift
    /// var encodableParams: (any Encodable & Sendable)? { filter }
    /// ```
    var encodableParams: (any Encodable & Sendable)? { get }

    /// The encoder of the parameters in a query or a form. Default nil: the host's.
    var queryEncoder: QueryEncoder? { get }

    /// Header fields, which replace those of the host; the case of the names does not count. Default nil.
    var headers: [String: String]? { get }

    /// The credential instead of the host's ``HostSettings/authentication``: a user with a password, or a token. It is
    /// sent with the first attempt, and not refreshed when the server refuses it. An `Authorization` in ``headers``
    /// replaces it. Default nil.
    var credential: HTTPCredential? { get }

    /// Whether the host's ``HostSettings/authentication`` applies. False for a request that signs in: it carries no
    /// older credential, and a refusal is its answer. Default true.
    var isAuthenticated: Bool { get }

    /// The body, if it does not come from ``params``. Default nil.
    var body: RequestBody? { get }

    /// The longest time in seconds of one attempt, from its start to its last byte. Default nil: the host's.
    var timeout: TimeInterval? { get }

    /// The longest time in seconds of all attempts together, from the building of the request to its last byte, delays
    /// and redirects included; the time in a queue does not count. Afterwards the request ends with
    /// ``NetworkError/Code/timedOut``. Default nil: no limit.
    var overallTimeout: TimeInterval? { get }

    /// The rule for sending the request again after a failure. Default nil: the host's, by default two retries of
    /// idempotent methods.
    var retry: RetryPolicy? { get }

    /// The value of `Idempotency-Key`, the same for every attempt: a server that knows the key acts once, so that a
    /// POST may be retried. Default nil: none. It is read once for each time the request is sent.
    var idempotencyKey: String? { get }

    /// The redirects that are followed. Default nil: the host's, by default up to 20.
    var redirects: RedirectPolicy? { get }

    /// The use of the cache. Default nil: the host's, by default ``CachePolicy/never``.
    var cache: CachePolicy? { get }

    /// The interceptors of this request, which are closer to the network than those of the host. Default none.
    var interceptors: [any RequestInterceptor] { get }

    /// Refuses parameters before anything is sent. Called when the request is built. Default: all pass.
    ///
    /// - Throws: any error; all but a ``NetworkError`` become ``NetworkError/Code/invalidRequest``.
    func validateParameters() throws

    /// A finished message. It replaces everything above but ``timeout`` and the rules for answers, and goes out as it
    /// is, without the host's headers, filters, credentials and cookies, and those of its answer are not stored.
    /// Interceptors see it. Default nil.
    ///
    /// Its URL, method, headers, body and timeout are used. A body stream can be read once: such a request is never
    /// sent again.
    var customURLRequest: URLRequest? { get }

    /// Whether the request may go over a cellular network. Default true. It has an effect on Apple's platforms only.
    var allowsCellularAccess: Bool { get }

    /// The kind of traffic. Default `default`. It has an effect on Apple's platforms only.
    var networkServiceType: URLRequest.NetworkServiceType { get }

    /// The priority of the request in a queue. Default normal.
    var priority: Operation.QueuePriority { get }

    /// The base URL of this request. Default nil: the host's.
    var baseURL: URL? { get }

    /// Whether ``HostSettings/cdnURL`` is the base URL, if the host has one. Default false.
    var useCDN: Bool { get }

    /// The answers that are a success. Default nil: the host's, by default statuses 200 to 299.
    var validation: ResponseValidation? { get }

    /// The rule for the request while a like one waits or runs in its queue. Default ``RepeatPolicy/allow``.
    var repeatPolicy: RepeatPolicy { get }

    /// The key that like requests share for ``repeatPolicy``. Default nil: the message that would be sent; a request
    /// with ``interceptors`` of its own is like no other then.
    var repeatKey: String? { get }
}

extension BaseAPIRequest {
    public var method: NetworkService.Method { .get }
    public var query: NetworkService.QueryType { .automatic }
    public var params: [String: Any]? { nil }
    public var encodableParams: (any Encodable & Sendable)? { nil }
    public var queryEncoder: QueryEncoder? { nil }
    public var headers: [String: String]? { nil }
    public var credential: HTTPCredential? { nil }
    public var isAuthenticated: Bool { true }
    public var body: RequestBody? { nil }
    public var timeout: TimeInterval? { nil }
    public var priority: Operation.QueuePriority { .normal }
    public var overallTimeout: TimeInterval? { nil }
    public var retry: RetryPolicy? { nil }
    public var idempotencyKey: String? { nil }
    public var redirects: RedirectPolicy? { nil }
    public var cache: CachePolicy? { nil }
    public var interceptors: [any RequestInterceptor] { [] }
    public func validateParameters() throws {}
    public var customURLRequest: URLRequest? { nil }
    public var allowsCellularAccess: Bool { true }
    public var networkServiceType: URLRequest.NetworkServiceType { .default }
    public var baseURL: URL? { nil }
    public var useCDN: Bool { false }
    public var validation: ResponseValidation? { nil }
    public var repeatPolicy: RepeatPolicy { .allow }
    public var repeatKey: String? { nil }

    /// The header fields of a request that sends JSON and accepts JSON.
    public func defaultJsonHeader() -> [String: String] {
        ["Content-Type": "application/json", "Accept": "application/json"]
    }
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
///     var headers: [String: String]? { (wrapped.headers ?? [:]).merging(["Range": "bytes=0-99"]) { $1 } }
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
    public var params: [String: Any]? { wrapped.params }
    public var encodableParams: (any Encodable & Sendable)? { wrapped.encodableParams }
    public var queryEncoder: QueryEncoder? { wrapped.queryEncoder }
    public var headers: [String: String]? { wrapped.headers }
    public var credential: HTTPCredential? { wrapped.credential }
    public var isAuthenticated: Bool { wrapped.isAuthenticated }
    public var body: RequestBody? { wrapped.body }
    public var timeout: TimeInterval? { wrapped.timeout }
    public var overallTimeout: TimeInterval? { wrapped.overallTimeout }
    public var retry: RetryPolicy? { wrapped.retry }
    public var idempotencyKey: String? { wrapped.idempotencyKey }
    public var redirects: RedirectPolicy? { wrapped.redirects }
    public var cache: CachePolicy? { wrapped.cache }
    public var interceptors: [any RequestInterceptor] { wrapped.interceptors }
    public func validateParameters() throws { try wrapped.validateParameters() }
    public var customURLRequest: URLRequest? { wrapped.customURLRequest }
    public var allowsCellularAccess: Bool { wrapped.allowsCellularAccess }
    public var networkServiceType: URLRequest.NetworkServiceType { wrapped.networkServiceType }
    public var priority: Operation.QueuePriority { wrapped.priority }
    public var baseURL: URL? { wrapped.baseURL }
    public var useCDN: Bool { wrapped.useCDN }
    public var validation: ResponseValidation? { wrapped.validation }
    public var repeatPolicy: RepeatPolicy { wrapped.repeatPolicy }
    public var repeatKey: String? { wrapped.repeatKey }
}

extension BaseAPIRequest {
    /// The request as its user created it, for filters, interceptors and notifications that look for its type.
    var asMade: any BaseAPIRequest {
        (self as? any RequestWrapper)?.wrapped.asMade ?? self
    }
}
