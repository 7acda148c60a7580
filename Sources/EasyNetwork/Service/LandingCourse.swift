import Foundation

/// The way of one request from its message to its result, as a value that says what to do next.
///
/// adapt → cache → authorize → send → redirects → validation → interceptors → authentication → retry, and round again.
struct LandingCourse: Sendable {
    enum Step: Sendable {
        /// Ask the interceptors, then ``LandingCourse/adapted(_:)``.
        case adapt(TransportRequest)
        /// Ask the cache, then ``LandingCourse/looked(_:_:at:)``.
        case look(TransportRequest, key: String?)
        /// Put the credential in, then ``LandingCourse/authorized(_:)``.
        case authorize(TransportRequest, Stamp)
        /// Then ``LandingCourse/received(_:verdict:at:)``.
        case send(TransportRequest)
        /// Ask what the policy's closure thinks, then ``LandingCourse/decided(_:)``.
        case decide(Redirect)
        /// Ask the interceptors, then ``LandingCourse/landed(_:)``.
        case land(Result<NetworkResponse, NetworkError>)
        /// Ask whether the answer refuses the credential of the message, which is without it here; then
        /// ``LandingCourse/reviewed(_:at:)``.
        case review(NetworkResponse, TransportRequest, Stamp)
        /// If the budget has as much left, ``LandingCourse/willRetry(after:)``; if not,
        /// ``LandingCourse/isOutOfBudget(at:)``.
        case retry(after: TimeInterval, cost: Double)
        /// Wait, then ``LandingCourse/begin()``.
        case wait(TimeInterval)
        case finish(Result<NetworkResponse, NetworkError>)
    }

    typealias Stamp = RequestAuthentication.Stamp

    /// What comes of asking for a credential.
    typealias Authorization = Result<(message: TransportRequest, stamp: Stamp), NetworkError>

    /// What an attempt is judged by.
    struct Rules: Sendable {
        var retry = RetryPolicy.never
        var redirects = RedirectPolicy.never
        var isIntercepted = false
        /// Nil when the cache has nothing to do with it.
        var cache: CacheUse?
        /// Makes of a stored answer what is handed on; nil when it is not accepted as answers are now.
        var accept: @Sendable (NetworkResponse) -> NetworkResponse? = { $0 }
        /// Nil when there is nothing to authenticate with.
        var stamp: Stamp?
    }

    /// When something happens.
    struct Moment {
        var date: Date
        /// Draws a number from 0 to 1.
        var random: @Sendable () -> Double
    }

    private static let keyField = "Idempotency-Key"

    /// How many times interceptors may have a request sent again.
    static let againLimit = 20

    /// As it was built: each attempt begins with it.
    private let message: TransportRequest
    private let rules: Rules
    /// As it was sent last, but for its credential.
    private(set) var sent: TransportRequest
    private(set) var history: [NetworkAttempt] = []
    /// Why the next message is sent, and after what delay.
    private var next: (reason: NetworkAttempt.Reason, delay: TimeInterval) = (.first, 0)
    /// Since the last progress, and in all.
    private var retryCount = 0
    private var totalRetryCount = 0
    private var againCount = 0
    private var redirectCount = 0
    private var stamp: Stamp?
    /// The cache is asked once.
    private var hasLooked = false
    /// What the message of this attempt is found by there.
    private(set) var cacheKey: String?
    /// Why it did not answer.
    private var cacheMiss: CacheMiss?
    /// The entry that the server may confirm, or that may stand in for an error.
    private(set) var candidate: CacheCandidate?
    /// The redirect that the policy's closure is asked about.
    private var redirect: Redirect?
    /// Why the answer that came last is no success.
    private var verdict: NetworkError?
    /// The answer of this attempt, as it came.
    private var answer: NetworkResponse?
    /// The same if it was accepted: what the cache may keep, whatever interceptors make of it.
    private(set) var acceptedAnswer: NetworkResponse?
    private var result: Result<NetworkResponse, NetworkError>?
    /// Whether a server may have done what must not be done twice.
    private var mayHaveActed = false
    /// The `Idempotency-Key` of what a server may have done: with it, and with it alone, it may be sent again.
    private var usedKey: String?
    /// What became of the body of the answer that came last, where it goes into a sink.
    private var body = BodyOutcome()
    /// How many times an answer did not fit what the sink had.
    private var startOverCount = 0

