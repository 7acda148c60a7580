import Foundation

/// The authentication of requests to a host: an ``AuthenticationSession``, or a
/// ``password(user:password:allowsBasicWithoutTLS:)``.
///
/// ```swift
/// let host = HostConfiguration(baseURL: url) { $0.authentication = session }
/// ```
///
/// A host has at most one; several hosts may share it. Requests to another origin (scheme, host and port) than that of
/// the host's base URL are sent without a credential.
public class RequestAuthentication: @unchecked Sendable {
    // Sendable because it has no state, and all subclasses, which are in this module, have only sendable state.

    /// The authentication state of a request, which a call keeps between two messages.
    struct CredentialState: Hashable, Sendable {
        /// The version of the credential that the request was sent with.
        var version = 0
        /// See ``RequestAuthentication/userVersion``.
        var userVersion = 0
        /// Whether the request has been sent again after a refusal; that happens once.
        var isReplay = false
        /// Whether the request is sent without a credential.
        var isExempt = false
    }

    /// A message with its credential.
    typealias Authorized = (message: TransportRequest, credentialState: CredentialState)

    /// A refresh under way. All requests that need it wait for its one outcome, which is the version of the user whose
    /// credential it refreshed. It holds no credential: the user may sign out before the last request has read it.
    typealias Refresh = Promise<Result<Int, NetworkError>>

    /// What becomes of a message that needs a credential.
    enum Authorization {
        case ready(Authorized)
        /// Ask again with this refresh when it has ended.
        case wait(Refresh)
    }

    /// The sessions whose refresh the current task is part of.
    @TaskLocal static var refreshing: [ObjectIdentifier] = []

    init() {}

    /// Changes with the user to whom the credential belongs, and not when that is refreshed.
    var userVersion: Int { 0 }

    /// Whether a message may go out with its credential: its user has not signed out or in since that was added. Asked
    /// last before a message goes to the transport.
    func isCurrent(_ credentialState: CredentialState) -> Bool { true }

    /// The state at the beginning of a request, also for its redirects. Call it in the task of the code that makes the
    /// request: its task-local values show whether a refresh makes it.
    ///
    /// - Parameter base: the host's base URL; nil allows any origin.
    final func begin(_ url: URL, base: URL?) -> CredentialState {
        CredentialState(
            isExempt: url.isElsewhere(than: base) || Self.refreshing.contains(ObjectIdentifier(self))
        )
    }

    /// Adds the credential to a message, before each attempt.
    ///
    /// Calls user code: do not call it under a lock or on the transport's thread.
    ///
    /// - Parameters:
    ///   - message: without credential.
    ///   - credentialState: the last state of the call.
    ///   - refresh: the refresh that the call has waited for; nil the first time.
    ///   - service: for the messages of a refresh, which outlives the call.
    /// - Throws: the reason why there is no credential.
    func authorize(
        _ message: TransportRequest,
        _ credentialState: CredentialState,
        after refresh: Refresh?,
        over service: @autoclosure () -> EasyNetworkService
    ) throws(NetworkError) -> Authorization {
        .ready((message, credentialState))
    }

    /// Reviews each response. The parameters are those of ``authorize(_:_:after:over:)``.
    ///
    /// - Returns: the message with another credential, if the response refuses the one it was sent with.
    func review(
        _ response: NetworkResponse,
        to message: TransportRequest,
        _ credentialState: CredentialState,
        after refresh: Refresh?,
        over service: @autoclosure () -> EasyNetworkService
    ) throws(NetworkError) -> Authorization? {
        nil
    }
}

extension RequestAuthentication: CustomReflectable {
    /// Has no children, so that a dump shows no secret.
    public final var customMirror: Mirror { Mirror(self, children: [:]) }
}
