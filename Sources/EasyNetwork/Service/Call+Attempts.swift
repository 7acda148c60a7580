import Foundation

extension Call {
    /// The attempts of a call, from its request to its response: a loop over steps, in the call's task.
    ///
    ///     attempt → send (credential) → transmit → follow (redirect, validation) → judge (interceptors) → recover → done
    ///       ↑ │       ↑                              │                               ↑                       │
    ///       │ └ look ─│─── the cache's response ─────│───────────────────────────────┘                       │
    ///       │         └────── the next message ──────┴─────────────── another credential ────────────────────┤
    ///       └────────────────────────────────── retry, after a delay ────────────────────────────────────────┘
    ///
    /// A step either decides or waits for one thing, so a running call holds only the frames of the step that waits.
    /// The job does not hold its slot while `wait` waits for a delay, the network, a circuit, a credential or the end
    /// of a pause. Value types make the decisions: ``RetryPolicy``, ``RedirectPolicy``, ``CacheLookup``,
    /// ``ResponseValidation``.
    final class Attempts {
        typealias CredentialState = RequestAuthentication.CredentialState
        typealias Outcome = Result<NetworkResponse, NetworkError>

        /// The next step of the call, with the values that are valid at that point.
        enum Step {
            /// The request is prepared again. The failure is the one that is retried; nil if there is none.
            case attempt(Cause, after: NetworkError?)
            /// Interceptors change the message.
            case adapt(Cause, after: NetworkError?)
            /// The cache looks up a response.
            case look(Exchange, CacheLookup)
            case send(Exchange)
            /// The message has its credential, and is sent.
            case transmit(Exchange, TransportRequest)
            /// The network has responded, or failed.
            case follow(Exchange, Outcome)
            /// The response redirects to this message, if the user's closure agrees.
            case redirect(Exchange, NetworkResponse, to: TransportRequest)
            /// The attempt has its outcome, either from an exchange or from the cache, without an exchange.
            case judge(Outcome, Exchange?)
            /// Interceptors receive the outcome, and can change it.
            case intercept(Outcome, Exchange?)
            /// A refused credential is replaced, or a failure retried, if possible.
            case recover(Outcome, Exchange?)
            indirect case wait(Wait, then: Step)
            case done(Outcome)
        }

        /// Something that a call waits for while the job does not hold its slot.
        enum Wait {
            case delay(TimeInterval, after: NetworkError?)
            case network(NetworkReachability)
            case circuit(Circuit)
            case credential(RequestAuthentication.Refresh)
            case pause(Promise<Void>)
        }

        /// The reason why a message is sent, and the delay before it in seconds.
        struct Cause {
            var reason: NetworkAttempt.Reason
            var delay: TimeInterval = 0
        }

        /// The cache's part in the call so far.
        struct CacheProgress {
            /// Whether the lookup, which happens once, has been made.
            var isAsked = false
            var key: String?
            var miss: CacheMiss?
            /// The stored response that the server can confirm, or that can be used instead of an error.
            var candidate: StoredCandidate?
            var pendingStore: PendingStore?
            var acceptedResponse: NetworkResponse?
        }

        /// Whether a retry can safely send a message again, after one that a server may have processed.
        struct RetrySafety {
            /// The `Idempotency-Key` of the last message that a server may have processed, if it had one. A retry must
            /// have the same key.
            var key: String?
            /// Whether a server may have processed a message without a key.
            var mayHaveActed = false
        }

        static let keyField = "Idempotency-Key"

        /// The number of times that interceptors can send a request again, and that a response can start over.
        static let againLimit = 20

        let call: Call
        let snapshot: RequestSnapshot
        let host: HostConfiguration
        /// Nil if the request does not use the cache.
        let lookup: CacheLookup?
        /// The authentication state of the first message; nil without authentication.
        let firstCredential: CredentialState?
        var credential: CredentialState?
        var cache = CacheProgress()
        var safety = RetrySafety()
        var hasSent = false
        // The numbers of times that the request was sent again.
        private var retryCount = 0
        private var retryCountSinceProgress = 0
        private var interceptorResendCount = 0
        private var startOverCount = 0

