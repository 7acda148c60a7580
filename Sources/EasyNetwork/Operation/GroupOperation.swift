import Dispatch
import Foundation

/// The base class of ``BatchOperation`` and ``ChainOperation``, which give several operations one outcome.
///
/// ```swift
/// group.failure = { group, error in
///     for child in group.failures { print(child.index, child.error.localizedDescription) }
/// }
/// ```
///
/// A group takes no slot of its queue. Its children become jobs of the same ``NetworkQueue``. On a plain
/// `OperationQueue`, they run on a private `NetworkQueue` of the group. A child that is already on a queue stays there,
/// and the group waits for it. A child whose `isReady` has been read counts as being on a plain queue.
///
/// The group ends when it is cancelled, when a dependency fails, when a child fails (depending on the group's policy),
/// or when the last child has finished. The remaining children are then cancelled. The group has finished, and its
/// callbacks run, when every child has finished and its callbacks have run. This includes a child on a plain
/// `OperationQueue`, which needs a slot to finish.
///
/// A group that fails or is cancelled undoes its steps before it ends: see ``RequestOperation/undo``.
///
/// Groups can contain groups. A child must not wait, directly or indirectly, for a group that contains it. The
/// operation that closes such a cycle ends with ``NetworkError/Code/cycle``. A child on no queue counts as waiting for
/// its group's turn. To run a child earlier, add it to its queue first. A child that was added to the group's queue
/// after a barrier passes the barrier if the barrier waits for the group. The child's dependencies do not.
///
/// The group keeps its children alive, for their results. All members can be used from any thread.
open class GroupOperation: NetworkOperation, @unchecked Sendable {
    // Sendable because all mutable state is in `state`, under its lock. Subclasses are responsible for their own state.
    // One thread at a time changes `progress`; see `ProgressOrder`.
    struct Child {
        let operation: NetworkOperation
        /// The child's own progress, as a part of the group's; `nil` if the child has no progress.
        let progress: OrderedProgress?
        /// The child's weight in the group's progress.
        let weight: Int64
        /// A closure that is called on the callback queue when the child has succeeded, and released when it has
        /// finished.
        var then: Then?
    }

    /// The number of children that have finished, and the number of all children.
    typealias Update = (completedCount: Int, totalCount: Int)

    /// The step that follows a child's success. It calls `done` at its end.
    typealias Then = @Sendable (_ done: @escaping @Sendable () -> Void) -> Void

    /// The closures of the end. They are released outside the lock, because a captured object can use the group when it
    /// is released.
    struct Closures {
        var success: (@Sendable (GroupOperation) -> Void)?
        var failure: (@Sendable (GroupOperation, NetworkError) -> Void)?
        var successOnMain: (@MainActor (GroupOperation) -> Void)?
        var failureOnMain: (@MainActor (GroupOperation, NetworkError) -> Void)?

        /// Returns whether one of them is called at this end; and whether one is called on the main actor.
        func handle(_ error: NetworkError?) -> (isAwaited: Bool, isAwaitedOnMain: Bool) {
            let isOnMain = error == nil ? successOnMain != nil : failureOnMain != nil
            return (isOnMain || (error == nil ? success != nil : failure != nil), isOnMain)
        }
    }

    struct State {
        var group: GroupState
        var children: [Child] = []
        /// The serial queue of the callbacks, created for the first one.
        var serialQueue: DispatchQueue?
        /// The children's queue if the group is on no ``NetworkQueue``, created for the first child.
        var ownQueue: NetworkQueue?
        var isHandingOn = false
        var isProgressClaimed = false
        /// The readers of ``GroupOperation/updates``. `nil` before the first one and after all children have finished.
        var updates: Multicast<Update>?
        var closures = Closures()
        /// Whether a closure that is set now would never be called.
        var isClosed = false
        weak var delegate: (any GroupOperationDelegate)?
        var isDetached = false
        var undoing = Undoing()

        var update: Update { (group.settledCount, group.count) }
    }

    let state: Locked<State>
    /// Completes when the group has ended and every child has finished.
    let drained = Promise<Void>()

    /// The maximum number of children that run at once. A number below 1 means as many as the queue allows. It is 1 in
    /// a ``ChainOperation``.
    public let maxConcurrentOperationCount: Int

    /// The progress of the children. Each child counts with its ``NetworkOperation/progressWeight``, which defaults to
    /// 1, and is complete when the child has finished, with success or failure.
    ///
    /// Until they finish, a transfer and a nested group count by their own progress, in `fractionCompleted`. Cancelling
    /// the progress cancels the group. Pausing and resuming it pauses and resumes the transfers that support this. The
    /// progress of a nested group is a child of this progress, so do not add it to another one. An empty group ends at
    /// 1 of 1. The progress changes on background threads.
    public final var progress: Progress { orderedProgress }
    let orderedProgress = OrderedProgress.root()

