import Dispatch

/// A job that makes its calls through an ``EasyNetworkService``.
///
/// ```swift
/// final class SignOut: ServiceOperation, @unchecked Sendable {
///     override func execute() {
///         service.request(SignOutRequest(), success: { _ in self.finish() }, failure: { self.finish($0) })
///     }
/// }
/// ```
///
/// An older way works too: override `start()`, call `super.start()` first, make the calls there, and call
/// ``NetworkOperation/finish(_:)`` in both closures.
///
/// The closures of its calls come on the host's callback queue. Cancelling the operation cancels its calls; calls that
/// it makes afterwards, or after a dependency has failed, are refused with the operation's error, and nothing is sent.
open class ServiceOperation: NetworkOperation, @unchecked Sendable {
    // Sendable because `service` never changes; subclasses answer for their own.

    /// The service of this operation alone: cancelling it touches no other operation.
    public let service: EasyNetworkService

    /// An operation for ``HostConfiguration/shared`` as it is now.
    public override init() {
        service = EasyNetworkService(HostConfiguration.shared)
        super.init()
    }

    /// - Parameter service: gives the host, and cancels this operation's calls when it is cancelled itself.
    public init(service: EasyNetworkService) {
        self.service = EasyNetworkService(partOf: service)
        super.init()
    }

    /// The host of the service's base URL.
    open override var host: String? { service.configuration.host }

    open override func execute() {
        if type(of: self) == ServiceOperation.self {
            finish(NetworkError(code: .invalidRequest, message: "a ServiceOperation needs its execute() overridden"))
        }
    }

    override var deliveryQueue: DispatchQueue {
        scheduling?.scheduler.callbackQueue ?? service.configuration.deliveryQueue
    }

    override func stop() {
        service.refuse(error ?? NetworkError(code: .cancelled))
    }
}
