import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The settings of a request besides what it asks for. Its fields have the names and types of ``HostSettings`` and are
/// laid over them; nil means those of the host.
///
/// ```swift
/// struct GetNews: APIRequest {
///     typealias Item = [String]
///     var api: String { "news" }
///     var options: RequestOptions { RequestOptions(timeout: 5, cache: .http) }
/// }
/// ```
///
/// For what all requests of a server have in common see <doc:ParametersAndBodies>.
public struct RequestOptions: Sendable {
    private struct Values: Sendable {
        var baseURL: URL?
        var useCDN: Bool
        var queryEncoder: QueryEncoder?
        var omittedHeaders: Set<String>
        var filters: [@Sendable (inout RequestDraft) throws -> Void]?
        var interceptors: [any RequestInterceptor]
        var idempotencyKey: String?
        var sendsTraceContext: Bool?
        var customURLRequest: URLRequest?
        var allowsCellularAccess: Bool
        var networkServiceType: URLRequest.NetworkServiceType
        var credential: HTTPCredential?
        var isAuthenticated: Bool
        var cookies: CookieJar?
        var usesCookies: Bool
        var timeout: TimeInterval?
        var deadlines: TransportDeadlines?
        var overallTimeout: TimeInterval?
        var retry: RetryPolicy?
        var circuitBreaker: CircuitBreaker?
        var redirects: RedirectPolicy?
        var cache: CachePolicy?
        var validation: ResponseValidation?
        var decoder: ResponseDecoder?
        var priority: Operation.QueuePriority
        var repeatPolicy: RepeatPolicy
        var repeatKey: String?
        var body: RequestBody?
        var beginBody: (@Sendable (TransportBody) throws(NetworkError) -> TransportBody)?
    }

    /// In an object of its own: several steps of a call read the options, and a request without any shares one.
    private var values: Shared<Values>

    /// The default of a request.
    static let standard = RequestOptions()

    // MARK: The address

    /// The base URL of this request. Default nil: the host's.
    public var baseURL: URL? {
        get { values.value.baseURL }
        set { values.value.baseURL = newValue }
    }

    /// Whether ``HostSettings/cdnURL`` is the base URL, if the host has one. Default false.
    public var useCDN: Bool {
        get { values.value.useCDN }
        set { values.value.useCDN = newValue }
    }

    // MARK: The message

    /// The encoder of the parameters in a query or a form. Default nil: the host's.
    public var queryEncoder: QueryEncoder? {
        get { values.value.queryEncoder }
        set { values.value.queryEncoder = newValue }
    }

    /// The names of header fields of the host that are not sent with this request, in any case: fields of
    /// ``HostSettings/standardHeaders`` and ``HostSettings/headers``. Default none.
    public var omittedHeaders: Set<String> {
        get { values.value.omittedHeaders }
        set { values.value.omittedHeaders = newValue }
    }

    /// The filters of this request in place of ``HostSettings/filters``. Default nil: the host's.
    public var filters: [@Sendable (inout RequestDraft) throws -> Void]? {
        get { values.value.filters }
        set { values.value.filters = newValue }
    }

    /// The interceptors of this request, which come after those of the host and are closer to the network. Default
    /// none.
    public var interceptors: [any RequestInterceptor] {
        get { values.value.interceptors }
        set { values.value.interceptors = newValue }
    }

    /// The value of `Idempotency-Key`, the same for every attempt: a server that knows the key acts once, so that a
    /// POST may be retried. Default nil: none.
    public var idempotencyKey: String? {
        get { values.value.idempotencyKey }
        set { values.value.idempotencyKey = newValue }
    }

    /// Whether the messages carry their trace, see ``HostSettings/sendsTraceContext``. With true they carry it to the
    /// origin of the request, also where that is not the host's. Default nil: as the host says.
    public var sendsTraceContext: Bool? {
        get { values.value.sendsTraceContext }
        set { values.value.sendsTraceContext = newValue }
    }

