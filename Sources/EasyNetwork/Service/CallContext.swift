import Foundation

/// The constants of all attempts of a call, its request and the operation that makes it, and the steps that need
/// it.
final class CallContext: Sendable {
    typealias Outcome = Result<NetworkResponse, NetworkError>

    let snapshot: RequestSnapshot
    /// Nil when the request does not use the cache.
    let cache: CacheLookup?
    /// Nil without authentication.
    let credentialState: RequestAuthentication.CredentialState?
    /// The operation that gives its slot back while the call waits; nil without one.
    private let caller: (any CallOwner)?
    /// The listeners of its queue, or of the queue that needs the refresh which makes the call.
    private let queueBroadcast: EventBroadcast?
    /// How an accepted body is used; nil to collect it.
    let consumer: BodyConsumer?
    /// Called with an answer of the cache that is followed by the network's.
    private let cached: (@Sendable (NetworkResponse) -> Void)?

    init(
        _ snapshot: RequestSnapshot,
        caller: (any CallOwner)?,
        heardBy broadcast: EventBroadcast? = nil,
        order: CacheLookup.Order = .standard,
        consumer: BodyConsumer? = nil,
        cached: (@Sendable (NetworkResponse) -> Void)? = nil
    ) {
        self.snapshot = snapshot
        self.caller = caller
        queueBroadcast = caller?.broadcast ?? broadcast
        self.consumer = consumer
        self.cached = cached
        // The cache stores bodies, and this answer has none.
        cache = consumer == nil ? snapshot.cache(order) : nil
        credentialState = snapshot.host.credentialState(for: snapshot.options, snapshot.message)
    }

    var host: HostConfiguration { snapshot.host }

    var clock: any NetworkClock { host.settings.clock }

    // MARK: - Events

    /// Whether anything listens to the host, or to the queue of the operation.
    var isHeard: Bool { host.broadcast.isHeard || queueBroadcast?.isHeard == true }

    /// The first bytes that a listener wants of a body that is used while it comes; 0 when none does.
    var wantedBodyCount: Int {
        isHeard ? max(host.broadcast.wantedBodyCount, queueBroadcast?.wantedBodyCount ?? 0) : 0
    }

    /// Tells the listeners of the operation's queue and of the host, if there are any.
    func tell(_ call: Call, _ kind: @autoclosure () -> NetworkEvent.Kind) {
        guard isHeard else { return }
        let kind = kind()
        var reportedBy = caller?.tell(kind, callNumber: call.number)
        if caller == nil, let queueBroadcast, queueBroadcast.isHeard {
            // Without a job, as several may wait for the refresh.
            queueBroadcast.post(NetworkEvent(kind, callNumber: call.number, host: host.host, trace: call.trace))
            reportedBy = ObjectIdentifier(queueBroadcast)
        }
        host.tell(kind, of: call, caller, reportedBy: reportedBy)
    }

    // MARK: - Interceptors

    /// - Throws: the veto of an interceptor.
    func adapt(
        _ message: TransportRequest,
        _ history: [NetworkAttempt]
    ) async throws(NetworkError) -> TransportRequest {
        let context = AttemptContext(request: snapshot.request, history: history)
        var message = message
        do {
            for interceptor in snapshot.interceptors {
                message = try await interceptor.adapt(message, context: context)
            }
            if let begin = snapshot.options.beginBody { message.body = try begin(message.body) }
            return message
        } catch {
            throw .thrown(error, otherwise: .refused)
        }
    }

    func respond(
        to outcome: Outcome,
        _ history: [NetworkAttempt]
    ) async -> ResponseDecision {
        let context = AttemptContext(request: snapshot.request, history: history)
        var outcome = outcome
        var decision = ResponseDecision.proceed
        for interceptor in snapshot.interceptors.reversed() {
            switch await interceptor.didReceive(outcome, context: context) {
            case .proceed: continue
            case .succeed(var response):
                // A response that the interceptor has made is read as the host's answers are.
                if response.requestMethod == nil { response = snapshot.prepared(response, snapshot.message.method) }
                outcome = .success(response)
                decision = .succeed(response)
            case .fail(let error):
                outcome = .failure(error)
                decision = .fail(error)
            case .stop: return .stop
            case .sendAgain(let delay): return .sendAgain(after: delay)
            }
        }
        return decision
    }

    // MARK: - Waiting without a slot

    /// Waits for so many seconds by the host's clock.
    func wait(_ delay: TimeInterval, _ call: Call) async {
        let (clock, end) = (clock, clock.now + delay)
        await withoutSlot(call, reason: { .retry(seconds: max(0, end - clock.now)) }) { await clock.sleep(delay) }
    }

    /// The host's network while it is unreachable.
    var missingNetwork: NetworkReachability? {
        let network = host.settings.reachability
        return network?.isMissing(for: snapshot.message.url.hostAndPort) == true ? network : nil
    }

    func wait(for network: NetworkReachability, _ call: Call) async {
        await withoutSlot(call, reason: { .network }) { await network.wait() }
    }