    /// A sequence of the number of finished children, successful or not, and the number of all children.
    ///
    /// ```swift
    /// for await (completed, total) in group.updates { print(completed, "of", total) }
    /// ```
    ///
    /// The sequence starts with the current values and continues with each change. It ends when the group has ended and
    /// all children have finished.
    ///
    /// A child counts as completed after its callbacks, the group's delegate and the `then` of a chain have run. These
    /// can add another child, so the group never seems complete too early.
    ///
    /// Each access returns a new sequence. A slow reader can miss intermediate values, but never the last one. A reader
    /// that stops, or whose task is cancelled, does not cancel the group. For fractions and bytes, see ``progress``.
    public final var updates: AsyncStream<(completedCount: Int, totalCount: Int)> {
        state.withLock { state in
            // After the end, the new multicast is not stored, so its sequence ends after the last value.
            let updates = state.updates ?? Multicast()
            if !state.group.isDrained { state.updates = updates }
            return updates.stream(first: state.update)
        }
    }

    init(inTurn: Bool, endsAtFirstFailure: Bool, maxConcurrentOperationCount: Int) {
        state = Locked(State(group: GroupState(inTurn: inTurn, endsAtFirstFailure: endsAtFirstFailure)))
        self.maxConcurrentOperationCount = maxConcurrentOperationCount
        super.init()
        traits.occupiesSlot = false
        progress.cancellationHandler = { [weak self] in self?.cancel() }
    }

    // MARK: - Results

    /// A child that failed or was cancelled, with its index in ``operations`` and its own error.
    public typealias Failure = (index: Int, operation: NetworkOperation, error: NetworkError)

    /// The children, in the order in which they were added. Linear in their number.
    public final var operations: [NetworkOperation] {
        state.withLock { $0.children.map(\.operation) }
    }

    /// The children that were added to a queue and have not finished, and the undo that runs.
    final var childrenUnderWay: [NetworkOperation] {
        state.withLock { state in
            state.children.prefix(state.group.handedOnCount).map(\.operation)
                + (state.undoing.job.map { [$0] } ?? [])
        }.filter { !$0.isFinished }
    }

    /// The children that have failed so far, in the order of ``operations``. Linear in the number of children.
    public final var failures: [Failure] {
        operations.enumerated().compactMap { index, operation in
            operation.error.map { (index, operation, $0) }
        }
    }

    /// The child whose failure ended the group; `nil` if no failure did. Linear in the number of children.
    public final var decisiveFailure: Failure? {
        let index = state.withLock { $0.group.failedIndex }
        return failures.first { $0.index == index }
    }

    /// The queue on which the closures and the delegate are called, one at a time. Set it before the group is added to
    /// a queue. Defaults to `nil`: the queue's ``NetworkQueue/callbackQueue``, otherwise a background queue.
    public final var callbackQueue: DispatchQueue? {
        get { option { $0.callbackQueue } }
        set { setOption(\.callbackQueue, newValue) }
    }

    // MARK: - Callbacks

    /// The delegate, which is notified of each child and of the end. Held weakly. Defaults to `nil`.
    public final var delegate: (any GroupOperationDelegate)? {
        get { state.withLock { $0.delegate } }
        set { state.withLock { $0.delegate = $0.isDetached ? nil : newValue } }
    }

    /// A closure that is called once when the group has succeeded, after the delegate. Set it before the group is added
    /// to a queue. Defaults to `nil`.
    public final var success: (@Sendable (GroupOperation) -> Void)? {
        get { state.withLock { $0.closures.success } }
        set { setClosures(areRemoved: newValue == nil) { $0.success = newValue } }
    }

    /// A closure that is called once when the group has failed or was cancelled, after the delegate. Set it before the
    /// group is added to a queue. Defaults to `nil`.
    public final var failure: (@Sendable (GroupOperation, NetworkError) -> Void)? {
        get { state.withLock { $0.closures.failure } }
        set { setClosures(areRemoved: newValue == nil) { $0.failure = newValue } }
    }

    /// Sets closures that run on the main actor, for user interfaces, whichever queue the callback queue is.
    ///
    /// ```swift
    /// group.onMain(success: { _ in spinner.hide() }, failure: { _, error in show(error.localizedDescription) })
    /// ```
    ///
    /// Each closure is called once, after the closure of the same name that runs on the callback queue and before
    /// dependents start. It is released on the main thread. The main queue must be running, as it is in an app. Set
    /// the closures before the group is added to a queue. A second call replaces only the closures that it passes.
    ///
    /// - Parameters:
    ///   - success: called when the group has succeeded, after ``success``. `nil` keeps the current closure.
    ///   - failure: called when the group has failed or was cancelled, after ``failure``. Defaults to `nil`, which
    ///     keeps the current closure.
    public final func onMain(
        success: (@MainActor (GroupOperation) -> Void)?,
        failure: (@MainActor (GroupOperation, NetworkError) -> Void)? = nil
    ) {
        setClosures(areRemoved: false) { closures in
            closures.successOnMain = success ?? closures.successOnMain
            closures.failureOnMain = failure ?? closures.failureOnMain
        }
    }

