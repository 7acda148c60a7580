import Foundation

/// The queue of an operation, and its job there.
typealias Scheduling = (queue: NetworkQueue, job: NetworkQueue.Job)

/// The interface of an operation for its queue.
extension NetworkOperation {
    /// Posts an event to the listeners of the operation's queue.
    ///
    /// - Returns: the owners of the listeners.
    @discardableResult
    final func tell(_ kind: NetworkEvent.Kind, callNumber: UInt64? = nil) -> [ObjectIdentifier] {
        guard let (queue, job) = scheduling, queue.broadcast.hasListeners.isSet else { return [] }
        defer { queue.broadcast.deliver() }
        return queue.state.withLock { _ in queue.broadcast.note(queue.event(kind, job, callNumber: callNumber)) }
    }

    /// What a queue needs of an operation that becomes a job: its dependencies, whether anything outside of that queue
    /// waits for it, whether its outcome is known, and its deadline in seconds.
    typealias Adoption = (dependencies: [OperationDependency], isAwaited: Bool, isOver: Bool, deadline: TimeInterval?)

    /// Assigns the operation to a queue, once. An operation that has a queue or has been started is not assigned.
    ///
    /// - Returns: `nil` if the operation is not assigned.
    final func adopt(_ scheduling: Scheduling) -> Adoption? {
        core.withLock { state -> Adoption? in
            guard state.scheduling == nil, state.lifecycle.phase == .waiting else { return nil }
            state.scheduling = scheduling
            return (
                state.dependencies?.list ?? [], state.waiters != nil, state.lifecycle.outcome != nil,
                state.options?.deadline
            )
        }
    }

    /// Whether the operation is on a queue, or has been started. A plain `OperationQueue` is noticed when it reads
    /// `isReady`.
    final var isTaken: Bool {
        core.withLock { $0.isTaken }
    }

    /// Returns the operation's job in `queue`; `nil` if it has no job there, or no longer.
    final func job(in queue: NetworkQueue) -> NetworkQueue.Job? {
        core.withLock { $0.scheduling?.queue === queue ? $0.scheduling?.job : nil }
    }

    final var scheduling: Scheduling? {
        core.withLock { $0.scheduling }
    }

    final var chosenCallbackQueue: DispatchQueue? { core.withLock { $0.callbackQueue } }

    /// Whether the outcome is known; the callbacks may still be running.
    package final var hasOutcome: Bool {
        core.withLock { $0.lifecycle.outcome != nil }
    }
}

/// Giving up the slot for a while.
extension NetworkOperation {
    /// Gives up the operation's slot in its ``NetworkQueue`` while it waits for something, such as a delay, a token or
    /// the network. The operation then counts in no limit.
    ///
    /// Call it from ``execute()`` or later. Without a `NetworkQueue`, it has no effect.
    public final func releaseSlot() {
        releaseSlot { true }
    }

    /// - Parameter isWanted: called under the queue's lock before the slot is given up, so that a task that has taken
    ///   the slot over does not lose it.
    final func releaseSlot(if isWanted: () -> Bool) {
        guard let (queue, job) = scheduling else { return }
        queue.step(makesRoom: true) { state, actions in
            if isWanted() { queue.park(job, &state, &actions) }
        }
    }

    /// Requests a slot again, and runs `action` on a background queue when the operation has it.
    ///
    /// The operation waits with its priority, like any other ready operation. `action` does not run if the operation
    /// ends before. Without a `NetworkQueue`, or if the slot was not released, `action` runs at once. If this method is
    /// called several times before there is a slot, all actions run then.
    public final func reclaimSlot(_ action: @escaping @Sendable () -> Void) {
        reclaimSlot(if: { true }) {
            if !self.hasOutcome { action() }
        }
    }

    /// Requests a slot again, and runs `action` when the operation has it, or has ended.
    ///
    /// - Parameters:
    ///   - before: what the operation waited for until now, if that is a condition. Defaults to `nil`.
    ///   - isWanted: called under the queue's lock before the slot is requested. If it returns `false`, nothing changes.
    final func reclaimSlot(
        after before: WaitReason? = nil,
        if isWanted: () -> Bool,
        _ action: @escaping @Sendable () -> Void
    ) {
        guard let (queue, job) = scheduling else {
            if isWanted() { WorkQueue.shared.add(action) }
            return
        }
        queue.step { state, actions in
            guard isWanted() else { return }
            if let before { queue.noteWaitBefore(before, [job]) }
            job.slotActions.append(action)
            // If `unpark` returns `false`, the job has a slot, or needs none.
            if !state.graph.unpark(job, &actions) { actions.granted += job.slotActions.take() }
        }
    }

    /// Sets whether the operation, which has started, can give its slot to an urgent job from now on.
    ///
    /// - Returns: whether it has its slot.
    @discardableResult
    final func setMayYield(_ mayYield: Bool) -> Bool {
        scheduling.map { queue, job in queue.step { $0.graph.setMayYield(mayYield, of: job, &$1) } } ?? true
    }

    /// Gives up the slot, even one that has been requested and is not yet available. The actions that wait for it are
    /// dropped.
    final func forgoSlot() {
        guard let (queue, job) = scheduling else { return }
        let dropped = queue.step { state, actions in
            queue.park(job, evenIfReturning: true, &state, &actions)
            return job.slotActions.take()
        }
        withExtendedLifetime(dropped) {}
    }
}
