/// Several operations that run concurrently and end as one.
///
/// ```swift
/// let batch = BatchOperation(ids.map { RequestOperation(GetUser(id: $0)) })
/// batch.success = { batch in print(batch.operations.count) }
/// batch.failure = { batch, error in print(error.localizedDescription) }
/// NetworkQueue.shared.addOperation(batch)
/// ```
///
/// Each child keeps its own result, closures and dependencies. It can depend on other children, including later ones.
/// With a limit, a nested group counts as running from its start to its end. If its children depend on other children
/// of the batch, the limit must leave room for these. Otherwise both wait forever.
///
/// An empty batch succeeds. To run request values, as often as needed, see
/// ``NetworkQueue/perform(_:maxConcurrentOperationCount:service:)``.
///
/// For queues, cancellation, progress and lifetime, see ``GroupOperation``.
open class BatchOperation: GroupOperation, @unchecked Sendable {
    // Sendable because the class has no mutable state. Subclasses are responsible for their own state.

    /// How the batch handles a child's failure.
    ///
    /// ```swift
    /// let batch = BatchOperation(operations, policy: .collectAll)
    /// ```
    public enum Policy: Sendable {
        /// The first failure cancels the other children and fails the batch. The batch's ``NetworkOperation/error`` is
        /// the child's error, with a message that names the child; see ``GroupOperation/decisiveFailure``. Cancelling a
        /// child counts as its failure. A child that waited for the failed child's slot may have started before it is
        /// cancelled. In a ``ChainOperation``, no later step starts.
        case failFast
        /// All children run, and the batch succeeds even if some of them fail, unless the batch is cancelled itself or
        /// one of its dependencies fails. See ``GroupOperation/failures``.
        case collectAll
    }

    /// How the batch handles a child's failure.
    public let policy: Policy

    /// Creates a batch.
    ///
    /// - Parameters:
    ///   - operations: the children. Defaults to an empty array.
    ///   - policy: how the batch handles a child's failure. Defaults to `.failFast`.
    ///   - maxConcurrentOperationCount: the number of children that run at once. A number below 1 means as many as the
    ///     queue allows. Defaults to `-1`.
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

    /// Adds a child, even while the batch runs. The batch continues until all children have finished.
    ///
    /// - Returns: `false` if the batch has ended. The child then ends with ``NetworkError/Code/refused`` and does not
    ///   run, unless it is already on a queue.
    @discardableResult
    public final func addOperation(_ operation: NetworkOperation) -> Bool {
        append(operation)
    }
}
