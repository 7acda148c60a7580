/// Several operations that run side by side and end as one.
///
/// ```swift
/// let batch = BatchOperation(ids.map { RequestOperation(GetUser(id: $0)) })
/// batch.success = { batch in print(batch.operations.count) }
/// batch.failure = { batch, error in print(error.localizedDescription) }
/// NetworkQueue.shared.addOperation(batch)
/// ```
///
/// Each child keeps its own result, closures and dependencies; it may depend on other children, also on later ones. But a
/// child that is a group itself has its place among those that run at once from its start to its end: what its own
/// children depend on needs a place beside it, or both wait for ever.
///
/// An empty batch succeeds. To perform values, again and again, see
/// ``NetworkQueue/perform(_:maxConcurrentOperationCount:service:)``.
///
/// See ``GroupOperation`` for queues, cancellation, progress and lifetime.
open class BatchOperation: GroupOperation, @unchecked Sendable {
    // Sendable because what changes is in `callbacks`, behind its lock; subclasses answer for their own.

    /// What the failure of a child means.
    public enum Policy: Sendable {
        /// The first failure cancels the other children and is the batch's: its ``NetworkOperation/error`` has the
        /// code, the status and all else of the child's, a message that names the child, and the child's error as
        /// ``NetworkError/underlying``. See ``GroupOperation/decisiveFailure``. To cancel a child counts as its
        /// failure.
        case failFast
        /// All children run, and the batch succeeds whatever becomes of them, unless it is cancelled itself or a
        /// dependency of its own fails. See ``GroupOperation/failures``.
        case collectAll
    }

    /// What the failure of a child means for the batch.
    public let policy: Policy
    private let callbacks = GroupCallbacks<BatchOperation>()

    /// - Parameters:
    ///   - operations: the children; default none.
    ///   - policy: default `.failFast`.
    ///   - maxConcurrentOperationCount: how many children run at once; below 1, the default, as many as the queue lets.
    public init(
        _ operations: [NetworkOperation] = [],
        policy: Policy = .failFast,
        maxConcurrentOperationCount: Int = -1
    ) {
        self.policy = policy
        super.init(
            order: .together,
            endsAtFirstFailure: policy == .failFast,
            maxConcurrentOperationCount: maxConcurrentOperationCount
        )
        for operation in operations { addOperation(operation) }
    }

    /// Adds a child, also while the batch runs; it goes on until all have finished.
    ///
    /// - Returns: false when the batch has ended. The child ends then with ``NetworkError/Code/refused`` and does not
    ///   run, unless it is on a queue already.
    @discardableResult
    public final func addOperation(_ operation: NetworkOperation) -> Bool {
        append(operation)
    }

    // MARK: - Callbacks

    /// Called once when the batch has succeeded, after the delegate. Set it before the batch is added to a queue.
    /// Default nil.
    public final var success: (@Sendable (BatchOperation) -> Void)? {
        get { callbacks.success }
        set { callbacks.success = newValue }
    }

    /// Called once when the batch has failed or was cancelled, after the delegate. Set it before the batch is added to
    /// a queue. Default nil.
    public final var failure: (@Sendable (BatchOperation, NetworkError) -> Void)? {
        get { callbacks.failure }
        set { callbacks.failure = newValue }
    }

    /// Told of each child and of the end; not kept alive. Default nil.
    public final var delegate: (any BatchOperationDelegate)? {
        get { callbacks.delegate as? any BatchOperationDelegate }
        set { callbacks.delegate = newValue }
    }

    override func callback(for child: NetworkOperation, at index: Int) -> (@Sendable () -> Void)? {
        guard delegate != nil else { return nil }
        return { self.delegate?.batchOperation(self, didFinish: child, at: index) }
    }

    override func takeEndCallback(_ error: NetworkError?) -> (@Sendable () -> Void)? {
        guard callbacks.end(error) else { return nil }
        return {
            if let error {
                self.delegate?.batchOperation(self, didFailWith: error)
            } else {
                self.delegate?.batchOperationDidSucceed(self)
            }
            self.callbacks.call(for: self, error)
        }
    }

    override func detach() {
        callbacks.detach()
    }
}

/// Hears of a batch: of each child in the order in which they finish, and of the end, before the closures. Called on
/// the batch's callback queue, one call at a time. Every method does nothing by default.
public protocol BatchOperationDelegate: AnyObject, Sendable {
    /// A child has finished, in whatever way; its own callbacks have run. The batch does not end before this returns,
    /// unless it has failed, so that another child may be added.
    func batchOperation(_ batch: BatchOperation, didFinish operation: NetworkOperation, at index: Int)
    /// The batch has succeeded; with ``BatchOperation/Policy/collectAll`` children may have failed.
    func batchOperationDidSucceed(_ batch: BatchOperation)
    /// The batch has failed or was cancelled.
    func batchOperation(_ batch: BatchOperation, didFailWith error: NetworkError)
}

extension BatchOperationDelegate {
    public func batchOperation(_ batch: BatchOperation, didFinish operation: NetworkOperation, at index: Int) {}
    public func batchOperationDidSucceed(_ batch: BatchOperation) {}
    public func batchOperation(_ batch: BatchOperation, didFailWith error: NetworkError) {}
}
