/// The closures and the delegate of a group of operations.
final class GroupCallbacks<Group: GroupOperation>: Sendable {
    private struct State {
        var success: (@Sendable (Group) -> Void)?
        var failure: (@Sendable (Group, NetworkError) -> Void)?
        weak var delegate: AnyObject?
        /// Whether a closure that is set now would never be called.
        var refusesClosures = false
        var isDetached = false
    }

    private let state = Locked(State())

    var delegate: AnyObject? {
        get { state.withLock { $0.delegate } }
        set { state.withLock { $0.delegate = $0.isDetached ? nil : newValue } }
    }

    var success: (@Sendable (Group) -> Void)? {
        get { state.withLock { $0.success } }
        set { setUnlessTooLate(\.success, newValue) }
    }

    var failure: (@Sendable (Group, NetworkError) -> Void)? {
        get { state.withLock { $0.failure } }
        set { setUnlessTooLate(\.failure, newValue) }
    }

    /// Nobody wants to hear of the group any more: lets go of everything.
    func detach() {
        let released = state.withLock { state in
            state.isDetached = true
            state.refusesClosures = true
            state.delegate = nil
            return (state.success.take(), state.failure.take())
        }
        withExtendedLifetime(released) {}
    }

    /// The group has ended: no closure is taken in from now on.
    ///
    /// - Returns: whether anybody is to be told, by ``call(for:_:)``. If not, nothing is kept.
    func end(_ error: NetworkError?) -> Bool {
        // Not under the lock: who looks at it may be the last to hold it.
        let hasDelegate = delegate != nil
        let (isAwaited, released) = state.withLock { state in
            state.refusesClosures = true
            let isAwaited = hasDelegate || (error == nil ? state.success != nil : state.failure != nil)
            return (isAwaited, isAwaited ? (nil, nil) : (state.success.take(), state.failure.take()))
        }
        withExtendedLifetime(released) {}
        return isAwaited
    }

    /// Calls the closure for this ending, if it has not been let go of meanwhile. On the callback queue.
    func call(for group: Group, _ error: NetworkError?) {
        let (success, failure) = state.withLock { ($0.success.take(), $0.failure.take()) }
        if let error { failure?(group, error) } else { success?(group) }
    }

    /// Set too late, a closure is never called, and not kept.
    private func setUnlessTooLate<Closure>(_ path: WritableKeyPath<State, Closure?>, _ closure: Closure?) {
        let released = state.withLock { state -> Closure? in
            guard closure == nil || !state.refusesClosures else { return closure }
            let old = state[keyPath: path]
            state[keyPath: path] = closure
            return old
        }
        // Outside the lock: what the closure holds may use the operation when it goes.
        withExtendedLifetime(released) {}
    }
}
