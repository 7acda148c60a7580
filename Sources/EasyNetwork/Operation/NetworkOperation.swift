import Foundation

/// An asynchronous job: an `Operation` whose work starts in ``execute()`` and ends when ``finish(_:)`` is called.
///
/// ```swift
/// final class Pause: NetworkOperation, @unchecked Sendable {
///     override func execute() {
///         DispatchQueue.global().asyncAfter(deadline: .now() + 1) { self.finish() }
///     }
/// }
/// ```
///
/// Add the operation to a ``NetworkQueue``, or to any `OperationQueue`. It ends exactly once, with success or with one
/// ``NetworkError``, which dependents can read as ``error``. Later calls of ``finish(_:)`` are ignored. The callbacks
/// have run before dependents start.
///
/// `cancel()` ends the operation with ``NetworkError/Code/cancelled``. Before the start, ``execute()`` is never called.
/// After the start, the operation ends at once, and a later ``finish(_:)`` has no effect. To stop the work itself,
/// override `cancel()` and call `super`.
///
/// All members can be used from any thread.
open class NetworkOperation: Operation, @unchecked Sendable {
    // Sendable because all mutable state is in `core`, under its lock. Subclasses are responsible for their own state.
    struct State {
        var lifecycle = OperationLifecycle()
        /// The operations that this one waits for; `nil` if there are none, as for most operations.
        var dependencies: OperationDependencies?
        /// The watch of the dependencies; `nil` before a plain `OperationQueue` has read `isReady`.
        var readiness: OperationReadiness?
        var finishActions: [@Sendable () -> Void] = []
        /// Whether the operation has finished and its queue has removed it.
        var isConcluded = false
        /// Whether the queue starts the operation only to end it, because a dependency has failed or the outcome is
        /// known.
        var isStartedToEnd = false
        /// The number of tasks that wait for the end and were not cancelled. This position fills padding, so the
        /// property adds no size.
        var waitingTaskCount: UInt32 = 0
        var completion: (@Sendable () -> Void)?
        var scheduling: Scheduling?
        var options: OperationOptions?
        /// What waits for the operation outside of its queue; `nil` if nothing has.
        var waiters: Waiters?

        /// See ``NetworkOperation/isTaken``.
        var isTaken: Bool { scheduling != nil || readiness != nil || lifecycle.phase != .waiting }

        /// The callback queue that was set for the operation; otherwise its queue's.
        var callbackQueue: DispatchQueue? { options?.callbackQueue ?? scheduling?.queue.callbackQueue }

        /// What the delivery of the end needs, read once.
        var delivery: Delivery {
            (options?.accessories ?? [], options?.heldCalls != nil, lifecycle.error, callbackQueue)
        }
    }

    typealias Delivery = (
        accessories: [OperationAccessory], holdsCalls: Bool, error: NetworkError?, callbackQueue: DispatchQueue?
    )

    let core = Locked(State())

    #if !canImport(Darwin)
    /// Whether there are options, so that an operation without them is not locked to read one. Set under the lock. On
    /// Apple platforms, the flag would have a lock of its own.
    let hasOptions = Flag()
    #endif

    public override init() {
        super.init()
        if TraceContext.isUsed.isSet, let current = TraceContext.current { setTraceOrigin(current) }
    }

    // MARK: - The work

    /// Does the work. Override this method, and call ``NetworkOperation/finish(_:)`` once when the work is done, from
    /// any thread.
    ///
    /// Called on a background thread, which the method can block, because other work runs on other threads. Waiting in
    /// a `Task` or on your own queue is better. On Linux, Dispatch adds at most one thread a second, so other work
    /// starts late when as many threads are blocked as there are processors. On Apple's platforms, all concurrent
    /// queues of a process share some 64 threads. When all of them are blocked, no work proceeds.
    ///
    /// Not called if the operation was cancelled before its start or a dependency failed. The default implementation
    /// does nothing, for subclasses that override `start()` instead. An instance of `NetworkOperation` itself ends with
    /// ``NetworkError/Code/invalidRequest``.
    open func execute() {
        if type(of: self) == NetworkOperation.self {
            finish(.invalidRequest("a NetworkOperation does no work; use a subclass that overrides execute()"))
        }
    }

