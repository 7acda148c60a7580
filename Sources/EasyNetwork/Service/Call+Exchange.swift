import Foundation

extension Call.Attempts {
    /// A message, from its preparation to its response.
    final class Exchange {
        /// The message without its credential.
        let message: TransportRequest
        let cause: Cause
        /// The number of redirects in this attempt so far.
        let redirectCount: Int
        /// The message with a new credential, if the previous one was refused.
        var replay: RequestAuthentication.Authorized?
        /// The credential refresh that the message has waited for.
        var refresh: RequestAuthentication.Refresh?

        // The next properties are set when the message is sent, and when it ends.

        /// The permission of the circuit, until the message ends or is not sent; nil without a circuit breaker.
        var pass: CircuitPass?
        /// The span of the message; nil without traces.
        var span: TraceSpan?
        /// The time at which the message was sent, by the host's clock.
        var begun: TimeInterval = 0
        var arrival = Arrival()
        /// The retry safety before this message.
        var safetyBefore = RetrySafety()
        /// The response that is judged; nil if it is a redirect, or if the message has failed.
        var response: NetworkResponse?

        init(_ message: TransportRequest, _ cause: Cause, redirectCount: Int = 0) {
            (self.message, self.cause, self.redirectCount) = (message, cause, redirectCount)
        }

        /// Returns the message that follows in the same attempt.
        func next(_ message: TransportRequest, _ reason: NetworkAttempt.Reason) -> Exchange {
            let count = redirectCount + (reason == .redirect ? 1 : 0)
            return Exchange(message, Cause(reason: reason), redirectCount: count)
        }
    }

    /// How the response to a message arrived.
    struct Arrival {
        /// Whether the body was passed to its reader, so that the response has no body.
        var isBodyUsed = false
        /// Whether the response does not fit the bytes stored earlier, so that the message must be sent again.
        var startsOver = false
        /// Whether bytes were received that need not be sent again.
        var hasProgressed = false
        /// Whether another response can replace this one.
        var mayBeginAgain = true
        /// The reason why the body is incomplete, for a response that its head decides; nil if the body is complete.
        var cut: NetworkError?
    }
}

/// One message of a call: the last additions to it, its response, and the record of both.
extension Call.Attempts {
    /// Sends a message, and collects the body of its response or passes it to its reader.
    ///
    /// - Parameter message: The message with its credential. Its cookies, its trace, and the range of a download are
    ///   added here.
    @inline(never)
    func transmit(_ exchange: Exchange, as message: TransportRequest) async -> Step {
        // Complete the message before reporting it, so that events show exactly what is sent.
        let message = completed(message, exchange)
        if let consumer = call.request.consumer { return await transmit(exchange, message, to: consumer) }
        guard let body = begin(exchange, message, isRead: false) else { return .send(exchange) }
        if exchange.pass != nil { await trust(exchange, body) }
        return collected(exchange, message, body, await body.collect(upTo: snapshot.validation.maximumBodyCount, clock))
    }

    /// Sends a message whose consumer decides how the body of the response is read.
    @inline(never)
    private func transmit(
        _ exchange: Exchange,
        _ message: TransportRequest,
        to consumer: BodyConsumer
    ) async -> Step {
        let (message, read) = await consumer(message)
        guard let body = begin(exchange, message, isRead: true) else { return .send(exchange) }
        if exchange.pass != nil { await trust(exchange, body) }
        return end(exchange, message.method, body, await receive(exchange, message, body, read))
    }

    /// Records the response to a message. Not inlined, so that a waiting call does not hold its frame.
    @inline(never)
    private func collected(
        _ exchange: Exchange,
        _ message: TransportRequest,
        _ body: BodyStream,
        _ collected: BodyStream.Collected
    ) -> Step {
        if let head = collected.head { keepCookies(head.headers, from: message.url) }
        // The outcome is used only once, so that the response is not copied.
        return end(exchange, message.method, body, received(collected, exchange, from: message.url))
    }

    /// Returns the message with its cookies and its trace.
    @inline(never)
    private func completed(_ message: TransportRequest, _ exchange: Exchange) -> TransportRequest {
        var message = message
        snapshot.addCookies(to: &message)
        exchange.span = call.trace.map { TraceSpan(in: $0.context) }
        if let span = exchange.span { addTrace(span.context, to: &message) }
        return message
    }

