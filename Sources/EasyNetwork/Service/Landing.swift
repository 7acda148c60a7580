import Dispatch
import Foundation

/// One request on its way: does what its ``LandingCourse`` says, and hands the one result over.
///
/// Events of the transport are gathered as they come; what is decided upon them, is decided on ``WorkQueue`` or in a
/// task, never on the transport's thread.
final class Landing: Sendable {
    typealias Completion = @Sendable (Landing, LandingEnd) -> Void

    private struct State {
        /// Nil before the landing begins, and while the course takes a step.
        var course: Shared<LandingCourse>?
        /// Whether the course takes a step. That happens outside the lock, as it lets go of what may be the user's.
        var isStepping = false
        /// How the landing ends when the step has been taken.
        var ending: Result<NetworkResponse, NetworkError>?
        var site: LandingSite?
        /// Nil when the answer is whole, or not awaited.
        var assembly: ResponseAssembly?
        /// Counts the steps: what a step that is over still brings is ignored.
        var turn = 0
        /// Stops the step that is under way.
        var stop: (@Sendable () -> Void)?
        var deadline: (any ClockTimer)?
        /// What is left to do for the cache.
        var errand: CacheErrand?
        /// Nil once the result is known.
        var completion: Completion?
    }

    private let state: Locked<State>
    private let cached: (@Sendable (NetworkResponse) -> Void)?

    /// - Parameters:
    ///   - cached: called at most once before the completion, on ``WorkQueue``, with an answer from the cache that the
    ///     network's will follow. Default nil.
    ///   - completion: called exactly once, on ``WorkQueue``.
    init(cached: (@Sendable (NetworkResponse) -> Void)? = nil, _ completion: @escaping Completion) {
        self.cached = cached
        state = Locked(State(completion: completion))
    }

    /// Sets out; not if the landing was cancelled before.
    func begin(_ course: LandingCourse, at site: LandingSite) {
        let isWanted = state.withLock { state in
            guard state.completion != nil else { return false }
            state.course = Shared(course)
            state.site = site
            return true
        }
        guard isWanted else { return }
        if let timeout = site.timeout { setDeadline(timeout, site.clock) }
        advance(isOnWorkQueue: site.isOnWorkQueue) { $0.begin() }
    }

    /// Ends the landing at once; what is still under way is stopped.
    func fail(_ error: NetworkError) {
        complete(.failure(error))
    }

    func cancel() {
        fail(NetworkError(code: .cancelled))
    }

    /// Ends the landing; the first end counts.
    ///
    /// - Parameter isOnWorkQueue: whether the completion may be called by this call.
    func complete(_ result: Result<NetworkResponse, NetworkError>, isOnWorkQueue: Bool = false) {
        var old = State()
        state.withLock { state in
            guard !state.isStepping else {
                if state.ending == nil { state.ending = result }
                return
            }
            old.turn = state.turn + 1
            swap(&old, &state)
        }
        guard let completion = old.completion else { return }
        old.deadline?.cancel()
        old.stop?()
        let result = result.mapError { old.course?.value.annotate($0) ?? $0 }
        let end = LandingEnd(result: result, errand: old.errand, acceptedAnswer: old.course?.value.acceptedAnswer)
        if isOnWorkQueue { return completion(self, end) }
        WorkQueue.shared.async { completion(self, end) }
    }

    private func setDeadline(_ timeout: TimeInterval, _ clock: any NetworkClock) {
        let timer = clock.schedule(after: timeout) {
            self.fail(NetworkError(code: .timedOut, message: "all attempts together took \(timeout) seconds"))
        }
        let isOver = state.withLock { state in
            if state.completion != nil { state.deadline = timer }
            return state.completion == nil
        }
        if isOver { timer.cancel() }
    }

    // MARK: - Steps

