import Foundation

/// A job that makes calls: what its calls need of it.
protocol CallOwner: Operation, Sendable {
    /// The calls of the job.
    var callGroup: CallGroup { get }
    /// The queue for the closures of its calls.
    var deliveryQueue: DispatchQueue { get }
    /// Whether the current task evaluates a condition of the job, before its work.
    var isEvaluatingCondition: Bool { get }

    /// Gives the slot back.
    ///
    /// - Parameter isWanted: asked under the queue's lock.
    func releaseSlot(if isWanted: () -> Bool)
    /// Asks for the slot again, and runs `action` with it; not if it is not wanted any more.
    ///
    /// - Parameter isWanted: asked under the queue's lock.
    func reclaimSlot(if isWanted: () -> Bool, _ action: @escaping @Sendable () -> Void)
    /// Begins a call, as a part of the credential refresh that the job belongs to, if there is one.
    ///
    /// - Parameter begin: gets the beginning of the work that the call is to wait for; nil when it may begin now.
    func beginCall(_ begin: (Promise<Void>?) -> Void)

    /// - Returns: the span of the job, which it gets with the first call.
    func joinTrace() -> TraceSpan
    /// Its number in events; nil for a part of other jobs, which no event names.
    var shownID: UInt64? { get }
    /// The listeners of its queue.
    var broadcast: EventBroadcast? { get }
    /// Tells the listeners of its queue.
    ///
    /// - Returns: the owners of the listeners.
    @discardableResult
    func tell(_ kind: NetworkEvent.Kind, callNumber: UInt64?) -> [ObjectIdentifier]

    /// Whether the closures of a call with this end are not called, and so cannot finish the job, which is ended then.
    func endsSilently(after error: NetworkError) -> Bool
    /// No call is left, and this failure of one has not been told.
    func failedUnheard(_ error: NetworkError)
}

extension CallOwner {
    /// Waits until the job has its slot.
    func waitForSlot(_ call: Call) async {
        let granted = Promise<Void>()
        reclaimSlot(for: call) { granted.set() }
        await granted.wait()
    }

    /// Gives the slot back when all calls of the job do without.
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

    /// Asks for the slot again. A slot that comes after the end of the call is given back, if no other call needs it.
    private func reclaimSlot(for call: Call, _ action: @escaping @Sendable () -> Void) {
        reclaimSlot(if: { !call.isOver }) {
            action()
            if call.isOver { self.releaseSlot { self.callGroup.allCallsWait() } }
        }
    }

    /// The closures of a call have returned, or are not called.
    func callbackIsDone() {
        if let error = callGroup.callbackIsDone() { failedUnheard(error) }
    }
}
