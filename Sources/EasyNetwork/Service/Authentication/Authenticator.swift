import Foundation

/// How a host is told who asks, and how that is renewed when it does not count any more.
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
///         guard let credential else { throw NetworkError(code: .unauthorized, message: "nobody is signed in") }
///         let response = try await service.send(RefreshTokens(token: credential.refreshToken))
///         return try Credential(response.decode(TokenAnswer.self))
///     }
/// }
/// ```
public protocol Authenticator: Sendable {
    /// What a request is authenticated with: a token, a pair of tokens, a key to sign with.
    associatedtype Credential: Sendable

    /// Puts the credential into a request that is about to be sent, as a rule into its `Authorization` field.
    ///
    /// - Throws: what ends the request, an error of another type with ``NetworkError/Code/invalidRequest``.
    func apply(_ credential: Credential, to request: inout TransportRequest) throws

    /// Whether the answer means that the credential does not count. Default: status 401.
    ///
    /// For a server that answers 200 with a code of its own, look into the body.
    func isRefused(_ response: NetworkResponse) -> Bool

    /// Whether the credential is not worth sending any more, so that it is refreshed first. Default: false.
    ///
    /// - Parameter date: now, by the wall clock.
    func isExpired(_ credential: Credential, at date: Date) -> Bool

    /// Gets another credential. Never called twice at once by one session.
    ///
    /// What is asked for in here, also over another service of the same host, goes out without credential, and is not
    /// refreshed when it is refused: it would wait for itself. That holds within the task, and for a
    /// ``RequestOperation`` that is made in it; what was made elsewhere is not to be waited for here.
    ///
    /// - Parameters:
    ///   - credential: the one that was refused or has expired; nil when there was none.
    ///   - service: one of the host of the request that began it. It goes on when that one is cancelled.
    /// - Throws: what all requests that wait end with, as the cause of a ``NetworkError/Code/unauthorized``.
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
