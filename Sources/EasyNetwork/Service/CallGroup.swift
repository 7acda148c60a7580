import Dispatch
import Foundation

/// A group of calls that belong together: the calls of a service, an operation, a task or a stream.
///
/// A group knows which of its calls are running, whether all of them wait, so that the operation's slot can be given
/// up, and how the last one ended. A cancelled group refuses later calls. A group can be part of another group, and is
/// cancelled with it: an operation's group is part of its service's group, and a task's group is part of the
/// operation's group.
final class CallGroup: Sendable {
    private struct State {
        /// The error of all later calls; nil while calls are accepted.
        var refusal: NetworkError?
        var calls = RunningCalls()
        /// The running job that makes the calls; nil for a group without a job.
        var job: JobContext?
        /// The calls that are waiting without a slot, each with its wait reason if that is reported.
        var waiting: [ObjectIdentifier: (@Sendable () -> WaitReason)?] = [:]
        /// Whether the operation has given up its slot once. From then on, it can be running without a slot.
        var mayLackSlot = false
        /// How the last call of the operation ended; nil before any call has ended.
        var lastEnd: Result<Void, NetworkError>?
        /// The error of a call of the operation, if it was not reported to a closure and no later end was.
        var unreportedError: NetworkError?
        /// The number of calls by `request(_:success:failure:cached:)` whose closures have not returned.
        var pendingCallbackCount = 0
        /// Set when the closures of all those calls have returned.
        var callbacksDone: Promise<Void>?
        /// The queue for the closures of calls that the operation makes after its end.
        var callbackQueue: DispatchQueue?
    }

    let host: HostConfiguration

    /// The group that this group is part of.
    let parent: CallGroup?

    /// The listeners of the queue that gets the events of a refresh's calls. Nil for other groups.
    let broadcast: EventBroadcast?

    private let state = Locked(State())

    /// Creates a group without a parent.
    ///
    /// - Parameter broadcast: For the calls of a refresh, the listeners that get their events. Defaults to `nil`.
    init(_ host: HostConfiguration, broadcast: EventBroadcast? = nil) {
        (self.host, self.broadcast, parent) = (host, broadcast, nil)
    }

    /// Creates a group that is cancelled with another group, and can be cancelled by itself.
    init(partOf parent: CallGroup) {
        (host, broadcast, self.parent) = (parent.host, parent.broadcast, parent)
    }

    // MARK: - Under way

    /// Cancels all calls, and refuses later ones with ``NetworkError/Code/cancelled``.
    func cancel() {
        refuse(NetworkError(code: .cancelled))
    }

    /// Ends all calls, and refuses all later ones, with this error. If the group already has an error, the first one is
    /// used.
    func refuse(_ error: NetworkError) {
        let (calls, refusal) = state.withLock { state in
            let refusal = state.refusal ?? error
            state.refusal = refusal
            return (state.calls.inOrder, refusal)
        }
        for call in calls { call.fail(refusal) }
    }

    /// Adds a call that begins.
    ///
    /// - Returns: The error, if this group or one that it is part of has been cancelled; and whether the operation that
    ///   makes the call may be running without its slot.
    func enter(_ call: Call) -> (refusal: NetworkError?, mayLackSlot: Bool) {
        let (refusal, mayLackSlot) = state.withLock { state in
            if state.refusal == nil { state.calls.add(call) }
            return (state.refusal, state.mayLackSlot)
        }
        if refusal != nil { return (refusal, false) }
        let above = parent?.enter(call)
        return (above?.refusal, mayLackSlot || above?.mayLackSlot == true)
    }

    /// Removes a call that has ended.
    func leave(_ call: Call) {
        let job = state.withLock { state in
            state.calls.remove(call)
            if !state.waiting.isEmpty { state.waiting.removeValue(forKey: ObjectIdentifier(call)) }
            return state.waiting.isEmpty ? nil : state.job
        }
        // The last active call has begun to wait or has ended.
        job?.actions.releaseSlot { self.allCallsWait() }
        parent?.leave(call)
    }

    func noteWaiting(_ call: Call, _ reason: (@Sendable () -> WaitReason)?) {
        state.withLock { state in
            let id = ObjectIdentifier(call)
            if state.calls.place(of: id) != nil { state.waiting.updateValue(reason, forKey: id) }
        }
    }

    func noteGoingOn(_ call: Call) {
        state.withLock { _ = $0.waiting.removeValue(forKey: ObjectIdentifier(call)) }
    }

    /// The reason why a call waits; nil if no call waits or no reason is reported.
    var waitReason: WaitReason? {
        state.withLock { state in
            let reasons = state.waiting.compactMap { id, reason in reason.map { (state.calls.place(of: id) ?? 0, $0) } }
            return reasons.min { $0.0 < $1.0 }?.1
        }?()
    }

