/// Something that happens once, whoever comes first.
final class OneShot: Sendable {
    private let state = Locked<(isOver: Bool, action: (@Sendable () -> Void)?)>((false, nil))

    func begin(_ action: @escaping @Sendable () -> Void) {
        let isOver = state.withLock { state in
            if !state.isOver { state.action = action }
            return state.isOver
        }
        if isOver { action() }
    }

    func end() {
        let action = state.withLock { state in
            state.isOver = true
            return state.action.take()
        }
        action?()
    }

    /// Returns when it has happened, or when the task is cancelled, which makes it happen.
    func wait() async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in begin { continuation.resume() } }
        } onCancel: {
            end()
        }
    }
}
