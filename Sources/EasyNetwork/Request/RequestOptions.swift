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
    // MARK: The address

    /// The base URL of this request. Default nil: the host's.
    public var baseURL: URL?

    /// Whether ``HostSettings/cdnURL`` is the base URL, if the host has one. Default false.
    public var useCDN: Bool

    // MARK: The message

    /// The encoder of the parameters in a query or a form. Default nil: the host's.
    public var queryEncoder: QueryEncoder?

    /// The names of header fields of the host that are not sent with this request, in any case: fields of
    /// ``HostSettings/standardHeaders`` and ``HostSettings/headers``. Default none.
    public var omittedHeaders: Set<String>

    /// The filters of this request in place of ``HostSettings/filters``. Default nil: the host's.
    public var filters: [@Sendable (inout RequestDraft) throws -> Void]?

    /// The interceptors of this request, which come after those of the host and are closer to the network. Default none.
    public var interceptors: [any RequestInterceptor]

    /// The value of `Idempotency-Key`, the same for every attempt: a server that knows the key acts once, so that a
    /// POST may be retried. Default nil: none.
    public var idempotencyKey: String?

    /// A finished message. It replaces all of the request but ``timeout``, ``deadlines`` and the rules for answers, and
    /// goes out as it is, without the host's headers, filters, credentials and cookies, and those of its answer are not
    /// stored. Interceptors see it. Default nil.
    ///
    /// Its URL, method, headers, body and timeout are used. A body stream can be read once: such a request is never
    /// sent again.
    public var customURLRequest: URLRequest?

    /// Whether the request may go over a cellular network. Default true. It has an effect on Apple's platforms only.
    public var allowsCellularAccess: Bool

    /// The kind of traffic. Default `default`. It has an effect on Apple's platforms only.
    public var networkServiceType: URLRequest.NetworkServiceType

    // MARK: The user

    /// The credential instead of the host's ``HostSettings/authentication``: a user with a password, or a token. It is
    /// sent with the first attempt, and not refreshed when the server refuses it. An `Authorization` in
    /// ``BaseAPIRequest/headers`` replaces it. Default nil.
    public var credential: HTTPCredential?

    /// Whether the host's ``HostSettings/authentication`` applies. False for a request that signs in: it carries no
    /// older credential, and a refusal is its answer. Default true.
    public var isAuthenticated: Bool

    /// The cookies of this request. Default nil: the host's.
    public var cookies: CookieJar?

    /// Whether cookies are sent and stored. Default true.
    public var usesCookies: Bool

    // MARK: Time

    /// The longest time in seconds of one attempt, from its start to its last byte. Default nil: that of ``deadlines``.
    public var timeout: TimeInterval?

    /// The deadlines of one attempt. Default nil: the host's.
    public var deadlines: TransportDeadlines?

    /// The longest time in seconds of all attempts together, from the building of the request to its last byte, delays
    /// and redirects included; the time in a queue does not count. Afterwards the request ends with
    /// ``NetworkError/Code/timedOut``. Default nil: no limit.
    public var overallTimeout: TimeInterval?

    // MARK: The answer

    /// The rule for sending the request again after a failure. Default nil: the host's, by default two retries of
    /// idempotent methods.
    public var retry: RetryPolicy?

    /// The redirects that are followed. Default nil: the host's, by default up to 20.
    public var redirects: RedirectPolicy?

    /// The use of the cache. Default nil: ``HostSettings/cachePolicy``, by default ``CachePolicy/never``.
    public var cache: CachePolicy?

    /// The answers that are a success. Default nil: the host's, by default statuses 200 to 299.
    public var validation: ResponseValidation?

    /// The decoder of `Decodable` items. Default nil: the host's.
    public var decoder: ResponseDecoder?

    // MARK: The queue

    /// The priority of the request in a queue. Default normal.
    public var priority: Operation.QueuePriority

    /// The rule for the request while a like one waits or runs in its queue. Default ``RepeatPolicy/allow``.
    public var repeatPolicy: RepeatPolicy

    /// The key that like requests share for ``repeatPolicy``. Default nil: the message that would be sent; a request
    /// with ``interceptors`` of its own is like no other then.
    public var repeatKey: String?

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
        credential: HTTPCredential? = nil,
        isAuthenticated: Bool = true,
        cookies: CookieJar? = nil,
        usesCookies: Bool = true,
        redirects: RedirectPolicy? = nil,
        validation: ResponseValidation? = nil,
        decoder: ResponseDecoder? = nil,
        repeatPolicy: RepeatPolicy = .allow,
        repeatKey: String? = nil,
        customURLRequest: URLRequest? = nil,
        allowsCellularAccess: Bool = true,
        networkServiceType: URLRequest.NetworkServiceType = .default
    ) {
        (self.timeout, self.overallTimeout, self.deadlines) = (timeout, overallTimeout, deadlines)
        (self.cache, self.retry, self.redirects) = (cache, retry, redirects)
        (self.priority, self.repeatPolicy, self.repeatKey) = (priority, repeatPolicy, repeatKey)
        (self.baseURL, self.useCDN, self.queryEncoder) = (baseURL, useCDN, queryEncoder)
        (self.omittedHeaders, self.filters, self.interceptors) = (omittedHeaders, filters, interceptors)
        (self.idempotencyKey, self.credential, self.isAuthenticated) = (idempotencyKey, credential, isAuthenticated)
        (self.cookies, self.usesCookies) = (cookies, usesCookies)
        (self.validation, self.decoder, self.customURLRequest) = (validation, decoder, customURLRequest)
        (self.allowsCellularAccess, self.networkServiceType) = (allowsCellularAccess, networkServiceType)
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