    init(_ message: TransportRequest, _ rules: Rules) {
        self.message = message
        self.rules = rules
        sent = message
        stamp = rules.stamp
    }

    // MARK: - To the wire

    /// A new attempt.
    mutating func begin() -> Step {
        redirectCount = 0
        redirect = nil
        answer = nil
        // What has failed counts, should an interceptor make another request of it.
        if next.reason != .retry { result = nil }
        guard rules.isIntercepted else { return look(message) }
        var message = message
        if let usedKey, message.headers[Self.keyField] == nil { message.headers[Self.keyField] = usedKey }
        return .adapt(message)
    }

    mutating func adapted(_ result: Result<TransportRequest, NetworkError>) -> Step {
        do throws(NetworkError) {
            var message = try result.get()
            try RequestBuilder.check(message)
            if next.reason == .retry, let usedKey, message.headers[Self.keyField] != usedKey, let failure = self.result
            {
                return finish(failure)
            }
            if message.url.origin != self.message.url.origin {
                message.headers = message.headers.withoutCredentials(of: self.message.headers)
            }
            return look(message)
        } catch {
            return finish(.failure(error))
        }
    }

    private mutating func look(_ message: TransportRequest) -> Step {
        guard let cache = rules.cache else { return authorize(message) }
        cacheKey = cache.key(for: message)
        guard cache.isRead, !hasLooked else {
            // What was found for another message says nothing of this one.
            if let found = candidate, !found.isFor(message) { candidate = nil }
            return authorize(candidate?.conditioned(message) ?? message)
        }
        hasLooked = true
        return .look(message, key: cacheKey)
    }

    mutating func looked(_ verdict: CacheUse.Verdict, _ message: TransportRequest, at moment: Moment) -> Step {
        switch verdict {
        case .answer(let answer): return land(.success(answer.response), at: moment)
        case .answerAndSend: return authorize(message)
        case .send(let miss, let candidate):
            cacheMiss = miss
            self.candidate = candidate
            return authorize(candidate?.conditioned(message) ?? message)
        case .refuse(let miss):
            return land(.failure(NetworkError(miss, rules.cache?.policy.reading)), at: moment)
        }
    }

    /// Another origin than the one that the request is for gets no credential.
    private mutating func authorize(_ message: TransportRequest) -> Step {
        sent = message
        guard var stamp, let first = rules.stamp else { return send(message) }
        stamp.isExempt = first.isExempt || message.url.origin != self.message.url.origin
        self.stamp = stamp
        return stamp.isExempt ? send(message) : .authorize(message, stamp)
    }

    mutating func authorized(_ authorization: Authorization) -> Step {
        do throws(NetworkError) {
            let (message, stamp) = try authorization.get()
            try RequestBuilder.check(message)
            self.stamp = stamp
            return send(message)
        } catch {
            return finish(.failure(error))
        }
    }

    private mutating func send(_ message: TransportRequest) -> Step {
        let line = NetworkError.Request(method: message.method.rawValue, url: message.url, headers: message.headers)
        var attempt = NetworkAttempt(reason: next.reason, request: line, delay: next.delay)
        attempt.cacheMiss = history.isEmpty ? cacheMiss : nil
        history.append(attempt)
        next = (.first, 0)
        answer = nil
        acceptedAnswer = nil
        return .send(message)
    }

    // MARK: - From the wire

