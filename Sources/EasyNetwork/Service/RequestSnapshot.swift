import Foundation

/// A request at the moment when it becomes a call. Each property is read once, and the options override the host's
/// settings.
///
/// One call with its retries, the revalidation that follows it, and the ranges of a download share one snapshot. An
/// operation that may repeat another one is read when it is added to a queue, which compares the messages.
final class RequestSnapshot: Sendable {
    /// The request as the user made it, for interceptors, filters and notifications.
    let request: any BaseAPIRequest
    let options: RequestOptions
    let host: HostConfiguration
    /// The Content-Type of the request's headers that contradicts the body, and the body's own type that replaces it.
    let replacedContentType: (given: String, sent: String)?
    /// The message before interceptors, the host's credential, and cookies. Each attempt begins with it.
    let message: TransportRequest
    let validation: ResponseValidation
    let retry: RetryPolicy
    let redirects: RedirectPolicy
    /// The interceptors of the host, followed by the request's interceptors.
    let interceptors: [any RequestInterceptor]
    let cachePolicy: CachePolicy
    /// The URL of the request, if a server has named the URL of this message, which is at another origin; otherwise nil.
    let home: URL?
    /// The limit for all attempts together, in seconds.
    let overallTimeout: TimeInterval?

    /// Reads a request.
    ///
    /// - Parameter change: Changes the finished message. Defaults to `nil`.
    /// - Throws: ``NetworkError/Code/invalidRequest`` for a request that cannot be sent.
    init(
        _ request: some BaseAPIRequest,
        _ options: RequestOptions,
        for host: HostConfiguration,
        change: ((inout TransportRequest) -> Void)? = nil
    ) throws(NetworkError) {
        var replaced: (given: String, sent: String)?
        var message = try RequestBuilder.build(request, options, for: host) { replaced = ($0, $1) }
        change?(&message)
        self.request = request
        self.options = options
        self.host = host
        self.message = message
        replacedContentType = replaced
        // Each setting is read by itself, because a copy of all settings costs more.
        validation = options.values.validation ?? host.settings.validation
        retry = options.values.retry ?? host.settings.retry
        redirects = options.values.redirects ?? host.settings.redirects
        interceptors = host.settings.interceptors + options.values.interceptors
        cachePolicy = options.values.cache ?? host.settings.cachePolicy(for: message.method)
        home = nil
        overallTimeout = try options.overallTimeout.map { seconds throws(NetworkError) in
            try RequestBuilder.positive(seconds, "overall timeout")
        }
    }

    /// Creates the snapshot of another message for the same request, without cache.
    ///
    /// - Parameters:
    ///   - options: The options of the message. Without a validation or a retry policy, the ones of the request apply.
    ///   - home: The URL of the request, if a server has named the message's URL at another origin.
    init(_ other: RequestSnapshot, _ message: TransportRequest, _ options: RequestOptions, home: URL?) {
        (request, host, interceptors, redirects) = (other.request, other.host, other.interceptors, other.redirects)
        (self.message, self.options, self.home) = (message, options, home)
        validation = options.values.validation ?? other.validation
        retry = options.values.retry ?? other.retry
        (cachePolicy, replacedContentType, overallTimeout) = (.never, nil, options.overallTimeout)
    }

    /// Returns the number of seconds to wait for the body of a response whose head decides what follows.
    ///
    /// - Returns: Nil if the body is wanted, because the response is accepted and is not a redirect.
    func patience(for head: TransportHead) -> TimeInterval? {
        guard redirects.mayFollow(head.statusCode, head.headers) else {
            return validation.accepts(head) ? nil : .infinity
        }
        // A redirect that the hook does not follow can be an accepted response. The body of any other redirect is not
        // used. Reading it to its end only saves a new connection, which takes no longer than 0.5 seconds.
        return redirects.decide != nil && validation.accepts(head) ? .infinity : 0.5
    }

    /// Returns a response with the settings for reading it.
    func prepared(_ response: consuming NetworkResponse, _ method: NetworkService.Method) -> NetworkResponse {
        response.prepared(for: method, validation, decoder: options.values.decoder ?? host.settings.decoder)
    }

    /// Returns a stored response with the settings for reading it; nil if it does not pass the validation.
    func accepted(_ response: NetworkResponse) -> NetworkResponse? {
        let response = prepared(response, message.method)
        return validation.error(for: response) == nil ? response : nil
    }

    /// Returns the cache as the request uses it; nil if the request does not use it.
    func cache(_ order: CacheLookup.Order) -> CacheLookup? {
        guard cachePolicy.isActive else { return nil }
        return CacheLookup(cachePolicy, host.settings.cache, partition: host.settings.cachePartition, order: order)
    }
}

/// The cache, as a request uses it.
extension RequestSnapshot {
    /// Looks up the response in the cache. Suspends only when the disk is read.
    ///
    /// - Parameter key: The key of the message.
    func look(
        _ cache: CacheLookup,
        for message: TransportRequest,
        key: String?
    ) async -> CacheLookup.Verdict {
        var message = message
        addCookies(to: &message)
        let found = await withCheckedContinuation { continuation in
            cache.find(key, for: message) { continuation.resume(returning: $0) }
        }
        return cache.judge(found, for: message, at: host.settings.clock.date, accept: accepted)
    }

    /// Returns the entry to store when the response to a message has arrived; nil if the policy stores nothing.
    ///
    /// - Parameters:
    ///   - asked: The message's fields before the host's authentication changed them; nil if it did not.
    ///   - key: The key of the attempt, before redirects.
    ///   - candidate: The entry that the response can confirm. Defaults to `nil`.
    func deposit(
        _ message: TransportRequest,
        in cache: CacheLookup,
        asked: HTTPHeaders? = nil,
        key: String?,
        _ candidate: StoredCandidate? = nil
    ) -> CacheDeposit? {
        guard !cache.policy.storage.isEmpty else { return nil }
        return CacheDeposit(
            lookup: cache,
            key: key,
            message: message,
            candidate: candidate,
            asked: asked ?? message.headers,
            isCredentialAdded: credentialState?.isExempt == false,
            requestedAt: host.settings.clock.date,
            generation: cache.cache.generation
        )
    }

    /// The authentication state that a call begins with; nil without authentication.
    var credentialState: RequestAuthentication.CredentialState? { host.credentialState(for: options, message) }

    /// Adds the cookies of the host, unless the message has its own.
    func addCookies(to message: inout TransportRequest) {
        if let cookies = host.cookies(for: options, message) { message.headers["Cookie"] = cookies }
    }
}
