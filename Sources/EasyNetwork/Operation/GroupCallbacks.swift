/// The closures and the delegate of a group of operations.
final class GroupCallbacks<Group: GroupOperation>: Sendable {
    private struct State {
        var closures = EndClosures<@Sendable (Group) -> Void, @Sendable (Group, NetworkError) -> Void>()
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

    /// Nobody wants to hear of the group any more: lets go of everything.
    func detach() {
        let released = state.withLock { state in
            state.isDetached = true
            state.delegate = nil
            return state.closures.take()
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
            state.closures.close()
            let isCalled = error == nil ? state.closures.success != nil : state.closures.failure != nil
            return hasDelegate || isCalled ? (true, nil) : (false, state.closures.take())
        }
        withExtendedLifetime(released) {}
        return isAwaited
    }

    /// Calls the closure for this ending, if it has not been let go of meanwhile. On the callback queue.
    func call(for group: Group, _ error: NetworkError?) {
        let (success, failure) = state.withLock { $0.closures.take() }
        if let error { failure?(group, error) } else { success?(group) }
    }
}