    private func withoutSlot(
        _ call: Call,
        reason: @escaping @Sendable () -> WaitReason,
        _ wait: () async -> Void
    ) async {
        if let caller { await caller.withoutSlot(call, reason: reason, wait) } else { await wait() }
    }

    // MARK: - The circuit breaker

    /// Nil when it has no effect.
    var circuitBreaker: CircuitBreaker? {
        let breaker = snapshot.options.circuitBreaker ?? host.settings.circuitBreaker
        return breaker?.threshold == .never ? nil : breaker
    }

    /// Waits until the circuit may let a message through.
    func wait(for circuit: Circuit, _ call: Call) async {
        tell(call, .circuitAwaited)
        await withoutSlot(call, reason: { circuit.waitReason }) { await circuit.wait() }
        // It may have been the one to send the trial.
        if Task.isCancelled { circuit.wakeNext() }
    }

    /// Tells the circuit how a message ended.
    func end(_ pass: CircuitPass, _ outcome: Outcome, _ call: Call) {
        // A failure without a network says nothing of the server.
        if case .failure = outcome, missingNetwork != nil { return }
        if let change = pass.end(outcome, at: clock.date) { tell(call, change) }
    }

    // MARK: - The cache

    /// Asks the cache. Suspends only when the disk is read.
    func look(_ message: TransportRequest, key: String?) async -> CacheLookup.Verdict {
        guard let cache else { return .send(.absent, nil) }
        var message = message
        addCookies(to: &message)
        let found = await withCheckedContinuation { continuation in
            cache.find(key, for: message) { continuation.resume(returning: $0) }
        }
        return cache.judge(found, for: message, at: clock.date, accept: snapshot.accepted)
    }

    /// Hands over an answer of the cache that is followed by the network's, after the interceptors.
    func show(_ response: NetworkResponse, of call: Call) async {
        guard let cached else { return }
        var shown = response
        if !snapshot.interceptors.isEmpty {
            switch await respond(to: .success(response), []) {
            case .proceed: break
            case .succeed(let other): shown = other
            case .fail, .stop, .sendAgain: return
            }
        }
        if !call.isOver { cached(shown) }
    }

    /// The entry to store when the answer to a message has come.
    ///
    /// - Parameters:
    ///   - asked: the message's fields before the host's authentication changed them; nil if it did not.
    ///   - key: that of the attempt, before redirects.
    ///   - candidate: the entry that the answer may confirm.
    func deposit(
        _ message: TransportRequest,
        asked: HTTPHeaders? = nil,
        key: String?,
        _ candidate: StoredCandidate?
    ) -> CacheDeposit? {
        guard let cache, !cache.policy.storage.isEmpty else { return nil }
        return CacheDeposit(
            lookup: cache,
            key: key,
            message: message,
            candidate: candidate,
            asked: asked ?? message.headers,
            isCredentialAdded: credentialState?.isExempt == false,
            requestedAt: clock.date,
            generation: cache.cache.generation
        )
    }

    // MARK: - Credentials, cookies and traces

    /// Whether a message goes to another origin than its request, since a redirect or an interceptor has changed the
    /// address.
    func hasLeftOrigin(_ message: TransportRequest) -> Bool {
        message.url.origin != snapshot.message.url.origin
    }

    /// Its messages are told to the queue of the operation that begins the refresh.
    private var refreshService: EasyNetworkService { EasyNetworkService(CallGroup(host, heardBy: queueBroadcast)) }

    /// Adds the credential; waits without a slot while there is none.
    func authorize(
        _ message: TransportRequest,
        _ credentialState: RequestAuthentication.CredentialState,
        _ call: Call
    ) async throws(NetworkError) -> RequestAuthentication.Authorized {
        guard let authentication = host.settings.authentication else { return (message, credentialState) }
        return try await authentication.authorize(message, credentialState, over: refreshService) { wait in
            tell(call, .credentialAwaited)
            await withoutSlot(call, reason: { .credential }, wait)
        }
    }

    /// Whether a message may still go out with its credential.
    func isCurrent(_ credentialState: RequestAuthentication.CredentialState?) -> Bool {
        credentialState.flatMap { host.settings.authentication?.isCurrent($0) } ?? true
    }

    /// - Returns: the message with another credential, if the answer refuses the one it was sent with.
    func review(
        _ response: NetworkResponse,
        _ message: TransportRequest,
        _ credentialState: RequestAuthentication.CredentialState,
        _ call: Call
    ) async throws(NetworkError) -> RequestAuthentication.Authorized? {
        guard let authentication = host.settings.authentication else { return nil }
        return try await authentication.review(response, to: message, credentialState, over: refreshService) { wait in
            tell(call, .credentialAwaited)
            await withoutSlot(call, reason: { .credential }, wait)
        }
    }

    /// Adds the cookies of the host, unless the message has its own.
    func addCookies(to message: inout TransportRequest) {
        guard let cookies = host.cookies(for: snapshot.options, message) else { return }
        message.headers["Cookie"] = cookies
    }

