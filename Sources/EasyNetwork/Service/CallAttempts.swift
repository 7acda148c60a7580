import Foundation

/// The attempts of one call, from its request to its answer: a loop over states, in the call's task.
///
///     attempt (adapt, cache) → send (credential, wire) → follow (redirect, validation) → judge (interceptors) → done
///         ↑ │                    ↑                           │                              ↑ │
///         │ └────────────────────│─── the cache's answer ────│──────────────────────────────┘ │
///         │                      └─── the next message ──────┴─────── another credential ─────┤
///         └──────────────────────────────── retry, after a delay ─────────────────────────────┘
///
/// The decisions are made by values: ``RetryPolicy``, ``RedirectRules``, ``CacheLookup``, ``ResponseValidation``.
struct CallAttempts {
    typealias CredentialState = RequestAuthentication.CredentialState
    typealias Outcome = Result<NetworkResponse, NetworkError>

    /// Where the call stands; each case has what is valid then.
    private enum State {
        /// The request is prepared once more. The failure is the one that is retried; nil for none.
        case attempt(Cause, after: NetworkError?)
        case send(Outgoing)
        /// The network has answered, or failed.
        case follow(Exchange)
        /// The attempt has its outcome: from an exchange, or without one from the cache.
        case judge(Outcome, Exchange?)
        case done(Outcome)
    }

    /// Why a message is sent, and the delay before it in seconds.
    private struct Cause {
        var reason: NetworkAttempt.Reason
        var delay: TimeInterval = 0
    }

    /// A message that goes out.
    private struct Outgoing {
        /// Without its credential.
        var message: TransportRequest
        var cause: Cause
        /// The redirects of this attempt so far.
        var redirectCount = 0
        /// The message with a new credential, when the last one was refused.
        var replay: RequestAuthentication.Authorized?

        /// The message whose credential is added once more.
        var withoutReplay: Outgoing {
            var other = self
            other.replay = nil
            return other
        }
    }

    /// A message that went out, and what came back.
    private struct Exchange {
        /// Without its credential.
        var message: TransportRequest
        var redirectCount: Int
        /// By the host's clock.
        let begun: TimeInterval
        var outcome: Outcome
        var arrival: CallContext.Arrival
        /// What the messages before it allow.
        let safetyBefore: RetrySafety
        /// Whether the answer is the last one of its attempt, and no redirect.
        var isFinal = false

        /// The answer that is judged.
        var answer: NetworkResponse? { isFinal ? try? outcome.get() : nil }
    }

    /// The verdict of the cache on the request.
    private struct CacheProgress {
        /// The cache is asked once.
        var isAsked = false
        var key: String?
        var miss: CacheMiss?
        /// The stored answer that the server may confirm, or that may be used instead of an error.
        var candidate: StoredCandidate?
        var pendingStore: PendingStore?
        var acceptedAnswer: NetworkResponse?
    }

    /// Whether a retry may send a message again, after one that a server may have processed.
    private enum RetrySafety {
        case safe
        /// With the same `Idempotency-Key` only.
        case withKey(String)
        /// A message without a key may have been processed. The key is that of the last message, if it had one.
        case unsafe(key: String?)

        var key: String? {
            switch self {
            case .safe: nil
            case .withKey(let key): key
            case .unsafe(let key): key
            }
        }

        var mayHaveActed: Bool {
            if case .unsafe = self { true } else { false }
        }
    }

    /// How often the request was sent again.
    private struct Counts {
        var retriesSinceProgress = 0
        var retries = 0
        var byInterceptor = 0
        var startOvers = 0
    }

    private static let keyField = "Idempotency-Key"

    /// How many times interceptors may send a request again.
    static let againLimit = 20

    private let call: Call
    private let context: CallContext
    private let snapshot: RequestSnapshot
    /// The messages sent so far; the call has them while one is under way.
    private var history: [NetworkAttempt] = []
    private var counts = Counts()
    private var credentialState: CredentialState?
    private var cache = CacheProgress()
    private var safety = RetrySafety.safe

    /// How the attempts ended.
    struct Answer: Sendable {
        private(set) var result: Outcome
        /// The cache's work that follows when the item has been made.
        var pendingStore: PendingStore?
        /// The last accepted answer of the network: the one that the cache may store, whatever interceptors make of it.
        var acceptedAnswer: NetworkResponse?

