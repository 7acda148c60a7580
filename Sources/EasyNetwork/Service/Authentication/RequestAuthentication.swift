import Foundation

/// The authentication of requests to a host: an ``AuthenticationSession``, or a
/// ``password(user:password:allowsBasicWithoutTLS:)``.
///
/// ```swift
/// let host = HostConfiguration(baseURL: url) { $0.authentication = session }
/// ```
///
/// A host has at most one authentication, and several hosts can share it. A request is sent without a credential if its
/// origin (scheme, host and port) is not the origin of the host's base URL.
public class RequestAuthentication: @unchecked Sendable {
    // Sendable because this class has no state, and all subclasses, which are in this module, have only sendable state.

    /// The authentication state of a request, which a call keeps between two messages.
    struct CredentialState: Hashable, Sendable {
        /// The version of the credential that the request was sent with.
        var version = 0
        /// See ``RequestAuthentication/userVersion``.
        var userVersion = 0
        /// Whether the request has been sent again after a refusal, which happens once.
        var isReplay = false
        /// Whether the request is sent without a credential.
        var isExempt = false
    }

    /// A message with its credential.
    typealias Authorized = (message: TransportRequest, credentialState: CredentialState)

    /// A refresh in progress. All requests that need it wait for its outcome, which is the version of the user whose
    /// credential it refreshed. The outcome contains no credential, because the user can sign out before the last
    /// request has read it.
    typealias Refresh = Promise<Result<Int, NetworkError>>

    /// A message that needs a credential, and what the call knows about it.
    struct Input {
        /// The message without its credential.
        let message: TransportRequest
        /// The last state of the call.
        let state: CredentialState
        /// The refresh that the call has waited for; nil the first time.
        var refresh: Refresh?
        /// Returns the service for the messages of a refresh, which outlives the call.
        let service: () -> EasyNetworkService
    }

    /// The next step for a message that needs a credential.
    enum Authorization {
        case ready(Authorized)
        /// Call again with this refresh when it has ended.
        case wait(Refresh)
    }

    /// The sessions whose refresh the current task is part of.
    @TaskLocal static var refreshing: [ObjectIdentifier] = []

    /// A number that changes with the user to whom the credential belongs, but not with a refresh of the credential.
    var userVersion: Int { 0 }

    /// The name of the user; nil if the credential does not contain a name. A name is not a secret.
    var userName: String? { nil }

    /// Returns whether a message can be sent with its credential, because the user has not signed out or in since it
    /// was added. Called immediately before a message is passed to the transport.
    func isCurrent(_ credentialState: CredentialState) -> Bool { true }

    /// Returns the state at the beginning of a request, which also applies to its redirects. Call it in the task of the
    /// code that makes the request: the task-local values show whether a refresh makes it.
    ///
    /// - Parameter base: The host's base URL; nil allows any origin.
    final func begin(_ url: URL, base: URL?) -> CredentialState {
        CredentialState(
            isExempt: url.isElsewhere(than: base) || Self.refreshing.contains(ObjectIdentifier(self))
        )
    }

    /// Adds the credential to a message, before each attempt.
    ///
    /// Calls user code, so do not call this method under a lock or on the transport's thread.
    ///
    /// - Throws: The reason why there is no credential.
    func authorize(_ input: Input) throws(NetworkError) -> Authorization {
        .ready((input.message, input.state))
    }

    /// Reviews each response.
    ///
    /// - Returns: The message with another credential, or the refresh to wait for, if the response refuses the credential
    ///   that it was sent with; otherwise nil.
    func review(_ response: NetworkResponse, to input: Input) throws(NetworkError) -> Authorization? { nil }
}

extension RequestAuthentication: CustomReflectable {
    /// A mirror without children, so that a dump shows no secret.
    public final var customMirror: Mirror { Mirror(self, children: [:]) }
}
