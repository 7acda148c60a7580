import Foundation

extension OperationQueue {
    /// Adds an operation that can become ready at the same moment.
    ///
    /// On Linux the queue reads `isReady` before it observes changes. It misses a change in between, and the operation
    /// waits until the queue reads `isReady` again. Adding an empty operation makes the queue do so: when the empty
    /// operation is added, the queue notes that the other operation is ready, and when the empty operation ends, the
    /// queue starts the other one. If the empty operation ends on another thread before the note, a second empty
    /// operation is needed.
    ///
    /// - Parameter add: A closure that adds an operation to the queue.
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
