/// Several operations that run concurrently and end as one.
///
/// ```swift
/// let batch = BatchOperation(ids.map { RequestOperation(GetUser(id: $0)) })
/// batch.success = { batch in print(batch.operations.count) }
/// batch.failure = { batch, error in print(error.localizedDescription) }
/// NetworkQueue.shared.addOperation(batch)
/// ```
///
/// Each child keeps its own result, closures and dependencies; it may depend on other children, also on later ones.
/// With a limit, a nested group counts as running from its start to its end: if its children depend on other children
/// of the batch, the limit must leave room for these, or both wait for ever.
///
/// An empty batch succeeds. To perform values, as often as needed, see
/// ``NetworkQueue/perform(_:maxConcurrentOperationCount:service:)``.
///
/// See ``GroupOperation`` for queues, cancellation, progress and lifetime.
open class BatchOperation: GroupOperation, @unchecked Sendable {
    // Sendable because nothing changes here; subclasses answer for their own state.

    /// The meaning of a child's failure.
    ///
    /// ```swift
    /// let batch = BatchOperation(operations, policy: .collectAll)
    /// ```
    public enum Policy: Sendable {
        /// The first failure cancels the other children and fails the batch: its ``NetworkOperation/error`` is that of
        /// the child, with a message that names it. See ``GroupOperation/decisiveFailure``. Cancelling a child counts as
        /// its failure. A child that waited for the slot of the one that failed may have begun when it is cancelled; in
        /// a ``ChainOperation`` none does.
        case failFast
        /// All children run, and the batch succeeds also if some fail, unless it is cancelled itself or a dependency of
        /// its own fails. See ``GroupOperation/failures``.
        case collectAll
    }

    /// The meaning of a child's failure for the batch.
    public let policy: Policy

    /// Creates a batch.
    ///
    /// - Parameters:
    ///   - operations: the children; default none.
    ///   - policy: default `.failFast`.
    ///   - maxConcurrentOperationCount: the number of children that run at once; below 1, the default, as many as the
    ///     queue allows.
    public init(
        _ operations: [NetworkOperation] = [],
        policy: Policy = .failFast,
        maxConcurrentOperationCount: Int = -1
    ) {
        self.policy = policy
        super.init(
            inTurn: false,
            endsAtFirstFailure: policy == .failFast,
            maxConcurrentOperationCount: maxConcurrentOperationCount
        )
        for operation in operations { addOperation(operation) }
    }

    /// Adds a child, also while the batch runs, which goes on until all children have finished.
    ///
    /// - Returns: false when the batch has ended. The child ends then with ``NetworkError/Code/refused`` and does not
    ///   run, unless it is on a queue already.
    @discardableResult
    public final func addOperation(_ operation: NetworkOperation) -> Bool {
        append(operation)
    }
}
