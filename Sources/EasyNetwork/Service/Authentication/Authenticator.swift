import Foundation

/// Authenticates requests to a host, and renews the credential when it is no longer valid.
///
/// An ``AuthenticationSession`` keeps the credential, and calls these methods: off any lock, on background threads, and
/// for several requests at a time.
///
/// ```swift
/// struct Tokens: Authenticator {
///     struct Credential: Sendable {
///         var access: HTTPCredential
///         var refreshToken: String
///     }
///
///     func apply(_ credential: Credential, to request: inout TransportRequest) {
///         request.headers["Authorization"] = credential.access.authorization
///     }
///
///     func refresh(_ credential: Credential?, over service: EasyNetworkService) async throws -> Credential {
///         guard let credential else { throw NetworkError(code: .unauthorized, message: "no user is signed in") }
///         let response = try await service.send(RefreshTokens(token: credential.refreshToken))
///         let answer = try response.decode(TokenAnswer.self)
///         return Credential(access: try .bearer(answer.token), refreshToken: answer.refreshToken)
///     }
/// }
/// ```
public protocol Authenticator: Sendable {
    /// The credential of a request: a token, a pair of tokens, a key to sign with.
    associatedtype Credential: Sendable

    /// Puts the credential into a request that is about to be sent, as a rule into its `Authorization` field.
    ///
    /// - Throws: the error that ends the request; an error of another type gets ``NetworkError/Code/invalidRequest``.
    func apply(_ credential: Credential, to request: inout TransportRequest) throws

    /// Whether an answer refuses the credential. Default: status 401, which does so whatever this returns.
    ///
    /// For a server that answers 200 with a code of its own, look into the body.
    func isRefused(_ response: NetworkResponse) -> Bool

    /// Whether the credential has expired, so that it is refreshed before the request is sent. Default: false.
    ///
    /// - Parameters:
    ///   - credential: the credential of the session.
    ///   - date: now, by the wall clock.
    func isExpired(_ credential: Credential, at date: Date) -> Bool

    /// Gets another credential, which the session keeps, and gives to its `save`. A sign-in, a sign-out and the deadline of
    /// the refresh cancel the task, and what it returns is ignored: return soon. Only a refresh that was cancelled and has
    /// not returned may run beside the next one.
    ///
    /// Requests made in here, also over another service of the same host, are sent without a credential and are not
    /// refreshed when they are refused, since they would wait for themselves. That holds within the task, and for a
    /// ``RequestOperation`` made in it; do not wait here for an operation made elsewhere.
    ///
    /// - Parameters:
    ///   - credential: the one that was refused or has expired; nil when there was none.
    ///   - service: a service for the host of the request that caused the refresh. It goes on when that request is
    ///     cancelled.
    /// - Throws: the cause of the ``NetworkError/Code/unauthorized`` with which all waiting requests end.
    func refresh(_ credential: Credential?, over service: EasyNetworkService) async throws -> Credential
}

extension Authenticator {
    public func isRefused(_ response: NetworkResponse) -> Bool {
        response.statusCode == 401
    }

    public func isExpired(_ credential: Credential, at date: Date) -> Bool {
        false
    }
}
