import Foundation

/// What tells a host who asks: an ``AuthenticationSession`` or a ``PasswordAuthentication``.
///
/// A host has one or none; several hosts may share one. Requests to another origin (scheme, host and port) than that of
/// the host's base URL go out without.
public class RequestAuthentication: @unchecked Sendable {
    // Sendable because it has no state, and those that inherit, all of this module, have only what is.

    /// What a call does with a message or an answer.
    enum Step: Sendable {
        /// Sends this message.
        case send(TransportRequest, Stamp)
        /// Leaves the answer to others.
        case accept
        /// Gives the slot back, and waits.
        case wait(Waiting)
        case fail(NetworkError)
    }

    /// Returns the message with its credential when there is one, or why there is none. It ends at once, with
    /// ``NetworkError/Code/cancelled``, when the task is cancelled.
    typealias Waiting = @Sendable () async throws(NetworkError) -> (message: TransportRequest, stamp: Stamp)

    /// What a call keeps about its request from one call to the next.
    struct Stamp: Hashable, Sendable {
        /// Of the credential that it was sent with.
        var version = 0
        /// Whether it has been sent again for a refusal; that happens once.
        var isReplay = false
        /// Whether it does without credential.
        var isExempt = false
    }

    init() {}

    /// The stamp that a request begins with, also when it is redirected. To be called where somebody asks for it, in
    /// their task: there one sees that a refresh is what asks.
    ///
    /// - Parameter base: the host's base URL; without one any origin will do.
    final func begin(_ url: URL, base: URL?) -> Stamp {
        let isElsewhere = base.map { $0.origin != url.origin } ?? false
        return Stamp(isExempt: isElsewhere || RefreshContext.sessions.contains(ObjectIdentifier(self)))
    }

    /// Before each attempt.
    ///
    /// Calls code of the user's: not under a lock, not on the transport's thread.
    ///
    /// - Parameters:
    ///   - message: without credential.
    ///   - stamp: the last one that the call got.
    ///   - service: makes one for a refresh, which outlives the call.
    /// - Returns: never ``Step/accept``.
    func prepare(
        _ message: TransportRequest,
        _ stamp: Stamp,
        over service: @escaping @Sendable () -> EasyNetworkService
    ) -> Step {
        .send(message, stamp)
    }

    /// For each answer. The parameters are those of ``prepare(_:_:over:)``.
    func review(
        _ response: NetworkResponse,
        to message: TransportRequest,
        _ stamp: Stamp,
        over service: @escaping @Sendable () -> EasyNetworkService
    ) -> Step {
        .accept
    }
}

/// Which sessions the current task gets a credential for.
enum RefreshContext {
    @TaskLocal static var sessions: [ObjectIdentifier] = []
}

extension RequestAuthentication: CustomReflectable {
    /// Without children, so that a dump has no secret.
    public final var customMirror: Mirror { Mirror(self, children: [:]) }
}
