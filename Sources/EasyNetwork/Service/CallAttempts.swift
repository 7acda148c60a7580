import Foundation

/// The steps of one call from its request to its answer:
///
///     adapt → cache → credential → send, with redirects → validation → interceptors → credential → retry
///
/// The steps run in the call's task, from top to bottom. The decisions are made by values: ``RetryPolicy``,
/// ``RedirectRules``, ``CacheLookup``, ``ResponseValidation``.
struct CallAttempts {
    typealias Stamp = RequestAuthentication.Stamp
    typealias Outcome = Result<NetworkResponse, NetworkError>

    private static let keyField = "Idempotency-Key"

    /// How many times interceptors may send a request again.
    static let againLimit = 20

    private let call: Call
    private let context: CallContext
    /// The message as it was built; each attempt begins with it.
    private let message: TransportRequest
    /// The message as it was sent last, without its credential.
    private var sent: TransportRequest
    /// The messages sent so far; the call has them while one is under way.
    private var history: [NetworkAttempt] = []
    /// The reason for the next message, and the delay before it.
    private var next: (reason: NetworkAttempt.Reason, delay: TimeInterval) = (.first, 0)
    /// The retries since the last progress, and in all.
    private var retryCount = 0
    private var totalRetryCount = 0
    private var againCount = 0
    private var startOverCount = 0
    private var stamp: Stamp?
    /// Whether the cache has been asked, which happens once.
    private var hasLooked = false
    private var cacheKey: String?
    private var cacheMiss: CacheMiss?
    /// The stored answer that the server may confirm, or that may be used instead of an error.
    private var candidate: StoredCandidate?
    /// The answer of this attempt as it came from the network.
    private var answer: NetworkResponse?
    /// Whether a server may have processed a message that must not be processed twice.
    private var mayHaveActed = false
    /// The `Idempotency-Key` of a message that a server may have processed: only with this key may it be sent again.
    private var usedKey: String?
    /// How the last answer arrived.
    private var arrival = CallContext.Arrival()

    private var errand: PendingStore?
    private var acceptedAnswer: NetworkResponse?

    /// How the attempts ended.
    struct Answer: Sendable {
        let result: Outcome
        /// The cache's work that follows when the item has been made.
        var errand: PendingStore?
        /// The last accepted answer of the network: the one that the cache may store, whatever interceptors make of it.
        var acceptedAnswer: NetworkResponse?
    }

    init(_ message: TransportRequest, _ context: CallContext, of call: Call) {
        self.message = message
        self.context = context
        self.call = call
        sent = message
        stamp = context.stamp
    }

    /// Sends the request until there is an answer, or an error that is not retried.
    mutating func answer() async -> Answer {
        let result: Outcome
        do throws(NetworkError) {
            result = .success(try await acceptedResponse())
        } catch {
            result = .failure(adopted(error))
        }
        return Answer(result: result, errand: errand, acceptedAnswer: acceptedAnswer)
    }

    private mutating func acceptedResponse() async throws(NetworkError) -> NetworkResponse {
        var failure: NetworkError?
        var replay: (message: TransportRequest, stamp: Stamp)?
        while true {
            var outcome: Outcome
            if let again = replay.take() {
                outcome = try await exchange(sent, with: again)
            } else {
                outcome = try await attempt(after: failure)
            }
            if case .failure(let error) = outcome { outcome = .failure(adopted(error)) }
            try checkCancellation()
            if !context.interceptors.isEmpty {
                switch await context.respond(to: outcome, history) {
                case .proceed: break
                case .succeed(var response):
                    response.history = history
                    return response
                case .fail(let error): outcome = .failure(adopted(error))
                case .stop:
                    var error = NetworkError(code: .cancelled, message: "an interceptor stopped it")
                    error.isSilent = true
                    throw error
                case .sendAgain(let delay):
                    try await sendAgain(after: max(0, delay))
                    failure = nil
                    continue
                }
            }
            do throws(NetworkError) {
                replay = try await review()
            } catch {
                outcome = .failure(adopted(error))
            }
            if replay != nil { continue }
            guard case .failure(let error) = outcome else { return try outcome.get() }
            guard let delay = retryDelay(after: error) else {
                if let response = standIn(for: error) { return response }
                throw error
            }
            failure = error
            next = (.retry, delay)
            context.tell(call, .retryScheduled(delay: delay, after: error))
            await context.wait(delay, call)
            try checkCancellation()
        }
    }