    /// Sends a message, and records it.
    ///
    /// - Returns: The response. Nil if the user has signed out or in since the credential was added. Then nothing is
    ///   sent, and the message needs another credential.
    @inline(never)
    private func begin(_ exchange: Exchange, _ message: TransportRequest, isRead: Bool) -> BodyStream? {
        guard isUserCurrent else { return nil }
        if !hasSent { host.payForRetries() }
        let line = NetworkError.Request(method: message.method.rawValue, url: message.url, headers: message.headers)
        var attempt = NetworkAttempt(reason: exchange.cause.reason, request: line, delay: exchange.cause.delay)
        attempt.span = exchange.span
        attempt.cacheMiss = hasSent ? nil : cache.miss
        hasSent = true
        let body = BodyStream(snapshot, isRead: isRead)
        if isRead, case let count = call.wantedBodyCount, count > 0 { body.keepBeginning(count) }
        call.noteStart(attempt, message, body)
        cache.acceptedResponse = nil
        if let lookup {
            cache.pendingStore = snapshot.deposit(
                message,
                in: lookup,
                asked: exchange.message.headers,
                key: cache.key,
                cache.candidate
            ).map { .store($0) }
        }
        call.tell(.attemptStarted(attempt, message))
        exchange.begun = clock.now
        body.start(message, over: host.settings.transport)
        return body
    }

    /// Records how a message ended.
    ///
    /// - Parameter method: The method of the message that was sent.
    @inline(never)
    private func end(
        _ exchange: Exchange,
        _ method: NetworkService.Method,
        _ body: BodyStream,
        _ outcome: consuming Outcome
    ) -> Step {
        if let pass = exchange.pass.take() { end(pass, outcome) }
        let arrival = exchange.arrival
        var isConfirmed = false
        if !arrival.isBodyUsed, !arrival.startsOver, case .success(let response) = outcome,
            let confirmed = cache.candidate?.confirmed(by: response, at: clock.date)
        {
            outcome = .success(confirmed)
            isConfirmed = true
        }
        // The response is moved, because mapping the outcome would copy it.
        switch consume outcome {
        case .success(let response): outcome = .success(snapshot.prepared(response, method))
        case .failure(let error): outcome = .failure(error)
        }
        let beginning = arrival.isBodyUsed ? body.beginning : nil
        exchange.safetyBefore = safety
        let history = recordEnd(of: outcome, isConfirmed, exchange.message, arrival, beginning)
        if case .success(var response) = outcome {
            response.history = history
            outcome = .success(response)
        }
        return .follow(exchange, outcome)
    }