        init(
            _ call: Call,
            _ snapshot: RequestSnapshot,
            _ order: CacheLookup.Order
        ) {
            (self.call, self.snapshot, host) = (call, snapshot, snapshot.host)
            // The cache stores bodies, but a response whose body goes to a consumer has no body.
            lookup = call.request.consumer == nil ? snapshot.cache(order) : nil
            firstCredential = snapshot.credentialState
            credential = firstCredential
        }

        var clock: any NetworkClock { host.settings.clock }

        /// Sends the request until there is a response, or an error that is not retried.
        func run() async -> Conclusion {
            var step = begin()
            while true {
                do throws(NetworkError) {
                    switch step {
                    case .attempt, .send, .follow, .judge, .recover: step = try decided(step)
                    case .adapt(let cause, let failure): step = try await adapt(cause, after: failure)
                    case .look(let exchange, let lookup): step = await look(exchange, lookup)
                    case .transmit(let exchange, let message): step = await transmit(exchange, as: message)
                    case .redirect(let exchange, let response, let target):
                        step = await redirect(exchange, response, to: target)
                    case .intercept(let outcome, let exchange): step = try await intercept(outcome, exchange)
                    case .wait(let wait, let next):
                        await self.wait(wait)
                        step = next
                    case .done(let result):
                        return Conclusion(
                            result: result,
                            pendingStore: cache.pendingStore,
                            acceptedResponse: cache.acceptedResponse
                        )
                    }
                    try checkCancellation()
                } catch {
                    step = .done(.failure(adopted(error)))
                }
            }
        }

        @inline(never)
        private func begin() -> Step {
            if let replaced = snapshot.replacedContentType, call.hasListeners, host.isFirstTold(of: snapshot.request) {
                call.tell(.contentTypeReplaced(replaced.given, by: replaced.sent))
            }
            return .attempt(Cause(reason: .first), after: nil)
        }

        /// Performs a step that does not wait. Not inlined, so that a waiting call does not hold its frame.
        @inline(never)
        private func decided(_ step: Step) throws(NetworkError) -> Step {
            switch step {
            case .attempt(let cause, let failure):
                isAdapted ? .adapt(cause, after: failure) : attempt(snapshot.message, cause)
            case .send(let exchange): try send(exchange)
            case .follow(let exchange, let outcome): try follow(exchange, outcome)
            case .judge(let outcome, let exchange): try judge(outcome, exchange)
            case .recover(let outcome, let exchange): try recover(outcome, exchange)
            case .adapt, .look, .transmit, .redirect, .intercept, .wait, .done: step
            }
        }

        private func checkCancellation() throws(NetworkError) {
            // `fail` has cancelled the task by the time it returns.
            if Task.isCancelled { throw NetworkError(code: .cancelled) }
        }

        // MARK: - Attempt

        private func attempt(_ message: TransportRequest, _ cause: Cause) -> Step {
            guard let lookup else { return .send(Exchange(message, cause)) }
            cache.key = lookup.key(for: message)
            if lookup.isRead, !cache.isAsked {
                cache.isAsked = true
                return .look(Exchange(message, cause), lookup)
            }
            if let candidate = cache.candidate, !candidate.isFor(message) { cache.candidate = nil }
            return .send(Exchange(cache.candidate?.conditioned(message) ?? message, cause))
        }

        /// Whether an interceptor or an option can change the message.
        private var isAdapted: Bool {
            // The comparison `!= nil` needs the metadata of a function type with a typed error, which requires macOS 15
            // or iOS 18.
            if case .some = snapshot.options.values.beginBody { true } else { !snapshot.interceptors.isEmpty }
        }

