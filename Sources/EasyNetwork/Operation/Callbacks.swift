/// The closures for the two ways in which an operation ends: a value behind its owner's lock.
///
/// Release the closures that the functions return outside that lock: what they capture may use the operation when it is
/// released.
struct Callbacks<Success, Failure> {
    private(set) var success: Success?
    private(set) var failure: Failure?
    /// Whether a closure that is set now would never be called.
    private var isClosed = false

    /// - Returns: the closure to release: the previous one, or this one when it comes too late.
    mutating func setSuccess(_ closure: Success?) -> Success? {
        guard closure == nil || !isClosed else { return closure }
        defer { success = closure }
        return success
    }

    /// - Returns: the closure to release: the previous one, or this one when it comes too late.
    mutating func setFailure(_ closure: Failure?) -> Failure? {
        guard closure == nil || !isClosed else { return closure }
        defer { failure = closure }
        return failure
    }

    /// Accepts no closure from now on.
    mutating func close() {
        isClosed = true
    }

    /// Removes both, and accepts no closure from now on.
    mutating func take() -> (success: Success?, failure: Failure?) {
        isClosed = true
        return (success.take(), failure.take())
    }
}

/// The closures and the delegate of a group of operations.
final class GroupCallbacks<Group: GroupOperation>: Sendable {
    private struct State {
        var closures = Callbacks<@Sendable (Group) -> Void, @Sendable (Group, NetworkError) -> Void>()
        weak var delegate: AnyObject?
        var isDetached = false
    }

    private let state = Locked(State())

    var delegate: AnyObject? {
        get { state.withLock { $0.delegate } }
        set { state.withLock { $0.delegate = $0.isDetached ? nil : newValue } }
    }

    var success: (@Sendable (Group) -> Void)? {
        get { state.withLock { $0.closures.success } }
        set { withExtendedLifetime(state.withLock { $0.closures.setSuccess(newValue) }) {} }
    }

    var failure: (@Sendable (Group, NetworkError) -> Void)? {
        get { state.withLock { $0.closures.failure } }
        set { withExtendedLifetime(state.withLock { $0.closures.setFailure(newValue) }) {} }
    }

    /// Releases everything; nothing is called any more.
    func detach() {
        let released = state.withLock { state in
            state.isDetached = true
            state.delegate = nil
            return state.closures.take()
        }
        withExtendedLifetime(released) {}
    }

    /// Accepts no closure from now on, because the group has ended.
    ///
    /// - Returns: whether there is anything to call, by ``call(for:_:)``. If not, nothing is kept.
    func end(_ error: NetworkError?) -> Bool {
        // Not under the lock: this may be the last reference to it.
        let hasDelegate = delegate != nil
        let (isAwaited, released) = state.withLock { state in
            state.closures.close()
            let isCalled = error == nil ? state.closures.success != nil : state.closures.failure != nil
            return hasDelegate || isCalled ? (true, nil) : (false, state.closures.take())
        }
        withExtendedLifetime(released) {}
        return isAwaited
    }

    /// Calls the closure for this ending, unless it has been released since. On the callback queue.
    func call(for group: Group, _ error: NetworkError?) {
        let (success, failure) = state.withLock { $0.closures.take() }
        if let error { failure?(group, error) } else { success?(group) }
    }
}

/// The tasks that wait for one outcome, as a value: which of them to resume, and which was the last to give up.
struct ValueWaiters<Continuation> {
    private var lastNumber = 0
    /// Nil for a task that has entered and does not wait yet.
    private var waiting: [Int: Continuation?] = [:]
    private var isWatched = false
    private var isOver = false

    /// The number of tasks that have entered and neither given up nor been resumed.
    var count: Int { waiting.count }

    /// Registers a task.
    ///
    /// - Returns: its number, and whether the caller has to arrange that ``finish()`` is called.
    mutating func enter() -> (number: Int, mustWatch: Bool) {
        lastNumber += 1
        if !isOver { waiting[lastNumber] = .some(nil) }
        defer { isWatched = true }
        return (lastNumber, !isWatched)
    }

    /// Stores the continuation of a task that waits now.
    ///
    /// - Returns: false when it need not wait, because it has given up or all is over.
    mutating func wait(_ number: Int, _ continuation: Continuation) -> Bool {
        guard waiting[number] != nil else { return false }
        waiting[number] = continuation
        return true
    }

    /// Removes a task that gives up.
    ///
    /// - Returns: the continuation to resume, and whether no task waits any more.
    mutating func leave(_ number: Int) -> (continuation: Continuation?, wasLast: Bool) {
        guard let continuation = waiting.removeValue(forKey: number) else { return (nil, false) }
        return (continuation, waiting.isEmpty)
    }

    /// Removes all tasks; later ones do not wait.
    ///
    /// - Returns: the continuations to resume.
    mutating func finish() -> [Continuation] {
        isOver = true
        defer { waiting = [:] }
        return waiting.values.compactMap { $0 }
    }
}
