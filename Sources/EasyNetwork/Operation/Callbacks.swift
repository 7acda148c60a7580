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
