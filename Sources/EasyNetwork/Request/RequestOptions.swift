import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The optional settings of one request. They have the names and types of ``HostSettings`` and override them; `nil`
/// means the host's value.
///
/// ```swift
/// struct GetNews: APIRequest {
///     typealias Item = [String]
///     var api: String { "news" }
///     var options: RequestOptions { RequestOptions(timeout: 5, cache: .http) }
/// }
/// ```
///
/// For settings that all requests of a server share, see <doc:ParametersAndBodies>.
public struct RequestOptions: Sendable {
    /// The options that have references, or many parts. Code that reads several of them reads this struct, whose
    /// properties are stored.
    struct Values: Sendable {
        var baseURL: URL?
        var queryEncoder: QueryEncoder?
        var omittedHeaders: Set<String>
        var filters: [@Sendable (inout RequestDraft) throws -> Void]?
        var interceptors: [any RequestInterceptor]
        var idempotencyKey: String?
        var customURLRequest: URLRequest?
        var credential: HTTPCredential?
        var cookies: CookieJar?
        var deadlines: TransportDeadlines?
        var retry: RetryPolicy?
        var circuitBreaker: CircuitBreaker?
        var redirects: RedirectPolicy?
        var cache: CachePolicy?
        var validation: ResponseValidation?
        var decoder: ResponseDecoder?
        var repeatKey: String?
        var resuming: ResumableUpload?
        var body: RequestBody?
        var beginBody: (@Sendable (TransportBody) throws(NetworkError) -> TransportBody)?
    }

    /// These options are in a shared object, because several steps of a call copy and read the options, and all
    /// requests without options share one. Flags and numbers cost less to copy, and are stored by themselves.
    private var storage: Shared<Values>

    var values: Values { _read { yield storage.value } }

    /// The options of a request that declares none.
    static let standard = RequestOptions()

    // MARK: The URL

    /// The base URL of this request. Defaults to `nil`: the host's.
    public var baseURL: URL? {
        get { storage.value.baseURL }
        set { storage.value.baseURL = newValue }
    }

    /// Whether ``HostSettings/cdnURL`` is the base URL, if the host has one. Defaults to `false`.
    public var useCDN: Bool

    // MARK: The message

    /// The encoder of the parameters in a query or a form. Defaults to `nil`: the host's.
    public var queryEncoder: QueryEncoder? {
        get { storage.value.queryEncoder }
        set { storage.value.queryEncoder = newValue }
    }

    /// The names of the host's header fields that are not sent with this request: fields of
    /// ``HostSettings/standardHeaders`` and ``HostSettings/headers``. Names are case-insensitive. Defaults to an empty
    /// set.
    public var omittedHeaders: Set<String> {
        get { storage.value.omittedHeaders }
        set { storage.value.omittedHeaders = newValue }
    }

    /// The filters of this request, which replace ``HostSettings/filters``. Defaults to `nil`: the host's.
    public var filters: [@Sendable (inout RequestDraft) throws -> Void]? {
        get { storage.value.filters }
        set { storage.value.filters = newValue }
    }

    /// The interceptors of this request, which are called after the host's interceptors and are closer to the network.
    /// Defaults to an empty array.
    public var interceptors: [any RequestInterceptor] {
        get { storage.value.interceptors }
        set { storage.value.interceptors = newValue }
    }

    /// The value of `Idempotency-Key`, which is the same for every attempt. A server that supports the key acts only
    /// once, so a POST can be retried. Defaults to `nil`, which sends no key.
    public var idempotencyKey: String? {
        get { storage.value.idempotencyKey }
        set { storage.value.idempotencyKey = newValue }
    }

    /// Whether the messages carry their trace, see ``HostSettings/sendsTraceContext``. If true, they carry it to the
    /// origin of the request, even if that is not the host's. Defaults to `nil`: the host's setting.
    public var sendsTraceContext: Bool?

    /// A complete message, which replaces the whole request except ``timeout``, ``deadlines`` and the rules for
    /// responses. It is sent unchanged, without the host's headers, filters, credentials, cookies and traces, and the
    /// cookies of its response are not stored. Interceptors see it. Defaults to `nil`.
    ///
    /// Its URL, method, headers, body and timeout are used. A body stream can be read only once, so such a request is
    /// never sent again.
    public var customURLRequest: URLRequest? {
        get { storage.value.customURLRequest }
        set { storage.value.customURLRequest = newValue }
    }

