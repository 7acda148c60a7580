import Foundation

/// Sees, alters and may veto what a host, or one request, sends and gets.
///
/// ```swift
/// struct Signature: RequestInterceptor {
///     func adapt(_ message: TransportRequest, context: AttemptContext) async throws -> TransportRequest {
///         var message = message
///         message.headers["X-Signature"] = sign(message.url)
///         return message
///     }
/// }
/// ```
///
/// Those of the host come first, then those of the request; on the way back the other way round. Each is asked for each
/// attempt, but not for redirects that are followed: what it adds stays, apart from credentials. Both methods run in a
/// task, which is cancelled with the request, on no queue that is yours; both have a default that changes nothing.
public protocol RequestInterceptor: Sendable {
    /// Before an attempt is sent, and before the credential is put in.
    ///
    /// - Throws: anything, which is a veto: nothing is sent, and the request ends with it. What is no ``NetworkError``
    ///   becomes ``NetworkError/Code/refused``.
    func adapt(_ message: TransportRequest, context: AttemptContext) async throws -> TransportRequest

    /// When an attempt has landed, and before authentication and ``RetryPolicy`` look at it.
    ///
    /// - Parameter result: an answer that has been validated, or why there is none. An interceptor sees what the one
    ///   before made of it.
    func land(_ result: Result<NetworkResponse, NetworkError>, context: AttemptContext) async -> LandingDecision
}

extension RequestInterceptor {
    public func adapt(_ message: TransportRequest, context: AttemptContext) async throws -> TransportRequest {
        message
    }

    public func land(
        _ result: Result<NetworkResponse, NetworkError>,
        context: AttemptContext
    ) async -> LandingDecision {
        .proceed
    }
}

/// What an interceptor makes of a landing.
public enum LandingDecision: Sendable {
    /// Leaves it as it is.
    case proceed
    /// Makes it a success with this answer: another one, or the one of a status that was not accepted.
    case succeed(NetworkResponse)
    /// Makes it a failure, which may still be retried: an error in a body of status 200, say.
    case fail(NetworkError)
    /// Ends the request with ``NetworkError/Code/cancelled``, and without a word to the closures and the delegate of its
    /// operation. The interceptors that would come next are not asked.
    case stop
    /// Sends the request once more after so many seconds, whatever its method. At most 20 times for one request; a body
    /// that can be read only once cannot be sent again. The interceptors that would come next are not asked.
    case sendAgain(after: TimeInterval = 0)
}

/// What an interceptor is told beside the message and its answer.
public struct AttemptContext: Sendable {
    /// The request as it was made.
    public let request: any BaseAPIRequest
    /// The attempts before this one, in ``RequestInterceptor/land(_:context:)`` with this one as the last.
    public let history: [NetworkAttempt]
}