    private func checkCancellation() throws(NetworkError) {
        // An end from outside has cancelled the task when it returns.
        if Task.isCancelled { throw NetworkError(code: .cancelled) }
    }

    // MARK: - One attempt

    /// - Parameter failure: the error that is retried; nil for the first attempt.
    /// - Throws: the error that ends the call.
    private mutating func attempt(after failure: NetworkError?) async throws(NetworkError) -> Outcome {
        answer = nil
        var message = message
        if !context.interceptors.isEmpty {
            if let usedKey, message.headers[Self.keyField] == nil { message.headers[Self.keyField] = usedKey }
            message = try await context.adapt(message, history)
            try checkCancellation()
            try RequestBuilder.check(message)
            if let failure, let usedKey, message.headers[Self.keyField] != usedKey { throw failure }
            if message.url.origin != self.message.url.origin {
                message.headers = message.headers.withoutCredentials(of: self.message.headers)
            }
        }
        guard let cache = context.cache else { return try await exchange(message) }
        cacheKey = cache.key(for: message)
        if cache.isRead, !hasLooked {
            hasLooked = true
            if let outcome = await look(message, cache) { return outcome }
            try checkCancellation()
        } else if let candidate, !candidate.isFor(message) {
            // The candidate does not belong to this message.
            self.candidate = nil
        }
        return try await exchange(candidate?.conditioned(message) ?? message)
    }

    /// - Returns: nil when the message is to be sent.
    private mutating func look(_ message: TransportRequest, _ cache: CacheLookup) async -> Outcome? {
        switch await context.look(message, key: cacheKey) {
        case .answer(let response, let isRefreshed):
            if let cacheKey { errand = .answered(cache, key: cacheKey, isRefreshed: isRefreshed) }
            context.tell(call, .servedFromCache(response))
            return .success(response)
        case .answerAndSend(let response):
            context.tell(call, .servedFromCache(response))
            await context.show(response, of: call)
            return nil
        case .send(let miss, let candidate):
            cacheMiss = miss
            self.candidate = candidate
            context.tell(call, .missedCache(miss))
            return nil
        case .refuse(let miss):
            context.tell(call, .missedCache(miss))
            return .failure(NetworkError(miss, cache.policy.reading))
        }
    }

    /// Sends a message and follows its redirects; sends it again without its conditions if those do not apply.
    ///
    /// - Parameter replay: the message with a new credential, after a refusal.
    /// - Throws: the error that ends the call.
    private mutating func exchange(
        _ first: TransportRequest,
        with replay: (message: TransportRequest, stamp: Stamp)? = nil
    ) async throws(NetworkError) -> Outcome {
        var message = first
        var replay = replay
        var redirectCount = 0
        while true {
            var outgoing: TransportRequest
            if let again = replay.take() {
                try RequestBuilder.check(again.message)
                stamp = again.stamp
                outgoing = again.message
            } else {
                if let network = context.missingNetwork {
                    await context.wait(for: network, call)
                    try checkCancellation()
                }
                sent = message
                outgoing = stamp == nil ? message : try await authorized(message)
            }
            try checkCancellation()
            let received = await send(&outgoing)
            try checkCancellation()
            let response: NetworkResponse
            switch received {
            case .startOver(let response):
                try noteStartOver(response)
                message = sent
                continue
            case .outcome(.failure(let error)): return .failure(error)
            case .outcome(.success(let success)): response = success
            }
            if response.statusCode == 304, let candidate = candidate.take() {
                // The answer confirms another entry than the cache has.
                next = (.unconditional, 0)
                message = candidate.unconditioned(sent)
                continue
            }
            do throws(NetworkError) {
                guard let target = try await redirect(response, count: redirectCount) else { return judged(response) }
                message = target
            } catch {
                return .failure(error)
            }
            redirectCount += 1
        }
    }