    /// Ends the operation.
    ///
    /// Only the first call counts. A call before the start takes effect at the start, and ``execute()`` is not called.
    ///
    /// - Parameter error: the failure; `nil` for success or, in a ``ServiceOperation``, for the outcome of its last
    ///   call. Defaults to `nil`.
    public final func finish(_ error: NetworkError? = nil) {
        if let error { end(error) } else { finishWithResult(ignoringFailures: false) }
    }

    /// Ends the operation with success, or with the error for a missing result.
    ///
    /// - Parameter ignoringFailures: whether to ignore the failure of a call.
    final func finishWithResult(ignoringFailures: Bool) {
        guard let missing = missingResultError(ignoringFailures: ignoringFailures) else { return end(nil) }
        if missing.code == .cancelled { endCancelled() } else { end(missing) }
    }

    /// Ends the operation without checking for a missing result.
    ///
    /// - Parameter inPlace: whether this is the package's last piece of work on this thread of the ``WorkQueue``, so
    ///   that the callbacks can run on it. Defaults to `false`.
    final func end(_ error: NetworkError?, inPlace: Bool = false) {
        let outcome: OperationLifecycle.Outcome = if let error { .failure(error) } else { .success(()) }
        let (action, delivery) = core.withLock { state in (state.lifecycle.end(outcome).action, state.delivery) }
        proceed(with: action, delivery, inPlace: inPlace)
    }

    /// The operation's error; `nil` before the end and after success.
    public final var error: NetworkError? {
        core.withLock { $0.lifecycle.error }
    }

    /// The host that the operation calls, used for limits and cancellation by host. It is written as in the URL, with
    /// the port if the URL has one. A queue reads it once, when the operation is added. Defaults to `nil`: no host, or
    /// not known yet.
    open var host: String? { nil }

    // MARK: - For subclasses in this package

    /// Stops the work, and refuses later calls.
    ///
    /// Called without a lock, on the cancelling thread or a thread of the queue, possibly twice.
    func stop() {}

    /// Releases the callbacks without calling them. The work continues.
    func detach() {}

    /// Ends the remaining work, now that the outcome is known. Called once, without a lock.
    ///
    /// - Parameter error: the operation's error.
    /// - Returns: what the callbacks wait for.
    func endWork(after error: NetworkError?) -> [Promise<Void>] { [] }

    /// Runs the callbacks, then calls `done`, on any thread. Called once, without a lock.
    ///
    /// - Parameters:
    ///   - error: the operation's error.
    ///   - queue: the callback queue that was set for the operation or its queue.
    ///   - inPlace: see ``end(_:inPlace:)``.
    func callBack(
        _ error: NetworkError?,
        on queue: DispatchQueue?,
        inPlace: Bool,
        _ done: @escaping @Sendable () -> Void
    ) {
        done()
    }

    /// The host whose settings apply to the callbacks and the network; `nil` for an operation that makes no calls.
    var client: HostConfiguration? { nil }

    /// The queue on which the callbacks run.
    final var deliveryQueue: DispatchQueue { chosenCallbackQueue ?? client?.deliveryQueue ?? WorkQueue.shared }

    /// The traits of this kind of operation, written only while the operation is created.
    final var traits = JobTraits()

    /// Notes that the slot was given to an urgent job, so that the operation must transfer no more bytes, or that it
    /// has a slot again. Called without the queue's lock, and in either order. Only used with ``JobTraits/mayYield``.
    func noteSlot(isThere: Bool) {}

    /// Returns how the operation relates to others with the same request. Called without a lock when the operation is
    /// added, and when it has been prepared.
    ///
    /// - Returns: whether the operation only waits for another job that does its work; and a closure to call after a
    ///   queue has added the operation and before it starts, or `nil`.
    func repeatRole(_ own: RepeatSetting) -> RepeatRole { (false, nil) }

    typealias RepeatRole = (joinsAnother: Bool, workWhenAdded: (() -> Void)?)

