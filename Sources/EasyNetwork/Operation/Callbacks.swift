/// The closures for the two ways in which an operation ends: a value under its owner's lock.
///
/// Release the closures that the methods return outside that lock, because a captured object can use the operation when
/// it is released.
struct Callbacks<Success, Failure> {
    private(set) var success: Success?
    private(set) var failure: Failure?
    /// Whether a closure that is set now would never be called.
    private var isClosed = false

    /// - Returns: the closure to release: the previous one, or this one if it comes too late.
    mutating func setSuccess(_ closure: Success?) -> Success? {
        guard closure == nil || !isClosed else { return closure }
        defer { success = closure }
        return success
    }

    /// - Returns: the closure to release: the previous one, or this one if it comes too late.
    mutating func setFailure(_ closure: Failure?) -> Failure? {
        guard closure == nil || !isClosed else { return closure }
        defer { failure = closure }
        return failure
    }

    /// Accepts no further closures.
    mutating func close() {
        isClosed = true
    }

    /// Removes both closures, and accepts no further ones.
    mutating func take() -> (success: Success?, failure: Failure?) {
        isClosed = true
        return (success.take(), failure.take())
    }
}
