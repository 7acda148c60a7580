import Foundation

/// What a landing has around it: its host, its request, and the operation that makes the call.
final class LandingSite: Sendable {
    let configuration: HostConfiguration
    let request: any BaseAPIRequest
    private let method: NetworkService.Method
    let validation: ResponseValidation
    let retry: RetryPolicy
    let redirects: RedirectPolicy
    /// Those of the host, then those of the request.
    let interceptors: [any RequestInterceptor]
    /// Nil when the cache has nothing to do with the request.
    let cache: CacheUse?
    private let stamp: LandingCourse.Stamp?
    /// For all attempts together, in seconds.
    let timeout: TimeInterval?
    /// The operation that gives its slot back while the landing waits; nil when none does.
    let caller: Caller?
    /// Whether the thread of who begins the landing is as good as one of ``WorkQueue``: that of a job of a ``NetworkQueue``.
    let isOnWorkQueue: Bool
    /// Where an accepted body goes; nil for into memory.
    let sink: (any BodySink)?

    init(
        _ configuration: HostConfiguration,
        _ request: some BaseAPIRequest,
        _ message: TransportRequest,
        caller: Caller?,
        isOnWorkQueue: Bool = false,
        order: CacheUse.Order = .standard,
        sink: (any BodySink)? = nil
    ) throws(NetworkError) {
        // Each is read from there by itself: a copy of all settings costs more than all that is needed of them.
        self.configuration = configuration
        self.request = request.asMade
        method = message.method
        validation = request.validation ?? configuration.settings.validation
        retry = request.retry ?? configuration.settings.retry
        redirects = request.redirects ?? configuration.settings.redirects
        interceptors = configuration.settings.interceptors + request.interceptors
        timeout = try RequestBuilder.overallTimeout(of: request)
        self.caller = caller
        self.isOnWorkQueue = isOnWorkQueue
        self.sink = sink
        let policy = request.cache ?? configuration.settings.cachePolicy(for: message.method)
        // The cache holds bodies, and there will be none.
        cache =
            sink == nil
            ? CacheUse(
                policy,
                configuration.settings.cache,
                partition: configuration.settings.cachePartition,
                order: order
            ) : nil
        stamp = configuration.settings.authentication.map { authentication in
            var stamp = authentication.begin(message.url, base: configuration.settings.baseURL)
            if message.headers["Authorization"] != nil || !request.isAuthenticated || request.customURLRequest != nil {
                stamp.isExempt = true
            }
            return stamp
        }
    }

    var rules: LandingCourse.Rules {
        LandingCourse.Rules(
            retry: retry,
            redirects: redirects,
            isIntercepted: !interceptors.isEmpty,
            cache: cache,
            accept: accepted,
            stamp: stamp
        )
    }

    var clock: any NetworkClock { configuration.settings.clock }

    var moment: LandingCourse.Moment {
        LandingCourse.Moment(date: clock.date, random: configuration.settings.random)
    }

    /// Whether the body of an answer with this head is what was asked for.
    func wants(_ head: TransportHead) -> Bool {
        validation.accepts(statusCode: head.statusCode)
            && validation.accepts(contentType: head.headers["Content-Type"])
            && !RedirectRules(policy: redirects).mayFollow(head.statusCode, head.headers)
    }

    /// An answer with what reading it has to know.
    func prepared(_ response: NetworkResponse, _ method: NetworkService.Method) -> NetworkResponse {
        response.prepared(for: method, validation, decoder: configuration.settings.decoder)
    }

    // MARK: - Interceptors

    func adapt(
        _ message: TransportRequest,
        _ history: [NetworkAttempt]
    ) async -> Result<TransportRequest, NetworkError> {
        let context = AttemptContext(request: request, history: history)
        var message = message
        do {
            for interceptor in interceptors { message = try await interceptor.adapt(message, context: context) }
            return .success(message)
        } catch {
            return .failure(.thrown(error, otherwise: .refused))
        }
    }

