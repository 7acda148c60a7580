/// The result of work that several wait for. It is set once.
package final class SharedResult<Value: Sendable>: Sendable {
    // A list: with many that wait, the nested closures of a `OneShot` would overflow the stack.
    private let state = Locked<(value: Value?, actions: [@Sendable () -> Void])>((nil, []))

    package init() {}

    /// Nil until it is set.
    package var value: Value? { state.withLock { $0.value } }

    /// Sets the result, and runs the actions in order. Only the first call has an effect.
    ///
    /// - Returns: whether this call is the first.
    @discardableResult
    package func set(_ value: Value) -> Bool {
        let actions = state.withLock { state -> [@Sendable () -> Void]? in
            guard state.value == nil else { return nil }
            state.value = value
            return state.actions.take()
        }
        for action in actions ?? [] { action() }
        return actions != nil
    }

    /// Adds an action for when the result is set, and runs it at once if it is.
    package func whenSet(_ action: @escaping @Sendable () -> Void) {
        let isSet = state.withLock { state in
            if state.value == nil { state.actions.append(action) }
            return state.value != nil
        }
        if isSet { action() }
    }

    /// Waits for the result. Cancelling the task ends this wait, and no other.
    ///
    /// - Returns: nil if the task was cancelled before.
    @discardableResult
    package func wait() async -> Value? {
        let over = OneShot()
        whenSet { over.end() }
        await over.wait()
        return value
    }
}
