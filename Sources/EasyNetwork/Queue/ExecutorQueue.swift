import Foundation

/// The executor of a ``NetworkQueue``: cancelling it cancels the queue.
final class ExecutorQueue: OperationQueue, @unchecked Sendable {
    // Sendable because `owner` is written once, before anybody else has the queue.
    weak var owner: NetworkQueue?

    override func cancelAllOperations() {
        if let owner { owner.cancelAllOperations() } else { super.cancelAllOperations() }
    }
}
