import Dispatch
import Foundation

/// What ``BatchOperation`` and ``ChainOperation`` have in common: one outcome for several operations.
///
/// It takes no slot of its queue. Its children become jobs of the same ``NetworkQueue``; on a plain `OperationQueue`
/// they run on a `NetworkQueue` of the group's own. A child that is already on a queue is left there and waited for;
/// one whose `isReady` somebody has asked for counts as being on a plain queue, which is how such a queue shows itself.
///
/// The group ends when it is cancelled, when a dependency or, as its policy has it, a child fails, or when the last
/// child has finished. It has finished, and its callbacks run, when every child has finished and the children's
/// callbacks have run: those that are left when it ends are cancelled. A child on a plain `OperationQueue`, which needs
/// a slot to finish, is waited for nevertheless.
///
/// Groups may hold groups. A child must not wait for the group that it is in, or for one around that, at whatever
/// remove: what closes the circle ends with ``NetworkError/Code/cycle``. A child on no queue counts as waiting for its
/// group's turn: add one that is to run before that to its queue first. One that was added to the group's queue behind
/// a barrier passes the barrier if that waits for the group; what the child depends on does not. The children are kept
/// as long as the group, for what they know of their outcomes. All members may be used from any thread.
open class GroupOperation: NetworkOperation, @unchecked Sendable {
    // Sendable because everything that changes is in `state`, behind its lock; subclasses answer for their own, and
    // `progress` is changed by one thread at a time, see `ProgressOrder`.
    struct Child {
        let operation: NetworkOperation
        /// Its own progress, as a part of the group's; nil when it counts only as a whole.
        let progress: OrderedProgress?
        /// What it counts in the group's progress.
        let weight: Int64
        /// Called on the callback queue when it has succeeded, and released when it has finished.
        var then: (@Sendable () -> Void)?
    }

    struct State {
        var ledger: ChildLedger
        var children: [Child] = []
        var callbackQueue: DispatchQueue?
        /// Where callbacks run one after the other, once the first one has.
        var turns: DispatchQueue?
        /// Where children run when the group is on no ``NetworkQueue``, once the first one does.
        var scheduler: NetworkQueue?
        var isHandingOn = false
        /// Called when the group has ended and every child has finished.
        var done: (@Sendable () -> Void)?
        /// The groups that this one is in.
        var parents: [WeakGroup] = []
        var isProgressClaimed = false
    }

    struct WeakGroup {
        weak var group: GroupOperation?
    }

    let state: Locked<State>

    /// How many children run at once; a number below 1 means as many as the queue lets. In a ``ChainOperation`` 1.
    public let maxConcurrentOperationCount: Int

    /// How much of the children's work is done: each counts as much as its ``NetworkOperation/progressWeight``, 1 by
    /// default, and has done its part when it has finished, in whatever way.
    ///
    /// A transfer and a group in this one count by their own progress meanwhile, in `fractionCompleted`. Cancelling it
    /// cancels the group; pausing and resuming it pauses and resumes the transfers that can be. The progress of a group
    /// in this one is a child of this progress, so do not add that to another one. An empty group ends at 1 of 1. It
    /// changes on background threads.
    public final var progress: Progress { orderedProgress }
    let orderedProgress = OrderedProgress.root()

    init(order: ChildLedger.Order, endsAtFirstFailure: Bool, maxConcurrentOperationCount: Int) {
        let ledger = ChildLedger(order: order, endsAtFirstFailure: endsAtFirstFailure)
        state = Locked(State(ledger: ledger))
        self.maxConcurrentOperationCount = maxConcurrentOperationCount
        super.init()
        progress.cancellationHandler = { [weak self] in self?.cancel() }
    }

    // MARK: - What can be read

    /// A child that failed, or was cancelled.
    public struct Failure: Sendable {
        /// Its place in ``GroupOperation/operations``.
        public let index: Int
        /// The child.
        public let operation: NetworkOperation
        /// The child's own error.
        public let error: NetworkError
    }

    /// The children, in the order in which they were added. Linear in their number.
    public final var operations: [NetworkOperation] {
        state.withLock { $0.children.map(\.operation) }
    }

    /// The children that have ended with an error so far, in the order of ``operations``. Linear in their number.
    public final var failures: [Failure] {
        operations.enumerated().compactMap { index, operation in
            operation.error.map { Failure(index: index, operation: operation, error: $0) }
        }
    }

    /// The child whose failure ended the group; nil when none did.
    public final var decisiveFailure: Failure? {
        let decisive = state.withLock { state in
            state.ledger.failedIndex.map { (index: $0, operation: state.children[$0].operation) }
        }
        guard let decisive, let error = decisive.operation.error else { return nil }
        return Failure(index: decisive.index, operation: decisive.operation, error: error)
    }

    /// Where the closures and the delegate are called, one at a time. Set it before the group is added to a queue.
    /// Default nil: the ``NetworkQueue``'s, or else a background queue.
    public final var callbackQueue: DispatchQueue? {
        get { state.withLock { $0.callbackQueue } }
        set { _ = state.withLock { exchange(&$0.callbackQueue, with: newValue) } }
    }

    // MARK: - For the subclasses in this package

    /// - Returns: what is to be called because a child has finished, on the callback queue.
    func callback(for child: NetworkOperation, at index: Int) -> (@Sendable () -> Void)? {
        nil
    }

    /// - Returns: what is to be called at the end, on the callback queue; called once.
    func takeEndCallback(_ error: NetworkError?) -> (@Sendable () -> Void)? {
        nil
    }

    // MARK: - The work

    /// Starts the children. A subclass may override it to add children first, and calls `super`.
    open override func execute() {
        state.withLock { $0.ledger.begin() }
        handOn()
        endIfComplete()
    }

    override var occupiesSlot: Bool { false }
    override var takesCategories: Bool { true }

    override var isComposite: Bool { true }

    override func claimProgress() -> OrderedProgress? {
        let isClaimed = state.withLock { state in
            guard !state.isProgressClaimed, !state.ledger.isDrained else { return false }
            state.isProgressClaimed = true
            return true
        }
        return isClaimed ? orderedProgress : nil
    }

    override var deliveryQueue: DispatchQueue { callbackQueue ?? super.deliveryQueue }

    override func stop() {
        endChildren()
    }

    override func deliver(_ done: @escaping @Sendable () -> Void) {
        state.withLock { state in
            state.ledger.begin()
            state.done = done
        }
        endChildren()
        handOn()
        deliverIfDrained()
    }
}