    func land(
        _ result: Result<NetworkResponse, NetworkError>,
        _ history: [NetworkAttempt]
    ) async -> LandingDecision {
        let context = AttemptContext(request: request, history: history)
        var result = result
        var decision = LandingDecision.proceed
        for interceptor in interceptors.reversed() {
            switch await interceptor.land(result, context: context) {
            case .proceed: continue
            case .succeed(var response):
                // One that the interceptor has made is read as the host's answers are.
                if response.requestMethod == nil { response = prepared(response, method) }
                result = .success(response)
                decision = .succeed(response)
            case .fail(let error):
                result = .failure(error)
                decision = .fail(error)
            case .stop: return .stop
            case .sendAgain(let delay): return .sendAgain(after: delay)
            }
        }
        return decision
    }

    // MARK: - The cache

    /// - Parameter completion: called once: at once unless the disk has to be asked, else on ``WorkQueue``.
    func look(
        _ message: TransportRequest,
        key: String?,
        _ completion: @escaping @Sendable (CacheUse.Verdict) -> Void
    ) {
        guard let cache else { return completion(.send(.absent, nil)) }
        let message = withCookies(message)
        cache.find(key) { found in
            completion(cache.judge(found, for: message, at: self.clock.date, accept: self.accepted))
        }
    }

    /// - Returns: nil when a stored answer is not accepted as answers are now.
    private func accepted(_ response: NetworkResponse) -> NetworkResponse? {
        let response = prepared(response, method)
        return validation.error(for: response) == nil ? response : nil
    }

    /// What is to be stored once the answer to a message is there.
    ///
    /// - Parameters:
    ///   - asked: its fields before the host's authentication altered them; nil if it did not.
    ///   - key: of the attempt, before it was redirected.
    ///   - candidate: the entry that it may confirm.
    func deposit(
        _ message: TransportRequest,
        asked: HTTPHeaders? = nil,
        key: String?,
        _ candidate: CacheCandidate?
    ) -> CacheDeposit? {
        guard let cache, !cache.policy.storage.isEmpty else { return nil }
        return CacheDeposit(
            use: cache,
            key: key,
            message: message,
            candidate: candidate,
            asked: asked ?? message.headers,
            isCredentialAdded: stamp?.isExempt == false,
            requestedAt: clock.date,
            generation: cache.cache.generation
        )
    }

    // MARK: - Credentials and cookies

    /// For a refresh, which outlives the landing.
    private var makeService: @Sendable () -> EasyNetworkService {
        { [configuration] in EasyNetworkService(configuration) }
    }

    func authorize(
        _ message: TransportRequest,
        _ stamp: LandingCourse.Stamp,
        _ completion: @escaping RequestAuthentication.Completion
    ) -> RequestAuthentication.Step {
        configuration.settings.authentication?.prepare(message, stamp, over: makeService, completion: completion)
            ?? .send(message, stamp)
    }

    func review(
        _ response: NetworkResponse,
        _ message: TransportRequest,
        _ stamp: LandingCourse.Stamp,
        _ completion: @escaping RequestAuthentication.Completion
    ) -> RequestAuthentication.Step {
        configuration.settings.authentication?
            .review(response, to: message, stamp, over: makeService, completion: completion) ?? .accept
    }

    func withCookies(_ message: TransportRequest) -> TransportRequest {
        guard let jar = configuration.settings.cookies, request.customURLRequest == nil,
            message.headers["Cookie"] == nil, let cookies = jar.cookieHeader(for: message.url, at: clock.date)
        else { return message }
        var message = message
        message.headers["Cookie"] = cookies
        return message
    }

    func keepCookies(of result: Result<NetworkResponse, NetworkError>, from url: URL) {
        if case .success(let response) = result { keepCookies(response.headers, from: url) }
    }

    func keepCookies(_ headers: HTTPHeaders, from url: URL) {
        guard let jar = configuration.settings.cookies, headers["Set-Cookie"] != nil else { return }
        jar.store(headers, from: url, at: clock.date)
    }
}