        private static let taken = Outcome.failure(NetworkError(code: .cancelled))

        /// The response; nil for an error. It is not in the answer any more.
        mutating func takeResponse() -> NetworkResponse? {
            acceptedAnswer = nil
            var taken = Self.taken
            swap(&taken, &result)
            return try? taken.get()
        }
    }

    init(_ context: CallContext, of call: Call) {
        self.context = context
        self.call = call
        snapshot = context.snapshot
        credentialState = context.credentialState
    }

    /// Sends the request until there is an answer, or an error that is not retried.
    mutating func run() async -> Answer {
        if let replaced = snapshot.replacedContentType, context.isHeard,
            context.host.isFirstTold(of: snapshot.request)
        {
            context.tell(call, .contentTypeReplaced(replaced.given, by: replaced.sent))
        }
        var state = State.attempt(Cause(reason: .first), after: nil)
        while true {
            do throws(NetworkError) {
                switch consume state {
                case .attempt(let cause, let failure): state = try await attempt(cause, after: failure)
                case .send(let outgoing): state = try await send(outgoing)
                case .follow(let exchange): state = try await follow(exchange)
                case .judge(let outcome, let exchange): state = try await judge(outcome, exchange)
                case .done(let result):
                    return Answer(
                        result: result,
                        pendingStore: cache.pendingStore,
                        acceptedAnswer: cache.acceptedAnswer
                    )
                }
            } catch {
                state = .done(.failure(adopted(error)))
            }
        }
    }

    private func checkCancellation() throws(NetworkError) {
        // An end from outside has cancelled the task when it returns.
        if Task.isCancelled { throw NetworkError(code: .cancelled) }
    }

    // MARK: - Attempt

    private mutating func attempt(_ cause: Cause, after failure: NetworkError?) async throws(NetworkError) -> State {
        let message = try await adapted(after: failure)
        guard let lookup = context.cache else { return .send(Outgoing(message: message, cause: cause)) }
        cache.key = lookup.key(for: message)
        if lookup.isRead, !cache.isAsked {
            cache.isAsked = true
            if let outcome = await look(message, lookup) { return .judge(outcome, nil) }
            try checkCancellation()
        } else if let candidate = cache.candidate, !candidate.isFor(message) {
            cache.candidate = nil
        }
        return .send(Outgoing(message: cache.candidate?.conditioned(message) ?? message, cause: cause))
    }

    /// The message as interceptors make it.
    private func adapted(after failure: NetworkError?) async throws(NetworkError) -> TransportRequest {
        var message = snapshot.message
        // Not `!= nil`, which needs the metadata of a function type with a typed error: macOS 15, iOS 18.
        if snapshot.interceptors.isEmpty, case .none = snapshot.options.beginBody { return message }
        if let key = safety.key, message.headers[Self.keyField] == nil { message.headers[Self.keyField] = key }
        message = try await context.adapt(message, history)
        try checkCancellation()
        try RequestBuilder.check(message)
        if let failure, let key = safety.key, message.headers[Self.keyField] != key { throw failure }
        if context.hasLeftOrigin(message) {
            message.headers = message.headers.withoutCredentials(of: snapshot.message.headers)
        }
        return message
    }

    /// - Returns: nil when the message is to be sent.
    private mutating func look(_ message: TransportRequest, _ lookup: CacheLookup) async -> Outcome? {
        switch await context.look(message, key: cache.key) {
        case .answer(let response, let isRefreshed):
            if let key = cache.key { cache.pendingStore = .answered(lookup, key: key, isRefreshed: isRefreshed) }
            context.tell(call, .servedFromCache(response))
            return .success(response)
        case .answerAndSend(let response):
            context.tell(call, .servedFromCache(response))
            await context.show(response, of: call)
            return nil
        case .send(let miss, let candidate):
            cache.miss = miss
            cache.candidate = candidate
            context.tell(call, .missedCache(miss))
            return nil
        case .refuse(let miss):
            context.tell(call, .missedCache(miss))
            return .failure(NetworkError(miss, lookup.policy.reading))
        }
    }

    // MARK: - Send

