import Dispatch
import Foundation

/// The base class of ``BatchOperation`` and ``ChainOperation``: one outcome for several operations.
///
/// ```swift
/// group.failure = { group, error in
///     for child in group.failures { print(child.index, child.error.localizedDescription) }
/// }
/// ```
///
/// A group takes no slot of its queue. Its children become jobs of the same ``NetworkQueue``; on a plain
/// `OperationQueue` they run on a private `NetworkQueue` of the group. A child that is already on a queue stays there,
/// and the group waits for it. A child whose `isReady` has been read counts as being on a plain queue.
///
/// The group ends when it is cancelled, when a dependency or, depending on its policy, a child fails, or when the last
/// child has finished. Then the remaining children are cancelled. The group has finished, and its callbacks run, when
/// every child has finished and the children's callbacks have run. A child on a plain `OperationQueue`, which needs a
/// slot to finish, is waited for too.
///
/// Groups may contain groups. A child must not wait for the group that it is in, or for one around that, directly or
/// indirectly: the operation that closes the cycle ends with ``NetworkError/Code/cycle``. A child on no queue counts as
/// waiting for its group's turn: to run a child before that, add it to its queue first. A child that was added to the
/// group's queue behind a barrier passes the barrier if that waits for the group; the dependencies of the child do not.
/// The group keeps its children alive, for their results. All members may be used from any thread.
open class GroupOperation: NetworkOperation, @unchecked Sendable {
    // Sendable because all mutable state is in `state`, behind its lock; subclasses answer for their own state, and
    // `progress` is changed by one thread at a time, see `ProgressOrder`.
    struct Child {
        let operation: NetworkOperation
        /// The child's own progress, as a part of the group's; nil when the child has none.
        let progress: OrderedProgress?
        /// The child's weight in the group's progress.
        let weight: Int64
        /// Called on the callback queue when the child has succeeded, and released when it has finished.
        var then: Then?
    }

    /// The step that follows a child's success; calls `done` afterwards.
    typealias Then = @Sendable (_ done: @escaping @Sendable () -> Void) -> Void

    struct State {
        var group: GroupState
        var children: [Child] = []
        /// The serial queue of the callbacks, once the first one runs.
        var serialQueue: DispatchQueue?
        /// The children's queue when the group is on no ``NetworkQueue``, once the first child runs.
        var ownQueue: NetworkQueue?
        var isHandingOn = false
        var isProgressClaimed = false
        var closures = Callbacks<
            @Sendable (GroupOperation) -> Void, @Sendable (GroupOperation, NetworkError) -> Void
        >()
        var closuresOnMain = Callbacks<
            @MainActor (GroupOperation) -> Void, @MainActor (GroupOperation, NetworkError) -> Void
        >()
        weak var delegate: (any GroupOperationDelegate)?
        var isDetached = false
    }

    let state: Locked<State>
    /// Set when the group has ended and every child has finished.
    let drained = Promise<Void>()

    /// The number of children that run at once; a number below 1 means as many as the queue allows. In a
    /// ``ChainOperation`` 1.
    public let maxConcurrentOperationCount: Int

    /// The progress of the children: each counts as much as its ``NetworkOperation/progressWeight``, 1 by default, and
    /// is complete when it has finished, with success or failure.
    ///
    /// A transfer and a nested group count by their own progress until then, in `fractionCompleted`. Cancelling the
    /// progress cancels the group; pausing and resuming it pauses and resumes the transfers that can be. The progress
    /// of a nested group is a child of this progress, so do not add it to another one. An empty group ends at 1 of 1.
    /// The progress changes on background threads.
    public final var progress: Progress { orderedProgress }
    let orderedProgress = OrderedProgress.root()

    init(inTurn: Bool, endsAtFirstFailure: Bool, maxConcurrentOperationCount: Int) {
        state = Locked(State(group: GroupState(inTurn: inTurn, endsAtFirstFailure: endsAtFirstFailure)))
        self.maxConcurrentOperationCount = maxConcurrentOperationCount
        super.init()
        progress.cancellationHandler = { [weak self] in self?.cancel() }
    }