    /// Whether the request can use a cellular network. Defaults to `true`. It has an effect only on Apple's platforms.
    public var allowsCellularAccess: Bool

    /// The kind of traffic. Defaults to `default`. It has an effect only on Apple's platforms.
    public var networkServiceType: URLRequest.NetworkServiceType

    // MARK: The user

    /// The credential that replaces the host's ``HostSettings/authentication``: a user name with a password, or a
    /// token. It is sent with the first attempt, and not refreshed when the server rejects it. An `Authorization` field
    /// in ``BaseAPIRequest/headers`` replaces it. Defaults to `nil`.
    public var credential: HTTPCredential? {
        get { storage.value.credential }
        set { storage.value.credential = newValue }
    }

    /// Whether the host's ``HostSettings/authentication`` applies. Set it to false for a request that signs in: the
    /// request then carries no older credential, and a rejection is its response. Defaults to `true`.
    public var isAuthenticated: Bool

    /// The cookies of this request. Defaults to `nil`: the host's.
    public var cookies: CookieJar? {
        get { storage.value.cookies }
        set { storage.value.cookies = newValue }
    }

    /// Whether cookies are sent and stored. Defaults to `true`.
    public var usesCookies: Bool

    // MARK: The upload

    /// The protocol with which an ``UploadOperation`` or an entry of an outbox resumes its upload after a lost
    /// connection, a pause, or a relaunch. Other jobs send the body in one message. Defaults to `nil`: a failed upload
    /// starts over.
    public var resuming: ResumableUpload? {
        get { storage.value.resuming }
        set { storage.value.resuming = newValue }
    }

    // MARK: Time

    /// The timeout of one attempt in seconds, from its start to its last byte. Defaults to `nil`: the timeout of
    /// ``deadlines``.
    public var timeout: TimeInterval?

    /// The deadlines of one attempt. Defaults to `nil`: the host's.
    public var deadlines: TransportDeadlines? {
        get { storage.value.deadlines }
        set { storage.value.deadlines = newValue }
    }

    /// The timeout of all attempts together in seconds, from building the request to its last byte, including delays
    /// and redirects but not the time in a queue. When it has passed, the request fails with
    /// ``NetworkError/Code/timedOut``. Defaults to `nil`: no limit.
    public var overallTimeout: TimeInterval?

    // MARK: The response

    /// The rule for sending the request again after a failure. Defaults to `nil`: the host's, by default two retries of
    /// idempotent methods.
    public var retry: RetryPolicy? {
        get { storage.value.retry }
        set { storage.value.retry = newValue }
    }

    /// The rule for holding back the request while its server fails. It shares the circuit of the host's calls.
    /// Defaults to `nil`: the host's, by default none. ``CircuitBreaker/never`` turns it off.
    public var circuitBreaker: CircuitBreaker? {
        get { storage.value.circuitBreaker }
        set { storage.value.circuitBreaker = newValue }
    }

    /// The redirects that are followed. Defaults to `nil`: the host's, by default up to 20.
    public var redirects: RedirectPolicy? {
        get { storage.value.redirects }
        set { storage.value.redirects = newValue }
    }

    /// The use of the cache. Defaults to `nil`: ``HostSettings/cachePolicy``, by default ``CachePolicy/never``.
    public var cache: CachePolicy? {
        get { storage.value.cache }
        set { storage.value.cache = newValue }
    }

    /// The responses that count as a success. Defaults to `nil`: the host's, by default statuses 200 to 299.
    public var validation: ResponseValidation? {
        get { storage.value.validation }
        set { storage.value.validation = newValue }
    }

    /// The decoder of `Decodable` items. Defaults to `nil`: the host's.
    public var decoder: ResponseDecoder? {
        get { storage.value.decoder }
        set { storage.value.decoder = newValue }
    }

    // MARK: For jobs of the package

    /// The body that replaces the request's; the parameters then become part of the URL. Defaults to `nil`.
    package var body: RequestBody? {
        get { storage.value.body }
        set { storage.value.body = newValue }
    }

    /// Called with the body of each message before it is sent, after all interceptors. Defaults to `nil`.
    package var beginBody: (@Sendable (TransportBody) throws(NetworkError) -> TransportBody)? {
        get { storage.value.beginBody }
        set { storage.value.beginBody = newValue }
    }

