import Foundation

/// Giving a slot back for a while.
extension NetworkOperation {
    /// Gives the operation's slot in its ``NetworkQueue`` back while it waits for something: a moment, a token, the
    /// network. It counts in no limit then.
    ///
    /// Call it from ``execute()`` or later. Without a `NetworkQueue` it does nothing.
    public final func releaseSlot() {
        releaseSlot { true }
    }

    /// - Parameter isWanted: asked at the moment at which the slot would be given back, under the queue's lock, so that
    ///   nobody who has taken the slot over loses it.
    final func releaseSlot(if isWanted: () -> Bool) {
        if let scheduling { scheduling.queue.operationDidReleaseSlot(scheduling.job, if: isWanted) }
    }

    /// Asks for a slot again, and runs `action` when the operation's turn has come, on a background queue.
    ///
    /// The operation waits among those of its priority like any other that is ready. `action` does not run if the
    /// operation ends before. Without a `NetworkQueue`, or when the slot was not released, it runs at once. Called again
    /// before there is a slot, it runs all the actions then.
    public final func reclaimSlot(_ action: @escaping @Sendable () -> Void) {
        reclaimSlot(if: { true }) {
            if !self.hasOutcome { action() }
        }
    }

    /// Asks for a slot again, and runs `action` when the operation has it, or has ended.
    ///
    /// - Parameter isWanted: asked at the moment at which the slot would be asked for, under the queue's lock; if not,
    ///   all stays as it is.
    final func reclaimSlot(if isWanted: () -> Bool, _ action: @escaping @Sendable () -> Void) {
        if let scheduling {
            scheduling.queue.operation(self, job: scheduling.job, reclaimsSlotFor: action, if: isWanted)
        } else if isWanted() {
            WorkQueue.shared.async(execute: action)
        }
    }

    /// Gives the slot back, also one that has been asked for and has not come yet; what waits for that is dropped.
    final func forgoSlot() {
        if let scheduling { scheduling.queue.operation(self, didForgoSlot: scheduling.job) }
    }
}