    /// Determines the host and the priority. Called once, after the dependencies have ended and before the operation
    /// has a slot.
    func prepare() {}

    /// Returns the operation's own progress for the group that it is added to. The group completes it when the
    /// operation has finished. Only the first group gets it. Defaults to `nil`: no progress.
    func claimProgress() -> OrderedProgress? { nil }

    /// How the operation has ended, if it is to be undone. `nil` if it has not ended, or there is nothing to undo.
    var stepOutcome: StepOutcome<any Sendable>? { nil }

    /// The operation's request for ``description``, without secrets; `nil` if there is no request, or no longer.
    var requestText: String? { nil }

    /// Calls `action` once, when the operation has finished. If it has already finished, calls `action` at once, on
    /// this thread.
    package func whenFinished(_ action: @escaping @Sendable () -> Void) {
        let isConcluded = core.withLock { state in
            if !state.isConcluded { state.finishActions.append(action) }
            return state.isConcluded
        }
        if isConcluded { action() }
    }

    /// Called once, without a lock, after the operation was started and before its work.
    func didStart(_ calls: CallTraits) {}

    /// What calls of the operation need to know of it: whether they are held until conditions and accessories let the
    /// work begin, the authentications for whose refresh it was created, and the listeners of its queue.
    typealias CallTraits = (areHeld: Bool, refreshedSessions: [ObjectIdentifier], broadcast: EventBroadcast?)

    /// Called once, without a lock, when the operation has finished and left its queue.
    ///
    /// - Parameter callbackQueue: the callback queue of the operation, or of its queue.
    func didLeaveQueue(callbackQueue: DispatchQueue?) {}

    /// Returns the error for an end that has neither an error nor a result.
    ///
    /// - Parameter ignoringFailures: whether to ignore the failure of a call.
    func missingResultError(ignoringFailures: Bool) -> NetworkError? {
        nil
    }

    // MARK: - Operation

    /// The type, name, request and state of the operation, without the secrets that ``Redaction`` recognizes. `print`
    /// and the debugger show it.
    ///
    /// ```swift
    /// print(profile)   // RequestOperation<GetProfile> 'profile' (GET https://api.example.com/me): waits for 'sign-in'
    /// ```
    open override var description: String { summary }

    /// The ``description``.
    open override var debugDescription: String { description }

    /// Starts the operation. The queue calls this method. A subclass that overrides it must call `super.start()` first.
    open override func start() {
        announce { willChangeValue(forKey: "isExecuting") }
        typealias Start = (
            isToEnd: Bool, [OperationDependency], [OperationCondition], [OperationAccessory], calls: CallTraits
        )
        let begun = core.withLock { state -> Start? in
            guard state.lifecycle.start() else { return nil }
            let conditions = state.options?.conditions.take() ?? []
            let accessories = state.options?.accessories ?? []
            let isDelayed = !conditions.isEmpty || !accessories.isEmpty
            if isDelayed { state.options?.heldCalls = [] }
            let calls = (isDelayed, state.options?.refreshedSessions ?? [], state.scheduling?.queue.broadcast)
            return (state.isStartedToEnd, state.dependencies?.list ?? [], conditions, accessories, calls)
        }
        if let begun { didStart(begun.calls) }
        announce { didChangeValue(forKey: "isExecuting") }
        guard let (isToEnd, dependencies, conditions, accessories, _) = begun else { return }
        var obstacle = dependencies.lazy.compactMap(\.failure).first
        // The queue knew of the failure before the dependency was removed. It gave the operation no slot, so the
        // operation must end. If the operation has its outcome already, this error has no effect.
        if isToEnd, obstacle == nil {
            obstacle = NetworkError(code: .dependencyFailed, message: "a dependency had failed before it was removed")
        }
        guard !accessories.isEmpty, obstacle == nil, !hasOutcome else { return begin(obstacle, conditions) }
        tellAccessories(accessories, { $0.willStart }) {
            // Do the work elsewhere than on the callback queue.
            WorkQueue.shared.add { self.begin(nil, conditions) }
        }
    }