        /// Lets the interceptors change the message.
        ///
        /// - Throws: The error with which an interceptor refuses the message.
        @inline(never)
        private func adapt(_ cause: Cause, after failure: NetworkError?) async throws(NetworkError) -> Step {
            var message = snapshot.message
            if let key = safety.key, message.headers[Self.keyField] == nil { message.headers[Self.keyField] = key }
            let context = AttemptContext(request: snapshot.request, history: call.history)
            do {
                for interceptor in snapshot.interceptors {
                    message = try await interceptor.adapt(message, context: context)
                }
                if let begin = snapshot.options.values.beginBody { message.body = try begin(message.body) }
            } catch {
                throw .thrown(error, otherwise: .refused)
            }
            try RequestBuilder.check(message)
            if let failure, let key = safety.key, message.headers[Self.keyField] != key { throw failure }
            if hasLeftOrigin(message) {
                message.headers =
                    snapshot.home == nil
                    ? message.headers.withoutCredentials(of: snapshot.message.headers)
                    // An interceptor adds its credential without knowing where the server sends the message.
                    : snapshot.redirects.headersElsewhere(message.headers)
            }
            return attempt(message, cause)
        }

        /// Returns whether a message goes to another origin than its request, because the server or an interceptor has
        /// changed the URL.
        func hasLeftOrigin(_ message: TransportRequest) -> Bool {
            message.url.origin != (snapshot.home ?? snapshot.message.url).origin
        }

        // MARK: - Look

        @inline(never)
        private func look(_ exchange: Exchange, _ lookup: CacheLookup) async -> Step {
            switch await snapshot.look(lookup, for: exchange.message, key: cache.key) {
            case .answer(let response, let isRefreshed):
                if let key = cache.key { cache.pendingStore = .answered(lookup, key: key, isRefreshed: isRefreshed) }
                call.tell(.servedFromCache(response))
                return .judge(.success(response), nil)
            case .answerAndSend(let response):
                call.tell(.servedFromCache(response))
                await show(response)
            case .send(let miss, let candidate):
                cache.miss = miss
                cache.candidate = candidate
                call.tell(.missedCache(miss))
            case .refuse(let miss):
                call.tell(.missedCache(miss))
                return .judge(.failure(NetworkError(miss, lookup.policy.reading)), nil)
            }
            return .send(cache.candidate.map { Exchange($0.conditioned(exchange.message), exchange.cause) } ?? exchange)
        }

        /// Delivers a response from the cache that the network's response will follow, after the interceptors have seen
        /// it.
        @inline(never)
        private func show(_ response: NetworkResponse) async {
            guard call.request.cached != nil else { return }
            var shown = response
            if !snapshot.interceptors.isEmpty {
                switch await decision(on: .success(response)) {
                case .proceed: break
                case .succeed(let other): shown = other
                case .fail, .stop, .sendAgain: return
                }
            }
            if !call.isOver { call.request.show(shown) }
        }

        // MARK: - Send

        private func send(_ exchange: Exchange) throws(NetworkError) -> Step {
            // A message that was not sent gives its trial back before it waits, or asks for another one.
            exchange.pass = nil
            if let pause = call.request.pause?() {
                // The credential of a replay can expire during the pause, so the message gets another one afterwards.
                if let replay = exchange.replay.take() { credential = replay.credentialState }
                return .wait(.pause(pause), then: .send(exchange))
            }
            var message = exchange.message
            if let replay = exchange.replay {
                (message, credential) = (replay.message, replay.credentialState)
                try RequestBuilder.check(message)
            } else {
                if let network = missingNetwork { return .wait(.network(network), then: .send(exchange)) }
                switch try authorized(exchange) {
                case .ready(let authorized): (message, credential) = (authorized.message, authorized.credentialState)
                case .wait(let refresh):
                    exchange.refresh = refresh
                    return .wait(.credential(refresh), then: .send(exchange))
                case nil: break
                }
            }
            try checkCancellation()
            // If the message is not sent, the network and the credential are checked again, even for a replay.
            (exchange.replay, exchange.refresh) = (nil, nil)
            guard let breaker = circuitBreaker else { return .transmit(exchange, message) }
            let circuit = host.circuit(to: message.url)
            do throws(NetworkError) {
                exchange.pass = try circuit.pass(breaker)
                return .transmit(exchange, message)
            } catch {
                guard breaker.waitsWhileOpen else { return .judge(.failure(error), nil) }
                return .wait(.circuit(circuit), then: .send(exchange))
            }
        }

