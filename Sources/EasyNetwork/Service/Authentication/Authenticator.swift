import Foundation

/// The rules that authenticate requests to a host, and renew the credential when it is no longer valid.
///
/// An ``AuthenticationSession`` keeps the credential, and calls these methods outside all locks, on background threads,
/// and for several requests at a time.
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
    /// The credential of a request, such as a token, a pair of tokens, or a key to sign with.
    associatedtype Credential: Sendable

    /// Adds the credential to a request that is about to be sent, usually to its `Authorization` field.
    ///
    /// - Throws: The error that ends the request. An error of another type becomes
    ///   ``NetworkError/Code/invalidRequest``.
    func apply(_ credential: Credential, to request: inout TransportRequest) throws

    /// Returns whether a response refuses the credential. The default implementation returns true for status 401, which
    /// is a refusal whatever this method returns.
    ///
    /// If a server responds with 200 and its own error code, examine the body.
    func isRefused(_ response: NetworkResponse) -> Bool

    /// Returns whether the credential has expired, so that it is refreshed before the request is sent. The default
    /// implementation returns false.
    ///
    /// - Parameters:
    ///   - credential: The credential of the session.
    ///   - date: The current date, by the wall clock.
    func isExpired(_ credential: Credential, at date: Date) -> Bool

    /// Gets another credential, which the session keeps and passes to its `save`. A sign-in, a sign-out and the
    /// deadline of the refresh cancel the task, and its result is then ignored, so return soon. A cancelled refresh
    /// that has not returned can run at the same time as the next one; other refreshes cannot.
    ///
    /// Requests made in this method, even over another service of the same host, are sent without a credential. If they
    /// are refused, they are not refreshed, because they would wait for themselves. This holds within the task, and for
    /// a ``RequestOperation`` created in it. Do not wait here for an operation that was created elsewhere.
    ///
    /// - Parameters:
    ///   - credential: The credential that was refused or has expired; nil if there was none.
    ///   - service: A service for the host of the request that caused the refresh. It continues if that request is
    ///     cancelled.
    /// - Throws: The cause of the ``NetworkError/Code/unauthorized`` with which all waiting requests end.
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