    /// Starts the operation for a ``NetworkQueue``, on a thread of the ``WorkQueue``.
    final func startOnWorkQueue() {
        guard traits.startRunsUserCode else { return start() }
        // User code may have called `start()` in the meantime.
        guard core.withLock({ $0.lifecycle.startIsCalled() }) else { return }
        WorkQueue.userCode { start() }
        let (action, delivery) = core.withLock { ($0.lifecycle.startHasReturned(), $0.delivery) }
        proceed(with: action, delivery)
    }

    private func begin(_ obstacle: NetworkError?, _ conditions: [OperationCondition]) {
        let (action, hasOptions) = core.withLock { state in
            (state.lifecycle.began(obstacle: obstacle), state.options != nil)
        }
        guard case .execute = action else {
            stop()
            return proceed(with: action, core.withLock { $0.delivery })
        }
        guard hasOptions || traits.needsPreparing else { return execute() }
        let work = { @Sendable in self.hold(until: conditions) { self.work() } }
        guard traits.needsPreparing, let scheduling else { return work() }
        prepare()
        guard !hasOutcome else { return }
        scheduling.queue.operation(self, job: scheduling.job, isPreparedFor: work)
    }

    private func work() {
        let (calls, trace) = core.withLock { ($0.options?.heldCalls.take() ?? [], $0.options?.trace) }
        if let trace { TraceContext.$current.withValue(trace.context) { execute() } } else { execute() }
        for call in calls { call.set() }
    }

    /// Cancels the operation, unless its outcome is known. To stop the work, override this method and call `super`.
    open override func cancel() {
        endCancelled()
    }

    /// Ends the operation as ``cancel()`` does.
    final func endCancelled() {
        #if canImport(Darwin)
        // Announce the change here. Foundation would announce it when the value is already `true`, or not at all, and
        // not as user code.
        guard !hasOutcome else { return }
        announce { willChangeValue(forKey: "isCancelled") }
        #endif
        let (end, delivery) = core.withLock { ($0.lifecycle.cancel(), $0.delivery) }
        #if canImport(Darwin)
        announce { didChangeValue(forKey: "isCancelled") }
        #endif
        guard end.wins else { return }
        #if !canImport(Darwin)
        super.cancel()
        #endif
        stop()
        proceed(with: end.action, delivery)
    }

    /// Ends the operation because its deadline has passed.
    ///
    /// - Parameters:
    ///   - deadline: the deadline in seconds, as it was when the operation was added.
    ///   - reason: what the operation was waiting for.
    final func endOverdue(_ deadline: TimeInterval, _ reason: String) {
        let seconds = String(format: "%.3g", deadline)
        let message = "the deadline of \(seconds) s has passed: the operation \(reason)"
        let error = NetworkError(code: .timedOut, message: message)
        let (end, delivery) = core.withLock { ($0.lifecycle.end(.failure(error)), $0.delivery) }
        guard end.wins else { return }
        stop()
        // Subclasses stop their work in `cancel()`. It does not change the outcome.
        WorkQueue.userCode { cancel() }
        proceed(with: end.action, delivery)
    }

    /// Whether `cancel()` decided the outcome. Cancelling an operation whose outcome is known has no effect.
    public final override var isCancelled: Bool {
        core.withLock { $0.lifecycle.isCancelled }
    }

    /// Always `true`.
    public final override var isAsynchronous: Bool { true }

    /// Whether the operation has been started and has not finished.
    public final override var isExecuting: Bool {
        core.withLock { $0.lifecycle.isExecuting }
    }

    /// Whether the operation has finished: its outcome is known, and its callbacks have run.
    public final override var isFinished: Bool {
        core.withLock { $0.lifecycle.phase == .finished }
    }

    /// The priority in a queue. Defaults to `.normal`. If it changes while the operation waits, the operation moves to
    /// the end of its new priority.
    open override var queuePriority: QueuePriority {
        get { super.queuePriority }
        set {
            super.queuePriority = newValue
            if let scheduling { scheduling.queue.operationDidChangePriority(self, job: scheduling.job) }
        }
    }

