import Foundation

extension OperationQueue {
    /// Adds an operation that may become ready at this very moment.
    ///
    /// On Linux the queue reads `isReady`, and only then begins to hear of its changes: a change in between is noticed
    /// but not acted on, and the operation waits until something else makes the queue look again. An empty operation
    /// behind it does that: at the end of the look at which it is added the queue notes that the other one is ready, and
    /// at its own end that one is started. But on another thread its end may come before that note, and then it takes one
    /// more look from here.
    func addOperationReliably(_ operation: Operation) {
        Self.addReliably(operation) { addOperation($0) }
    }

    /// - Parameter add: adds one to the queue.
    static func addReliably(_ operation: Operation, _ add: (Operation) -> Void) {
        let wasReady = operation.isReady
        add(operation)
        #if !canImport(Darwin)
        guard !wasReady else { return }
        add(BlockOperation {})
        if operation.isReady, !operation.isExecuting, !operation.isFinished { add(BlockOperation {}) }
        #endif
    }
}