    /// A finished message. It replaces all of the request but ``timeout``, ``deadlines`` and the rules for answers, and
    /// goes out as it is, without the host's headers, filters, credentials, cookies and traces, and those of its answer
    /// are not stored. Interceptors see it. Default nil.
    ///
    /// Its URL, method, headers, body and timeout are used. A body stream can be read once: such a request is never
    /// sent again.
    public var customURLRequest: URLRequest? {
        get { values.value.customURLRequest }
        set { values.value.customURLRequest = newValue }
    }

    /// Whether the request may go over a cellular network. Default true. It has an effect on Apple's platforms only.
    public var allowsCellularAccess: Bool {
        get { values.value.allowsCellularAccess }
        set { values.value.allowsCellularAccess = newValue }
    }

    /// The kind of traffic. Default `default`. It has an effect on Apple's platforms only.
    public var networkServiceType: URLRequest.NetworkServiceType {
        get { values.value.networkServiceType }
        set { values.value.networkServiceType = newValue }
    }

    // MARK: The user

    /// The credential instead of the host's ``HostSettings/authentication``: a user with a password, or a token. It is
    /// sent with the first attempt, and not refreshed when the server refuses it. An `Authorization` in
    /// ``BaseAPIRequest/headers`` replaces it. Default nil.
    public var credential: HTTPCredential? {
        get { values.value.credential }
        set { values.value.credential = newValue }
    }

    /// Whether the host's ``HostSettings/authentication`` applies. False for a request that signs in: it carries no
    /// older credential, and a refusal is its answer. Default true.
    public var isAuthenticated: Bool {
        get { values.value.isAuthenticated }
        set { values.value.isAuthenticated = newValue }
    }

    /// The cookies of this request. Default nil: the host's.
    public var cookies: CookieJar? {
        get { values.value.cookies }
        set { values.value.cookies = newValue }
    }

    /// Whether cookies are sent and stored. Default true.
    public var usesCookies: Bool {
        get { values.value.usesCookies }
        set { values.value.usesCookies = newValue }
    }

    // MARK: Time

    /// The longest time in seconds of one attempt, from its start to its last byte. Default nil: that of ``deadlines``.
    public var timeout: TimeInterval? {
        get { values.value.timeout }
        set { values.value.timeout = newValue }
    }

    /// The deadlines of one attempt. Default nil: the host's.
    public var deadlines: TransportDeadlines? {
        get { values.value.deadlines }
        set { values.value.deadlines = newValue }
    }

    /// The longest time in seconds of all attempts together, from the building of the request to its last byte, delays
    /// and redirects included; the time in a queue does not count. Afterwards the request ends with
    /// ``NetworkError/Code/timedOut``. Default nil: no limit.
    public var overallTimeout: TimeInterval? {
        get { values.value.overallTimeout }
        set { values.value.overallTimeout = newValue }
    }

    // MARK: The answer

    /// The rule for sending the request again after a failure. Default nil: the host's, by default two retries of
    /// idempotent methods.
    public var retry: RetryPolicy? {
        get { values.value.retry }
        set { values.value.retry = newValue }
    }

    /// The rule for holding the request back while its server fails. It shares the circuit of the host's calls. Default
    /// nil: the host's, by default none; ``CircuitBreaker/never`` switches it off.
    public var circuitBreaker: CircuitBreaker? {
        get { values.value.circuitBreaker }
        set { values.value.circuitBreaker = newValue }
    }

    /// The redirects that are followed. Default nil: the host's, by default up to 20.
    public var redirects: RedirectPolicy? {
        get { values.value.redirects }
        set { values.value.redirects = newValue }
    }

    /// The use of the cache. Default nil: ``HostSettings/cachePolicy``, by default ``CachePolicy/never``.
    public var cache: CachePolicy? {
        get { values.value.cache }
        set { values.value.cache = newValue }
    }

    /// The answers that are a success. Default nil: the host's, by default statuses 200 to 299.
    public var validation: ResponseValidation? {
        get { values.value.validation }
        set { values.value.validation = newValue }
    }