    /// - Parameters:
    ///   - verdict: why the answer, unless it is a redirect that is followed, is no success.
    ///   - body: what became of its body, where that goes into a sink.
    mutating func received(
        _ result: Result<NetworkResponse, NetworkError>,
        verdict: NetworkError?,
        body: BodyOutcome = BodyOutcome(),
        at moment: Moment
    ) -> Step {
        self.verdict = verdict
        self.body = body
        let result = body.error.map(Result.failure) ?? result
        let last = history.count - 1
        let mayHaveReached = result.mapError(annotate).mayHaveReachedServer
        if mayHaveReached, !rules.retry.methods.contains(sent.method) {
            usedKey = sent.headers[Self.keyField]
            if usedKey == nil { mayHaveActed = true }
        }
        switch result {
        case .success(let response):
            history[last].statusCode = response.source == .revalidated ? 304 : response.statusCode
            history[last].metrics = response.metrics
            var response = response
            response.history = history
            return answered(response, at: moment)
        case .failure(let error):
            history[last].statusCode = error.statusCode
            history[last].errorCode = error.code
            history[last].metrics = error.metrics
            return land(.failure(error), at: moment)
        }
    }

    /// The answer does not fit what the sink had, which it has given up.
    mutating func startOver(_ response: NetworkResponse) -> Step {
        history[history.count - 1].statusCode = response.statusCode
        history[history.count - 1].metrics = response.metrics
        answer = response
        startOverCount += 1
        guard startOverCount <= Self.againLimit else {
            return finish(failure(.badServerResponse, "the ranges that it sends did not fit \(Self.againLimit) times"))
        }
        next = (.startOver, 0)
        return authorize(sent)
    }

    private mutating func answered(_ response: NetworkResponse, at moment: Moment) -> Step {
        if response.statusCode == 304, let candidate = candidate.take() {
            // It confirms something else than what the cache has.
            next = (.unconditional, 0)
            return authorize(candidate.unconditioned(sent))
        }
        let redirects = RedirectRules(policy: rules.redirects)
        do throws(NetworkError) {
            guard let redirect = try redirects.redirect(of: sent, by: response, count: redirectCount) else {
                return judge(response, at: moment)
            }
            guard rules.redirects.decide == nil else {
                self.redirect = redirect
                return .decide(redirect)
            }
            return follow(redirect.message)
        } catch {
            return land(.failure(error), at: moment)
        }
    }

    mutating func decided(_ decision: Redirect.Decision, at moment: Moment) -> Step {
        guard let redirect = redirect.take() else { return finish(.failure(NetworkError(code: .cancelled))) }
        switch decision {
        case .follow: return follow(redirect.message)
        case .refuse: return judge(redirect.response, at: moment)
        case .alter(let message):
            do throws(NetworkError) {
                try RequestBuilder.check(message)
                return follow(message)
            } catch {
                return land(.failure(error), at: moment)
            }
        }
    }

    private mutating func follow(_ message: TransportRequest) -> Step {
        redirectCount += 1
        next = (.redirect, 0)
        // The entry is one of another address.
        var message = candidate.take()?.unconditioned(message) ?? message
        // A redirect is a part of its attempt, and so of its time.
        if let total = message.deadlines.total, let used = history.last?.metrics?.total {
            message.deadlines.total = max(total - used, .leastNonzeroMagnitude)
        }
        return authorize(message)
    }

    private mutating func judge(_ response: NetworkResponse, at moment: Moment) -> Step {
        answer = response
        acceptedAnswer = verdict == nil && rules.cache != nil ? response : nil
        return land(verdict.take().map(Result.failure) ?? .success(response), at: moment)
    }

    private mutating func land(_ result: Result<NetworkResponse, NetworkError>, at moment: Moment) -> Step {
        let result = result.mapError { error in
            var error = error
            error.adopt(history)
            return error
        }
        self.result = result
        return rules.isIntercepted ? .land(result) : authenticate(at: moment)
    }

    // MARK: - Round again