    private mutating func send(_ outgoing: Outgoing) async throws(NetworkError) -> State {
        var message = outgoing.message
        if let replay = outgoing.replay {
            try RequestBuilder.check(replay.message)
            credentialState = replay.credentialState
            message = replay.message
        } else {
            if let network = context.missingNetwork {
                await context.wait(for: network, call)
                try checkCancellation()
            }
            if credentialState != nil { message = try await authorized(message) }
        }
        try checkCancellation()
        var pass: CircuitPass?
        if let breaker = context.circuitBreaker {
            let circuit = context.host.circuit(to: message.url)
            do throws(NetworkError) {
                pass = try circuit.pass(breaker)
            } catch {
                guard breaker.waits else { return .judge(.failure(error), nil) }
                await context.wait(for: circuit, call)
                // The network and the credential may have gone by now, also the new one of a replay.
                return .send(outgoing.withoutReplay)
            }
        }
        guard let exchange = await exchange(outgoing, as: message, pass) else { return .send(outgoing.withoutReplay) }
        try checkCancellation()
        return .follow(exchange)
    }

    /// The message with its credential. Another origin than that of the request gets none.
    private mutating func authorized(_ message: TransportRequest) async throws(NetworkError) -> TransportRequest {
        guard var credentialState, let first = context.credentialState else { return message }
        credentialState.isExempt = first.isExempt || context.hasLeftOrigin(message)
        self.credentialState = credentialState
        guard !credentialState.isExempt else { return message }
        let (authorized, fresh) = try await context.authorize(message, credentialState, call)
        try checkCancellation()
        try RequestBuilder.check(authorized)
        self.credentialState = fresh
        return authorized
    }

    /// - Parameter message: with its credential; it is given its cookies, its trace, and the range of a download.
    /// - Returns: nil when the user has signed out or in since the credential was added: nothing was sent.
    private mutating func exchange(
        _ outgoing: Outgoing,
        as message: TransportRequest,
        _ pass: CircuitPass?
    ) async -> Exchange? {
        var message = message
        // First, so that what is told of the message is what is sent.
        context.addCookies(to: &message)
        let span = call.trace.map { TraceSpan(in: $0.context) }
        if let span { context.addTrace(span.context, to: &message) }
        var read: BodyReading?
        if let consumer = context.consumer { (message, read) = await consumer(message) }
        guard context.isCurrent(credentialState) else { return nil }
        if history.isEmpty { context.host.payForRetries() }
        let line = NetworkError.Request(method: message.method.rawValue, url: message.url, headers: message.headers)
        var attempt = NetworkAttempt(reason: outgoing.cause.reason, request: line, delay: outgoing.cause.delay)
        attempt.span = span
        attempt.cacheMiss = history.isEmpty ? cache.miss : nil
        history.append(attempt)
        // The reader of a range decides itself: a range need not repeat its type (RFC 9110, section 15.3.7).
        let ofReader: BodyStream.Decision = { [snapshot] head in
            head.statusCode == 206 ? nil : snapshot.patience(for: head)
        }
        let body = BodyStream(read == nil ? snapshot.patience : ofReader)
        if read != nil, case let count = context.wantedBodyCount, count > 0 { body.keepBeginning(count) }
        call.note(history.take(), message, body)
        cache.acceptedAnswer = nil
        if context.cache != nil {
            let fields = outgoing.message.headers
            cache.pendingStore = context.deposit(message, asked: fields, key: cache.key, cache.candidate).map {
                .store($0)
            }
        }
        context.tell(call, .attemptStarted(attempt, message))
        let begun = context.clock.now
        var (outcome, arrival) = await context.exchange(message, body, read, pass, call)
        if let pass { context.end(pass, outcome, call) }
        if !arrival.isBodyUsed, !arrival.startsOver, case .success(let response) = outcome,
            let confirmed = cache.candidate?.confirmed(by: response, at: context.clock.date)
        {
            outcome = .success(confirmed)
        }
        // Moved and not mapped, which would copy the answer.
        switch consume outcome {
        case .success(let response): outcome = .success(snapshot.prepared(response, message.method))
        case .failure(let error): outcome = .failure(error)
        }
        let beginning = arrival.isBodyUsed ? body.beginning : nil
        let safetyBefore = safety
        recordEnd(of: outcome, outgoing.message, arrival, beginning)
        if case .success(var response) = outcome {
            response.history = history
            outcome = .success(response)
        }
        return Exchange(
            message: outgoing.message,
            redirectCount: outgoing.redirectCount,
            begun: begun,
            outcome: outcome,
            arrival: arrival,
            safetyBefore: safetyBefore
        )
    }

