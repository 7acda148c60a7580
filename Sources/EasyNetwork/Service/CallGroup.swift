import Dispatch
import Foundation

/// The calls that belong together: those of a service, of an operation, of one task or stream.
///
/// A group knows which of its calls are under way, whether all of them wait, so that the operation's slot is given
/// back, how the last one ended, and that later ones are refused. A group may be part of another one, with which it is
/// cancelled: that of an operation is part of its service's, that of a task part of the operation's.
final class CallGroup: Sendable {
    private struct State {
        /// The error of all later calls; nil while calls are accepted.
        var refusal: NetworkError?
        /// With the number of calls that entered before each.
        var calls: [ObjectIdentifier: (call: Call, place: Int)] = [:]
        var enteredCount = 0
        /// The running operation that makes the calls; nil for a group without an operation.
        var operation: (any CallOwner)?
        /// The calls that wait, and need no slot, and why if that is told.
        var waiting: [ObjectIdentifier: (@Sendable () -> WaitReason)?] = [:]
        /// Whether the operation has given its slot back once, so that it may be without it from then on.
        var mayLackSlot = false
        /// How the last call of the operation ended; nil before that.
        var lastEnd: Result<Void, NetworkError>?
        /// The error of a call of the operation, if no end has been told since.
        var unheardError: NetworkError?
        /// The number of calls by `request(_:success:failure:cached:)` whose closures have not returned.
        var pendingCallbackCount = 0
        /// Set when the closures of all those calls have returned.
        var callbacksDone: Promise<Void>?
        /// The queue for the closures of calls that the operation makes after its end.
        var callbackQueue: DispatchQueue?
    }

    let host: HostConfiguration

    /// The group that this one is part of.
    let parent: CallGroup?

    /// For the calls of a refresh: the listeners of the queue that hears of them. Nil for other groups.
    let broadcast: EventBroadcast?

    private let state = Locked(State())

    /// - Parameter broadcast: for the calls of a refresh. Default nil.
    init(_ host: HostConfiguration, heardBy broadcast: EventBroadcast? = nil) {
        self.host = host
        self.broadcast = broadcast
        parent = nil
    }

    /// A group that is cancelled with another one, and can be cancelled without it.
    init(partOf parent: CallGroup) {
        host = parent.host
        broadcast = parent.broadcast
        self.parent = parent
    }

    // MARK: - Under way

    /// Cancels all calls, and refuses later ones with ``NetworkError/Code/cancelled``.
    func cancel() {
        refuse(NetworkError(code: .cancelled))
    }

    /// Ends all calls, and all later ones, with this error; the first error stays.
    func refuse(_ error: NetworkError) {
        let (calls, refusal) = state.withLock { state in
            let refusal = state.refusal ?? error
            state.refusal = refusal
            return (state.calls.values.sorted { $0.place < $1.place }, refusal)
        }
        for (call, _) in calls { call.fail(refusal) }
    }

    /// A call begins.
    ///
    /// - Returns: the error, when this group or one that it is part of has been cancelled; and whether the operation that
    ///   makes the call may be without its slot.
    func enter(_ call: Call) -> (refusal: NetworkError?, mayLackSlot: Bool) {
        let (refusal, mayLackSlot) = state.withLock { state in
            if state.refusal == nil {
                state.calls[ObjectIdentifier(call)] = (call, state.enteredCount)
                state.enteredCount += 1
            }
            return (state.refusal, state.mayLackSlot)
        }
        if refusal != nil { return (refusal, false) }
        let above = parent?.enter(call)
        return (above?.refusal, mayLackSlot || above?.mayLackSlot == true)
    }

    /// A call is over.
    func leave(_ call: Call) {
        let operation = state.withLock { state in
            state.calls[ObjectIdentifier(call)] = nil
            if !state.waiting.isEmpty { state.waiting.removeValue(forKey: ObjectIdentifier(call)) }
            return state.waiting.isEmpty ? nil : state.operation
        }
        // The last active call has begun to wait or has ended.
        operation?.releaseSlot { self.allCallsWait() }
        parent?.leave(call)
    }

    func noteWaiting(_ call: Call, _ reason: (@Sendable () -> WaitReason)?) {
        state.withLock { state in
            let id = ObjectIdentifier(call)
            if state.calls[id] != nil { state.waiting.updateValue(reason, forKey: id) }
        }
    }

