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
    }

    private let state = Locked(State())

    /// Completes when the pause ends; `nil` while the upload is not paused.
    var resumed: Promise<Void>? { state.withLock { $0.resumed } }

    func pause() { change { if $0.resumed == nil { $0.resumed = Promise() } } }

    func resume() { state.withLock { $0.resumed.take() }?.set() }

    func noteSlot(isThere: Bool) { change { $0.yieldCount += isThere ? -1 : 1 } }

    /// Begins a message that can be stopped.
    func begin(_ stop: @escaping @Sendable () -> Void) { change { $0.stop = stop } }

    /// Ends a message.
    func end() { state.discard { $0.stop.take() } }

    private func change(_ change: (inout State) -> Void) {
        let stop = state.withLock { state in
            change(&state)
            return state.resumed != nil || state.yieldCount > 0 ? state.stop.take() : nil
        }
        stop?()
    }
}