    /// Tells the course what has happened, and does what comes next.
    ///
    /// - Parameter turn: the step that brings it; nil for the one that is under way.
    private func advance(
        turn: Int? = nil,
        isOnWorkQueue: Bool = false,
        _ change: (inout LandingCourse) -> LandingCourse.Step
    ) {
        // Out of the state it is nobody else's, so that it is changed in its place; it is large.
        var course: Shared<LandingCourse>?
        let begun = state.withLock { state -> (site: LandingSite, turn: Int, stop: (@Sendable () -> Void)?)? in
            guard turn ?? state.turn == state.turn, let site = state.site, state.course != nil else { return nil }
            swap(&course, &state.course)
            state.isStepping = true
            state.turn += 1
            return (site, state.turn, state.stop.take())
        }
        guard let begun, let step = course?.change(change) else { return }
        let ending = state.withLock { state in
            swap(&course, &state.course)
            state.isStepping = false
            return state.ending.take()
        }
        if let ending { return complete(ending, isOnWorkQueue: isOnWorkQueue) }
        perform(step, at: begun.site, begun.turn, isOnWorkQueue)
    }

    private func perform(_ step: LandingCourse.Step, at site: LandingSite, _ turn: Int, _ isOnWorkQueue: Bool) {
        switch step {
        case .send(let message): send(message, at: site, turn)
        case .look(let message, let key): look(message, key: key, at: site, turn, isOnWorkQueue)
        case .finish(let result): complete(result, isOnWorkQueue: isOnWorkQueue)
        case .adapt(let message):
            inTask(turn) { site, history in
                let result = await site.adapt(message, history)
                return { $0.adapted(result) }
            }
        case .land(let result):
            inTask(turn) { site, history in
                let decision = await site.land(result, history)
                let moment = site.moment
                return { $0.landed(decision, at: moment) }
            }
        case .decide(let redirect):
            inTask(turn) { site, _ in
                let decision = await site.redirects.decide?(redirect) ?? .follow
                let moment = site.moment
                return { $0.decided(decision, at: moment) }
            }
        case .retry(let delay, let cost):
            guard site.configuration.takeRetry(cost) else {
                return advance(turn: turn) { $0.isOutOfBudget(at: site.moment) }
            }
            advance(turn: turn) { $0.willRetry(after: delay) }
        case .wait(let delay): wait(delay, at: site, turn)
        case .authorize(let message, let stamp):
            authenticate(at: site, turn, { site.authorize(message, stamp, $0) }) { authorization, _ in
                { $0.authorized(authorization ?? .success((message, stamp))) }
            }
        case .review(let response, let message, let stamp):
            authenticate(at: site, turn, { site.review(response, message, stamp, $0) }) { authorization, moment in
                { $0.reviewed(authorization, at: moment) }
            }
        }
    }

    /// Keeps what stops the step; stops it at once if the step is over.
    private func holds(_ turn: Int, _ stop: @escaping @Sendable () -> Void) {
        let isUnderWay = state.withLock { state in
            if state.turn == turn { state.stop = stop }
            return state.turn == turn
        }
        if !isUnderWay { stop() }
    }

    private func inTask(
        _ turn: Int,
        _ work:
            @escaping @Sendable (LandingSite, [NetworkAttempt]) async -> (
                @Sendable (inout LandingCourse) -> LandingCourse.Step
            )
    ) {
        let (site, history) = state.withLock { ($0.site, $0.course?.value.history ?? []) }
        guard let site else { return }
        let task = Task {
            let change = await work(site, history)
            self.advance(turn: turn, change)
        }
        holds(turn) { task.cancel() }
    }

    /// Asks for a credential; waits for it without a slot if there is none yet.
    private func authenticate(
        at site: LandingSite,
        _ turn: Int,
        _ ask: (@escaping RequestAuthentication.Completion) -> RequestAuthentication.Step,
        _ next:
            @escaping @Sendable (LandingCourse.Authorization?, LandingCourse.Moment) -> (
                (inout LandingCourse) -> LandingCourse.Step
            )
    ) {
        let release = OneShot()
        let step = ask { authorization in
            // It may come before the slot has been given back.
            release.begin {
                self.goOn(turn, at: site) { self.advance(turn: turn, next(authorization, site.moment)) }
            }
        }
        switch step {
        case .send(let message, let stamp): advance(turn: turn, next(.success((message, stamp)), site.moment))
        case .accept: advance(turn: turn, next(nil, site.moment))
        case .fail(let error): advance(turn: turn, next(.failure(error), site.moment))
        case .hold(let hold):
            site.caller?.callWaits(self) { self.isAt(turn) }
            holds(turn, hold.cancel)
            release.end()
        }
    }

