import Foundation

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