    /// The message with its credential. Another origin than that of the request gets none.
    private mutating func authorized(_ message: TransportRequest) async throws(NetworkError) -> TransportRequest {
        guard var stamp, let first = context.stamp else { return message }
        stamp.isExempt = first.isExempt || message.url.origin != self.message.url.origin
        self.stamp = stamp
        guard !stamp.isExempt else { return message }
        guard let (outgoing, fresh) = try await context.authorize(message, stamp, call) else { return message }
        try checkCancellation()
        try RequestBuilder.check(outgoing)
        self.stamp = fresh
        return outgoing
    }

    private enum Received {
        case outcome(Outcome)
        /// The answer does not fit the bytes that the body's user had, which were dropped.
        case startOver(NetworkResponse)
    }

    /// - Parameter message: is given its cookies, and the range of a download.
    private mutating func send(_ message: inout TransportRequest) async -> Received {
        // First, so that what is told of the message is what is sent.
        context.addCookies(to: &message)
        var read: BodyReading?
        if let use = context.use { (message, read) = await use(message) }
        let line = NetworkError.Request(method: message.method.rawValue, url: message.url, headers: message.headers)
        var attempt = NetworkAttempt(reason: next.reason, request: line, delay: next.delay)
        attempt.cacheMiss = history.isEmpty ? cacheMiss : nil
        history.append(attempt)
        let body = BodyStream()
        call.note(history.take(), message, body)
        next = (.first, 0)
        answer = nil
        acceptedAnswer = nil
        if context.cache != nil {
            let deposit = context.deposit(message, asked: sent.headers, key: cacheKey, candidate)
            errand = deposit.map { .store($0) }
        }
        context.tell(call, .attemptStarted(attempt, message))
        var outcome: Outcome
        (outcome, arrival) = await context.exchange(message, body, read)
        if arrival.startsOver, case .success(let response) = outcome { return .startOver(response) }
        if !arrival.isBodyUsed, case .success(let response) = outcome,
            let confirmed = candidate?.confirmed(by: response, at: context.clock.date)
        {
            outcome = .success(confirmed)
        }
        // Moved and not mapped, which would copy the answer.
        switch consume outcome {
        case .success(let response): outcome = .success(context.prepared(response, message.method))
        case .failure(let error): outcome = .failure(error)
        }
        noteEnd(of: outcome)
        if case .success(var response) = outcome {
            response.history = history
            outcome = .success(response)
        }
        return .outcome(outcome)
    }

