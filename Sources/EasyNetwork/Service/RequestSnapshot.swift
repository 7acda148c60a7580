import Foundation

/// A request as it is when it becomes a call: each property read once, the options laid over the host's settings.
///
/// One call with its retries, the revalidation behind it, and a download's ranges use one snapshot. An operation that
/// may repeat another is read when it is added to a queue, which compares the messages.
final class RequestSnapshot: Sendable {
    /// As its user made it; for interceptors, filters and notifications.
    let request: any BaseAPIRequest
    let options: RequestOptions
    let host: HostConfiguration
    /// The Content-Type of the request's headers that the body's has replaced, since it contradicts the body.
    let replacedContentType: (given: String, sent: String)?
    /// The message before interceptors, the host's credential, and cookies; each attempt begins with it.
    let message: TransportRequest
    let validation: ResponseValidation
    let retry: RetryPolicy
    let redirects: RedirectPolicy
    /// The interceptors of the host, then those of the request.
    let interceptors: [any RequestInterceptor]
    let cachePolicy: CachePolicy
    /// The limit for all attempts together, in seconds.
    let overallTimeout: TimeInterval?

    /// - Parameter change: changes the finished message. Default nil.
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
        // Each setting is read by itself: a copy of all settings costs more.
        validation = options.validation ?? host.settings.validation
        retry = options.retry ?? host.settings.retry
        redirects = options.redirects ?? host.settings.redirects
        interceptors = host.settings.interceptors + options.interceptors
        cachePolicy = options.cache ?? host.settings.cachePolicy(for: message.method)
        overallTimeout = try RequestBuilder.overallTimeout(options)
    }

    /// For how many seconds a call waits for the body of a response whose head decides what follows.
    ///
    /// - Returns: nil when the body is wanted: the response is accepted, and not a redirect.
    func patience(for head: TransportHead) -> TimeInterval? {
        guard (300...399).contains(head.statusCode),
            RedirectRules(policy: redirects).mayFollow(head.statusCode, head.headers)
        else { return validation.accepts(head) ? nil : .infinity }
        // A redirect that the hook does not follow may be an accepted response. Nobody reads any other one: its end
        // only saves a new connection, which takes no longer than this.
        return redirects.decide != nil && validation.accepts(head) ? .infinity : 0.5
    }

    /// An answer with the settings for reading it.
    func prepared(_ response: consuming NetworkResponse, _ method: NetworkService.Method) -> NetworkResponse {
        response.prepared(for: method, validation, decoder: options.decoder ?? host.settings.decoder)
    }

    /// - Returns: nil when a stored answer does not pass the validation.
    func accepted(_ response: NetworkResponse) -> NetworkResponse? {
        let response = prepared(response, message.method)
        return validation.error(for: response) == nil ? response : nil
    }

    /// The cache as the request uses it; nil when it does not.
    func cache(_ order: CacheLookup.Order) -> CacheLookup? {
        guard cachePolicy.isActive else { return nil }
        return CacheLookup(cachePolicy, host.settings.cache, partition: host.settings.cachePartition, order: order)
    }
}

/// The cache, as a request uses it.
extension RequestSnapshot {
    /// Asks the cache. Suspends only when the disk is read.
    ///
    /// - Parameter key: of the message.
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

    /// The entry to store when the response to a message has come; nil when the policy stores nothing.
    ///
    /// - Parameters:
    ///   - asked: the message's fields before the host's authentication changed them; nil if it did not.
    ///   - key: that of the attempt, before redirects.
    ///   - candidate: the entry that the response may confirm. Default nil.
    ///   - isCredentialAdded: whether the host's authentication adds a credential.
    func deposit(
        _ message: TransportRequest,
        in cache: CacheLookup,
        asked: HTTPHeaders? = nil,
        key: String?,
        _ candidate: StoredCandidate? = nil,
        isCredentialAdded: Bool
    ) -> CacheDeposit? {
        guard !cache.policy.storage.isEmpty else { return nil }
        return CacheDeposit(
            lookup: cache,
            key: key,
            message: message,
            candidate: candidate,
            asked: asked ?? message.headers,
            isCredentialAdded: isCredentialAdded,
            requestedAt: host.settings.clock.date,
            generation: cache.cache.generation
        )
    }

    /// The authentication state that a call begins with; nil without authentication.
    var credentialState: RequestAuthentication.CredentialState? { host.credentialState(for: options, message) }

    /// Adds the cookies of the host, unless the message has its own.
    func addCookies(to message: inout TransportRequest) {
        guard let cookies = host.cookies(for: options, message) else { return }
        message.headers["Cookie"] = cookies
    }
}