    /// Waits without a slot.
    private func wait(_ delay: TimeInterval, at site: LandingSite, _ turn: Int) {
        site.caller?.callWaits(self) { self.isAt(turn) }
        let timer = site.clock.schedule(after: delay) {
            self.goOn(turn, at: site) { self.advance(turn: turn) { $0.begin() } }
        }
        holds(turn) { timer.cancel() }
    }

    /// Goes on when there is a slot again.
    private func goOn(_ turn: Int, at site: LandingSite, _ action: @escaping @Sendable () -> Void) {
        guard let caller = site.caller else { return WorkQueue.shared.async(execute: action) }
        caller.callGoesOn(self, if: { self.isAt(turn) }, action)
    }

    /// Whether the step is still the one under way.
    private func isAt(_ turn: Int) -> Bool {
        state.withLock { $0.turn == turn }
    }

    // MARK: - The cache

    private func look(
        _ message: TransportRequest,
        key: String?,
        at site: LandingSite,
        _ turn: Int,
        _ isOnWorkQueue: Bool
    ) {
        site.look(message, key: key) { verdict in
            let goOn = { @Sendable in
                let moment = site.moment
                self.advance(turn: turn, isOnWorkQueue: isOnWorkQueue) { $0.looked(verdict, message, at: moment) }
            }
            switch verdict {
            case .answer(let answer):
                if let use = site.cache, let key {
                    self.leave(.answered(use, key: key, isRefreshed: answer.isRefreshed), turn)
                }
                goOn()
            case .answerAndSend(let answer):
                self.show(answer.response, at: site, turn, goOn)
            case .send(let miss, _), .refuse(let miss):
                site.caller?.operation.tellOfCacheMiss(miss)
                goOn()
            }
        }
    }

    /// Hands over an answer of the cache that the network's will follow, as interceptors leave it.
    private func show(
        _ response: NetworkResponse,
        at site: LandingSite,
        _ turn: Int,
        _ goOn: @escaping @Sendable () -> Void
    ) {
        let show = { @Sendable (response: NetworkResponse?) in
            // What is over calls nobody.
            if let response, self.isAt(turn) { self.cached?(response) }
            goOn()
        }
        guard !site.interceptors.isEmpty else { return WorkQueue.shared.async { show(response) } }
        let task = Task {
            let shown: NetworkResponse? =
                switch await site.land(.success(response), []) {
                case .proceed: response
                case .succeed(let other): other
                case .fail, .stop, .sendAgain: nil
                }
            WorkQueue.shared.async { show(shown) }
        }
        holds(turn) { task.cancel() }
    }

    private func leave(_ errand: CacheErrand?, _ turn: Int) {
        let old = state.withLock { state in
            guard state.turn == turn else { return CacheErrand?.none }
            defer { state.errand = errand }
            return state.errand
        }
        withExtendedLifetime(old) {}
    }

    // MARK: - The wire

    private func send(_ message: TransportRequest, at site: LandingSite, _ turn: Int) {
        let (key, candidate, asked) = state.withLock { state in
            state.assembly = ResponseAssembly(site.validation)
            let asked = site.cache == nil ? nil : state.course?.value.sent.headers
            return (state.course?.value.cacheKey, state.course?.value.candidate, asked)
        }
        let message = site.withCookies(message)
        if let sink = site.sink {
            let (message, intake) = sink.intake(for: message)
            let answer = AnswerIntake(intake, at: site, url: message.url)
            let exchange = site.configuration.settings.transport.start(message) { event in
                self.receive(event, into: answer, from: message, at: site, turn)
            }
            answer.valve.attach(exchange)
            return holds(turn) { exchange.cancel() }
        }
        if site.cache != nil {
            leave(site.deposit(message, asked: asked, key: key, candidate).map { .store($0) }, turn)
        }
        let exchange = site.configuration.settings.transport.start(message) { event in
            self.receive(event, from: message, at: site, turn)
        }
        holds(turn) { exchange.cancel() }
    }