    private mutating func noteEnd(of outcome: Outcome) {
        let mayHaveReached: Bool
        switch outcome {
        case .success(let response):
            mayHaveReached = true
            history = call.noteEnd { attempt in
                attempt.statusCode = response.source == .revalidated ? 304 : response.statusCode
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
        context.tell(call, .attemptEnded(history[history.count - 1], outcome))
        guard mayHaveReached, !context.retry.methods.contains(sent.method) else { return }
        usedKey = sent.headers[Self.keyField]
        if usedKey == nil { mayHaveActed = true }
    }

    private mutating func noteStartOver(_ response: NetworkResponse) throws(NetworkError) {
        history = call.noteEnd { attempt in
            attempt.statusCode = response.statusCode
            attempt.metrics = response.metrics
        }
        context.tell(call, .attemptEnded(history[history.count - 1], .success(response)))
        answer = response
        startOverCount += 1
        guard startOverCount <= Self.againLimit else {
            throw failure(.badServerResponse, "the ranges that it sends did not fit \(Self.againLimit) times")
        }
        next = (.startOver, 0)
    }

    /// - Returns: the message that the answer redirects to; nil when it is no redirect that is followed.
    private mutating func redirect(
        _ response: NetworkResponse,
        count: Int
    ) async throws(NetworkError) -> TransportRequest? {
        let rules = RedirectRules(policy: context.redirects)
        guard var message = try rules.redirect(of: sent, by: response, count: count) else { return nil }
        if let decide = context.redirects.decide {
            guard let decided = await decide(message, response) else { return nil }
            try RequestBuilder.check(decided)
            message = rules.checked(decided, insteadOf: message, after: sent)
        }
        next = (.redirect, 0)
        // The stored answer belongs to another address.
        message = candidate.take()?.unconditioned(message) ?? message
        // A redirect is a part of its attempt, and so of its time.
        if let total = message.deadlines.total, let used = history.last?.metrics?.total {
            message.deadlines.total = max(total - used, .leastNonzeroMagnitude)
        }
        return message
    }

    private mutating func judged(_ response: NetworkResponse) -> Outcome {
        answer = response
        // The body's user has checked that the answer is accepted.
        if !arrival.isBodyUsed, let error = context.validation.error(for: response) { return .failure(error) }
        if context.cache != nil { acceptedAnswer = response }
        return .success(response)
    }

    // MARK: - Once more

    private mutating func sendAgain(after delay: TimeInterval) async throws(NetworkError) {
        againCount += 1
        guard againCount <= Self.againLimit else {
            throw failure(.cannotSendAgain, "interceptors had it sent again \(Self.againLimit) times")
        }
        guard message.body.isReplayable, arrival.mayBeginAgain else {
            let reason = arrival.mayBeginAgain ? "its body can be read only once" : "its answer has been handed over"
            throw failure(.cannotSendAgain, "an interceptor wants it sent again, and \(reason)")
        }
        next = (.again, delay)
        guard delay > 0 else { return }
        context.tell(call, .retryScheduled(delay: delay, after: nil))
        await context.wait(delay, call)
        try checkCancellation()
    }

    /// Asks whether the answer refuses the credential of the message.
    ///
    /// - Returns: the message with another credential, if it is to be sent again.
    /// - Throws: the reason why there is no other credential.
    private mutating func review() async throws(NetworkError) -> (message: TransportRequest, stamp: Stamp)? {
        guard let stamp, !stamp.isExempt, let answer, sent.body.isReplayable, arrival.mayBeginAgain else { return nil }
        guard let replay = try await context.review(answer, sent, stamp, call) else { return nil }
        next = (.authentication, 0)
        // A refused message has changed nothing on the server.
        mayHaveActed = false
        usedKey = nil
        return replay
    }

    /// The time to wait before a retry; nil when there is none.
    private mutating func retryDelay(after error: NetworkError) -> TimeInterval? {
        // Progress resets the retry count.
        if arrival.hasProgressed { retryCount = 0 }
        guard arrival.mayBeginAgain, context.retry.mayGoOn(totalCount: totalRetryCount),
            let delay = context.retry.delay(
                after: error,
                of: message,
                retryCount: retryCount,
                date: context.clock.date,
                random: context.configuration.settings.random(),
                mayHaveActed: mayHaveActed
            ),
            context.configuration.takeRetry(afterProgress: arrival.hasProgressed)
        else { return nil }
        retryCount += 1
        totalRetryCount += 1
        return delay
    }

    /// A stale answer instead of an error, if the policy and the answer allow it.
    private func standIn(for error: NetworkError) -> NetworkResponse? {
        guard let candidate, let stale = context.cache?.standIn(candidate, for: error, at: context.clock.date),
            var response = context.accepted(stale)
        else { return nil }
        response.history = history
        return response
    }

    // MARK: - Errors

    private func failure(_ code: NetworkError.Code, _ message: String) -> NetworkError {
        answer?.error(code, message: message) ?? NetworkError(code: code, message: message)
    }

    private func adopted(_ error: NetworkError) -> NetworkError {
        var error = error
        error.adopt(history)
        return error
    }
}
