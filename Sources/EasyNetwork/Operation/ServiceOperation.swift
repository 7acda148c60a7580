import Dispatch
import Foundation

/// A job that makes its calls through an ``EasyNetworkService``.
///
/// ```swift
/// final class SignOut: ServiceOperation, @unchecked Sendable {
///     override func execute() {
///         service.request(SignOutRequest(), success: { _ in self.finish() }, failure: { _ in self.finish() })
///     }
/// }
/// ```
///
/// Existing code can override `start()` instead: call `super.start()` first, make the calls there, and call
/// ``NetworkOperation/finish(_:)`` in both closures. See [The older way](doc:TheOlderWay).
///
/// ``NetworkOperation/finish(_:)`` without an error ends the operation with the outcome of its last call. If that call
/// failed, its failure is the operation's error. A cancelled call counts only if no other call ended before it.
/// ``finish(ignoringFailures:)`` with `true` ends the operation with success in any case.
///
/// The calls belong to the operation. While all of them wait for a retry, a credential or the network, the operation
/// gives up its slot. Their closures run on ``callbackQueue``. Calls made in `start()` wait for accessories and
/// conditions. Cancelling the operation cancels its calls. Calls that it makes after it was cancelled, or after a
/// dependency has failed, are refused with the operation's error, and nothing is sent. The closures of all these calls
/// have returned before dependents start. A call that is still running when the operation finishes by itself continues
/// without a slot.
///
/// If a call fails that has no closure for failures, and no other call is running, its error ends the operation.
/// Otherwise the operation would never end.
open class ServiceOperation: NetworkOperation, @unchecked Sendable {
    // Sendable because `callGroup` never changes. Subclasses are responsible for their own state.

    /// The service of this operation alone. Cancelling it affects no other operation.
    ///
    /// ``EasyNetworkService/cancel()`` cancels all calls of the operation, and refuses later ones.
    public final var service: EasyNetworkService { EasyNetworkService(callGroup) }

    /// The calls of the operation, which belong to the group of the service that it was created with.
    let callGroup: CallGroup

    /// Creates an operation for the current ``HostConfiguration/shared``.
    public override init() {
        callGroup = CallGroup(HostConfiguration.shared)
        super.init()
        adoptRefresh()
    }

    /// Creates an operation for the host of a service.
    ///
    /// - Parameter service: the service, which determines the host. Cancelling it cancels this operation's calls.
    public init(service: EasyNetworkService) {
        callGroup = CallGroup(partOf: service.group)
        super.init()
        adoptRefresh()
    }

    /// Notes the sessions being refreshed, because requests of a refresh must not wait for it.
    private func adoptRefresh() {
        let sessions = RequestAuthentication.refreshing
        if !sessions.isEmpty { setOption(\.refreshedSessions, sessions) }
    }

    /// The host of the service's base URL. Override it if the calls go to another host.
    open override var host: String? { callGroup.host.host }

    override final var client: HostConfiguration? { callGroup.host }

    /// The queue on which the closures are called. Defaults to `nil`: the callback queue of the ``NetworkQueue``,
    /// otherwise the host's.
    public final var callbackQueue: DispatchQueue? {
        get { option({ $0.callbackQueue }) }
        set { setOption(\.callbackQueue, newValue) }
    }

    /// Whether no callback is called if the operation was cancelled. Its accessories are still notified of the end, and
    /// ``ItemOperation/value`` throws. Defaults to ``HostSettings/silencesCancellation``, which defaults to `false`.
    public final var silencesCancellation: Bool {
        get { option({ $0.silencesCancellation }) ?? callGroup.host.settings.silencesCancellation }
        set { setOption(\.silencesCancellation, newValue) }
    }

    open override func execute() {
        if type(of: self) == ServiceOperation.self {
            finish(.invalidRequest("a ServiceOperation does no work; use a subclass that overrides execute()"))
        }
    }

    /// Ends the operation with success although a call has failed, if `ignoringFailures` is `true`.
    ///
    /// - Parameter ignoringFailures: whether to end with success, whatever the results of the calls are. An
    ///   ``ItemOperation`` without an item fails even then. `false` has the same effect as
    ///   ``NetworkOperation/finish(_:)`` without an error.
    public final func finish(ignoringFailures: Bool) {
        finishWithResult(ignoringFailures: ignoringFailures)
    }

    /// The former name of ``finish(ignoringFailures:)``.
    @available(*, deprecated, renamed: "finish(ignoringFailures:)")
    public final func finish(recovering: Bool) {
        finish(ignoringFailures: recovering)
    }

    /// Ends the operation with an error of Foundation.
    ///
    /// - Parameter error: an error that came from a call becomes its original ``NetworkError``. Any other becomes the
    ///   ``NetworkError/underlying`` error of ``NetworkError/Code/cannotParseResponse``.
    public final func finish(_ error: NSError) {
        finish(NetworkError(bridged: error))
    }

    override func repeatRole(_ own: RepeatSetting) -> (joinsAnother: Bool, workWhenAdded: (() -> Void)?) {
        (false, own.key.map { key in { self.applyRepeatPolicy(key) } })
    }

    override func didStart(_ calls: CallTraits) {
        var delay: (@Sendable () -> Promise<Void>?)?
        if calls.areHeld { delay = { self.delayOfCall() } }
        let actions = JobContext.Actions(
            delay: delay,
            releaseSlot: { self.releaseSlot(if: $0) },
            reclaimSlot: { isWanted, then in self.reclaimSlot(if: isWanted, then) },
            deliveryQueue: { self.deliveryQueue },
            number: { self.traits.isHidden ? nil : self.operationID },
            trace: { self.joinTrace() },
            tell: { self.tell($0, callNumber: $1) },
            endsSilently: { self.endsSilently(after: $0) },
            end: { self.handleUnreportedError($0) }
        )
        let (sessions, broadcast) = (calls.refreshedSessions, calls.broadcast)
        callGroup.begin(JobContext(self, callGroup, broadcast, refreshedSessions: sessions, actions))
    }

    /// Returns what a call that an overridden `start()` makes waits for, until accessories and conditions let the work
    /// begin.
    private func delayOfCall() -> Promise<Void>? {
        option { options in
            guard options.heldCalls != nil else { return nil }
            let beginning = Promise<Void>()
            options.heldCalls?.append(beginning)
            return beginning
        }
    }

    override func didLeaveQueue(callbackQueue: DispatchQueue?) {
        callGroup.end(callbackQueue: callbackQueue)
    }

    func endsSilently(after error: NetworkError) -> Bool {
        if error.isSilent {
            finish(error)
            return true
        }
        guard error.code == .cancelled, silencesCancellation else { return false }
        callGroup.noteEnd(of: error)
        // Calls that the operation cancels itself, after another call has ended, do not end it.
        guard isCancelled || callGroup.failureOfLastCall?.code == .cancelled else { return false }
        endCancelled()
        return true
    }

    func handleUnreportedError(_ error: NetworkError) {
        finish(error)
    }

    override func endWork(after error: NetworkError?) -> [Promise<Void>] {
        error == nil ? [] : callGroup.refusedCalls.map { [$0] } ?? []
    }

    override func missingResultError(ignoringFailures: Bool) -> NetworkError? {
        ignoringFailures ? nil : callGroup.failureOfLastCall
    }

    override func stop() {
        var refusal = error ?? NetworkError(code: .cancelled)
        if refusal.code == .cancelled, silencesCancellation { refusal.isSilent = true }
        callGroup.refuse(refusal)
    }
}
