import Dispatch
import Foundation

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