    /// The decoder of `Decodable` items. Default nil: the host's.
    public var decoder: ResponseDecoder? {
        get { values.value.decoder }
        set { values.value.decoder = newValue }
    }

    // MARK: For jobs of the package

    /// The body in place of the request's; its parameters go into the address then. Default nil.
    package var body: RequestBody? {
        get { values.value.body }
        set { values.value.body = newValue }
    }

    /// Called with the body of each message before it is sent, after all interceptors. Default nil.
    package var beginBody: (@Sendable (TransportBody) throws(NetworkError) -> TransportBody)? {
        get { values.value.beginBody }
        set { values.value.beginBody = newValue }
    }

    // MARK: The queue

    /// The priority of the request in a queue. Default normal.
    public var priority: Operation.QueuePriority {
        get { values.value.priority }
        set { values.value.priority = newValue }
    }

    /// The rule for the request while a like one waits or runs in its queue. Default ``RepeatPolicy/allow``.
    public var repeatPolicy: RepeatPolicy {
        get { values.value.repeatPolicy }
        set { values.value.repeatPolicy = newValue }
    }

    /// The key that like requests share for ``repeatPolicy``. Default nil: the message that would be sent; a request
    /// with ``interceptors`` of its own is like no other then.
    public var repeatKey: String? {
        get { values.value.repeatKey }
        set { values.value.repeatKey = newValue }
    }

    /// Creates options. Each has its default unless it is given.
    public init(
        timeout: TimeInterval? = nil,
        cache: CachePolicy? = nil,
        retry: RetryPolicy? = nil,
        priority: Operation.QueuePriority = .normal,
        baseURL: URL? = nil,
        useCDN: Bool = false,
        overallTimeout: TimeInterval? = nil,
        deadlines: TransportDeadlines? = nil,
        queryEncoder: QueryEncoder? = nil,
        omittedHeaders: Set<String> = [],
        filters: [@Sendable (inout RequestDraft) throws -> Void]? = nil,
        interceptors: [any RequestInterceptor] = [],
        idempotencyKey: String? = nil,
        sendsTraceContext: Bool? = nil,
        credential: HTTPCredential? = nil,
        isAuthenticated: Bool = true,
        cookies: CookieJar? = nil,
        usesCookies: Bool = true,
        circuitBreaker: CircuitBreaker? = nil,
        redirects: RedirectPolicy? = nil,
        validation: ResponseValidation? = nil,
        decoder: ResponseDecoder? = nil,
        repeatPolicy: RepeatPolicy = .allow,
        repeatKey: String? = nil,
        customURLRequest: URLRequest? = nil,
        allowsCellularAccess: Bool = true,
        networkServiceType: URLRequest.NetworkServiceType = .default
    ) {
        values = Shared(
            Values(
                baseURL: baseURL,
                useCDN: useCDN,
                queryEncoder: queryEncoder,
                omittedHeaders: omittedHeaders,
                filters: filters,
                interceptors: interceptors,
                idempotencyKey: idempotencyKey,
                sendsTraceContext: sendsTraceContext,
                customURLRequest: customURLRequest,
                allowsCellularAccess: allowsCellularAccess,
                networkServiceType: networkServiceType,
                credential: credential,
                isAuthenticated: isAuthenticated,
                cookies: cookies,
                usesCookies: usesCookies,
                timeout: timeout,
                deadlines: deadlines,
                overallTimeout: overallTimeout,
                retry: retry,
                circuitBreaker: circuitBreaker,
                redirects: redirects,
                cache: cache,
                validation: validation,
                decoder: decoder,
                priority: priority,
                repeatPolicy: repeatPolicy,
                repeatKey: repeatKey
            )
        )
    }

    /// A copy with changes.
    ///
    /// ```swift
    /// let shop = RequestOptions(timeout: 10, retry: .never)
    /// let order = shop.with { $0.overallTimeout = 60 }
    /// ```
    public func with(_ change: (inout RequestOptions) -> Void) -> RequestOptions {
        var copy = self
        change(&copy)
        return copy
    }
}
