import Foundation

/// A job that makes calls, as its ``CallGroup`` uses it.
protocol CallOwner: Operation, Sendable {
    /// The queue for the closures of its calls.
    var deliveryQueue: DispatchQueue { get }
    /// Whether its closures are not called after it was cancelled.
    var silencesCancellation: Bool { get }
    /// Whether the current task evaluates a condition of the job, before its work.
    var isEvaluatingCondition: Bool { get }

    /// Gives the slot back.
    ///
    /// - Parameter isWanted: asked under the queue's lock.
    func releaseSlot(if isWanted: () -> Bool)
    /// Asks for the slot again, and runs `action` with it.
    ///
    /// - Parameter isWanted: asked under the queue's lock.
    func reclaimSlot(if isWanted: () -> Bool, _ action: @escaping @Sendable () -> Void)
    /// Begins a call, as a part of the credential refresh that the job belongs to, if there is one.
    ///
    /// - Parameter begin: gets the beginning of the work that the call is to wait for; nil when it may begin now.
    func beginCall(_ begin: (OneShot?) -> Void)
    var operationID: UInt64 { get }
    /// Whether it is a part of other jobs, which no event names.
    var isHidden: Bool { get }
    /// The listeners of its queue.
    var broadcast: EventBroadcast? { get }
    /// Tells the listeners of its queue.
    ///
    /// - Returns: the queue's broadcast; nil when nothing listens.
    @discardableResult
    func tell(_ kind: NetworkEvent.Kind, callNumber: UInt64?) -> ObjectIdentifier?
    /// Ends the job.
    func finish(_ error: NetworkError?)
    /// No call is left, and nobody was told that the last one failed.
    func failedUnheard()
}

extension CallOwner {
    func finish() {
        finish(nil)
    }
}

/// The operation that makes a call, with the group of its calls.
struct CallingOperation: Sendable {
    let operation: any CallOwner
    let group: CallGroup

    /// - Returns: nil for a call that a condition of the operation makes before the operation's work.
    init?(_ operation: any CallOwner, _ group: CallGroup) {
        guard !operation.isEvaluatingCondition else { return nil }
        self.operation = operation
        self.group = group
    }

    /// Waits until the operation has its slot.
    func waitForSlot(_ call: Call) async {
        let granted = OneShot()
        reclaimSlot(for: call) { granted.end() }
        await granted.wait()
    }

    /// Asks for the operation's slot again. A slot that comes after the end of the call is given back, if no other call
    /// needs it.
    private func reclaimSlot(for call: Call, _ action: @escaping @Sendable () -> Void) {
        operation.reclaimSlot(if: { !call.isOver }) {
            action()
            if call.isOver { operation.releaseSlot { group.allCallsWait() } }
        }
    }

    /// Gives the operation's slot back when all its calls wait, for a delay or a credential.
    ///
    /// - Parameter isWanted: asked under the queue's lock.
    func callWaits(_ call: Call, if isWanted: () -> Bool) {
        group.noteWaiting(call)
        operation.releaseSlot { isWanted() && group.allCallsWait() }
    }

    /// Continues a waiting call when the operation has its slot again.
    func callGoesOn(_ call: Call, _ action: @escaping @Sendable () -> Void) {
        group.noteGoingOn(call)
        reclaimSlot(for: call, action)
    }

    /// The closures of a call have returned, or are not called.
    func callbackIsDone() {
        if group.callbackIsDone() { operation.failedUnheard() }
    }

    /// Whether the closures of a call are not called, and so cannot finish the operation, which is ended here.
    func endsSilently(after error: NetworkError) -> Bool {
        if error.isSilent {
            operation.finish(error)
            return true
        }
        guard error.code == .cancelled, operation.silencesCancellation else { return false }
        group.noteEnd(of: error)
        // Calls that the operation cancels itself after another call has ended do not end it.
        guard operation.isCancelled || group.failureOfLastCall?.code == .cancelled else { return false }
        operation.finish()
        return true
    }
}
