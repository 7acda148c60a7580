import Foundation

/// An asynchronous job: an `Operation` that begins in ``execute()`` and ends when ``finish(_:)`` is called.
///
/// ```swift
/// final class Pause: NetworkOperation, @unchecked Sendable {
///     override func execute() {
///         DispatchQueue.global().asyncAfter(deadline: .now() + 1) { self.finish() }
///     }
/// }
/// ```
///
/// Add it to a ``NetworkQueue``, or to any `OperationQueue`. It ends exactly once, with success or with one
/// ``NetworkError``, which dependents may read as ``error``; a later ending is ignored. Its callbacks have run before
/// its dependents start.
///
/// `cancel()` ends it: before its start, ``execute()`` is never called; later, the operation ends at once with
/// ``NetworkError/Code/cancelled``, and a later ``finish(_:)`` has no effect. Override `cancel()` (and call `super`) to
/// stop the work itself.
///
/// All members may be used from any thread.
open class NetworkOperation: Operation, @unchecked Sendable {
    // Sendable because all mutable state is in `core`, behind its lock; subclasses answer for their own state.
    struct State {
        var lifecycle = OperationLifecycle()
        var dependencies: [OperationDependency] = []
        var readiness = OperationReadiness()
        var finishActions: [@Sendable () -> Void] = []
        /// Whether the operation has finished and its queue has removed it.
        var isConcluded = false
        /// Whether its queue starts it only to end it: a dependency has failed, or it has its outcome.
        var isStartedToEnd = false
        /// The tasks that wait for the end and were not cancelled. It stands where it needs no room of its own.
        var waitingTaskCount: UInt32 = 0
        var completion: (@Sendable () -> Void)?
        var scheduling: Scheduling?
        var options: OperationOptions?
        var waiters = Waiters()

        /// See ``NetworkOperation/isTaken``.
        var isTaken: Bool { scheduling != nil || readiness.isWatching || lifecycle.phase != .waiting }
    }

    let core = Locked(State())

    public override init() {
        super.init()
        if TraceContext.isUsed.isSet, let current = TraceContext.current { setTraceOrigin(current) }
    }

    deinit {
        OperationDependency.releaseInTurn(core.withLock { $0.dependencies.take() })
    }

    // MARK: - The work

    /// Does the work. Override this, and call ``NetworkOperation/finish(_:)`` once when all is done, from any thread.
    ///
    /// Called on a background thread. It may block there, as other work goes to other threads, but better waits in a
    /// `Task` or on a queue of its own: Dispatch on Linux adds one thread a second at most, so when as many threads are
    /// blocked as there are processors, other work begins late. On Apple's platforms all concurrent queues of a process
    /// have some 64 threads together: when as many are blocked, nothing goes on.
    ///
    /// Not called when the operation was cancelled before or a dependency failed. The implementation here does nothing,
    /// for subclasses that override `start()` instead; an operation that overrides neither ends with
    /// ``NetworkError/Code/invalidRequest``.
    open func execute() {
        if type(of: self) == NetworkOperation.self {
            finish(NetworkError(code: .invalidRequest, message: "a NetworkOperation needs its execute() overridden"))
        }
    }

    /// Ends the operation.
    ///
    /// The first call counts, later ones are ignored. Called before the operation was started, it takes effect at the
    /// start, without ``execute()``.
    ///
    /// - Parameter error: the failure; nil, the default, for success, or in a ``ServiceOperation`` for the outcome of
    ///   its last call.
    public final func finish(_ error: NetworkError? = nil) {
        if let error { end(error) } else { finishWithResult(recovering: false) }
    }

    /// Ends the operation with success, or with the error of a missing result.
    ///
    /// - Parameter recovering: whether the failure of a call does not count.
    final func finishWithResult(recovering: Bool) {
        guard let missing = missingResultError(recovering: recovering) else { return end(nil) }
        if missing.code == .cancelled { endCancelled() } else { end(missing) }
    }

    /// Ends the operation without asking for a missing result.
    ///
    /// - Parameter inPlace: whether this is the last piece of the package's work on this thread of the ``WorkQueue``, so
    ///   that the callbacks may run on it. Defaults to `false`.
    final func end(_ error: NetworkError?, inPlace: Bool = false) {
        let (wins, action) = core.withLock { $0.lifecycle.end(error.map { .failure($0) } ?? .success) }
        if wins { proceed(with: action, inPlace: inPlace) }
    }

