import Foundation

/// A job that makes calls, as its calls see it.
protocol CallOwner: Operation, Sendable {
    var callGroup: CallGroup { get }
    /// The queue for the closures of the job's calls.
    var deliveryQueue: DispatchQueue { get }
    /// Whether the current task evaluates a condition of the job, before its work.
    var isEvaluatingCondition: Bool { get }

    /// Gives up the slot.
    ///
    /// - Parameter isWanted: Called under the queue's lock.
    func releaseSlot(if isWanted: () -> Bool)
    /// Requests the slot again, and runs `action` when the job has it, unless it is no longer wanted.
    ///
    /// - Parameter isWanted: Called under the queue's lock.
    func reclaimSlot(if isWanted: () -> Bool, _ action: @escaping @Sendable () -> Void)
    /// Begins a call, as part of the credential refresh that the job belongs to, if there is one.
    ///
    /// - Parameter begin: Gets the promise that the call must wait for; nil if the call can begin now.
    func beginCall(_ begin: (Promise<Void>?) -> Void)

    /// Returns the span of the job, which is created with its first call.
    func joinTrace() -> TraceSpan
    /// The number of the job in events; nil for a part of other jobs, which events do not name.
    var shownID: UInt64? { get }
    /// The listeners of the job's queue.
    var broadcast: EventBroadcast? { get }
    /// Posts an event to the listeners of the job's queue.
    ///
    /// - Returns: The owners of the listeners.
    @discardableResult
    func tell(_ kind: NetworkEvent.Kind, callNumber: UInt64?) -> [ObjectIdentifier]

    /// Returns whether the closures of a call that ends with this error are not called. They cannot finish the job
    /// then, so the job ends.
    func endsSilently(after error: NetworkError) -> Bool
    /// Ends the job with the failure of a call that was not reported to a closure. No other call is running.
    func handleUnreportedError(_ error: NetworkError)
}

extension CallOwner {
    func waitForSlot(_ call: Call) async {
        let granted = Promise<Void>()
        reclaimSlot(for: call) { granted.set() }
        await granted.wait()
    }

    /// Gives up the slot if no call of the job needs it.
    func leaveSlot(_ call: Call, _ reason: (@Sendable () -> WaitReason)? = nil) {
        let group = callGroup
        group.noteWaiting(call, reason)
        releaseSlot { !call.isOver && group.allCallsWait() }
    }

    /// Waits for the slot after ``leaveSlot(_:)``.
    func returnToSlot(_ call: Call) async {
        callGroup.noteGoingOn(call)
        await waitForSlot(call)
    }

    /// Requests the slot again. If the slot arrives after the end of the call, it is given up, unless another call
    /// needs it.
    private func reclaimSlot(for call: Call, _ action: @escaping @Sendable () -> Void) {
        reclaimSlot(if: { !call.isOver }) {
            action()
            if call.isOver { self.releaseSlot { self.callGroup.allCallsWait() } }
        }
    }

    /// Notes that the closures of a call have returned, or are not called.
    func noteCallbackReturned() {
        if let error = callGroup.noteCallbackReturned() { handleUnreportedError(error) }
    }
}
