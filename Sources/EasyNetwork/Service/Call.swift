import Foundation

/// One request, from its start to its single end.
///
/// ``start(_:)`` begins a task, which gets the response, makes the item, and ends the call. ``fail(_:)`` ends the call
/// from outside, at once, whatever the task is doing. ``Attempts`` are the steps of the task.
final class Call: Sendable {
    /// Called exactly once, on ``WorkQueue``.
    ///
    /// - Parameters:
    ///   - response: The response, if there is one, even if it could not be mapped.
    ///   - keep: Stores the response in the cache. Call it when the user's callbacks have returned. Nil if there is
    ///     nothing to store.
    typealias Completion =
        @Sendable (
            _ response: NetworkResponse?, _ result: Result<any Sendable, NetworkError>, _ keep: (@Sendable () -> Void)?
        ) -> Void

    /// Called on the transport's thread with the bytes that a message and its response have transferred, and the total
    /// length of their bodies, which is nil while it is unknown.
    typealias Watcher = @Sendable (_ counts: BodyStream.Counts, _ total: Int64?) -> Void

    /// The message that is being sent, or whose response is arriving.
    private struct Message {
        let method: NetworkService.Method
        let body: TransportBody
        let response: BodyStream

        func tell(_ watcher: @escaping Watcher) {
            // If the body's length is unknown because the body cannot be read, the message fails anyway.
            let length = (try? body.length()).map(Int64.init)
            response.watch { [method] counts in
                let responseLength = counts.head?.bodyLength(answering: method)
                watcher(counts, length.flatMap { length in responseLength.map { length + $0 } })
            }
        }
    }

    private struct State {
        /// Nil after the call has ended.
        var completion: Completion?
        var task: Task<Void, Never>?
        var deadline: (any ClockTimer)?
        var history: [NetworkAttempt] = []
        var number: UInt64?
        var message: Message?
        var watcher: Watcher?
    }

    private static let lastNumber = Locked<UInt64>(0)

    let request: CallRequest
    /// The group that the call belongs to.
    let group: CallGroup
    let host: HostConfiguration
    /// The job that makes the call; nil if there is none.
    let job: JobContext?
    /// The span of the job, or of the call itself if it has no job; nil without traces.
    let trace: TraceSpan?
    /// The listeners of the job's queue. For a call that a credential refresh makes, the listeners of the queue that
    /// needs the refresh.
    private let queueBroadcast: EventBroadcast?

    private let state: Locked<State>

    init(_ request: consuming CallRequest, in group: CallGroup, _ completion: @escaping Completion) {
        self.request = request
        (self.group, host) = (group, group.host)
        let job = group.job
        self.job = job
        queueBroadcast = job?.broadcast ?? group.broadcast
        let isTraced = TraceContext.isUsed.isSet
        trace = isTraced ? job?.actions.trace() ?? TraceSpan(in: TraceContext.current ?? TraceContext()) : nil
        state = Locked(State(completion: completion))
    }

    /// The number of the call in this process, assigned when it is first read.
    var number: UInt64 {
        state.withLock { state in
            if let number = state.number { return number }
            let number = Self.lastNumber.withLock { last in
                last += 1
                return last
            }
            state.number = number
            return number
        }
    }

    /// Whether the call has ended, by itself or from outside.
    var isOver: Bool { state.withLock { $0.completion == nil } }

    /// The messages sent so far.
    var history: [NetworkAttempt] { state.withLock { $0.history } }

    // MARK: - From the beginning to the end

    /// Adds the call to its groups and begins its task, or fails if a group has been cancelled.
    ///
    /// - Parameter created: Called before the call begins.
    func start(_ created: (Call) -> Void = { _ in }) {
        if request.isAnnounced, host.settings.postsNotifications { host.postStart(of: request.request) }
        let (refusal, mayLackSlot) = group.enter(self)
        host.tell(.callStarted, of: self)
        created(self)
        if let refusal {
            fail(refusal)
            return group.leave(self)
        }
        let delay = job?.actions.delay?()
        guard let job, !job.refreshedSessions.isEmpty else { return begin(after: delay, mayLackSlot: mayLackSlot) }
        RequestAuthentication.$refreshing.withValue(job.refreshedSessions) {
            begin(after: delay, mayLackSlot: mayLackSlot)
        }
    }

    private func begin(after beginning: Promise<Void>?, mayLackSlot: Bool) {
        // The task is stored under the lock, so that it is cancelled when `fail` returns.
        let hasBegun = state.withLock { state in
            guard state.completion != nil else { return false }
            state.task = WorkQueue.task {
                if let beginning { await beginning.wait() }
                if mayLackSlot { await self.job?.waitForSlot(self) }
                await self.run()
            }
            return true
        }
        // `fail` can end a call before `enter` has added it to all groups, so remove it again.
        if !hasBegun { group.leave(self) }
    }