    /// The error of the operation; nil before the end and after success.
    public final var error: NetworkError? {
        core.withLock { $0.lifecycle.error }
    }

    /// The host that the operation calls, for limits and cancellation by host: as in its URL, with the port if that
    /// names one. Read once, when the operation is added to a queue. Default nil: none, or not known yet.
    open var host: String? { nil }

    // MARK: - For subclasses in this package

    /// Stops the work, and refuses later calls.
    ///
    /// Called without a lock, on the thread that cancels or the queue's, possibly twice.
    func stop() {}

    /// Releases the callbacks without calling them. The work goes on.
    func detach() {}

    /// The outcome is known: ends what is left of the work. Called once, without a lock.
    ///
    /// - Parameter error: the operation's own.
    /// - Returns: what the callbacks wait for.
    func endWork(after error: NetworkError?) -> [Promise<Void>] { [] }

    /// Runs the callbacks, then calls `done`, on any thread. Called once, without a lock.
    ///
    /// - Parameters:
    ///   - error: the operation's own.
    ///   - inPlace: see ``end(_:inPlace:)``.
    func callBack(_ error: NetworkError?, inPlace: Bool, _ done: @escaping @Sendable () -> Void) {
        done()
    }

    /// The host whose settings hold for its callbacks and its network; nil for an operation that makes no calls.
    var client: HostConfiguration? { nil }

    /// The queue of the callbacks.
    final var deliveryQueue: DispatchQueue { chosenCallbackQueue ?? client?.deliveryQueue ?? WorkQueue.shared }

    /// The traits of its kind. They do not change, but for ``setMayYield(_:)``.
    var traits: JobTraits { JobTraits() }

    /// The slot was given to an urgent job, so that nothing more is to move, or there is one again. Called without the
    /// queue's lock; the two may come in any order. Only for ``JobTraits/mayYield``.
    func noteSlot(isThere: Bool) {}

    /// What becomes of it beside others like it. Asked without a lock when it is added, and when it has been prepared.
    ///
    /// - Returns: whether it only waits for another job that does its work; and work for the time when a queue has taken
    ///   it in and does not start it yet, nil when there is none.
    func repeatRole(_ own: RepeatSetting) -> (joinsAnother: Bool, workWhenAdded: (() -> Void)?) { (false, nil) }

    /// Finds out its host and priority. Called once, after its dependencies have ended and before it has a slot.
    func prepare() {}

    /// The operation's own progress, for the group that it is added to, which completes it when the operation has
    /// finished. Only the first group gets it; nil, the default, when there is none.
    func claimProgress() -> OrderedProgress? { nil }

    /// Its request for ``description``, without secrets; nil when there is none, or none any more.
    var requestText: String? { nil }

    /// Calls `action` once, when the operation has finished; at once, on this thread, if it already has.
    package func whenFinished(_ action: @escaping @Sendable () -> Void) {
        let isConcluded = core.withLock { state in
            if !state.isConcluded { state.finishActions.append(action) }
            return state.isConcluded
        }
        if isConcluded { action() }
    }

    /// Called once, without a lock, when the operation has been started, before its work.
    func didStart() {}

    /// Called once, without a lock, when the operation has finished, before it leaves its queue for good.
    ///
    /// - Parameter callbackQueue: the queue that was given to the operation, or to its queue.
    func willLeaveQueue(callbackQueue: DispatchQueue?) {}

    /// The error of an end that has neither an error nor a result.
    ///
    /// - Parameter recovering: whether the failure of a call does not count.
    func missingResultError(recovering: Bool) -> NetworkError? {
        nil
    }

    // MARK: - Operation

    /// Type, name, request and state, without the secrets that ``Redaction`` recognizes: what `print` and the debugger
    /// show.
    ///
    /// ```swift
    /// print(profile)   // RequestOperation<GetProfile> 'profile' (GET https://api.example.com/me): waits for 'sign-in'
    /// ```
    open override var description: String { summary }

    /// The ``description``.
    open override var debugDescription: String { description }