    private func receive(
        _ event: TransportEvent,
        from message: TransportRequest,
        at site: LandingSite,
        _ turn: Int
    ) {
        if case .sent(let count) = event { return sent(count, at: site, turn) }
        let arrival = state.withLock { state -> Arrival? in
            // What comes after the step is over is not gathered.
            guard state.turn == turn, let result = state.assembly?.receive(event, from: message.url) else { return nil }
            state.assembly = nil
            // An exchange that is not even known yet is stopped when it is.
            state.turn += 1
            return Arrival(
                result: result,
                turn: state.turn,
                candidate: state.course?.value.candidate,
                stop: state.stop.take()
            )
        }
        guard let arrival else { return }
        if case .end = event {} else { arrival.stop?() }
        WorkQueue.shared.async {
            site.keepCookies(of: arrival.result, from: message.url)
            let result = arrival.result.map { response in
                let confirmed = arrival.candidate?.confirmed(by: response, at: site.clock.date)
                return site.prepared(confirmed ?? response, message.method)
            }
            let verdict = (try? result.get()).flatMap { site.validation.error(for: $0) }
            let moment = site.moment
            self.advance(turn: arrival.turn, isOnWorkQueue: true) {
                $0.received(result, verdict: verdict, at: moment)
            }
        }
    }

    /// Goes on when the answer of the exchange is where it is to be.
    private func receive(
        _ event: TransportEvent,
        into answer: AnswerIntake,
        from message: TransportRequest,
        at site: LandingSite,
        _ turn: Int
    ) {
        if case .sent(let count) = event { return sent(count, at: site, turn) }
        let ending = state.withLock { $0.turn == turn } ? answer.receive(event) : nil
        guard let ending else {
            // Of a landing that is over, or of an answer that was enough before its end.
            if case .end = event { answer.abandon() }
            // At the end, which may be far, or break off, they would be late.
            if case .head(let head) = event, answer.hasTaken {
                WorkQueue.shared.async { site.keepCookies(head.headers, from: message.url) }
            }
            return
        }
        let next = state.withLock { state -> (turn: Int, stop: (@Sendable () -> Void)?) in
            guard state.turn == turn else { return (turn, nil) }
            state.turn += 1
            return (state.turn, state.stop.take())
        }
        if case .end = event {} else { next.stop?() }
        let result = ending.result
        answer.intake.end(result.failure) { outcome in
            WorkQueue.shared.async {
                if !answer.hasTaken { site.keepCookies(of: result, from: message.url) }
                let result = result.map { site.prepared($0, message.method) }
                let moment = site.moment
                self.advance(turn: next.turn, isOnWorkQueue: true) { course in
                    switch ending {
                    case .again(let response): course.startOver(response)
                    case .taken: course.received(result, verdict: nil, body: outcome, at: moment)
                    case .result:
                        course.received(
                            result,
                            verdict: (try? result.get()).flatMap { site.validation.error(for: $0) },
                            body: outcome,
                            at: moment
                        )
                    }
                }
            }
        }
    }

    private func sent(_ count: Int, at site: LandingSite, _ turn: Int) {
        guard let operation = site.caller?.operation, state.withLock({ $0.turn == turn }) else { return }
        operation.didSend(count)
    }

    /// What an exchange has come to.
    private struct Arrival {
        let result: Result<NetworkResponse, NetworkError>
        /// Of the step that begins with it.
        let turn: Int
        /// The entry of the cache that it may confirm.
        let candidate: CacheCandidate?
        /// Stops the exchange, if that is known already.
        let stop: (@Sendable () -> Void)?
    }
}

/// How a landing has ended.
struct LandingEnd: Sendable {
    let result: Result<NetworkResponse, NetworkError>
    /// What is left to do for the cache.
    let errand: CacheErrand?
    /// The last answer of the network as it came, if it was accepted.
    let acceptedAnswer: NetworkResponse?
}