    /// Runs the task, from the request to the item, or until the call is ended from outside.
    private func run() async {
        var (order, snapshot) = (request.order, request.snapshot)
        var conclusion: Conclusion
        var item: Result<any Sendable, NetworkError>
        var hasLeftSlot = false
        while true {
            if hasLeftSlot { await job?.returnToSlot(self) }
            guard !Task.isCancelled else { return }
            if let sharedResponse = request.sharedResponse {
                conclusion = await sharedResponse()
            } else {
                do throws(NetworkError) {
                    let attempts = try attempts(order, &snapshot)
                    conclusion = await trace == nil ? attempts.run() : traced(attempts)
                } catch {
                    conclusion = Conclusion(result: .failure(error))
                }
            }
            item = mapped(conclusion)
            hasLeftSlot = false
            if let makeItem = request.makeItem, case .success(let response) = conclusion.result {
                hasLeftSlot = true
                item = await self.item(of: response, makeItem)
            }
            guard !Task.isCancelled, conclusion.removeUnusable(after: item.failure) else { break }
            // A stored response can no longer be read, so the request is sent.
            order = .pass(.unreadable)
        }
        end(consume conclusion, item, snapshot)
    }

    /// Makes the item. Not inlined, so that a waiting call does not hold its frame.
    @inline(never)
    private func mapped(_ conclusion: Conclusion) -> Result<any Sendable, NetworkError> {
        conclusion.result.flatMap { request.item(of: $0) }
    }

    /// Ends the call with the item or the error of its task. Not inlined, so that a waiting call does not hold its
    /// frame.
    @inline(never)
    private func end(
        _ conclusion: consuming Conclusion,
        _ item: Result<any Sendable, NetworkError>,
        _ snapshot: RequestSnapshot?
    ) {
        guard let completion = close()?.completion else { return }
        group.leave(self)
        host.invalidateStored(after: conclusion.result)
        var keep: (@Sendable () -> Void)?
        if case .success = item, conclusion.pendingStore != nil {
            // `keep` can call the cache policy's closures and the request, which are user code.
            keep = { [conclusion, snapshot] in WorkQueue.userCode { self.keep(conclusion, snapshot) } }
        }
        var response = conclusion.takeResponse()
        // No other reference to the response exists here, so dropping the body does not copy it.
        if !request.keepsBody, !(request.isAnnounced && host.settings.postsNotifications) { response?.dropBody() }
        // A closure that is called in place needs no memory.
        if !WorkQueue.finish({ complete(response, item, keep, completion) }) {
            WorkQueue.shared.add { [response, item, keep] in self.complete(response, item, keep, completion) }
        }
    }

    /// Makes the item while the job does not hold its slot.
    @inline(never)
    private func item(
        of response: NetworkResponse,
        _ makeItem: @Sendable (NetworkResponse) async throws -> any Sendable
    ) async -> Result<any Sendable, NetworkError> {
        // The last byte has arrived.
        state.withLock { $0.deadline.take() }?.cancel()
        job?.leaveSlot(self)
        do {
            return .success(try await makeItem(response))
        } catch {
            return .failure(response.mappingError(error))
        }
    }

    /// Reads the request, and begins its deadline. Not inlined, so that a waiting call does not hold its frame.
    ///
    /// - Parameter snapshot: The request as it was read earlier. If it is nil, the request is read here.
    @inline(never)
    private func attempts(
        _ order: CacheLookup.Order,
        _ snapshot: inout RequestSnapshot?
    ) throws(NetworkError) -> Attempts {
        let read = if let snapshot { snapshot } else { try request.read(for: host) }
        snapshot = read
        if let timeout = read.overallTimeout { setDeadline(timeout) }
        return Attempts(self, read, order)
    }

    /// Runs the attempts with the call's trace. Not inlined, because few calls are traced.
    @inline(never)
    private func traced(_ attempts: Attempts) async -> Conclusion {
        guard let trace, TraceContext.current != trace.context else { return await attempts.run() }
        return await TraceContext.$current.withValue(trace.context) { await attempts.run() }
    }

    private func complete(
        _ response: NetworkResponse?,
        _ result: Result<any Sendable, NetworkError>,
        _ keep: (@Sendable () -> Void)?,
        _ completion: Completion
    ) {
        if request.isTold { host.tell(.callEnded(result.failure), of: self) }
        if request.isAnnounced { host.postEnd(of: request.request, response, result.failure) }
        var response = response
        if !request.keepsBody { response?.dropBody() }
        completion(response, result, keep)
    }

