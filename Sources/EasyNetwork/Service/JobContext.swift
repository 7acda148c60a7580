import Dispatch
import Foundation

/// What the calls of a job need of it. The types of jobs and queues are on a higher level, so a job passes closures.
///
/// A job creates its context when it starts, and its ``CallGroup`` holds it until the job leaves its queue.
final class JobContext: Sendable {
    /// The operation whose condition the current task evaluates. The calls of a condition are not calls of the job's
    /// work: they neither wait for the conditions nor give up the slot.
    @TaskLocal static var evaluatedOperation: ObjectIdentifier?

    /// The job, for events.
    let operation: Operation
    /// The group of the job's calls.
    let group: CallGroup
    /// The listeners of the job's queue; nil without a queue.
    let broadcast: EventBroadcast?
    /// The authentications for whose refresh the job was created. Its calls must not wait for that refresh.
    let refreshedSessions: [ObjectIdentifier]
    let actions: Actions

    /// What a call asks the job to do. The closures are called without a lock.
    struct Actions: Sendable {
        /// Returns what a call must wait for before it begins, because accessories or conditions delay the work.
        let delay: (@Sendable () -> Promise<Void>?)?
        /// Gives up the slot. `isWanted` is called under the queue's lock.
        let releaseSlot: @Sendable (_ isWanted: () -> Bool) -> Void
        /// Requests the slot again, and calls the closure when the job has it, unless it is no longer wanted.
        /// `isWanted` is called under the queue's lock.
        let reclaimSlot: @Sendable (_ isWanted: () -> Bool, _ then: @escaping @Sendable () -> Void) -> Void
        /// Returns the queue for the closures of the job's calls.
        let deliveryQueue: @Sendable () -> DispatchQueue
        /// Returns the number of the job in events; nil for a part of other jobs, which events do not name.
        let number: @Sendable () -> UInt64?
        /// Returns the span of the job, which is created with its first call.
        let trace: @Sendable () -> TraceSpan
        /// Posts an event to the listeners of the job's queue, and returns their owners.
        let tell: @Sendable (_ kind: NetworkEvent.Kind, _ callNumber: UInt64) -> [ObjectIdentifier]
        /// Returns whether the closures of a call that ends with this error are not called. They cannot finish the job
        /// then, so the job ends.
        let endsSilently: @Sendable (_ error: NetworkError) -> Bool
        /// Ends the job with the failure of a call that was not reported to a closure. No other call is running.
        let end: @Sendable (_ error: NetworkError) -> Void
    }

    init(
        _ operation: Operation,
        _ group: CallGroup,
        _ broadcast: EventBroadcast?,
        refreshedSessions: [ObjectIdentifier],
        _ actions: Actions
    ) {
        (self.operation, self.group, self.broadcast) = (operation, group, broadcast)
        (self.refreshedSessions, self.actions) = (refreshedSessions, actions)
    }

    // MARK: - The slot

    func waitForSlot(_ call: Call) async {
        let granted = Promise<Void>()
        // If the slot arrives after the end of the call, it is given up, unless another call needs it.
        actions.reclaimSlot({ !call.isOver }) {
            granted.set()
            if call.isOver { self.actions.releaseSlot { self.group.allCallsWait() } }
        }
        await granted.wait()
    }

    /// Gives up the slot if no call of the job needs it.
    func leaveSlot(_ call: Call, _ reason: (@Sendable () -> WaitReason)? = nil) {
        group.noteWaiting(call, reason)
        actions.releaseSlot { !call.isOver && self.group.allCallsWait() }
    }

    /// Waits for the slot after ``leaveSlot(_:_:)``.
    func returnToSlot(_ call: Call) async {
        group.noteGoingOn(call)
        await waitForSlot(call)
    }

    // MARK: - The end of a call

    /// Notes that the closures of a call have returned, or are not called.
    func noteCallbackReturned() {
        if let error = group.noteCallbackReturned() { actions.end(error) }
    }
}