    /// A closure that is called once on a background queue when the operation has finished, and is then released.
    /// Defaults to `nil`.
    ///
    /// It is stored here because Foundation on Linux reads its own without a lock and never releases it.
    public final override var completionBlock: (@Sendable () -> Void)? {
        get { core.withLock { $0.completion } }
        set { core.discard { exchange(&$0.completion, with: newValue) } }
    }

    /// - Parameter delivery: the ``State/delivery``, read when the action was determined or later.
    private func proceed(with action: OperationLifecycle.Action, _ delivery: Delivery, inPlace: Bool = false) {
        switch action {
        case .deliver: deliver(delivery, inPlace: inPlace)
        case .endEarly:
            guard let (queue, job) = scheduling else { return announceReadiness() }
            queue.step { $0.graph.end(job, &$1) }
        case .none, .execute: break
        }
    }

    /// Ends the remaining work, calls the accessories and the callbacks, and leaves the queue.
    private func deliver(_ delivery: Delivery, inPlace: Bool) {
        let (accessories, error, queue) = (delivery.accessories, delivery.error, delivery.callbackQueue)
        // The remaining held calls are refused with the operation's error.
        if delivery.holdsCalls { stop() }
        guard accessories.isEmpty else {
            return tellAccessories(accessories, { $0.willStop }) {
                self.endWork(after: error).whenSet {
                    self.callBack(error, on: self.chosenCallbackQueue, inPlace: false) {
                        self.tellAccessories(accessories, { $0.didStop }) { self.conclude() }
                    }
                }
            }
        }
        let rest = endWork(after: error)
        if rest.isEmpty { return callBack(error, on: queue, inPlace: inPlace) { self.conclude() } }
        rest.whenSet { self.callBack(error, on: self.chosenCallbackQueue, inPlace: false) { self.conclude() } }
    }

    /// Notifies observers, which can block. Foundation on Linux has no observers; only the end is announced there, to
    /// the queue.
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
        // The dependencies are released at the end of this method, and the other values outside the lock.
        let (_, _, _, dependencies, scheduling, callbackQueue, error) = core.withLock { state in
            state.lifecycle.concluded()
            let options = state.options
            return (
                options?.ownerRegistration.take(), options?.heldCalls.take(), options?.accessories.take(),
                state.dependencies.take(), state.scheduling, state.callbackQueue, state.lifecycle.error
            )
        }
        announce { didChangeValue(forKey: "isExecuting") }
        WorkQueue.userCode { didChangeValue(forKey: "isFinished") }

