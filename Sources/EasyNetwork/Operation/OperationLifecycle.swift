/// The life of one operation, as a value: which ending wins, and what is to be done at each step.
///
/// ```
/// waiting ─ start ─▶ starting ─ began ─▶ executing ─ end, cancel ─▶ delivering ─ concluded ─▶ finished
/// ```
///
/// The outcome is set once, by whoever comes first. An ending that comes before the operation was started, or while
/// its start is being announced, is kept, and acted on when the start is through: an operation that reports itself
/// finished before its queue has started it stops the process on Linux.
struct OperationLifecycle {
    enum Phase {
        /// Not started.
        case waiting
        /// Started, the change of `isExecuting` being announced.
        case starting
        /// The work is going on.
        case executing
        /// The outcome is known, the callbacks are being run.
        case delivering
        /// Over, and dependents may run.
        case finished
    }

    /// How it ended. The error lies apart: few fail, and all would pay for the room.
    enum Outcome {
        case success
        indirect case failure(NetworkError)
    }

    /// What the caller does next.
    enum Action {
        /// Nothing: somebody else was first, or a later step will see to it.
        case none
        /// Announce `isExecuting` around ``showExecuting()``, then call ``began(obstacle:)``.
        case announceStart
        /// Do the work.
        case execute
        /// Run the callbacks, then announce the end around ``concluded()``.
        case deliver
    }

    private(set) var phase = Phase.waiting
    /// How it ended; nil while that is open.
    private(set) var outcome: Outcome?
    /// Whether ``cancel()`` decided the outcome.
    private(set) var isCancelled = false
    /// What `Operation.isExecuting` says.
    private(set) var isExecuting = false

    var error: NetworkError? {
        if case .failure(let error) = outcome { error } else { nil }
    }

    var hasFailed: Bool {
        if case .failure = outcome { true } else { false }
    }

    /// The queue starts the operation.
    mutating func start() -> Action {
        guard phase == .waiting else { return .none }
        phase = .starting
        return .announceStart
    }

    mutating func showExecuting() {
        isExecuting = true
    }

    /// The start has been announced.
    ///
    /// - Parameter obstacle: why the work must not be done, a failed dependency for instance.
    mutating func began(obstacle: NetworkError?) -> Action {
        guard phase == .starting else { return .none }
        if outcome == nil, let obstacle { outcome = .failure(obstacle) }
        phase = outcome == nil ? .executing : .delivering
        return outcome == nil ? .execute : .deliver
    }

    /// The work ended, or the operation is ended from outside.
    ///
    /// - Returns: whether this ending is the one that counts, and what to do.
    mutating func end(_ outcome: Outcome) -> (wins: Bool, action: Action) {
        guard self.outcome == nil else { return (false, .none) }
        self.outcome = outcome
        guard phase == .executing else { return (true, .none) }
        phase = .delivering
        return (true, .deliver)
    }

    /// Cancelled: an ending that also shows in `isCancelled`.
    mutating func cancel() -> (wins: Bool, action: Action) {
        let ending = end(.failure(NetworkError(code: .cancelled)))
        if ending.wins { isCancelled = true }
        return ending
    }

    /// The end is being announced.
    mutating func concluded() {
        phase = .finished
        isExecuting = false
    }
}
