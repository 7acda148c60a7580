/// The closures and the delegate of a group of operations.
final class GroupCallbacks<Group: GroupOperation>: Sendable {
    private struct State {
        var success: (@Sendable (Group) -> Void)?
        var failure: (@Sendable (Group, NetworkError) -> Void)?
        weak var delegate: AnyObject?
        /// Whether the closures have been taken to be called.
        var isDelivered = false
    }

    private let state = Locked(State())

    var delegate: AnyObject? {
        get { state.withLock { $0.delegate } }
        set { state.withLock { $0.delegate = newValue } }
    }

    var success: (@Sendable (Group) -> Void)? {
        get { state.withLock { $0.success } }
        set { setUnlessDelivered(\.success, newValue) }
    }

    var failure: (@Sendable (Group, NetworkError) -> Void)? {
        get { state.withLock { $0.failure } }
        set { setUnlessDelivered(\.failure, newValue) }
    }

    /// - Returns: the closure for this ending, if there is one; nothing is kept.
    func take(for group: Group, _ error: NetworkError?) -> (@Sendable () -> Void)? {
        let (success, failure) = state.withLock { state in
            state.isDelivered = true
            return (state.success.take(), state.failure.take())
        }
        if let error {
            guard let failure else { return nil }
            return { failure(group, error) }
        }
        guard let success else { return nil }
        return { success(group) }
    }

    /// Set too late, a closure is never called, and not kept.
    private func setUnlessDelivered<Closure>(_ path: WritableKeyPath<State, Closure?>, _ closure: Closure?) {
        let released = state.withLock { state -> Closure? in
            guard !state.isDelivered else { return closure }
            let old = state[keyPath: path]
            state[keyPath: path] = closure
            return old
        }
        // Outside the lock: what the closure holds may use the operation when it goes.
        withExtendedLifetime(released) {}
    }
}