    /// Adds the trace, unless the message has its own. If the request's options enable traces, only messages to the
    /// request's origin carry the trace. If only the host's settings do, a message must also go to the host's origin.
    /// The redirect policy can allow other origins.
    private func addTrace(_ trace: TraceContext, to message: inout TransportRequest) {
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

    /// Records how a message ended, and what that means for a retry.
    ///
    /// - Parameters:
    ///   - isConfirmed: Whether the server has confirmed a stored response, which is the outcome.
    ///   - beginning: The beginning of a body that was consumed as it arrived, if a listener wants it.
    /// - Returns: The messages sent so far.
    private func recordEnd(
        of outcome: Outcome,
        _ isConfirmed: Bool,
        _ message: TransportRequest,
        _ arrival: Arrival,
        _ beginning: BodyExcerpt?
    ) -> [NetworkAttempt] {
        let (response, error) = (try? outcome.get(), outcome.failure)
        let history = call.noteEnd { attempt in
            attempt.statusCode = isConfirmed ? 304 : response?.statusCode ?? error?.statusCode
            attempt.errorCode = (error ?? arrival.cut)?.code
            attempt.phase = error?.phase
            attempt.metrics = response?.metrics ?? error?.metrics
        }
        let mayHaveReached = error.map { adopted($0).mayHaveReachedServer } ?? !arrival.startsOver
        call.tell(.attemptEnded(history[history.count - 1].adding(beginning: beginning), outcome))
        guard mayHaveReached, !snapshot.retry.methods.contains(message.method) else { return history }
        let key = call.request.isSafeByKey ? message.headers[Self.keyField] : nil
        safety = RetrySafety(key: key, mayHaveActed: safety.mayHaveActed || key == nil)
        return history
    }

    /// Reports to the circuit how a message ended.
    private func end(_ pass: CircuitPass, _ outcome: Outcome) {
        // A failure without a network says nothing about the server.
        if case .failure = outcome, missingNetwork != nil { return }
        if let change = pass.end(outcome, at: clock.date) { call.tell(change) }
    }

    /// Whether the user has neither signed out nor in since the credential was added.
    private var isUserCurrent: Bool { credential.flatMap { host.settings.authentication?.isCurrent($0) } ?? true }

    @inline(never)
    private func keepCookies(_ headers: HTTPHeaders, from url: URL) {
        // After a cancellation, or after the user has signed out, the jar may have been emptied for another user.
        guard let jar = host.jar(snapshot.options), headers["Set-Cookie"] != nil, !Task.isCancelled, isUserCurrent
        else { return }
        jar.store(headers, from: url, at: clock.date)
    }

    // MARK: - The wire

    /// Reports the result of a trial to the circuit before the trial ends. Other calls then wait neither for the
    /// response's body nor for a long upload.
    @inline(never)
    private func trust(_ exchange: Exchange, _ body: BodyStream) async {
        guard let pass = exchange.pass, let timer = pass.trustAfterTrialTime({ [call] in call.tell($0) }) else {
            return
        }
        if let head = try? await body.head(), let change = pass.end(head, at: clock.date) { call.tell(change) }
        timer.cancel()
    }

    /// Passes the body of a response to its reader.
    @inline(never)
    private func receive(
        _ exchange: Exchange,
        _ message: TransportRequest,
        _ body: BodyStream,
        _ read: BodyReading
    ) async -> Outcome {
        let head: TransportHead
        do throws(NetworkError) {
            head = try await body.head()
        } catch {
            return .failure(error)
        }
        // Cookies are stored before the body is read, because the body can end much later, or never.
        keepCookies(head.headers, from: message.url)
        let isAccepted = snapshot.patience(for: head) == nil
        if isAccepted, let maximum = snapshot.validation.maximumBodyCount {
            body.limit(to: maximum, otherwise: snapshot.validation.bodyTooLong(NetworkResponse(head, url: message.url)))
        }
        let end = await read(head, isAccepted, body)
        switch end {
        case .collect:
            return received(await body.collect(upTo: BodyStream.decidedLimit, clock), exchange, from: message.url)
        case .used: exchange.arrival.isBodyUsed = true
        case .again: exchange.arrival.startsOver = true
        case .failed(let error, let hasProgressed, let mayBeginAgain):
            body.cancel()
            (exchange.arrival.hasProgressed, exchange.arrival.mayBeginAgain) = (hasProgressed, mayBeginAgain)
            return .failure(error)
        }
        // Trailers and metrics must be read before the body is cancelled.
        let response = NetworkResponse(head, url: message.url, end: body.end)
        // The reader can have enough of the body before it ends.
        body.cancel()
        return .success(response)
    }

    /// Returns the response or the error. If the head decides, the response counts even if its body is incomplete.
    @inline(never)
    private func received(_ collected: BodyStream.Collected, _ exchange: Exchange, from url: URL) -> Outcome {
        do throws(NetworkError) {
            let response = try collected.response(from: url)
            if collected.end == nil { throw snapshot.validation.bodyTooLong(response) }
            return .success(response)
        } catch {
            guard let head = collected.head, error.code != .cancelled, isDecided(by: head) else {
                return .failure(error)
            }
            exchange.arrival.cut = error
            return .success(NetworkResponse(head, body: collected.body, url: url, end: collected.end))
        }
    }

    /// Returns whether the head decides what follows: a redirect, a refusal, or a challenge even if its status is
    /// accepted.
    private func isDecided(by head: TransportHead) -> Bool {
        snapshot.patience(for: head) != nil || (head.statusCode == 401 && firstCredential?.isExempt == false)
    }
}
