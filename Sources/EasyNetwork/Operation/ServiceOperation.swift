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
/// An older way works too: override `start()`, call `super.start()` first, make the calls there, and call
/// ``NetworkOperation/finish(_:)`` in both closures. The article [The older way](doc:TheOlderWay) shows it.
///
/// ``NetworkOperation/finish(_:)`` without an error ends the operation as its last call ended: after a call that failed
/// it means that failure. A call that was cancelled counts only if no other call ended before it.
/// ``finish(recovering:)`` ends it with success in any case.
///
/// The calls are a part of the operation. While all of them wait for a retry, a credential or the network, its slot is
/// given back. Their closures come on ``callbackQueue``. Calls made in `start()` wait for accessories and conditions.
/// Cancelling the operation cancels them; calls that it makes afterwards, or after a dependency has failed, are refused
/// with the operation's error, and nothing is sent. The closures of all these have returned before dependents start.
/// A call that is under way when the operation finishes by itself goes on without a slot.
///
/// A call that fails and was given no closure for that ends the operation with its error when no other call is under
/// way: nobody else would end it.
open class ServiceOperation: NetworkOperation, CallOwner, @unchecked Sendable {
    // Sendable because `callGroup` never changes; subclasses answer for their own.

    /// The service of this operation alone: cancelling it touches no other operation.
    ///
    /// ``EasyNetworkService/cancel()`` cancels all calls of the operation, and refuses later ones.
    public final var service: EasyNetworkService { EasyNetworkService(callGroup) }

    /// The calls of the operation; a part of those of the service that it was made with.
    let callGroup: CallGroup

    /// An operation for ``HostConfiguration/shared`` as it is now.
    public override init() {
        callGroup = CallGroup(HostConfiguration.shared)
        super.init()
        adoptRefresh()
    }

    /// An operation for the host of a service.
    ///
    /// - Parameter service: gives the host, and cancels this operation's calls when it is cancelled itself.
    public init(service: EasyNetworkService) {
        callGroup = CallGroup(partOf: service.group)
        super.init()
        adoptRefresh()
    }

    /// Requests of a refresh do not wait for it.
    private func adoptRefresh() {
        let sessions = RequestAuthentication.refreshing
        if !sessions.isEmpty { setOption(\.refreshedSessions, sessions) }
    }

    /// Begins a call as a part of the refresh for which the operation was made, if it was for one. A call that an
    /// overridden `start()` makes waits until accessories and conditions let the work begin.
    func beginCall(_ begin: (Promise<Void>?) -> Void) {
        let (sessions, beginning) = option { options in
            let beginning = options.heldCalls == nil ? nil : Promise<Void>()
            if let beginning { options.heldCalls?.append(beginning) }
            return (options.refreshedSessions, beginning)
        }
        if sessions.isEmpty {
            begin(beginning)
        } else {
            RequestAuthentication.$refreshing.withValue(sessions) { begin(beginning) }
        }
    }

    /// The host of the service's base URL. Override it when the calls go to another one.
    open override var host: String? { callGroup.host.host }

    override final var client: HostConfiguration? { callGroup.host }

    /// Where the closures are called. Default nil: the ``NetworkQueue``'s, or else the host's callback queue.
    public final var callbackQueue: DispatchQueue? {
        get { option({ $0.callbackQueue }) }
        set { setOption(\.callbackQueue, newValue) }
    }

    /// Whether none of the callbacks is called when the operation was cancelled. Its accessories are still told of the
    /// end, and ``ItemOperation/value`` throws. Default: ``HostSettings/silencesCancellation``, which is false.
    public final var silencesCancellation: Bool {
        get { option({ $0.silencesCancellation }) ?? callGroup.host.settings.silencesCancellation }
        set { setOption(\.silencesCancellation, newValue) }
    }

    open override func execute() {
        if type(of: self) == ServiceOperation.self {
            finish(NetworkError(code: .invalidRequest, message: "a ServiceOperation needs its execute() overridden"))
        }
    }

    /// Ends the operation although a call has failed.
    ///
    /// - Parameter recovering: true means with success, whatever became of the calls, but for an ``ItemOperation``
    ///   without an item; false is ``NetworkOperation/finish(_:)`` without an error.
    public final func finish(recovering: Bool) {
        finishWithResult(recovering: recovering)
    }

    /// Ends the operation with an error of Foundation's.
    ///
    /// - Parameter error: one that came from a call is the ``NetworkError`` that it was. Any other becomes
    ///   ``NetworkError/Code/cannotParseResponse`` with it as ``NetworkError/underlying``.
    public final func finish(_ error: NSError) {
        finish(NetworkError(bridged: error))
    }

    override func repeatRole(_ own: RepeatSetting) -> (joinsAnother: Bool, workWhenAdded: (() -> Void)?) {
        (false, own.key.map { key in { self.applyRepeatPolicy(key) } })
    }

    override func didStart() {
        callGroup.setOperation(self)
    }

    override func willLeaveQueue(callbackQueue: DispatchQueue?) {
        callGroup.removeOperation(callbackQueue: callbackQueue)
    }

    func endsSilently(after error: NetworkError) -> Bool {
        if error.isSilent {
            finish(error)
            return true
        }
        guard error.code == .cancelled, silencesCancellation else { return false }
        callGroup.noteEnd(of: error)
        // Calls that the operation cancels itself after another call has ended do not end it.
        guard isCancelled || callGroup.failureOfLastCall?.code == .cancelled else { return false }
        endCancelled()
        return true
    }

    func failedUnheard(_ error: NetworkError) {
        finish(error)
    }

    override func endWork(after error: NetworkError?) -> [Promise<Void>] {
        error == nil ? [] : callGroup.refusedCalls.map { [$0] } ?? []
    }

    override func missingResultError(recovering: Bool) -> NetworkError? {
        recovering ? nil : callGroup.failureOfLastCall
    }

    override func stop() {
        var refusal = error ?? NetworkError(code: .cancelled)
        if refusal.code == .cancelled, silencesCancellation { refusal.isSilent = true }
        callGroup.refuse(refusal)
    }
}