    /// Adds the trace, unless the message has its own. A request that asks for it itself sends it to its own origin,
    /// the others only to the host's.
    func addTrace(_ trace: TraceContext, to message: inout TransportRequest) {
        let options = snapshot.options
        guard options.sendsTraceContext ?? host.settings.sendsTraceContext, options.customURLRequest == nil,
            message.headers["traceparent"] == nil
        else { return }
        let isElsewhere =
            hasLeftOrigin(message) || options.sendsTraceContext == nil && host.isElsewhere(message.url)
        func maySend(_ name: String) -> Bool { !isElsewhere || snapshot.redirects.sendsToOtherOrigins(name) }
        guard maySend("traceparent") else { return }
        message.headers["traceparent"] = trace.traceparent
        guard let state = trace.tracestate, message.headers["tracestate"] == nil, maySend("tracestate") else { return }
        message.headers["tracestate"] = state
    }

    func keepCookies(_ headers: HTTPHeaders, from url: URL) {
        // After a cancel the jar may have been emptied for another user.
        guard let jar = host.jar(snapshot.options), headers["Set-Cookie"] != nil, !Task.isCancelled else { return }
        jar.store(headers, from: url, at: clock.date)
    }

    // MARK: - The wire

    /// How the answer to a message arrived.
    struct Arrival {
        /// Whether the body has gone to its user, so that the answer has none.
        var isBodyUsed = false
        /// Whether the answer does not fit the bytes stored before, and the message is to be sent again.
        var startsOver = false
        /// Whether bytes were gained that need not be sent again.
        var hasProgressed = false
        /// Whether another answer may replace this one.
        var mayBeginAgain = true
        /// Why the body of a response that its head decides is not complete; nil if it is.
        var cut: NetworkError?
    }

    /// Sends a message, and collects the body of its answer or hands it to its reader.
    func exchange(
        _ message: TransportRequest,
        _ body: BodyStream,
        _ read: BodyReading?,
        _ pass: CircuitPass?,
        _ call: Call
    ) async -> (outcome: Outcome, arrival: Arrival) {
        body.start(message, over: host.settings.transport)
        // The others need not wait for its body, nor until a long upload has been sent.
        if let pass, let timer = pass.trustAfterTrialTime({ self.tell(call, $0) }) {
            if let head = try? await body.head(), let change = pass.end(head, at: clock.date) { tell(call, change) }
            timer.cancel()
        }
        guard let read else {
            let collected = await body.collect(upTo: snapshot.validation.maximumBodyCount, clock)
            if let head = collected.head { keepCookies(head.headers, from: message.url) }
            return received(collected, from: message.url)
        }
        let head: TransportHead
        do throws(NetworkError) {
            head = try await body.head()
        } catch {
            return (.failure(error), Arrival())
        }
        // Before the body: its end may come much later, or never.
        keepCookies(head.headers, from: message.url)
        let isAccepted = snapshot.patience(for: head) == nil
        if isAccepted, let maximum = snapshot.validation.maximumBodyCount {
            body.limit(to: maximum, otherwise: snapshot.validation.bodyTooLong(response(head, message.url)))
        }
        let end = await read(head, isAccepted, body)
        var arrival = Arrival()
        // Its trailers and metrics are known only before it is cancelled.
        let response = response(head, message.url, body.end)
        switch end {
        case .collect:
            return received(await body.collect(upTo: BodyStream.decidedLimit, clock), from: message.url)
        case .used:
            // Enough of it may have come before its end.
            body.cancel()
            arrival.isBodyUsed = true
        case .again:
            body.cancel()
            arrival.startsOver = true
        case .failed(let error, let hasProgressed, let mayBeginAgain):
            body.cancel()
            (arrival.hasProgressed, arrival.mayBeginAgain) = (hasProgressed, mayBeginAgain)
            return (.failure(error), arrival)
        }
        return (.success(response), arrival)
    }

    /// A response that its head decides counts whether its body is complete or not.
    private func received(_ collected: BodyStream.Collected, from url: URL) -> (Outcome, Arrival) {
        var arrival = Arrival()
        do throws(NetworkError) {
            let response = try collected.response(from: url)
            if collected.end == nil { throw snapshot.validation.bodyTooLong(response) }
            return (.success(response), arrival)
        } catch {
            guard let head = collected.head, error.code != .cancelled, isDecided(by: head) else {
                return (.failure(error), arrival)
            }
            arrival.cut = error
            return (.success(response(head, url, collected.end, collected.body)), arrival)
        }
    }

    /// Whether the head says what follows: a redirect, a refusal, or a challenge though its status is accepted.
    private func isDecided(by head: TransportHead) -> Bool {
        snapshot.patience(for: head) != nil || (head.statusCode == 401 && credentialState?.isExempt == false)
    }

    private func response(
        _ head: TransportHead,
        _ url: URL,
        _ end: TransportEnd? = nil,
        _ body: Data = Data()
    ) -> NetworkResponse {
        var response = NetworkResponse(statusCode: head.statusCode, headers: head.headers, body: body, url: url)
        response.trailers = end?.trailers ?? HTTPHeaders()
        response.metrics = end?.metrics
        return response
    }
}