    // MARK: The queue

    /// The priority of the request in a queue. Defaults to `normal`.
    public var priority: Operation.QueuePriority

    /// The rule for the request while a request like it waits or runs in the same queue. Defaults to
    /// ``RepeatPolicy/allow``.
    public var repeatPolicy: RepeatPolicy

    /// The key that requests share to be alike for ``repeatPolicy``. Defaults to `nil`, which compares the messages
    /// that would be sent; a request with its own ``interceptors`` is then like no other.
    public var repeatKey: String? {
        get { storage.value.repeatKey }
        set { storage.value.repeatKey = newValue }
    }

    /// Creates options. Each parameter sets the property of the same name and has its default.
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
        resuming: ResumableUpload? = nil,
        customURLRequest: URLRequest? = nil,
        allowsCellularAccess: Bool = true,
        networkServiceType: URLRequest.NetworkServiceType = .default
    ) {
        storage = Shared(
            Values(
                baseURL: baseURL,
                queryEncoder: queryEncoder,
                omittedHeaders: omittedHeaders,
                filters: filters,
                interceptors: interceptors,
                idempotencyKey: idempotencyKey,
                customURLRequest: customURLRequest,
                credential: credential,
                cookies: cookies,
                deadlines: deadlines,
                retry: retry,
                circuitBreaker: circuitBreaker,
                redirects: redirects,
                cache: cache,
                validation: validation,
                decoder: decoder,
                repeatKey: repeatKey,
                resuming: resuming
            )
        )
        self.useCDN = useCDN
        self.sendsTraceContext = sendsTraceContext
        self.allowsCellularAccess = allowsCellularAccess
        self.networkServiceType = networkServiceType
        self.isAuthenticated = isAuthenticated
        self.usesCookies = usesCookies
        self.timeout = timeout
        self.overallTimeout = overallTimeout
        self.priority = priority
        self.repeatPolicy = repeatPolicy
    }

    /// Returns a copy with changes.
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

extension RequestOptions: CustomStringConvertible, CustomReflectable {
    /// The options that differ from their defaults, without the secrets that ``Redaction`` recognizes.
    public var description: String {
        let changes = Changes(value: self, standard: .standard)
        // Add the properties one by one. The compiler takes long for a literal of so many types.
        var properties: [(name: String, value: Any?)] = []
        func add(_ name: String, _ value: Any?) { properties.append((name, value)) }
        add("baseURL", baseURL?.withoutSecrets)
        add("useCDN", changes[\.useCDN])
        add("queryEncoder", queryEncoder)
        add("omittedHeaders", changes[\.omittedHeaders])
        add("filters", filters?.count)
        add("interceptors", interceptors.isEmpty ? nil : interceptors.count)
        add("idempotencyKey", idempotencyKey.map { _ in Redaction.mark })
        add("sendsTraceContext", sendsTraceContext)
        add("customURLRequest", customURLRequest?.url?.withoutSecrets)
        add("allowsCellularAccess", changes[\.allowsCellularAccess])
        add("networkServiceType", changes[\.networkServiceType].map { _ in "…" })
        add("credential", credential)
        add("isAuthenticated", changes[\.isAuthenticated])
        add("cookies", cookies.map { _ in "…" })
        add("usesCookies", changes[\.usesCookies])
        add("timeout", timeout)
        add("deadlines", deadlines)
        add("overallTimeout", overallTimeout)
        add("retry", retry)
        add("circuitBreaker", circuitBreaker)
        add("redirects", redirects)
        add("cache", cache)
        add("validation", validation)
        add("decoder", decoder.map { _ in "…" })
        add("priority", changes[\.priority].map { Self.priorityNames[$0] ?? "\($0.rawValue)" })
        add("repeatPolicy", changes[\.repeatPolicy])
        add("repeatKey", repeatKey.map { _ in Redaction.mark })
        add("resuming", resuming)
        return String(listing: "RequestOptions", properties)
    }

    /// On Apple's platforms, a printed priority shows only the name of its type.
    private static let priorityNames: [Operation.QueuePriority: String] = [
        .veryLow: "veryLow", .low: "low", .normal: "normal", .high: "high", .veryHigh: "veryHigh",
    ]

    /// A mirror without children, so that a dump has no secrets.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
