import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// What to send: a value that describes one request. Everything but ``api`` has a default.
///
/// ```swift
/// struct Search: BaseAPIRequest {
///     let text: String
///     var api: String { "search" }
///     var params: [String: Any]? { ["q": text, "limit": 20] }
/// }
/// ```
///
/// A property counts only if it has the type that it has here. `let timeout = 0.2` is a Double and no `TimeInterval?`,
/// and so another property, which nobody reads: write `let timeout: TimeInterval? = 0.2`. In a debug build such a request
/// ends with ``NetworkError/Code/invalidRequest``, and the message names the property.
///
/// Its properties are read when the request is built: once for each time it is sent, on the thread that sends it, for
/// an operation a thread of its queue. ``priority`` is read when the operation is made; ``repeatPolicy`` then, and with
/// ``repeatKey`` when it is added to a queue and when it starts. A request whose repeats are noticed is built for that
/// as well, each time, on the thread that adds the operation and on the one that starts it.
public protocol BaseAPIRequest: Sendable {
    /// The path below the host's base URL, or an absolute http or https URL.
    ///
    /// It may have a query, which is kept, and a fragment, which stays last. Escaped bytes are left as they are; what
    /// a URL may not hold (a space, Unicode, a control character) is percent-encoded. A `..` in it climbs, as in any
    /// URL: percent-encode what comes from elsewhere before it is put in.
    var api: String { get }

    /// Default ``NetworkService/Method/get``.
    var method: NetworkService.Method { get }

    /// Where the parameters go. Default ``NetworkService/QueryType/form`` for POST, PUT and PATCH, whose parameters may be
    /// secrets that are not to stand in a URL; ``NetworkService/QueryType/path`` for other methods, and for a request with
    /// a ``body``, which leaves no other place.
    var query: NetworkService.QueryType { get }

    /// The parameters. Default nil.
    ///
    /// A value may be a Bool, a number, a String, a Date (by default sent as ISO 8601 in UTC), a Data (as Base64), a URL,
    /// a UUID, an enum with such a raw value, nil or `NSNull`, an array, or a dictionary with String keys. Anything
    /// else is ``NetworkError/Code/invalidRequest``, with a message that names the place.
    var params: [String: Any]? { get }

    /// The parameters as a value of a type of one's own, instead of ``params``. Default nil.
    ///
    /// They go where ``query`` says and follow the rules of ``params``; a request that has both is
    /// ``NetworkError/Code/invalidRequest``. A nil property is left out, unless its type encodes it. A Set has no order
    /// of its own to keep.
    ///
    /// ```swift
    /// var encodableParams: (any Encodable & Sendable)? { filter }
    /// ```
    var encodableParams: (any Encodable & Sendable)? { get }

    /// How the parameters are written into a query or a form. Default: as ``HostSettings/queryEncoder`` of the host does.
    var queryEncoder: QueryEncoder { get }

    /// Header fields; they beat those of the host, whatever the case of the names. Default nil.
    var headers: [String: String]? { get }

    /// Who asks, instead of the host's ``HostSettings/authentication``: a user with a password, a token. It is sent from the
    /// beginning, and not refreshed when it is refused. Default nil. An `Authorization` in ``headers`` beats it.
    var credential: HTTPCredential? { get }

    /// Whether the host's ``HostSettings/authentication`` takes part: false for a request that signs in, which is to carry no
    /// older credential, and whose refusal is its answer. Default true.
    var isAuthenticated: Bool { get }

    /// The body, if it is not made from ``params``. Default nil.
    var body: RequestBody? { get }

    /// The longest time in seconds that one attempt may take, from its start to its last byte. Default nil: the host's.
    var timeout: TimeInterval? { get }

    /// The longest time in seconds that all attempts together may take, from the building of the request to its last byte,
    /// delays and redirects included; the time in a queue before that does not count. It ends with
    /// ``NetworkError/Code/timedOut``. Default nil: no limit.
    var overallTimeout: TimeInterval? { get }

    /// When it is sent again after a failure. Default nil: the host's, by default two retries of idempotent methods.
    var retry: RetryPolicy? { get }

    /// Sent as `Idempotency-Key`, the same for every attempt: with it a server does once what it is asked several times,
    /// so that a POST may be retried. Default nil: none. Read once for each time the request is made.
    var idempotencyKey: String? { get }

    /// Which redirects it follows. Default nil: the host's, by default up to 20.
    var redirects: RedirectPolicy? { get }

    /// How it uses the cache. Default nil: the host's, by default ``CachePolicy/never``.
    var cache: CachePolicy? { get }

    /// See and alter its messages and answers, inside of those of the host. Default none.
    var interceptors: [any RequestInterceptor] { get }

    /// Refuses parameters before anything is sent. Called when the request is built. Default: all pass.
    ///
    /// - Throws: anything; what is no ``NetworkError`` becomes ``NetworkError/Code/invalidRequest``.
    func validateParameters() throws

    /// A message of one's own, which replaces everything above but ``timeout`` and what is decided about answers: it goes
    /// out as it is, without the host's headers, filters and credentials. Interceptors see it. Default nil.
    ///
    /// Of its properties the URL, the method, the headers, the body and the timeout are used. A body stream can be read
    /// once: such a request is never sent again.
    var customURLRequest: URLRequest? { get }

    /// Whether the request may go over a cellular network. Default true. Only systems that tell their networks apart
    /// honour it: Apple's.
    var allowsCellularAccess: Bool { get }

    /// What kind of traffic it is. Default ``NetworkServiceType/standard``. Honoured on Apple's platforms.
    var networkServiceType: NetworkServiceType { get }

    /// How early the request gets its turn in a queue. Default normal.
    var priority: Operation.QueuePriority { get }

    /// The base URL for this request instead of the host's. Default nil: the host's.
    var baseURL: URL? { get }

    /// Whether ``HostSettings/cdnURL`` is the base URL, if the host has one. Default false.
    var useCDN: Bool { get }

    /// Which answers are a success. Default nil: the host's, which by default takes statuses 200 to 299.
    var validation: ResponseValidation? { get }

    /// What becomes of the request while another one like it waits or runs in its queue. Default
    /// ``RepeatPolicy/allow``.
    var repeatPolicy: RepeatPolicy { get }

    /// What makes two requests alike for ``repeatPolicy``. Default nil: the message that would be sent.
    var repeatKey: String? { get }
}

extension BaseAPIRequest {
    public var method: NetworkService.Method { .get }
    public var query: NetworkService.QueryType {
        [.post, .put, .patch].contains(method) && body == nil ? .form : .path
    }
    public var params: [String: Any]? { nil }
    public var encodableParams: (any Encodable & Sendable)? { nil }
    public var queryEncoder: QueryEncoder { .ofHost }
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
    public var networkServiceType: NetworkServiceType { .standard }
    public var baseURL: URL? { nil }
    public var useCDN: Bool { false }
    public var validation: ResponseValidation? { nil }
    public var repeatPolicy: RepeatPolicy { .allow }
    public var repeatKey: String? { nil }

    /// The header fields of a request that sends JSON and wants JSON.
    public func defaultJsonHeader() -> [String: String] {
        ["Content-Type": "application/json", "Accept": "application/json"]
    }
}