    /// Sets closures, unless it is too late. Removing one is never too late.
    private func setClosures(areRemoved: Bool, _ set: (inout Closures) -> Void) {
        state.discard { state in
            let old = state.closures
            if areRemoved || !state.isClosed { set(&state.closures) }
            return old
        }
    }

    override func detach() {
        state.withLock { state in
            state.isDetached = true
            state.delegate = nil
        }
        _ = takeClosures()
    }

    /// Removes all closures, and accepts no further ones.
    private func takeClosures() -> Closures {
        state.withLock { state in
            state.isClosed = true
            return exchange(&state.closures, with: Closures())
        }
    }

    // MARK: - The work

    /// Starts the children. A subclass can override it to add children first, and must call `super`.
    open override func execute() {
        state.withLock { $0.group.begin() }
        handOn()
        endIfComplete()
    }

    override func claimProgress() -> OrderedProgress? {
        state.withLock { state in
            state.group.isDrained || exchange(&state.isProgressClaimed, with: true) ? nil : orderedProgress
        }
    }

    override func stop() {
        endChildren()
    }

    override func endWork(after error: NetworkError?) -> [Promise<Void>] {
        state.withLock { $0.group.begin() }
        endChildren()
        handOn()
        noteIfDrained()
        guard error != nil else {
            // A subclass can finish the group before its last step. The callbacks wait for the journal.
            let committed = Promise<Void>()
            let isUncommitted = state.withLock { state in
                if state.undoing.logic.isUncommitted { state.undoing.committed = committed }
                return state.undoing.logic.isUncommitted
            }
            guard isUncommitted else { return [drained] }
            note(.completed)
            return [drained, committed]
        }
        let undone = Promise<Void>()
        drained.whenSet { self.undoSteps(.failed, in: self) { _ in undone.set() } }
        return [undone]
    }

    override func callBack(
        _ error: NetworkError?,
        on queue: DispatchQueue?,
        inPlace: Bool,
        _ done: @escaping @Sendable () -> Void
    ) {
        // The undos that have failed are a part of the error by now.
        let error = self.error
        // Read the delegate outside the lock, because this may be the last reference to it.
        let hasDelegate = delegate != nil
        let (isAwaited, isAwaitedOnMain) = state.withLock { state in
            state.isClosed = true
            return state.closures.handle(error)
        }
        guard hasDelegate || isAwaited else {
            _ = takeClosures()
            return afterProgress(on: WorkQueue.shared, done)
        }
        afterProgress(on: serialQueue) {
            if let error {
                self.delegate?.groupOperation(self, didFailWith: error)
            } else {
                self.delegate?.groupOperationDidSucceed(self)
            }
            // Take the closures only now, because they may have been released since.
            let (success, failure) = self.state.withLock { ($0.closures.success.take(), $0.closures.failure.take()) }
            if let error { failure?(self, error) } else { success?(self) }
            guard isAwaitedOnMain else {
                _ = self.takeClosures()
                return done()
            }
            WorkQueue.callOnMain(
                {
                    let closures = self.takeClosures()
                    if let error { closures.failureOnMain?(self, error) } else { closures.successOnMain?(self) }
                },
                then: done
            )
        }
    }

    override func didLeaveQueue(callbackQueue: DispatchQueue?) {
        guard let queue = scheduling?.queue else { return }
        // A later undo runs on the same queue.
        state.withLock { if $0.undoing.logic.hasSteps { $0.ownQueue = queue } }
    }
}

/// The delegate of a batch or a chain. It is notified of each child in the order in which they finish, and of the end,
/// before the closures. Its methods are called on the group's callback queue, one call at a time. Every method does
/// nothing by default.
///
/// ```swift
/// final class ImportStatus: GroupOperationDelegate {
///     func groupOperation(_ group: GroupOperation, didFinish operation: NetworkOperation, at index: Int) {
///         print("\(index + 1) of \(group.operations.count)")
///     }
/// }
/// ```
public protocol GroupOperationDelegate: AnyObject, Sendable {
    /// Called when a child has finished, with success or failure, and its own callbacks have run. In a chain, its
    /// `then` runs next. A group that has not failed does not end before this method returns, so the method can add
    /// another child.
    func groupOperation(_ group: GroupOperation, didFinish operation: NetworkOperation, at index: Int)
    /// Called when the group has succeeded. With ``BatchOperation/Policy/collectAll``, children may have failed.
    func groupOperationDidSucceed(_ group: GroupOperation)
    /// Called when the group has failed or was cancelled.
    func groupOperation(_ group: GroupOperation, didFailWith error: NetworkError)
}

extension GroupOperationDelegate {
    public func groupOperation(_ group: GroupOperation, didFinish operation: NetworkOperation, at index: Int) {}
    public func groupOperationDidSucceed(_ group: GroupOperation) {}
    public func groupOperation(_ group: GroupOperation, didFailWith error: NetworkError) {}
}
