import Foundation

extension OperationQueue {
    /// Adds an operation that may become ready at this very moment.
    ///
    /// On Linux the queue reads `isReady`, and only then begins to hear of its changes: a change in between is noticed
    /// but not acted on, and the operation waits until something else makes the queue look again. An empty operation
    /// behind it does that.
    func addOperationReliably(_ operation: Operation) {
        let wasReady = operation.isReady
        addOperation(operation)
        #if !canImport(Darwin)
        if !wasReady { addOperation {} }
        #endif
    }
}
