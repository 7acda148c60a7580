import Foundation

/// The base class of ``AuthenticationSession`` and ``PasswordAuthentication``, which authenticate requests to a host.
///
/// A host has at most one; several hosts may share it. Requests to another origin (scheme, host and port) than that of
/// the host's base URL are sent without a credential.
public class RequestAuthentication: @unchecked Sendable {
    // Sendable because it has no state, and all subclasses, which are in this module, have only sendable state.

    /// The next step of a call, for a message or an answer.
    enum Step: Sendable {
        /// Sends this message.
        case send(TransportRequest, Stamp)
        /// Leaves the answer as it is.
        case accept
        /// Gives the slot back, and waits.
        case wait(Waiting)
        case fail(NetworkError)
    }

    /// Returns the message with its credential, or the reason why there is none. Ends at once, with
    /// ``NetworkError/Code/cancelled``, when the task is cancelled.
    typealias Waiting = @Sendable () async throws(NetworkError) -> (message: TransportRequest, stamp: Stamp)

    /// The authentication state of a request, which a call keeps between two messages.
    struct Stamp: Hashable, Sendable {
        /// The version of the credential that the request was sent with.
        var version = 0
        /// Whether the request has been sent again after a refusal; that happens once.
        var isReplay = false
        /// Whether the request is sent without a credential.
        var isExempt = false
    }

    init() {}

    /// The first stamp of a request, also for its redirects. Call it in the task of the code that makes the request:
    /// its task-local values show whether a refresh makes it.
    ///
    /// - Parameter base: the host's base URL; nil allows any origin.
    final func begin(_ url: URL, base: URL?) -> Stamp {
        let isElsewhere = base.map { $0.origin != url.origin } ?? false
        return Stamp(isExempt: isElsewhere || RefreshContext.sessions.contains(ObjectIdentifier(self)))
    }

    /// Prepares a message before each attempt.
    ///
    /// Calls user code: do not call it under a lock or on the transport's thread.
    ///
    /// - Parameters:
    ///   - message: without credential.
    ///   - stamp: the last stamp of the call.
    ///   - service: makes one for a refresh, which outlives the call.
    /// - Returns: never ``Step/accept``.
    func prepare(
        _ message: TransportRequest,
        _ stamp: Stamp,
        over service: @escaping @Sendable () -> EasyNetworkService
    ) -> Step {
        .send(message, stamp)
    }

    /// Reviews each answer. The parameters are those of ``prepare(_:_:over:)``.
    func review(
        _ response: NetworkResponse,
        to message: TransportRequest,
        _ stamp: Stamp,
        over service: @escaping @Sendable () -> EasyNetworkService
    ) -> Step {
        .accept
    }
}

/// The sessions whose refresh the current task is part of.
enum RefreshContext {
    @TaskLocal static var sessions: [ObjectIdentifier] = []
}

extension RequestAuthentication: CustomReflectable {
    /// Has no children, so that a dump shows no secret.
    public final var customMirror: Mirror { Mirror(self, children: [:]) }
}
