/// The closures for the two ways in which an operation ends: a value behind its owner's lock.
///
/// What a change returns is let go of outside that lock: what a closure holds may use the operation when it goes.
struct EndClosures<Success, Failure> {
    private(set) var success: Success?
    private(set) var failure: Failure?
    /// Whether a closure that is set now would never be called.
    private var isClosed = false

    /// - Returns: the closure that is not kept: the one before, or, set too late, this one.
    mutating func setSuccess(_ closure: Success?) -> Success? {
        guard closure == nil || !isClosed else { return closure }
        defer { success = closure }
        return success
    }

    /// - Returns: the closure that is not kept: the one before, or, set too late, this one.
    mutating func setFailure(_ closure: Failure?) -> Failure? {
        guard closure == nil || !isClosed else { return closure }
        defer { failure = closure }
        return failure
    }

    /// No closure is taken in from now on.
    mutating func close() {
        isClosed = true
    }

    /// Takes both out; no closure is taken in from now on.
    mutating func take() -> (success: Success?, failure: Failure?) {
        isClosed = true
        return (success.take(), failure.take())
    }
}
