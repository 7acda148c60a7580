import Foundation

/// Tells when any `Operation` has finished, also one that is not of this package.
///
/// Linux has no key-value observing and a completion block belongs to the user, so a plain operation is watched by an
/// operation that depends on it.
enum FinishWatcher {
    private static let queue: OperationQueue = {
        let queue = OperationQueue()
        queue.name = "EasyNetwork.FinishWatcher"
        return queue
    }()

    /// Calls `action` once when `operation` has finished; at once, on this thread, if it already has.
    ///
    /// A plain operation that never finishes is kept alive by this for ever.
    static func watch(_ operation: Operation, _ action: @escaping @Sendable () -> Void) {
        if let operation = operation as? NetworkOperation {
            operation.whenFinished(action)
        } else if operation.isFinished {
            action()
        } else {
            let watcher = BlockOperation(block: action)
            watcher.addDependency(operation)
            queue.addOperationReliably(watcher)
        }
    }
}