    /// Called by the queue. A subclass that overrides it calls `super.start()` first.
    open override func start() {
        announce { willChangeValue(forKey: "isExecuting") }
        typealias Start = (isToEnd: Bool, [OperationDependency], [OperationCondition], [OperationAccessory])
        let begun = core.withLock { state -> Start? in
            guard state.lifecycle.start() else { return nil }
            let conditions = state.options?.conditions.take() ?? []
            let accessories = state.options?.accessories ?? []
            if !conditions.isEmpty || !accessories.isEmpty { state.options?.heldCalls = [] }
            return (state.isStartedToEnd, state.dependencies, conditions, accessories)
        }
        if begun != nil { didStart() }
        announce { didChangeValue(forKey: "isExecuting") }
        guard let (isToEnd, dependencies, conditions, accessories) = begun else { return }
        var obstacle = dependencies.lazy.compactMap(\.failure).first
        // The operation has no slot, so it must end: the queue knew of the failure before the dependency was removed.
        if isToEnd, obstacle == nil {
            obstacle = NetworkError(code: .dependencyFailed, message: "a dependency had failed before it was removed")
        }
        guard !accessories.isEmpty, obstacle == nil, !hasOutcome else { return begin(obstacle, conditions) }
        tellAccessories(accessories, { $0.willStart }) {
            // Work does not belong on the callback queue.
            WorkQueue.shared.add { self.begin(nil, conditions) }
        }
    }

    /// Starts the operation for a ``NetworkQueue``, on a thread of the ``WorkQueue``.
    final func startOnWorkQueue() {
        guard traits.startRunsUserCode else { return start() }
        // It may have been started by hand by now.
        guard core.withLock({ $0.lifecycle.startIsCalled() }) else { return }
        WorkQueue.userCode { start() }
        if core.withLock({ $0.lifecycle.startHasReturned() }) == .deliver { deliver() }
    }

    private func begin(_ obstacle: NetworkError?, _ conditions: [OperationCondition]) {
        let (action, holdsCalls, trace) = core.withLock { state in
            (state.lifecycle.began(obstacle: obstacle), state.options?.heldCalls != nil, state.options?.trace)
        }
        guard action == .execute else {
            stop()
            if action == .deliver { deliver() }
            return
        }
        let needsPreparing = traits.needsPreparing
        guard holdsCalls || needsPreparing else { return execute(in: trace) }
        guard needsPreparing, let scheduling else { return work(when: conditions) }
        prepare()
        guard !hasOutcome else { return }
        scheduling.queue.operation(self, job: scheduling.job, isPreparedFor: { self.work(when: conditions) })
    }

    private func work(when conditions: [OperationCondition]) {
        if conditions.isEmpty { work() } else { hold(until: conditions) { self.work() } }
    }

    private func work() {
        let (calls, trace) = core.withLock { ($0.options?.heldCalls.take() ?? [], $0.options?.trace) }
        execute(in: trace)
        for call in calls { call.set() }
    }

    private func execute(in trace: TraceSpan?) {
        guard let trace else { return execute() }
        TraceContext.$current.withValue(trace.context) { execute() }
    }

    /// Cancels the operation, unless it has an outcome. Override it to stop the work, and call `super`.
    open override func cancel() {
        endCancelled()
    }

    /// Ends the operation as ``cancel()`` does.
    final func endCancelled() {
        #if canImport(Darwin)
        // Foundation would announce a value that is true already, or nothing, and not as user code.
        guard !hasOutcome else { return }
        announce { willChangeValue(forKey: "isCancelled") }
        #endif
        let (wins, action) = core.withLock { $0.lifecycle.cancel() }
        #if canImport(Darwin)
        announce { didChangeValue(forKey: "isCancelled") }
        #endif
        guard wins else { return }
        #if !canImport(Darwin)
        super.cancel()
        #endif
        stop()
        proceed(with: action)
    }

    /// Ends the operation since its deadline has passed.
    ///
    /// - Parameters:
    ///   - deadline: in seconds, as it was when the operation was added.
    ///   - reason: what it was waiting for.
    final func endOverdue(_ deadline: TimeInterval, _ reason: String) {
        let seconds = String(format: "%.3g", deadline)
        let error = NetworkError(code: .timedOut, message: "its deadline of \(seconds) s has passed: it \(reason)")
        let (wins, action) = core.withLock { $0.lifecycle.end(.failure(error)) }
        guard wins else { return }
        stop()
        // For subclasses that stop their work there; the outcome stays.
        WorkQueue.userCode { cancel() }
        proceed(with: action)
    }

    /// Whether `cancel()` decided how the operation ended. Cancelling one whose outcome is known changes nothing.
    public final override var isCancelled: Bool {
        core.withLock { $0.lifecycle.isCancelled }
    }