    /// Ends the call from outside. Later results of its task are ignored.
    func fail(_ error: NetworkError) {
        guard let old = close(), let completion = old.completion else { return }
        old.task?.cancel()
        old.message?.response.cancel()
        var error = error
        if !old.history.isEmpty { error.adopt(old.history) }
        WorkQueue.shared.add { [error] in
            self.group.leave(self)
            self.host.invalidateStored(after: .failure(error))
            self.complete(nil, .failure(error), nil, completion)
        }
    }

    func cancel() {
        fail(NetworkError(code: .cancelled))
    }

    /// Ends a call that was entered into its group but never started, because it only represents a wait.
    ///
    /// - Returns: False if the call has been ended from outside.
    func end() -> Bool { close() != nil }

    /// Claims the end of the call. Only the first caller gets it.
    ///
    /// - Returns: The state of the call, to be released outside the lock; nil if the call has already ended.
    private func close() -> State? {
        let old = state.withLock { state -> State? in
            guard state.completion != nil else { return nil }
            return exchange(&state, with: State(history: state.history, number: state.number))
        }
        old?.deadline?.cancel()
        return old
    }

    // MARK: - The deadline

    /// Limits the duration of the whole call, in seconds.
    private func setDeadline(_ timeout: TimeInterval) {
        let timer = host.settings.clock.schedule(after: timeout) { [weak self] in
            self?.fail(NetworkError(code: .timedOut, message: "all attempts together took \(timeout) seconds"))
        }
        // A second round of attempts keeps the deadline of the first round, unless that deadline has ended.
        let isWanted = state.withLock { state in
            guard state.completion != nil, state.deadline == nil else { return false }
            state.deadline = timer
            return true
        }
        if !isWanted { timer.cancel() }
    }

    // MARK: - Events

    /// Whether the host, or the queue of the job, has listeners.
    var hasListeners: Bool { host.broadcast.hasListeners.isSet || queueBroadcast?.hasListeners.isSet == true }

    /// The number of first bytes that listeners want of a body that is consumed as it arrives; 0 if no listener wants
    /// any.
    var wantedBodyCount: Int {
        hasListeners ? max(host.broadcast.wantedBodyCount, queueBroadcast?.wantedBodyCount ?? 0) : 0
    }

    /// Posts an event to the listeners of the job's queue and of the host, if there are any.
    func tell(_ kind: @autoclosure () -> NetworkEvent.Kind) {
        guard hasListeners else { return }
        let kind = kind()
        var told = job?.actions.tell(kind, number) ?? []
        if job == nil, let queueBroadcast, queueBroadcast.hasListeners.isSet {
            // Several jobs can wait for the refresh, so the event names no job.
            told = queueBroadcast.post(NetworkEvent(kind, callNumber: number, host: host.host, trace: trace))
        }
        host.tell(kind, of: self, except: told)
    }

    /// Returns the service for the messages of a refresh. Their events are posted to the queue of this call's job.
    func refreshService() -> EasyNetworkService { EasyNetworkService(CallGroup(host, broadcast: queueBroadcast)) }

    // MARK: - Messages

    /// Records the message that is sent next.
    ///
    /// - Parameter response: The response, which is started afterwards, and cancelled when the call is ended from
    ///   outside.
    func noteStart(_ attempt: NetworkAttempt, _ message: TransportRequest, _ response: BodyStream) {
        let next = Message(method: message.method, body: message.body, response: response)
        let (isOver, old, watcher) = state.withLock { state in
            state.history.append(attempt)
            return (state.completion == nil, exchange(&state.message, with: next), state.watcher)
        }
        withExtendedLifetime(old) {}
        if isOver { response.cancel() }
        if let watcher { next.tell(watcher) }
    }

    /// Records the end of the message that was sent last.
    ///
    /// - Returns: The messages sent so far.
    func noteEnd(_ change: (inout NetworkAttempt) -> Void) -> [NetworkAttempt] {
        state.withLock { state in
            change(&state.history[state.history.count - 1])
            return state.history
        }
    }

    /// Reports the transferred bytes of the current message, and of each later one.
    func watch(_ watcher: @escaping Watcher) {
        let (message, old) = state.withLock { ($0.message, exchange(&$0.watcher, with: watcher)) }
        withExtendedLifetime(old) {}
        message?.tell(watcher)
    }

    /// The received part of the current response; nil before the first message and after the end of the call.
    var unreadResponse: BodyStream.Collected? { state.withLock { $0.message }?.response.unread }
}