    mutating func landed(_ decision: LandingDecision, at moment: Moment) -> Step {
        switch decision {
        case .proceed: break
        case .succeed(var response):
            response.history = history
            return finish(.success(response))
        case .fail(var error):
            error.adopt(history)
            result = .failure(error)
        case .stop:
            var error = NetworkError(code: .cancelled, message: "an interceptor stopped it")
            error.isSilent = true
            return finish(.failure(error))
        case .sendAgain(let delay):
            againCount += 1
            guard againCount <= Self.againLimit else {
                return finish(failure(.cannotSendAgain, "interceptors had it sent again \(Self.againLimit) times"))
            }
            guard message.body.isReplayable, body.mayBeginAgain else {
                let reason = body.mayBeginAgain ? "its body can be read only once" : "its answer has been handed over"
                return finish(failure(.cannotSendAgain, "an interceptor wants it sent again, and \(reason)"))
            }
            let delay = delay > 0 ? delay : 0
            next = (.again, delay)
            return delay > 0 ? .wait(delay) : begin()
        }
        return authenticate(at: moment)
    }

    private mutating func authenticate(at moment: Moment) -> Step {
        guard let stamp, !stamp.isExempt, let answer, sent.body.isReplayable, body.mayBeginAgain else {
            return settle(at: moment)
        }
        return .review(answer, sent, stamp)
    }

    /// - Parameter authorization: what is to be sent instead; nil when the credential counts, or nothing can be done.
    mutating func reviewed(_ authorization: Authorization?, at moment: Moment) -> Step {
        switch authorization {
        case nil:
            return settle(at: moment)
        case .success(let replay):
            next = (.authentication, 0)
            // What was refused has done nothing.
            mayHaveActed = false
            usedKey = nil
            return authorized(.success(replay))
        case .failure(var error):
            error.adopt(history)
            result = .failure(error)
            return settle(at: moment)
        }
    }

    private mutating func settle(at moment: Moment) -> Step {
        guard let result else { return finish(.failure(NetworkError(code: .cancelled))) }
        // Progress resets the retry count.
        if body.hasProgressed { retryCount = 0 }
        guard body.mayBeginAgain, rules.retry.mayGoOn(totalCount: totalRetryCount), case .failure(let error) = result,
            let delay = rules.retry.delay(
                after: error,
                of: message,
                retryCount: retryCount,
                date: moment.date,
                random: moment.random(),
                mayHaveActed: mayHaveActed
            )
        else { return finish(orStandIn(for: result, at: moment)) }
        return .retry(after: delay, cost: body.hasProgressed ? RetryBudget.costAfterProgress : 1)
    }

    mutating func willRetry(after delay: TimeInterval) -> Step {
        retryCount += 1
        totalRetryCount += 1
        next = (.retry, delay)
        return .wait(delay)
    }

    mutating func isOutOfBudget(at moment: Moment) -> Step {
        finish(orStandIn(for: result ?? .failure(NetworkError(code: .cancelled)), at: moment))
    }

    /// A stale answer instead of an error, where both allow it.
    private func orStandIn(
        for result: Result<NetworkResponse, NetworkError>,
        at moment: Moment
    ) -> Result<NetworkResponse, NetworkError> {
        guard case .failure(let error) = result, let candidate,
            let standIn = rules.cache?.standIn(candidate, for: error, at: moment.date),
            var response = rules.accept(standIn)
        else { return result }
        response.history = history
        return .success(response)
    }

    // MARK: - The end

    private func failure(_ code: NetworkError.Code, _ message: String) -> Result<NetworkResponse, NetworkError> {
        guard let answer else { return .failure(NetworkError(code: code, message: message)) }
        return .failure(answer.error(code, message: message))
    }

    private func finish(_ result: Result<NetworkResponse, NetworkError>) -> Step {
        .finish(result)
    }

    /// An error with what was sent before it.
    func annotate(_ error: NetworkError) -> NetworkError {
        var error = error
        error.adopt(history)
        return error
    }
}

extension Result where Failure == NetworkError {
    /// An answer has.
    fileprivate var mayHaveReachedServer: Bool {
        if case .failure(let error) = self { error.mayHaveReachedServer } else { true }
    }
}