    /// Always true.
    public final override var isAsynchronous: Bool { true }

    /// Whether the operation has been started and has not finished.
    public final override var isExecuting: Bool {
        core.withLock { $0.lifecycle.isExecuting }
    }

    /// Whether the operation has finished: it has its outcome, and its callbacks have run.
    public final override var isFinished: Bool {
        core.withLock { $0.lifecycle.phase == .finished }
    }

    /// Default `.normal`. A change while the operation waits puts it behind the others of its new priority.
    open override var queuePriority: QueuePriority {
        get { super.queuePriority }
        set {
            super.queuePriority = newValue
            if let scheduling { scheduling.queue.operationDidChangePriority(self, job: scheduling.job) }
        }
    }

    /// Called once on a background queue when the operation has finished, then released. Default nil.
    ///
    /// Stored here and not by Foundation, which on Linux reads it without a lock and never releases it.
    public final override var completionBlock: (@Sendable () -> Void)? {
        get { core.withLock { $0.completion } }
        set { _ = core.withLock { exchange(&$0.completion, with: newValue) } }
    }

    private func proceed(with action: OperationLifecycle.Action, inPlace: Bool = false) {
        switch action {
        case .deliver: deliver(inPlace: inPlace)
        case .endEarly:
            if let scheduling { scheduling.queue.operationDidEndEarly(scheduling.job) } else { announceReadiness() }
        case .none, .execute: break
        }
    }

    /// Ends the rest of the work, runs the accessories and the callbacks, and leaves the queue.
    private func deliver(inPlace: Bool = false) {
        let (accessories, holdsCalls, error) = core.withLock { state in
            (state.options?.accessories.take() ?? [], state.options?.heldCalls != nil, state.lifecycle.error)
        }
        // Calls held back until the end are refused, with the operation's error.
        if holdsCalls { stop() }
        guard accessories.isEmpty else {
            return tellAccessories(accessories, { $0.willStop }) {
                self.endWork(after: error).whenSet {
                    self.callBack(error, inPlace: false) {
                        self.tellAccessories(accessories, { $0.didStop }) { self.conclude() }
                    }
                }
            }
        }
        let rest = endWork(after: error)
        if rest.isEmpty { return callBack(error, inPlace: inPlace) { self.conclude() } }
        rest.whenSet { self.callBack(error, inPlace: false) { self.conclude() } }
    }

    /// Calls observers, which may block. Foundation on Linux has none: there only the end is announced, to its queue.
    private func announce(_ change: () -> Void) {
        #if canImport(Darwin)
        WorkQueue.userCode(change)
        #endif
    }

    private func conclude() {
        announce {
            willChangeValue(forKey: "isExecuting")
            willChangeValue(forKey: "isFinished")
        }
        let (_, _, dependencies, scheduling, callbackQueue, error) = core.withLock { state in
            state.lifecycle.concluded()
            let (options, scheduling) = (state.options, state.scheduling)
            return (
                options?.ownerRegistration.take(), options?.heldCalls.take(), state.dependencies.take(),
                scheduling, options?.callbackQueue ?? scheduling?.queue.callbackQueue, state.lifecycle.error
            )
        }
        announce { didChangeValue(forKey: "isExecuting") }
        WorkQueue.userCode { didChangeValue(forKey: "isFinished") }

        // The queue first: observers of the end find the operation gone from there.
        if let scheduling { scheduling.queue.operationDidFinish(scheduling.job, error) }
        willLeaveQueue(callbackQueue: callbackQueue)
        let (actions, completion) = core.withLock { state in
            state.isConcluded = true
            state.scheduling = nil
            state.waiters = Waiters()
            return (state.finishActions.take(), state.completion.take())
        }
        if let completion { DispatchQueue.global().add(completion) }
        for action in actions { action() }
        OperationDependency.releaseInTurn(dependencies)
    }

    // MARK: - Dependencies

    /// Makes this operation wait for another one, and fail with ``NetworkError/Code/dependencyFailed`` if that fails.
    open override func addDependency(_ operation: Operation) {
        addDependency(operation, policy: .requireSuccess)
    }