        /// Returns the message with its credential, or the refresh to wait for; nil if it gets none. A message to another
        /// origin than the request's gets none.
        private func authorized(
            _ exchange: Exchange
        ) throws(NetworkError) -> RequestAuthentication.Authorization? {
            guard let authentication = host.settings.authentication, var state = credential, let firstCredential else {
                return nil
            }
            state.isExempt = firstCredential.isExempt || hasLeftOrigin(exchange.message)
            credential = state
            guard !state.isExempt else { return nil }
            let authorization = try authentication.authorize(
                .init(message: exchange.message, state: state, refresh: exchange.refresh, service: call.refreshService)
            )
            if case .ready(let authorized) = authorization { try RequestBuilder.check(authorized.message) }
            return authorization
        }

        /// The host's network status while the network is unreachable; otherwise nil.
        var missingNetwork: NetworkReachability? {
            let network = host.settings.reachability
            return network?.isMissing(for: snapshot.message.url.hostAndPort) == true ? network : nil
        }

        /// The circuit breaker; nil if it has no effect.
        private var circuitBreaker: CircuitBreaker? {
            let breaker = snapshot.options.values.circuitBreaker ?? host.settings.circuitBreaker
            return breaker?.threshold == .never ? nil : breaker
        }

        // MARK: - Follow

        /// Decides which message follows: a redirect, the same message without its conditions or its range, or none.
        private func follow(_ exchange: Exchange, _ outcome: Outcome) throws(NetworkError) -> Step {
            guard case .success(let response) = outcome else { return .judge(outcome, exchange) }
            if exchange.arrival.startsOver {
                startOverCount += 1
                guard startOverCount <= Self.againLimit else {
                    let message = "the server's ranges did not fit the stored bytes \(Self.againLimit) times"
                    throw response.error(.badServerResponse, message: message)
                }
                return .send(exchange.next(exchange.message, .startOver))
            }
            if response.statusCode == 304, let candidate = cache.candidate.take() {
                // The response confirms another entry than the stored one, so send the message without conditions.
                return .send(exchange.next(candidate.unconditioned(exchange.message), .unconditional))
            }
            do throws(NetworkError) {
                let count = exchange.redirectCount
                guard
                    let target = try snapshot.redirects.redirect(of: exchange.message, by: response, count: count)
                else { return accept(exchange, response) }
                return snapshot.redirects.decide == nil
                    ? redirected(exchange, response, to: target) : .redirect(exchange, response, to: target)
            } catch {
                return .judge(.failure(error), exchange)
            }
        }

        /// Calls the user's closure to decide on a redirect.
        @inline(never)
        private func redirect(
            _ exchange: Exchange,
            _ response: NetworkResponse,
            to target: TransportRequest
        ) async -> Step {
            guard let decided = await snapshot.redirects.decide?(target, response) else {
                return accept(exchange, response)
            }
            do throws(NetworkError) {
                try RequestBuilder.check(decided)
            } catch {
                return .judge(.failure(error), exchange)
            }
            let message = snapshot.redirects.checked(decided, insteadOf: target, after: exchange.message)
            return redirected(exchange, response, to: message)
        }

        private func redirected(
            _ exchange: Exchange,
            _ response: NetworkResponse,
            to target: TransportRequest
        ) -> Step {
            // The stored response belongs to another URL.
            var message = cache.candidate.take()?.unconditioned(target) ?? target
            // A redirect is part of its attempt, and shares its total time.
            if let total = message.deadlines.total {
                // A body that was not read to its end leaves no metrics.
                let used = response.history.last?.metrics?.total ?? clock.now - exchange.begun
                message.deadlines.total = max(total - used, .leastNonzeroMagnitude)
            }
            return .send(exchange.next(message, .redirect))
        }