    func noteGoingOn(_ call: Call) {
        state.withLock { _ = $0.waiting.removeValue(forKey: ObjectIdentifier(call)) }
    }

    /// Why a call waits; nil when none does, or it is not told.
    var waitReason: WaitReason? {
        state.withLock { state in
            let reasons = state.waiting.compactMap { id, reason in reason.map { (state.calls[id]?.place ?? 0, $0) } }
            return reasons.min { $0.0 < $1.0 }?.1
        }?()
    }

    /// Whether no call is at work, so that the slot is given back. Asked under the queue's lock.
    func allCallsWait() -> Bool {
        state.withLock { state in
            guard !state.waiting.isEmpty, state.waiting.count == state.calls.count else { return false }
            state.mayLackSlot = true
            return true
        }
    }

    // MARK: - The operation

    /// - Parameter operation: the started operation that makes the calls from now on.
    func setOperation(_ operation: any CallOwner) {
        state.withLock { $0.operation = operation }
    }

    /// The operation finishes.
    ///
    /// - Parameter callbackQueue: for the closures of calls that it makes afterwards.
    func removeOperation(callbackQueue: DispatchQueue?) {
        // Released outside the lock.
        let old = state.withLock { state in
            state.callbackQueue = callbackQueue
            return state.operation.take()
        }
        withExtendedLifetime(old) {}
    }

    /// The operation that makes the calls of this group, or of the one it is part of; nil for a call that a condition
    /// of the operation makes before the operation's work.
    var caller: (any CallOwner)? {
        guard let operation = state.withLock({ $0.operation }) else { return parent?.caller }
        return operation.isEvaluatingCondition ? nil : operation
    }

    /// The queue of the closures when the operation has finished.
    var lastCallbackQueue: DispatchQueue? { state.withLock { $0.callbackQueue } }

    /// Whether the error comes from the group's own operation, whose closures are not called.
    func isSilenced(_ error: NetworkError) -> Bool {
        error.isSilent && (state.withLock { $0.refusal?.isSilent } ?? parent?.isSilenced(error) ?? false)
    }

    func callbackIsPending() {
        state.withLock { $0.pendingCallbackCount += 1 }
    }

    /// The closures of a call have returned, or are not called.
    ///
    /// - Returns: the error that was not told, if the last call of the operation is over.
    func callbackIsDone() -> NetworkError? {
        let (callbacksDone, unheard) = state.withLock { state -> (Promise<Void>?, NetworkError?) in
            state.pendingCallbackCount -= 1
            guard state.pendingCallbackCount == 0 else { return (nil, nil) }
            return (state.callbacksDone.take(), state.calls.isEmpty ? state.unheardError : nil)
        }
        callbacksDone?.set()
        return unheard
    }

    /// Set when the closures of all refused calls have returned; nil when there are none. Calls that are not refused go
    /// on, and are not waited for.
    var refusedCalls: Promise<Void>? {
        state.withLock { state in
            guard state.refusal != nil, state.pendingCallbackCount > 0 else { return nil }
            let callbacksDone = state.callbacksDone ?? Promise<Void>()
            state.callbacksDone = callbacksDone
            return callbacksDone
        }
    }

    // MARK: - The last end

    /// A call of the operation has ended.
    ///
    /// - Parameters:
    ///   - error: nil for success.
    ///   - isHeard: whether a closure or a task is told. Default true.
    func noteEnd(of error: NetworkError?, isHeard: Bool = true) {
        // The previous errors are released outside the lock.
        let old = state.withLock { state -> (NetworkError?, Result<Void, NetworkError>?)? in
            let unheard = state.unheardError
            // Among several unheard errors the last one counts, as below.
            if isHeard {
                state.unheardError = nil
            } else if let error, unheard == nil || error.code != .cancelled {
                state.unheardError = error
            }
            // Other calls may have been cancelled because of how the first one ended.
            if error?.code == .cancelled, state.lastEnd != nil { return (unheard, nil) }
            defer { state.lastEnd = error.map { .failure($0) } ?? .success(()) }
            return (unheard, state.lastEnd)
        }
        withExtendedLifetime(old) {}
    }

    /// Why the last call of the operation failed; nil when it did not.
    var failureOfLastCall: NetworkError? {
        state.withLock { $0.lastEnd }?.failure
    }
}