    /// Makes this operation wait for any other one, on the same queue, another one or none.
    ///
    /// Ignored once the operation has started, or its queue is starting it. An operation that would wait for itself,
    /// also indirectly, ends with ``NetworkError/Code/cycle``. The dependency is not added to a queue, and one that
    /// never runs keeps its dependents waiting.
    public final func addDependency(_ operation: Operation, policy: DependencyPolicy) {
        guard operation !== self else {
            return finish(.cycle([self, self]))
        }
        let dependency = OperationDependency(operation, policy)
        let (scheduling, isWatching) = core.withLock { state -> (Scheduling?, Bool) in
            guard state.lifecycle.phase == .waiting else { return (nil, false) }
            state.dependencies.append(dependency)
            guard state.scheduling == nil else { return (state.scheduling, false) }
            if state.readiness.isWatching { state.readiness.dependencyAdded() }
            return (nil, state.readiness.isWatching)
        }
        if let scheduling {
            let isTooLate = !scheduling.queue.operation(self, job: scheduling.job, didAdd: dependency)
            if isTooLate {
                removeLast(dependency)
            } else if core.withLock({ $0.dependencies.lastIndex { $0.operation === dependency.operation } }) == nil {
                // Removed again before the queue knew of it.
                scheduling.queue.operation(self, job: scheduling.job, didRemove: dependency.operation)
            }
        } else if isWatching {
            announceReadiness()
            watch(dependency)
        }
    }

    /// Removes a dependency. Ignored once the operation has started, once its queue ends it since a dependency has
    /// failed, and once it waits in a plain `OperationQueue`.
    open override func removeDependency(_ operation: Operation) {
        let operation = operation.asNetworkOperation
        let (before, scheduling) = core.withLock { state -> ([OperationDependency], Scheduling?) in
            let before = state.dependencies
            if state.lifecycle.phase == .waiting, !state.readiness.isWatching, !state.isStartedToEnd {
                state.dependencies.removeAll { $0.operation === operation }
            }
            return (before, before.count == state.dependencies.count ? nil : state.scheduling)
        }
        if let scheduling {
            // As many times as it was added.
            for dependency in before where dependency.operation === operation {
                scheduling.queue.operation(self, job: scheduling.job, didRemove: dependency.operation)
            }
        }
        // Released outside the lock.
        withExtendedLifetime(before) {}
    }

    private func removeLast(_ dependency: OperationDependency) {
        core.withLock { state in
            let index = state.dependencies.lastIndex { $0.operation === dependency.operation }
            if let index { state.dependencies.remove(at: index) }
        }
    }

    /// The operations that this one waits for; empty once it has finished.
    public final override var dependencies: [Operation] {
        core.withLock { $0.dependencies }.map(\.operation.original)
    }

    /// Whether a plain `OperationQueue` may start the operation. Always true on a ``NetworkQueue``, which holds jobs
    /// back itself.
    public final override var isReady: Bool {
        guard super.isReady else { return false }
        let unwatched = core.withLock { state -> [OperationDependency]? in
            guard state.scheduling == nil, state.lifecycle.outcome == nil, !state.readiness.isWatching else {
                return nil
            }
            state.readiness.beginWatching(dependencyCount: state.dependencies.count)
            return state.dependencies
        }
        if let unwatched { for dependency in unwatched { watch(dependency) } }
        let (isReady, announceAgain) = core.withLock { state in
            if unwatched != nil { state.readiness.watchingBegan() }
            return state.readiness.answer(
                isFree: state.scheduling != nil || state.lifecycle.outcome != nil,
                to: ObjectIdentifier(Thread.current),
                repeatsOnce: Self.announcesReadinessOnceMore
            )
        }
        if announceAgain { DispatchQueue.global().add { self.announceReadiness() } }
        return isReady
    }

    // Each time would make observers who read the value on another thread hear of it without end.
    #if canImport(Darwin)
    private static let announcesReadinessOnceMore = true
    #else
    private static let announcesReadinessOnceMore = false
    #endif

    private func watch(_ dependency: OperationDependency) {
        dependency.operation.whenFinished { [weak self] in
            guard let self, self.core.withLock({ $0.readiness.dependencyFinished() }) else { return }
            self.announceReadiness()
        }
    }

    private func announceReadiness() {
        let thread = ObjectIdentifier(Thread.current)
        core.withLock { $0.readiness.announcementBegins(on: thread) }
        WorkQueue.userCode {
            willChangeValue(forKey: "isReady")
            didChangeValue(forKey: "isReady")
        }
        core.withLock { $0.readiness.announcementEnds(on: thread) }
    }
}
