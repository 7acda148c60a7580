import Foundation

/// When an upload sends a message: not while it is paused, and not while an urgent job has its slot.
final class UploadTurn: Sendable {
    private struct State {
        /// Completes when the pause ends; `nil` while the upload is not paused.
        var resumed: Promise<Void>?
        /// The number of times that the upload has yielded, minus the number of times that it has resumed. Two threads
        /// can report these in either order.
        var yieldCount = 0
        /// Stops the current message; `nil` if there is none, or if it must reach its end.
        var stop: (@Sendable () -> Void)?
        var isStopped = false

        var mustStop: Bool { resumed != nil || yieldCount > 0 }
    }

    private let state = Locked(State())

    /// Completes when the pause ends; `nil` while the upload is not paused.
    var resumed: Promise<Void>? { state.withLock { $0.resumed } }

    func pause() { change { if $0.resumed == nil { $0.resumed = Promise() } } }

    func resume() { state.withLock { $0.resumed.take() }?.set() }

    func noteSlot(isThere: Bool) { change { $0.yieldCount += isThere ? -1 : 1 } }

    private func change(_ change: (inout State) -> Void) {
        let stop = state.withLock { state -> (@Sendable () -> Void)? in
            change(&state)
            guard state.mustStop, let stop = state.stop.take() else { return nil }
            state.isStopped = true
            return stop
        }
        stop?()
    }

    /// Begins a message that can be stopped.
    func begin(_ stop: @escaping @Sendable () -> Void) {
        change { ($0.stop, $0.isStopped) = (stop, false) }
    }

    /// Ends a message.
    ///
    /// - Returns: Whether it was stopped.
    func end() -> Bool {
        let (old, isStopped) = state.withLock { state in
            (state.stop.take(), exchange(&state.isStopped, with: false))
        }
        withExtendedLifetime(old) {}
        return isStopped
    }
}
