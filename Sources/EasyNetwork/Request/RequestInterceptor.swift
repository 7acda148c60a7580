import Foundation

/// Observes, changes or refuses the messages and answers of a host or of one request.
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
/// The interceptors of the host come first, then those of the request; for answers the order is reversed. Each is
/// called for each attempt, but not for redirects: the header fields that it adds stay, except for credentials. Both
/// methods run in a task that is cancelled with the request; both have a default that changes nothing. They are to wait
/// by `await`: before macOS 15, iOS 18 and their siblings one that blocks its thread holds one of Swift's pool, which
/// has as many as there are processors for all tasks of the program.
public protocol RequestInterceptor: Sendable {
    /// Changes the message of an attempt, before the credential is added.
    ///
    /// - Throws: any error, which ends the request before anything is sent. All but a ``NetworkError`` become
    ///   ``NetworkError/Code/refused``.
    func adapt(_ message: TransportRequest, context: AttemptContext) async throws -> TransportRequest

    /// Judges the result of an attempt, before authentication and ``RetryPolicy`` do.
    ///
    /// - Parameters:
    ///   - result: a validated answer or a failure, as the interceptor before left it.
    ///   - context: the request and its attempts so far, this one included.
    func didReceive(_ result: Result<NetworkResponse, NetworkError>, context: AttemptContext) async -> ResponseDecision
}

extension RequestInterceptor {
    public func adapt(_ message: TransportRequest, context: AttemptContext) async throws -> TransportRequest {
        message
    }

    public func didReceive(
        _ result: Result<NetworkResponse, NetworkError>,
        context: AttemptContext
    ) async -> ResponseDecision {
        .proceed
    }
}

/// The decision of an interceptor about the result of an attempt.
///
/// ```swift
/// func didReceive(_ result: Result<NetworkResponse, NetworkError>, context: AttemptContext) async -> ResponseDecision {
///     guard case .success(let response) = result, response.headers["X-Busy"] != nil else { return .proceed }
///     return .sendAgain(after: 1)
/// }
/// ```
public enum ResponseDecision: Sendable {
    /// Keeps the result.
    case proceed
    /// Makes the result a success with this answer, for example with that of a status that was not accepted.
    case succeed(NetworkResponse)
    /// Makes the result a failure, which may still be retried, for example for an error in a body of status 200.
    case fail(NetworkError)
    /// Ends the request with ``NetworkError/Code/cancelled``, without a call of the closures and the delegate of its
    /// operation. The next interceptors are not called.
    case stop
    /// Sends the request again after a delay in seconds, whatever its method, at most 20 times for one request. A body
    /// that can be read only once cannot be sent again. The next interceptors are not called.
    case sendAgain(after: TimeInterval = 0)
}

/// The surroundings of an attempt, for interceptors.
///
/// ```swift
/// func adapt(_ message: TransportRequest, context: AttemptContext) async throws -> TransportRequest {
///     var message = message
///     message.headers["X-Attempt"] = "\(context.history.count + 1)"
///     return message
/// }
/// ```
public struct AttemptContext: Sendable {
    /// The original request.
    public let request: any BaseAPIRequest
    /// The attempts before this one; in ``RequestInterceptor/didReceive(_:context:)`` this one is the last.
    public let history: [NetworkAttempt]
}