    /// - Parameter beginning: of a body that was used while it came, if a listener wants it.
    private mutating func recordEnd(
        of outcome: Outcome,
        _ message: TransportRequest,
        _ arrival: CallContext.Arrival,
        _ beginning: BodyExcerpt?
    ) {
        let mayHaveReached: Bool
        switch outcome {
        case .success(let response):
            mayHaveReached = !arrival.startsOver
            history = call.noteEnd { attempt in
                attempt.statusCode = response.source == .revalidated ? 304 : response.statusCode
                attempt.errorCode = arrival.cut?.code
                attempt.metrics = response.metrics
            }
        case .failure(let error):
            history = call.noteEnd { attempt in
                attempt.statusCode = error.statusCode
                attempt.errorCode = error.code
                attempt.metrics = error.metrics
            }
            mayHaveReached = adopted(error).mayHaveReachedServer
        }
        context.tell(call, .attemptEnded(history[history.count - 1].told(with: beginning), outcome))
        guard mayHaveReached, !snapshot.retry.methods.contains(message.method) else { return }
        let key = message.headers[Self.keyField]
        if !safety.mayHaveActed, let key { safety = .withKey(key) } else { safety = .unsafe(key: key) }
    }

    // MARK: - Follow

    /// Decides which message follows: a redirect, the same one without its conditions or its range, or none.
    private mutating func follow(_ exchange: Exchange) async throws(NetworkError) -> State {
        var exchange = exchange
        guard case .success(let response) = exchange.outcome else { return .judge(exchange.outcome, exchange) }
        var next = Outgoing(
            message: exchange.message,
            cause: Cause(reason: .startOver),
            redirectCount: exchange.redirectCount
        )
        if exchange.arrival.startsOver {
            counts.startOvers += 1
            guard counts.startOvers <= Self.againLimit else {
                let message = "the ranges that it sends did not fit \(Self.againLimit) times"
                throw response.error(.badServerResponse, message: message)
            }
            return .send(next)
        }
        if response.statusCode == 304, let candidate = cache.candidate.take() {
            // The answer confirms another entry than the cache has.
            next.message = candidate.unconditioned(exchange.message)
            next.cause = Cause(reason: .unconditional)
            return .send(next)
        }
        do throws(NetworkError) {
            if let target = try await redirect(exchange, response) {
                next.message = target
                next.cause = Cause(reason: .redirect)
                next.redirectCount += 1
                return .send(next)
            }
        } catch {
            return .judge(.failure(error), exchange)
        }
        exchange.isFinal = true
        // The body's user has checked that the answer is accepted.
        if !exchange.arrival.isBodyUsed,
            let error = snapshot.validation.error(for: response, cut: exchange.arrival.cut)
        {
            return .judge(.failure(error), exchange)
        }
        if context.cache != nil { cache.acceptedAnswer = response }
        return .judge(exchange.outcome, exchange)
    }

    /// - Returns: the message that the answer redirects to; nil when it is no redirect that is followed.
    private mutating func redirect(
        _ exchange: Exchange,
        _ response: NetworkResponse
    ) async throws(NetworkError) -> TransportRequest? {
        let rules = RedirectRules(policy: snapshot.redirects)
        guard var message = try rules.redirect(of: exchange.message, by: response, count: exchange.redirectCount) else {
            return nil
        }
        if let decide = snapshot.redirects.decide {
            guard let decided = await decide(message, response) else { return nil }
            try RequestBuilder.check(decided)
            message = rules.checked(decided, insteadOf: message, after: exchange.message)
        }
        // The stored answer belongs to another address.
        message = cache.candidate.take()?.unconditioned(message) ?? message
        // A redirect is a part of its attempt, and so of its time.
        if let total = message.deadlines.total {
            // A body that was not read to its end leaves no metrics.
            let used = history.last?.metrics?.total ?? context.clock.now - exchange.begun
            message.deadlines.total = max(total - used, .leastNonzeroMagnitude)
        }
        return message
    }

    // MARK: - Judge