    // MARK: - Results

    /// A child that failed or was cancelled, with its index in ``operations`` and its own error.
    public typealias Failure = (index: Int, operation: NetworkOperation, error: NetworkError)

    /// The children, in the order in which they were added. Linear in their number.
    public final var operations: [NetworkOperation] {
        state.withLock { $0.children.map(\.operation) }
    }

    /// The children that were handed on and have not finished.
    final var childrenUnderWay: [NetworkOperation] {
        state.withLock { $0.children.prefix($0.group.handedOnCount).map(\.operation) }.filter { !$0.isFinished }
    }

    /// The children that have ended with an error so far, in the order of ``operations``. Linear in their number.
    public final var failures: [Failure] {
        operations.enumerated().compactMap { index, operation in
            operation.error.map { (index, operation, $0) }
        }
    }

    /// The child whose failure ended the group; nil when none did. Linear in their number.
    public final var decisiveFailure: Failure? {
        let index = state.withLock { $0.group.failedIndex }
        return failures.first { $0.index == index }
    }

    /// Where the closures and the delegate are called, one at a time. Set it before the group is added to a queue.
    /// Default nil: the ``NetworkQueue``'s, or else a background queue.
    public final var callbackQueue: DispatchQueue? {
        get { option { $0.callbackQueue } }
        set { setOption(\.callbackQueue, newValue) }
    }

    // MARK: - Callbacks

    /// The delegate, which is told of each child and of the end. Not kept alive. Default nil.
    public final var delegate: (any GroupOperationDelegate)? {
        get { state.withLock { $0.delegate } }
        set { state.withLock { $0.delegate = $0.isDetached ? nil : newValue } }
    }

    /// Called once when the group has succeeded, after the delegate. Set it before the group is added to a queue.
    /// Default nil.
    public final var success: (@Sendable (GroupOperation) -> Void)? {
        get { state.withLock { $0.closures.success } }
        set { withExtendedLifetime(state.withLock { $0.closures.setSuccess(newValue) }) {} }
    }

    /// Called once when the group has failed or was cancelled, after the delegate. Set it before the group is added to
    /// a queue. Default nil.
    public final var failure: (@Sendable (GroupOperation, NetworkError) -> Void)? {
        get { state.withLock { $0.closures.failure } }
        set { withExtendedLifetime(state.withLock { $0.closures.setFailure(newValue) }) {} }
    }

    /// Sets closures that run on the main actor, for user interfaces, whatever the callback queue is.
    ///
    /// ```swift
    /// group.onMain(success: { _ in spinner.hide() }, failure: { _, error in show(error.localizedDescription) })
    /// ```
    ///
    /// Each is called once, after the closure of the same name that runs on the callback queue and before dependents
    /// start, and is released on the main thread. The main queue must be running: an app's does. Set them before the
    /// group is added to a queue. A second call replaces those that it names.
    ///
    /// - Parameters:
    ///   - success: called when the group has succeeded, after ``success``; nil to leave it as it is.
    ///   - failure: called when it has failed or was cancelled, after ``failure``. Default nil.
    public final func onMain(
        success: (@MainActor (GroupOperation) -> Void)?,
        failure: (@MainActor (GroupOperation, NetworkError) -> Void)? = nil
    ) {
        // Released outside the lock.
        if let success { withExtendedLifetime(state.withLock { $0.closuresOnMain.setSuccess(success) }) {} }
        if let failure { withExtendedLifetime(state.withLock { $0.closuresOnMain.setFailure(failure) }) {} }
    }