        /// Takes the response of the exchange as the attempt's response, because no other message follows.
        private func accept(_ exchange: Exchange, _ response: NetworkResponse) -> Step {
            exchange.response = response
            // The reader of the body has checked that the response is accepted.
            if !exchange.arrival.isBodyUsed,
                let error = snapshot.validation.error(for: response, cut: exchange.arrival.cut)
            {
                return .judge(.failure(error), exchange)
            }
            if lookup != nil { cache.acceptedResponse = response }
            return .judge(.success(response), exchange)
        }

        // MARK: - Judge

        private func judge(_ given: Outcome, _ exchange: Exchange?) throws(NetworkError) -> Step {
            var outcome = given
            if case .failure(let error) = outcome { outcome = .failure(adopted(error)) }
            return try snapshot.interceptors.isEmpty
                ? recover(outcome, exchange) : .intercept(outcome, exchange)
        }

        @inline(never)
        private func intercept(_ given: Outcome, _ exchange: Exchange?) async throws(NetworkError) -> Step {
            var outcome = given
            switch await decision(on: outcome) {
            case .proceed: break
            case .succeed(var response):
                response.history = call.history
                return .done(.success(response))
            case .fail(let error): outcome = .failure(adopted(error))
            case .stop:
                var error = NetworkError(code: .cancelled, message: "an interceptor stopped the request")
                error.isSilent = true
                throw error
            case .sendAgain(let delay): return try sendAgain(after: max(0, delay), exchange)
            }
            return try recover(outcome, exchange)
        }

