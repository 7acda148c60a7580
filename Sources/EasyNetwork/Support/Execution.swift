import Dispatch
import Foundation

/// An event that happens once, with actions for it.
package final class OneShot: Sendable {
    private let state = Locked<(isOver: Bool, action: (@Sendable () -> Void)?)>((false, nil))

    package init() {}

    /// Adds an action, and runs it at once if the event has happened.
    package func whenOver(_ action: @escaping @Sendable () -> Void) {
        let isOver = state.withLock { state in
            guard !state.isOver else { return true }
            guard let first = state.action else {
                state.action = action
                return false
            }
            // Seldom: nearly every event has one action.
            state.action = {
                first()
                action()
            }
            return false
        }
        if isOver { action() }
    }

    /// The event happens: runs the actions, in order. Further calls do nothing.
    package func end() {
        let action = state.withLock { state in
            state.isOver = true
            return state.action.take()
        }
        action?()
    }

    /// Returns when the event has happened. Cancelling the task makes it happen.
    package func wait() async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in whenOver { continuation.resume() } }
        } onCancel: {
            end()
        }
    }
}

extension AsyncStream.Continuation {
    /// Calls `action` on the ``WorkQueue`` when the stream is not read any more, or has finished.
    ///
    /// Not in place, as `onTermination` is called: with a task that is cancelled that happens under a lock of Swift's,
    /// for which a `yield` to the task waits on another thread. If that yields under a lock which `action` takes, both
    /// would wait for ever.
    package func whenTerminated(_ action: @escaping @Sendable () -> Void) {
        onTermination = { _ in WorkQueue.shared.add(action) }
    }
}

extension OperationQueue {
    /// Adds an operation that may become ready at the same time.
    ///
    /// On Linux the queue reads `isReady` before it observes changes: it ignores a change in between, and the operation
    /// waits until the queue looks again. An empty operation behind it makes the queue look: when it is added, the
    /// queue notes that the other operation is ready, and when it ends, the queue starts that one. If it ends on
    /// another thread before the note, a second empty operation is needed.
    func addOperationReliably(_ operation: Operation) {
        Self.addReliably(operation) { addOperation($0) }
    }

    /// - Parameter add: adds an operation to the queue.
    static func addReliably(_ operation: Operation, _ add: (Operation) -> Void) {
        if let loop = WorkQueue.loop { return loop.start(operation) }
        let wasReady = operation.isReady
        add(operation)
        #if !canImport(Darwin)
        guard !wasReady else { return }
        add(BlockOperation {})
        if operation.isReady, !operation.isExecuting, !operation.isFinished { add(BlockOperation {}) }
        #endif
    }
}
