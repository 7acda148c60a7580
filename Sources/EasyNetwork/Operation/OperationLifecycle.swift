/// The lifecycle of one operation, as a value: which ending wins, and what to do at each step.
///
/// ```
/// waiting ─ start ─▶ starting ─ began ─▶ executing ─ end, cancel ─▶ delivering ─ concluded ─▶ finished
/// ```
///
/// The first ending sets the outcome. An ending before the start, or while the start is being announced, is stored and
/// takes effect after the start: on Linux, an operation that reports itself finished before its queue has started it
/// crashes the process. An ending while a queue's call of `start()` is running takes effect when that call has
/// returned, because a subclass's code there can still make calls.
struct OperationLifecycle {
    enum Phase {
        /// Not started.
        case waiting
        /// Started; the change of `isExecuting` is being announced.
        case starting
        /// The work is running.
        case executing
        /// The outcome is known, and the callbacks are running.
        case delivering
        /// Finished; dependents may run.
        case finished
    }

    typealias Outcome = Result<Void, NetworkError>

    /// The next step that the caller must take.
    enum Action {
        /// No step: another ending was first, or a later step acts on this one.
        case none
        /// Report to the queue that the operation no longer waits for anything.
        case endEarly
        /// Do the work.
        case execute
        /// Run the callbacks, then announce the end around ``concluded()``.
        case deliver
    }

    private(set) var phase = Phase.waiting
    /// The outcome; `nil` before the end.
    private(set) var outcome: Outcome?
    /// Whether ``cancel()`` decided the outcome.
    private(set) var isCancelled = false
    /// The value of `Operation.isExecuting`.
    var isExecuting: Bool { phase != .waiting && phase != .finished }
    /// Whether a queue's call of `start()` has not returned.
    private var startIsUnderWay = false

    var error: NetworkError? { outcome?.failure }

    /// Starts the operation, for its queue.
    ///
    /// - Returns: `true` if ``began(obstacle:)`` must be called next; `false` if the operation was started before.
    mutating func start() -> Bool {
        guard phase == .waiting else { return false }
        phase = .starting
        return true
    }

    /// Notes that a queue is about to call `start()`, which can run a subclass's code.
    ///
    /// - Returns: `false` if the operation was started before.
    mutating func startIsCalled() -> Bool {
        if phase == .waiting { startIsUnderWay = true }
        return phase == .waiting
    }

    /// Notes that the call after ``startIsCalled()`` has returned.
    mutating func startHasReturned() -> Action {
        startIsUnderWay = false
        return phase == .executing ? deliverIfEnded() : .none
    }

    /// Notes that the start has been announced.
    ///
    /// - Parameter obstacle: the reason why the work must not be done, for example a failed dependency.
    mutating func began(obstacle: NetworkError?) -> Action {
        guard phase == .starting else { return .none }
        if outcome == nil, let obstacle { outcome = .failure(obstacle) }
        phase = .executing
        return outcome == nil ? .execute : deliverIfEnded()
    }

    /// Ends the operation, from the work or from outside.
    ///
    /// - Returns: whether this ending counts, and the next step.
    mutating func end(_ outcome: Outcome) -> (wins: Bool, action: Action) {
        guard self.outcome == nil else { return (false, .none) }
        self.outcome = outcome
        return (true, phase == .waiting ? .endEarly : phase == .executing ? deliverIfEnded() : .none)
    }

    private mutating func deliverIfEnded() -> Action {
        guard outcome != nil, !startIsUnderWay else { return .none }
        phase = .delivering
        return .deliver
    }

    /// Ends the operation and sets `isCancelled`.
    mutating func cancel() -> (wins: Bool, action: Action) {
        let ending = end(.failure(NetworkError(code: .cancelled)))
        if ending.wins { isCancelled = true }
        return ending
    }

    /// Sets the errors of the undos that a group has waited for, before its callbacks run.
    mutating func setUndoFailures(_ failures: [NetworkError]) {
        guard case .failure(var error) = outcome, !failures.isEmpty else { return }
        error.undoFailures = failures
        outcome = .failure(error)
    }

    /// Notes that the end is being announced.
    mutating func concluded() {
        phase = .finished
    }
}