    /// Returns whether calls are running and all of them wait, so that the slot can be given up. Called under the
    /// queue's lock.
    func allCallsWait() -> Bool {
        state.withLock { state in
            guard !state.waiting.isEmpty, state.waiting.count == state.calls.count else { return false }
            state.mayLackSlot = true
            return true
        }
    }

    // MARK: - The job

    /// Sets the job that makes the calls from now on.
    func begin(_ job: JobContext) {
        state.withLock { $0.job = job }
    }

    /// Removes the job, which is finishing.
    ///
    /// - Parameter callbackQueue: The queue for the closures of calls that the job makes afterwards.
    func end(callbackQueue: DispatchQueue?) {
        state.discard { state in
            state.callbackQueue = callbackQueue
            return state.job.take()
        }
    }

    /// The job that makes the calls of this group, or of the group that it is part of. Nil for a call that a condition
    /// of the job makes before the job's work.
    var job: JobContext? {
        guard let job = state.withLock({ $0.job }) else { return parent?.job }
        return JobContext.evaluatedOperation == ObjectIdentifier(job.operation) ? nil : job
    }

    /// The queue for closures after the operation has finished.
    var lastCallbackQueue: DispatchQueue? { state.withLock { $0.callbackQueue } }

    /// Returns whether the error comes from the group's own operation, whose closures are not called.
    func isSilenced(_ error: NetworkError) -> Bool {
        error.isSilent && (state.withLock { $0.refusal?.isSilent } ?? parent?.isSilenced(error) ?? false)
    }

    func noteCallbackPending() {
        state.withLock { $0.pendingCallbackCount += 1 }
    }

    /// Notes that the closures of a call have returned, or are not called.
    ///
    /// - Returns: The unreported error, if no call of the operation is left.
    func noteCallbackReturned() -> NetworkError? {
        let (callbacksDone, unreported) = state.withLock { state -> (Promise<Void>?, NetworkError?) in
            state.pendingCallbackCount -= 1
            guard state.pendingCallbackCount == 0 else { return (nil, nil) }
            return (state.callbacksDone.take(), state.calls.isEmpty ? state.unreportedError : nil)
        }
        callbacksDone?.set()
        return unreported
    }

    /// Set when the closures of all refused calls have returned. Nil if the group refuses no calls, or no closures are
    /// pending. Calls that are not refused continue, and nothing waits for them.
    var refusedCalls: Promise<Void>? {
        state.withLock { state in
            guard state.refusal != nil, state.pendingCallbackCount > 0 else { return nil }
            let callbacksDone = state.callbacksDone ?? Promise<Void>()
            state.callbacksDone = callbacksDone
            return callbacksDone
        }
    }

    // MARK: - The last end

    /// Notes the end of a call of the operation.
    ///
    /// - Parameters:
    ///   - error: The error; nil for success.
    ///   - isReported: Whether a closure or a task receives the end. Defaults to `true`.
    func noteEnd(of error: NetworkError?, isReported: Bool = true) {
        state.discard { state -> (NetworkError?, Result<Void, NetworkError>?)? in
            let unreported = state.unreportedError
            // Among several unreported errors, the last one counts. A cancellation does not replace another error.
            if isReported {
                state.unreportedError = nil
            } else if let error, unreported == nil || error.code != .cancelled {
                state.unreportedError = error
            }
            // Other calls may have been cancelled because of how the first one ended.
            if error?.code == .cancelled, state.lastEnd != nil { return (unreported, nil) }
            defer { state.lastEnd = error.map { .failure($0) } ?? .success(()) }
            return (unreported, state.lastEnd)
        }
    }

    /// The error of the operation's last call; nil if the call succeeded.
    var failureOfLastCall: NetworkError? {
        state.withLock { $0.lastEnd }?.failure
    }
}

/// The running calls of a group.
private struct RunningCalls {
    /// The first call of a group that had none. The group of an operation rarely has others, and needs no dictionary then.
    private var first: Call?
    /// The calls after ``first``, with their place.
    private var others: [ObjectIdentifier: (call: Call, place: Int)] = [:]
    private var lastPlace = 0

    var count: Int { others.count + (first == nil ? 0 : 1) }
    var isEmpty: Bool { first == nil && others.isEmpty }

    /// The calls in the order in which they were added.
    var inOrder: [Call] {
        (first.map { [$0] } ?? []) + others.values.sorted { $0.place < $1.place }.map(\.call)
    }

    mutating func add(_ call: Call) {
        lastPlace += 1
        if isEmpty { first = call } else { others[ObjectIdentifier(call)] = (call, lastPlace) }
    }

    mutating func remove(_ call: Call) {
        if first === call { first = nil } else if !others.isEmpty { others[ObjectIdentifier(call)] = nil }
    }

    /// Returns a number that orders the calls as they were added; nil if the call is not running.
    func place(of id: ObjectIdentifier) -> Int? {
        first.map { ObjectIdentifier($0) } == id ? 0 : others[id]?.place
    }
}