        /// Passes an outcome to the interceptors and returns their decision.
        private func decision(on outcome: Outcome) async -> ResponseDecision {
            let context = AttemptContext(request: snapshot.request, history: call.history)
            var outcome = outcome
            var decision = ResponseDecision.proceed
            for interceptor in snapshot.interceptors.reversed() {
                switch await interceptor.didReceive(outcome, context: context) {
                case .proceed: continue
                case .succeed(var response):
                    // A response that the interceptor has made is read with the same settings as the host's responses.
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

        private func sendAgain(after delay: TimeInterval, _ exchange: Exchange?) throws(NetworkError) -> Step {
            func failure(_ message: String) -> NetworkError {
                exchange?.response?.error(.cannotSendAgain, message: message)
                    ?? NetworkError(code: .cannotSendAgain, message: message)
            }
            interceptorResendCount += 1
            guard interceptorResendCount <= Self.againLimit else {
                throw failure("interceptors resent the request \(Self.againLimit) times, which is the limit")
            }
            guard exchange?.arrival.mayBeginAgain != false else {
                throw failure("an interceptor asked to resend the request, but its response has already been delivered")
            }
            guard snapshot.message.body.isReplayable else {
                throw failure("an interceptor asked to resend the request, but its body can be read only once")
            }
            let next = Step.attempt(Cause(reason: .again, delay: delay), after: nil)
            return delay > 0 ? .wait(.delay(delay, after: nil), then: next) : next
        }

        // MARK: - Recover

        private func recover(_ given: Outcome, _ exchange: Exchange?) throws(NetworkError) -> Step {
            var outcome = given
            do throws(NetworkError) {
                switch try reviewed(exchange) {
                case .ready(let replay):
                    guard let exchange else { break }
                    // A refused message has changed nothing on the server, but earlier messages may have.
                    safety = exchange.safetyBefore
                    let next = Exchange(exchange.message, Cause(reason: .authentication))
                    next.replay = replay
                    return .send(next)
                case .wait(let refresh):
                    exchange?.refresh = refresh
                    return .wait(.credential(refresh), then: .recover(outcome, exchange))
                case nil: break
                }
            } catch {
                outcome = .failure(adopted(error))
            }
            guard case .failure(let error) = outcome else { return .done(outcome) }
            guard let delay = retryDelay(after: error, exchange?.arrival ?? Arrival()) else {
                return .done(staleResponse(for: error).map { .success($0) } ?? outcome)
            }
            let next = Step.attempt(Cause(reason: .retry, delay: delay), after: error)
            return .wait(.delay(delay, after: error), then: next)
        }

        /// Returns the message with another credential, or the refresh to wait for, if the response refuses the one that
        /// was sent; otherwise nil.
        ///
        /// - Throws: The reason why there is no other credential.
        private func reviewed(_ exchange: Exchange?) throws(NetworkError) -> RequestAuthentication.Authorization? {
            guard let credential, !credential.isExempt, let authentication = host.settings.authentication, let exchange,
                let response = exchange.response, exchange.message.body.isReplayable, exchange.arrival.mayBeginAgain
            else { return nil }
            return try authentication.review(
                response,
                to: .init(
                    message: exchange.message,
                    state: credential,
                    refresh: exchange.refresh,
                    service: call.refreshService
                )
            )
        }

        /// Returns the delay before a retry in seconds; nil if the request is not retried.
        private func retryDelay(after error: NetworkError, _ arrival: Arrival) -> TimeInterval? {
            if arrival.hasProgressed { retryCountSinceProgress = 0 }
            guard arrival.mayBeginAgain, snapshot.retry.mayGoOn(totalCount: retryCount),
                let delay = snapshot.retry.delay(
                    after: error,
                    of: snapshot.message,
                    retryCount: retryCountSinceProgress,
                    date: clock.date,
                    random: host.settings.random(),
                    mayHaveActed: safety.mayHaveActed
                ),
                !isHeldBack(for: delay),
                host.takeRetry(afterProgress: arrival.hasProgressed)
            else { return nil }
            retryCountSinceProgress += 1
            retryCount += 1
            return delay
        }

        /// Returns whether a retry after this number of seconds would fail because of the open circuit.
        private func isHeldBack(for delay: TimeInterval) -> Bool {
            guard let breaker = circuitBreaker, !breaker.waitsWhileOpen else { return false }
            return host.circuit(to: snapshot.message.url).isOpen(for: delay)
        }

        /// Returns a stale response instead of an error, if the policy and the response allow it.
        private func staleResponse(for error: NetworkError) -> NetworkResponse? {
            guard let candidate = cache.candidate,
                let stale = lookup?.staleResponse(candidate, for: error, at: clock.date),
                var response = snapshot.accepted(stale)
            else { return nil }
            response.history = call.history
            return response
        }

        @inline(never)
        func adopted(_ error: NetworkError) -> NetworkError {
            var error = error
            error.adopt(call.history)
            return error
        }

        // MARK: - Wait

        /// Waits without the slot. The job gives up its slot when all its calls wait, and regains it before the next
        /// step.
        @inline(never)
        private func wait(_ wait: Wait) async {
            let (reason, event): (@Sendable () -> WaitReason, NetworkEvent.Kind?)
            switch wait {
            case .delay(let delay, let error):
                let (clock, end) = (clock, clock.now + delay)
                reason = { .retry(seconds: max(0, end - clock.now)) }
                event = .retryScheduled(delay: delay, after: error)
            case .network: (reason, event) = ({ .network }, nil)
            case .circuit(let circuit): (reason, event) = ({ circuit.waitReason }, .circuitAwaited)
            case .credential: (reason, event) = ({ .credential }, .credentialAwaited)
            case .pause: (reason, event) = ({ .slotReleased }, nil)
            }
            if let event { call.tell(event) }
            call.job?.leaveSlot(call, reason)
            switch wait {
            case .delay(let delay, _): await clock.sleep(delay)
            case .network(let network): await network.wait()
            case .circuit(let circuit): await circuit.wait()
            case .credential(let refresh): await refresh.wait()
            case .pause(let end): await end.wait()
            }
            await call.job?.returnToSlot(call)
            // This cancelled call may have been chosen to send the trial, so wake the next call.
            if case .circuit(let circuit) = wait, Task.isCancelled { circuit.wakeNext() }
        }
    }
}
