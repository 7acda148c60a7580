import Foundation

/// The queue of an operation and its job there.
struct Scheduling {
    let queue: NetworkQueue
    let job: NetworkQueue.Job
}

/// The interface of an operation for its queue.
extension NetworkOperation {
    /// The listeners of the operation's queue.
    final var broadcast: EventBroadcast? { scheduling?.queue.broadcast }

    /// Tells the listeners of the operation's queue.
    ///
    /// - Returns: the owners of the listeners.
    @discardableResult
    final func tell(_ kind: NetworkEvent.Kind, callNumber: UInt64? = nil) -> [ObjectIdentifier] {
        guard let scheduling, scheduling.queue.broadcast.isHeard else { return [] }
        return scheduling.queue.tell(kind, of: scheduling.job, callNumber: callNumber)
    }

    /// The dependencies of an operation that becomes a job, whether anything outside of that queue waits for it, and
    /// whether it only has to end.
    typealias Adoption = (dependencies: [OperationDependency], isAwaited: Bool, isOver: Bool, deadline: TimeInterval?)

    /// Assigns the operation to a queue, once: an operation that has a queue or has been started is not assigned again.
    ///
    /// - Returns: nil when it is not assigned.
    final func adopt(_ scheduling: Scheduling) -> Adoption? {
        core.withLock { state -> Adoption? in
            guard state.scheduling == nil, state.lifecycle.phase == .waiting else { return nil }
            state.scheduling = scheduling
            return (
                state.dependencies, !state.waiters.isEmpty, state.lifecycle.outcome != nil, state.options?.deadline
            )
        }
    }

    /// Whether a queue has the operation, or it has been started. A plain `OperationQueue` shows itself by asking
    /// whether the operation is ready.
    final var isTaken: Bool {
        core.withLock { $0.isTaken }
    }

    /// The operation's job in `queue`; nil when it is not there, or not any more.
    final func job(in queue: NetworkQueue) -> NetworkQueue.Job? {
        core.withLock { $0.scheduling?.queue === queue ? $0.scheduling?.job : nil }
    }

    final var scheduling: Scheduling? {
        core.withLock { $0.scheduling }
    }

    /// The callback queue that was given to the operation, or else to its queue.
    final var chosenCallbackQueue: DispatchQueue? {
        core.withLock { $0.options?.callbackQueue ?? $0.scheduling?.queue.callbackQueue }
    }

    /// Whether it is a part of other jobs, which no event names.
    final var isHidden: Bool { traits.isHidden }

    final var shownID: UInt64? { isHidden ? nil : operationID }

    /// Whether the outcome is known; the callbacks may still be running.
    package final var hasOutcome: Bool {
        core.withLock { $0.lifecycle.outcome != nil }
    }
}

/// Giving the slot back for a while.
extension NetworkOperation {
    /// Gives the operation's slot in its ``NetworkQueue`` back while it waits for something: a moment, a token, the
    /// network. It counts in no limit then.
    ///
    /// Call it from ``execute()`` or later. Without a `NetworkQueue` it does nothing.
    public final func releaseSlot() {
        releaseSlot { true }
    }

    /// - Parameter isWanted: called under the queue's lock when the slot would be given back, so that a task which has
    ///   taken the slot over does not lose it.
    final func releaseSlot(if isWanted: () -> Bool) {
        if let scheduling { scheduling.queue.operationDidReleaseSlot(scheduling.job, if: isWanted) }
    }

    /// Asks for a slot again, and runs `action` when the operation's turn has come, on a background queue.
    ///
    /// The operation waits among those of its priority like any other that is ready. `action` does not run if the
    /// operation ends before. Without a `NetworkQueue`, or when the slot was not released, it runs at once. Called
    /// again before there is a slot, it runs all the actions then.
    public final func reclaimSlot(_ action: @escaping @Sendable () -> Void) {
        reclaimSlot(if: { true }) {
            if !self.hasOutcome { action() }
        }
    }

    /// Asks for a slot again, and runs `action` when the operation has it, or has ended.
    ///
    /// - Parameter isWanted: called under the queue's lock when the slot would be asked for; if it returns false,
    ///   nothing changes.
    final func reclaimSlot(if isWanted: () -> Bool, _ action: @escaping @Sendable () -> Void) {
        reclaimSlot(after: nil, if: isWanted, action)
    }

    /// - Parameter before: what the operation waited for until now, if that is a condition.
    final func reclaimSlot(
        after before: WaitReason?,
        if isWanted: () -> Bool,
        _ action: @escaping @Sendable () -> Void
    ) {
        if let scheduling {
            scheduling.queue.operationReclaimsSlot(of: scheduling.job, after: before, if: isWanted, for: action)
        } else if isWanted() {
            WorkQueue.shared.add(action)
        }
    }

    /// Tells whether the operation, which has started, may give its slot to an urgent job from now on.
    ///
    /// - Returns: whether it has its slot.
    @discardableResult
    final func setMayYield(_ mayYield: Bool) -> Bool {
        scheduling.map { $0.queue.operationSetsMayYield(mayYield, of: $0.job) } ?? true
    }

    /// Gives the slot back, also one that has been asked for and has not come yet; the actions that wait for it are
    /// dropped.
    final func forgoSlot() {
        if let scheduling { scheduling.queue.operationForgoesSlot(of: scheduling.job) }
    }
}