    /// Accepts no closure from now on.
    ///
    /// - Returns: the call of the delegate and the closures, for the callback queue; nil when there is nothing to call.
    final func takeEndCallback(_ error: NetworkError?) -> Then? {
        // Not under the lock: this may be the last reference to it.
        let hasDelegate = delegate != nil
        let (isAwaited, isAwaitedOnMain) = state.withLock { state in
            state.closures.close()
            state.closuresOnMain.close()
            let isOnMain = error == nil ? state.closuresOnMain.success != nil : state.closuresOnMain.failure != nil
            let isCalled = error == nil ? state.closures.success != nil : state.closures.failure != nil
            return (hasDelegate || isCalled || isOnMain, isOnMain)
        }
        guard isAwaited else {
            releaseClosures()
            return nil
        }
        return { done in
            if let error {
                self.delegate?.groupOperation(self, didFailWith: error)
            } else {
                self.delegate?.groupOperationDidSucceed(self)
            }
            // Taken only now: they may have been released since.
            let (success, failure) = self.state.withLock { $0.closures.take() }
            if let error { failure?(self, error) } else { success?(self) }
            guard isAwaitedOnMain else {
                self.releaseClosures()
                return done()
            }
            WorkQueue.callOnMain(
                {
                    let (success, failure) = self.state.withLock { $0.closuresOnMain.take() }
                    if let error { failure?(self, error) } else { success?(self) }
                },
                then: done
            )
        }
    }

    override func detach() {
        state.withLock { state in
            state.isDetached = true
            state.delegate = nil
        }
        releaseClosures()
    }

    private func releaseClosures() {
        // Outside the lock.
        withExtendedLifetime(state.withLock { $0.closures.take() }) {}
        withExtendedLifetime(state.withLock { $0.closuresOnMain.take() }) {}
    }

    // MARK: - The work

    /// Starts the children. A subclass may override it to add children first, and must call `super`.
    open override func execute() {
        state.withLock { $0.group.begin() }
        handOn()
        endIfComplete()
    }

    override var traits: JobTraits { JobTraits(occupiesSlot: false) }

    override func claimProgress() -> OrderedProgress? {
        let isClaimed = state.withLock { state in
            guard !state.isProgressClaimed, !state.group.isDrained else { return false }
            state.isProgressClaimed = true
            return true
        }
        return isClaimed ? orderedProgress : nil
    }

    override func stop() {
        endChildren()
    }

    override func endWork(after error: NetworkError?) -> [Promise<Void>] {
        state.withLock { $0.group.begin() }
        endChildren()
        handOn()
        noteIfDrained()
        return [drained]
    }

    override func callBack(_ error: NetworkError?, inPlace: Bool, _ done: @escaping @Sendable () -> Void) {
        tellEnd(takeEndCallback(error), done)
    }
}

/// The delegate of a batch or a chain, told of each child in the order in which they finish, and of the end, before the
/// closures. Called on the group's callback queue, one call at a time. Every method does nothing by default.
///
/// ```swift
/// final class ImportStatus: GroupOperationDelegate {
///     func groupOperation(_ group: GroupOperation, didFinish operation: NetworkOperation, at index: Int) {
///         print("\(index + 1) of \(group.operations.count)")
///     }
/// }
/// ```
public protocol GroupOperationDelegate: AnyObject, Sendable {
    /// A child has finished, with success or failure, and its own callbacks have run; in a chain its `then` runs next.
    /// A group that has not failed does not end before this returns, so another child may be added.
    func groupOperation(_ group: GroupOperation, didFinish operation: NetworkOperation, at index: Int)
    /// The group has succeeded; with ``BatchOperation/Policy/collectAll`` children may have failed.
    func groupOperationDidSucceed(_ group: GroupOperation)
    /// The group has failed or was cancelled.
    func groupOperation(_ group: GroupOperation, didFailWith error: NetworkError)
}

extension GroupOperationDelegate {
    public func groupOperation(_ group: GroupOperation, didFinish operation: NetworkOperation, at index: Int) {}
    public func groupOperationDidSucceed(_ group: GroupOperation) {}
    public func groupOperation(_ group: GroupOperation, didFailWith error: NetworkError) {}
}
