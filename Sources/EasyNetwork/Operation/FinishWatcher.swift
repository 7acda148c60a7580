import Foundation

/// Tells when any `Operation` has finished, also one that is not of this package.
///
/// Linux has no key-value observing and a completion block belongs to the user, so a plain operation is watched by an
/// operation that depends on it.
enum FinishWatcher {
    /// Calls `action` once when `operation` has finished; at once, on this thread, if it already has.
    ///
    /// A plain operation that never finishes is kept alive by this for ever.
    static func watch(_ operation: Operation, _ action: @escaping @Sendable () -> Void) {
        if let operation = operation as? NetworkOperation {
            operation.whenFinished(action)
        } else if operation.isFinished {
            action()
        } else {
            // A queue for each: one queue for all would look through all that wait whenever one is done. The watcher
            // keeps its queue.
            let queue = OperationQueue()
            let watcher = BlockOperation { withExtendedLifetime(queue, action) }
            watcher.addDependency(operation)
            queue.addOperationReliably(watcher)
        }
    }
}
