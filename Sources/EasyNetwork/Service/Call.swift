import Foundation

/// One request on its way to its one end.
///
/// ``start(_:)`` begins a task, which gets the response, makes the item, and ends the call. ``fail(_:)`` ends it from
/// outside, at once, whatever the task does. The way through the task is ``Attempts``.
final class Call: Sendable {
    /// Called exactly once, on ``WorkQueue``.
    ///
    /// - Parameters:
    ///   - response: the response, if there is one, even when it could not be mapped.
    ///   - keep: stores the response in the cache, to be called when the user's callbacks have returned; nil when there
    ///     is nothing to store.
    typealias Completion =
        @Sendable (
            _ response: NetworkResponse?, _ result: Result<any Sendable, NetworkError>, _ keep: (@Sendable () -> Void)?
        ) -> Void

    /// Called on the transport's thread with the bytes that a message and its response have moved, and the length of
    /// their bodies together, nil while that is not known.
    typealias Watcher = @Sendable (_ counts: BodyStream.Counts, _ total: Int64?) -> Void

    /// The message under way.
    private struct Message {
        let method: NetworkService.Method
        let body: TransportBody
        let response: BodyStream

        func tell(_ watcher: @escaping Watcher) {
            // A body without length because it cannot be read ends the message.
            let length = (try? body.length()).map(Int64.init)
            response.watch { [method] counts in
                let responseLength = counts.head?.bodyLength(answering: method)
                watcher(counts, length.flatMap { length in responseLength.map { length + $0 } })
            }
        }
    }

    private struct State {
        /// Nil when the call has ended.
        var completion: Completion?
        var task: Task<Void, Never>?
        var deadline: (any ClockTimer)?
        /// The messages sent so far.
        var history: [NetworkAttempt] = []
        var number: UInt64?
        var message: Message?
        var watcher: Watcher?
    }

    private static let lastNumber = Locked<UInt64>(0)

    let request: CallRequest
    /// The calls that it is one of.
    let group: CallGroup
    /// The job that makes the call; nil without one.
    let job: (any CallOwner)?
    /// The span of the job, or of the call itself if it has none; nil without traces.
    let trace: TraceSpan?
    /// The listeners of the job's queue, or of the queue that needs the refresh which makes the call.
    private let queueBroadcast: EventBroadcast?

    private let state: Locked<State>

    init(_ request: CallRequest, in group: CallGroup, _ completion: @escaping Completion) {
        (self.request, self.group) = (request, group)
        let job = group.caller
        self.job = job
        queueBroadcast = job?.broadcast ?? group.broadcast
        trace =
            TraceContext.isUsed.isSet ? job?.joinTrace() ?? TraceSpan(in: TraceContext.current ?? TraceContext()) : nil
        state = Locked(State(completion: completion))
    }

    var host: HostConfiguration { group.host }

    /// The number of the call in this process, given when it is first asked for.
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

    /// Adds the call to its groups and begins its task, or fails when a group has been cancelled.
    ///
    /// - Parameter created: called before the call begins.
    func start(_ created: (Call) -> Void = { _ in }) {
        if request.isAnnounced { host.postStart(of: request.request) }
        let (refusal, mayLackSlot) = group.enter(self)
        host.tell(.callStarted, of: self, job)
        created(self)
        if let refusal {
            fail(refusal)
            return group.leave(self)
        }
        guard let job else { return begin(after: nil, mayLackSlot: false) }
        job.beginCall { begin(after: $0, mayLackSlot: mayLackSlot) }
    }

    private func begin(after beginning: Promise<Void>?, mayLackSlot: Bool) {
        // Under the lock, so that the task is cancelled when an end from outside returns.
        let hasBegun = state.withLock { state in
            guard state.completion != nil else { return false }
            state.task = WorkQueue.task {
                if let beginning { await beginning.wait() }
                if mayLackSlot { await self.job?.waitForSlot(self) }
                await self.run()
            }
            return true
        }
        // `fail` can end a call before `enter` has added it to all groups.
        if !hasBegun { group.leave(self) }
    }

    /// The task: from the request to the item, or until the call is ended from outside.
    private func run() async {
        var (order, show, snapshot) = (request.order, request.show, request.snapshot)
        var conclusion: Conclusion
        var item: Result<any Sendable, NetworkError>
        var hasLeftSlot = false
        repeat {
            if hasLeftSlot { await job?.returnToSlot(self) }
            guard !Task.isCancelled else { return }
            if let sharedResponse = request.sharedResponse {
                conclusion = await sharedResponse()
            } else if let trace, TraceContext.current != trace.context {
                conclusion = await TraceContext.$current.withValue(trace.context) {
                    await conclude(order, show, &snapshot)
                }
            } else {
                conclusion = await conclude(order, show, &snapshot)
            }
            item = conclusion.result.flatMap { $0.item(request.map) }
            hasLeftSlot = false
            if let makeItem = request.makeItem, case .success(let response) = conclusion.result {
                hasLeftSlot = true
                item = await self.item(of: response, makeItem)
            }
            // When a stored response can no longer be read, the request is sent.
            (order, show) = (.pass(.unreadable), nil)
        } while !Task.isCancelled && conclusion.removeUnusable(after: item.failure)
        end(conclusion, item, snapshot)
    }

