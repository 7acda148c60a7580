import Foundation

/// Giving a slot back for a while.
extension NetworkOperation {
    /// Gives the operation's slot in its ``NetworkQueue`` back while it waits for something: a moment, a token, the
    /// network. It counts in no limit then.
    ///
    /// Call it from ``execute()`` or later. Without a `NetworkQueue` it does nothing.
    public final func releaseSlot() {
        if let scheduling { scheduling.scheduler.operationDidReleaseSlot(scheduling.job) }
    }

    /// Asks for a slot again, and runs `action` when the operation's turn has come, on a background queue.
    ///
    /// The operation stands in the row of its priority like any other that is ready. `action` is dropped if the
    /// operation ends before. Without a `NetworkQueue`, or when the slot was not released, it runs at once. One
    /// request at a time: another one replaces the action.
    public final func reclaimSlot(_ action: @escaping @Sendable () -> Void) {
        guard let scheduling else { return WorkQueue.shared.async { self.runUnlessEnded(action) } }
        core.exchange(\.slotAction, action)
        if !scheduling.scheduler.operationDidReclaimSlot(scheduling.job) { slotGranted() }
    }

    /// Gives the slot back, also one that has been asked for and has not come yet.
    final func forgoSlot() {
        let old = core.withLock { state in
            let old = state.slotAction
            if old != nil { state.slotAction = { self.releaseSlot() } }
            return old
        }
        withExtendedLifetime(old) {}
        releaseSlot()
    }

    /// Called by the scheduler, without a lock, when the operation has its slot again.
    final func slotGranted() {
        guard let action = core.exchange(\.slotAction, nil) else { return }
        WorkQueue.shared.async { self.runUnlessEnded(action) }
    }

    private func runUnlessEnded(_ action: @Sendable () -> Void) {
        if !hasOutcome { action() }
    }
}
