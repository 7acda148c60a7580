/// A value that is set once, and the actions and tasks that wait for it. Copies share both.
package struct Promise<Value: Sendable>: Sendable {
    /// A struct around the closure. Without it, each generic function that returns the closure would allocate a
    /// wrapper.
    private struct Action: Sendable {
        let run: @Sendable () -> Void
    }

    private struct State {
        var value: Value?
        /// Nearly every promise has one action, which needs no array.
        var first: Action?
        var others: [Action] = []
    }

    private let state = Locked(State())

    package init() {}

    /// The value; nil until it is set.
    package var value: Value? { state.withLock { $0.value } }

    /// Sets the value, and runs the actions in order. Only the first call has an effect.
    ///
    /// - Returns: Whether this call is the first.
    @discardableResult
    package func set(_ value: Value) -> Bool {
        let actions = state.withLock { state -> (first: Action?, others: [Action])? in
            guard state.value == nil else { return nil }
            state.value = value
            return (state.first.take(), state.others.take())
        }
        guard let actions else { return false }
        actions.first?.run()
        for action in actions.others { action.run() }
        return true
    }

    /// Runs an action when the value is set, or at once if it is already set.
    package func whenSet(_ action: @escaping @Sendable () -> Void) {
        let isSet = state.withLock { state in
            guard state.value == nil else { return true }
            let action = Action(run: action)
            if state.first == nil { state.first = action } else { state.others.append(action) }
            return false
        }
        if isSet { action() }
    }

    /// Waits for the value. Cancelling the task ends only this wait.
    ///
    /// - Returns: The value; nil if the task was cancelled before it was set.
    @discardableResult
    package func wait() async -> Value? {
        let end = Promise<Void>()
        whenSet { end.set() }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in end.whenSet { continuation.resume() } }
        } onCancel: {
            end.set()
        }
        return value
    }

    /// Returns whether both are the same promise.
    static func === (one: Self?, other: Self) -> Bool { one?.state === other.state }
}

extension [Promise<Void>] {
    /// Runs an action when all promises are set, or at once if they already are.
    func whenSet(_ action: @escaping @Sendable () -> Void) {
        guard let first else { return action() }
        let others = Array(dropFirst())
        first.whenSet { others.whenSet(action) }
    }
}

extension Promise<Void> {
    /// Fulfills the promise.
    package func set() { set(()) }
}

extension Task where Failure == Never {
    /// Waits for the task, which is cancelled together with the current task.
    package func joined() async -> Success {
        await withTaskCancellationHandler {
            await value
        } onCancel: {
            cancel()
        }
    }
}