    /// The task has its item or its error. It is not inlined, so that a call which waits does not hold its frame.
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
            // The policy of the cache and the request may be asked.
            keep = { [conclusion, snapshot] in WorkQueue.userCode { self.keep(conclusion, snapshot) } }
        }
        var response = conclusion.takeResponse()
        // This is the only reference here, so that it is not copied.
        if !request.keepsBody, !(request.isAnnounced && host.settings.postsNotifications) { response?.dropBody() }
        WorkQueue.finish { [response, item, keep] in self.complete(response, item, keep, completion) }
    }

    /// Makes the item without the slot.
    @inline(never)
    private func item(
        of response: NetworkResponse,
        _ makeItem: @Sendable (NetworkResponse) async throws -> any Sendable
    ) async -> Result<any Sendable, NetworkError> {
        endDeadline()
        job?.leaveSlot(self)
        do {
            return .success(try await makeItem(response))
        } catch {
            return .failure(response.mappingError(error))
        }
    }

    /// Reads the request and sends it.
    ///
    /// - Parameter snapshot: the request as it was read, or is read here.
    @inline(never)
    private func conclude(
        _ order: CacheLookup.Order,
        _ show: (@Sendable (NetworkResponse) -> Void)?,
        _ snapshot: inout RequestSnapshot?
    ) async -> Conclusion {
        do throws(NetworkError) {
            let read = if let snapshot { snapshot } else { try request.read(for: host) }
            snapshot = read
            if let timeout = read.overallTimeout { setDeadline(timeout) }
            var attempts = Attempts(self, read, order, show)
            return await attempts.run()
        } catch {
            return Conclusion(result: .failure(error))
        }
    }

    private func complete(
        _ response: NetworkResponse?,
        _ result: Result<any Sendable, NetworkError>,
        _ keep: (@Sendable () -> Void)?,
        _ completion: Completion
    ) {
        if request.isTold { host.tell(.callEnded(result.failure), of: self, job) }
        if request.isAnnounced { host.postEnd(of: request.request, response, result.failure) }
        var response = response
        if !request.keepsBody { response?.dropBody() }
        completion(response, result, keep)
    }

    /// Ends the call from outside; later results of its task are ignored.
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

    /// Ends a call that was entered into its group and has not been started: it only stands for a wait.
    ///
    /// - Returns: false when it has been ended from outside.
    func end() -> Bool { close() != nil }

    /// Takes the end of the call, which the first one gets.
    ///
    /// - Returns: what the call had, which is released outside the lock; nil when it has ended.
    private func close() -> State? {
        var old = State()
        let isFirst = state.withLock { state in
            guard state.completion != nil else { return false }
            (old.number, old.history) = (state.number, state.history)
            swap(&state, &old)
            return true
        }
        guard isFirst else { return nil }
        old.deadline?.cancel()
        return old
    }

    // MARK: - The deadline

    /// Limits the time of the whole call, in seconds.
    private func setDeadline(_ timeout: TimeInterval) {
        let timer = host.settings.clock.schedule(after: timeout) { [weak self] in
            self?.fail(NetworkError(code: .timedOut, message: "all attempts together took \(timeout) seconds"))
        }
        // A second round of attempts has the deadline of the first, unless that has ended.
        let isWanted = state.withLock { state in
            guard state.completion != nil, state.deadline == nil else { return false }
            state.deadline = timer
            return true
        }
        if !isWanted { timer.cancel() }
    }

    /// Ends the time of the call: its last byte has come.
    private func endDeadline() {
        state.withLock { $0.deadline.take() }?.cancel()
    }

    // MARK: - Events

    /// Whether anything listens to the host, or to the queue of the job.
    var isHeard: Bool { host.broadcast.isHeard || queueBroadcast?.isHeard == true }

    /// The first bytes that a listener wants of a body that is used while it comes; 0 when none does.
    var wantedBodyCount: Int {
        isHeard ? max(host.broadcast.wantedBodyCount, queueBroadcast?.wantedBodyCount ?? 0) : 0
    }

    /// Tells the listeners of the job's queue and of the host, if there are any.
    func tell(_ kind: @autoclosure () -> NetworkEvent.Kind) {
        guard isHeard else { return }
        let kind = kind()
        var told = job?.tell(kind, callNumber: number) ?? []
        if job == nil, let queueBroadcast, queueBroadcast.isHeard {
            // Without a job, as several may wait for the refresh.
            told = queueBroadcast.post(NetworkEvent(kind, callNumber: number, host: host.host, trace: trace))
        }
        host.tell(kind, of: self, job, except: told)
    }

    /// The service for the messages of a refresh, whose events the queue of this call's job hears.
    var refreshService: EasyNetworkService { EasyNetworkService(CallGroup(host, heardBy: queueBroadcast)) }

    // MARK: - Messages

    /// Records the message that is sent next.
    ///
    /// - Parameter response: is started afterwards, and cancelled when the call is ended from outside.
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

    /// Records the end of the message sent last.
    ///
    /// - Returns: the messages sent so far.
    func noteEnd(_ change: (inout NetworkAttempt) -> Void) -> [NetworkAttempt] {
        state.withLock { state in
            change(&state.history[state.history.count - 1])
            return state.history
        }
    }

    /// Tells of the bytes of the message under way, and of each later one.
    func watch(_ watcher: @escaping Watcher) {
        let (message, old) = state.withLock { ($0.message, exchange(&$0.watcher, with: watcher)) }
        withExtendedLifetime(old) {}
        message?.tell(watcher)
    }

    /// The received part of the response under way; nil before the first message and after the end.
    var unreadResponse: BodyStream.Collected? { state.withLock { $0.message }?.response.unread }
}