        // Leave the queue first, so that finish actions and the completion block no longer find the operation there.
        if let scheduling { scheduling.queue.operationDidFinish(scheduling.job, error) }
        didLeaveQueue(callbackQueue: callbackQueue)
        let (actions, completion) = core.withLock { state in
            state.isConcluded = true
            state.scheduling = nil
            state.waiters = nil
            return (state.finishActions.take(), state.completion.take())
        }
        if let completion { DispatchQueue.global().add(completion) }
        for action in actions { action() }
        withExtendedLifetime(dependencies) {}
    }

    // MARK: - Dependencies

    /// Makes this operation wait for another one, and fail with ``NetworkError/Code/dependencyFailed`` if that one
    /// fails.
    open override func addDependency(_ operation: Operation) {
        addDependency(operation, policy: .requireSuccess)
    }

    /// Makes this operation wait for another operation, which can be on the same queue, on another queue, or on no
    /// queue.
    ///
    /// Ignored once the operation has started, or its queue is starting it. An operation that would wait for itself,
    /// directly or indirectly, ends with ``NetworkError/Code/cycle``. The dependency is not added to a queue. If it
    /// never runs, its dependents wait forever.
    public final func addDependency(_ operation: Operation, policy: DependencyPolicy) {
        guard operation !== self else {
            return finish(.cycle([self, self]))
        }
        let dependency = OperationDependency(operation, policy)
        let (scheduling, isWatching) = core.withLock { state -> (Scheduling?, Bool) in
            guard state.lifecycle.phase == .waiting else { return (nil, false) }
            if state.dependencies == nil { state.dependencies = OperationDependencies() }
            state.dependencies?.list.append(dependency)
            guard state.scheduling == nil else { return (state.scheduling, false) }
            state.readiness?.dependencyAdded()
            return (nil, state.readiness != nil)
        }
        if let scheduling {
            let isTooLate = !scheduling.queue.operation(self, job: scheduling.job, didAdd: dependency)
            if isTooLate {
                core.withLock { state in
                    let index = state.dependencies?.lastIndex(of: dependency.operation)
                    if let index { state.dependencies?.list.remove(at: index) }
                }
            } else if core.withLock({ $0.dependencies?.lastIndex(of: dependency.operation) }) == nil {
                // The dependency was removed before the queue received it.
                scheduling.queue.operation(self, job: scheduling.job, didRemove: dependency.operation)
            }
        } else if isWatching {
            announceReadiness()
            watch(dependency)
        }
    }

    /// Removes a dependency. Ignored once the operation has started, once its queue ends it because a dependency has
    /// failed, and once it waits in a plain `OperationQueue`.
    open override func removeDependency(_ operation: Operation) {
        let operation = operation.asNetworkOperation
        let (before, scheduling) = core.withLock { state -> ([OperationDependency], Scheduling?) in
            let before = state.dependencies?.list ?? []
            if state.lifecycle.phase == .waiting, state.readiness == nil, !state.isStartedToEnd {
                state.dependencies?.list.removeAll { $0.operation === operation }
            }
            return (before, before.count == state.dependencies?.list.count ? nil : state.scheduling)
        }
        if let scheduling {
            // Remove the dependency as many times as it was added.
            for dependency in before where dependency.operation === operation {
                scheduling.queue.operation(self, job: scheduling.job, didRemove: dependency.operation)
            }
        }
        // Release the dependencies outside the lock.
        withExtendedLifetime(before) {}
    }

    /// The operations that this one waits for; empty once it has finished.
    public final override var dependencies: [Operation] {
        core.withLock { $0.dependencies?.list ?? [] }.map(\.operation.original)
    }

    /// Whether a plain `OperationQueue` can start the operation. Always `true` on a ``NetworkQueue``, which decides
    /// itself when to start its jobs.
    public final override var isReady: Bool {
        guard super.isReady else { return false }
        let unwatched = core.withLock { state -> [OperationDependency]? in
            guard state.scheduling == nil, state.lifecycle.outcome == nil, state.readiness == nil else { return nil }
            let dependencies = state.dependencies?.list ?? []
            state.readiness = OperationReadiness(dependencyCount: dependencies.count)
            return dependencies
        }
        if let unwatched { for dependency in unwatched { watch(dependency) } }
        let (isReady, announceAgain) = core.withLock { state in
            if unwatched != nil { state.readiness?.watchingBegan() }
            return state.readiness?.answer(
                isFree: state.scheduling != nil || state.lifecycle.outcome != nil,
                to: ObjectIdentifier(Thread.current),
                repeatsOnce: Self.announcesReadinessOnceMore
            ) ?? (true, false)
        }
        if announceAgain { DispatchQueue.global().add { self.announceReadiness() } }
        return isReady
    }

    // Announce the change only once more. Announcing it at every read would endlessly notify an observer that reads the
    // value on another thread.
    #if canImport(Darwin)
    private static let announcesReadinessOnceMore = true
    #else
    private static let announcesReadinessOnceMore = false
    #endif

    private func watch(_ dependency: OperationDependency) {
        dependency.operation.whenFinished { [weak self] in
            guard let self, self.core.withLock({ $0.readiness?.dependencyFinished() }) == true else { return }
            self.announceReadiness()
        }
    }

    private func announceReadiness() {
        let thread = ObjectIdentifier(Thread.current)
        core.withLock { $0.readiness?.announcementBegins(on: thread) }
        WorkQueue.userCode {
            willChangeValue(forKey: "isReady")
            didChangeValue(forKey: "isReady")
        }
        core.withLock { $0.readiness?.announcementEnds(on: thread) }
    }
}