    private mutating func judge(_ given: Outcome, _ exchange: Exchange?) async throws(NetworkError) -> State {
        var outcome = given
        if case .failure(let error) = outcome { outcome = .failure(adopted(error)) }
        try checkCancellation()
        if !snapshot.interceptors.isEmpty {
            switch await context.respond(to: outcome, history) {
            case .proceed: break
            case .succeed(var response):
                response.history = history
                return .done(.success(response))
            case .fail(let error): outcome = .failure(adopted(error))
            case .stop:
                var error = NetworkError(code: .cancelled, message: "an interceptor stopped it")
                error.isSilent = true
                throw error
            case .sendAgain(let delay): return try await sendAgain(after: max(0, delay), exchange)
            }
        }
        do throws(NetworkError) {
            if let replay = try await replay(exchange) { return .send(replay) }
        } catch {
            outcome = .failure(adopted(error))
        }
        guard case .failure(let error) = outcome else { return .done(outcome) }
        guard let delay = retryDelay(after: error, exchange?.arrival ?? CallContext.Arrival()) else {
            return .done(standIn(for: error).map { .success($0) } ?? outcome)
        }
        try await wait(delay, after: error)
        return .attempt(Cause(reason: .retry, delay: delay), after: error)
    }

    private mutating func sendAgain(
        after delay: TimeInterval,
        _ exchange: Exchange?
    ) async throws(NetworkError) -> State {
        func failure(_ message: String) -> NetworkError {
            exchange?.answer?.error(.cannotSendAgain, message: message)
                ?? NetworkError(code: .cannotSendAgain, message: message)
        }
        counts.byInterceptor += 1
        guard counts.byInterceptor <= Self.againLimit else {
            throw failure("interceptors had it sent again \(Self.againLimit) times")
        }
        guard exchange?.arrival.mayBeginAgain != false else {
            throw failure("an interceptor wants it sent again, and its answer has been handed over")
        }
        guard snapshot.message.body.isReplayable else {
            throw failure("an interceptor wants it sent again, and its body can be read only once")
        }
        if delay > 0 { try await wait(delay, after: nil) }
        return .attempt(Cause(reason: .again, delay: delay), after: nil)
    }

    /// Waits without a slot.
    private func wait(_ delay: TimeInterval, after error: NetworkError?) async throws(NetworkError) {
        context.tell(call, .retryScheduled(delay: delay, after: error))
        await context.wait(delay, call)
        try checkCancellation()
    }

    /// The message with another credential, if the answer refuses the one that it had.
    ///
    /// - Throws: the reason why there is no other credential.
    private mutating func replay(_ exchange: Exchange?) async throws(NetworkError) -> Outgoing? {
        guard let credentialState, !credentialState.isExempt, let exchange, let answer = exchange.answer,
            exchange.message.body.isReplayable, exchange.arrival.mayBeginAgain,
            let replay = try await context.review(answer, exchange.message, credentialState, call)
        else { return nil }
        // A refused message has changed nothing on the server; those before it may have.
        safety = exchange.safetyBefore
        return Outgoing(message: exchange.message, cause: Cause(reason: .authentication), replay: replay)
    }

    /// The time to wait before a retry; nil when there is none.
    private mutating func retryDelay(
        after error: NetworkError,
        _ arrival: CallContext.Arrival
    ) -> TimeInterval? {
        // Progress resets the retry count.
        if arrival.hasProgressed { counts.retriesSinceProgress = 0 }
        guard arrival.mayBeginAgain, snapshot.retry.mayGoOn(totalCount: counts.retries),
            let delay = snapshot.retry.delay(
                after: error,
                of: snapshot.message,
                retryCount: counts.retriesSinceProgress,
                date: context.clock.date,
                random: context.host.settings.random(),
                mayHaveActed: safety.mayHaveActed
            ),
            !isHeldBack(for: delay),
            context.host.takeRetry(afterProgress: arrival.hasProgressed)
        else { return nil }
        counts.retriesSinceProgress += 1
        counts.retries += 1
        return delay
    }

    /// Whether a retry after so many seconds would fail by the open circuit.
    private func isHeldBack(for delay: TimeInterval) -> Bool {
        guard let breaker = context.circuitBreaker, !breaker.waits else { return false }
        return context.host.circuit(to: snapshot.message.url).isOpen(for: delay)
    }

    /// A stale answer instead of an error, if the policy and the answer allow it.
    private func standIn(for error: NetworkError) -> NetworkResponse? {
        guard let candidate = cache.candidate,
            let stale = context.cache?.standIn(candidate, for: error, at: context.clock.date),
            var response = snapshot.accepted(stale)
        else { return nil }
        response.history = history
        return response
    }

    private func adopted(_ error: NetworkError) -> NetworkError {
        var error = error
        error.adopt(history)
        return error
    }
}
