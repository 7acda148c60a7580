import Foundation

/// A type that observes, changes or rejects the messages and responses of a host or of one request.
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
/// For messages, the host's interceptors are called first, then the request's; for responses, the order is reversed.
/// Each is called for every attempt, but not for redirects: the header fields that it adds are kept, except for
/// credentials. Both methods run in a task that is cancelled with the request, and both have a default that changes
/// nothing. Wait with `await`. Before macOS 15, iOS 18 and the aligned releases, an interceptor that blocks its thread
/// blocks one thread of Swift's pool, which has only as many threads as there are processors for all tasks of the
/// program.
public protocol RequestInterceptor: Sendable {
    /// Changes the message of an attempt, before the credential is added.
    ///
    /// - Throws: any error, which ends the request before anything is sent. Errors other than ``NetworkError`` become
    ///   ``NetworkError/Code/refused``.
    func adapt(_ message: TransportRequest, context: AttemptContext) async throws -> TransportRequest

    /// Evaluates the result of an attempt, before authentication and ``RetryPolicy`` do.
    ///
    /// - Parameters:
    ///   - result: a validated response or a failure, as the previous interceptor left it.
    ///   - context: the request and its messages so far, including this one.
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
    /// Makes the result a success with this response, for example one whose status was not accepted.
    case succeed(NetworkResponse)
    /// Makes the result a failure, which can still be retried, for example for an error in the body of a 200 response.
    case fail(NetworkError)
    /// Ends the request with ``NetworkError/Code/cancelled``, without calling the closures and the delegate of its
    /// operation. The next interceptors are not called.
    case stop
    /// Sends the request again after a delay in seconds, whatever its method, at most 20 times per request. A body that
    /// can be read only once cannot be sent again. The next interceptors are not called.
    case sendAgain(after: TimeInterval = 0)
}

/// The context of an attempt, for interceptors.
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
    /// The messages before this attempt. In ``RequestInterceptor/didReceive(_:context:)``, the last one is the last
    /// message of this attempt.
    public let history: [NetworkAttempt]
}
