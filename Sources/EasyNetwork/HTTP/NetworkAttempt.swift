import Foundation

/// One message that was sent for a request, and what came of it.
///
/// A request that is redirected, retried or sent again with other credentials has several; ``NetworkResponse/history``
/// and ``NetworkError/history`` have them all, in order.
public struct NetworkAttempt: Sendable {
    /// Why the message was sent.
    ///
    /// A struct and not an enum, so that a new reason breaks no `switch`.
    public struct Reason: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
        public let rawValue: String

        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        public var description: String { rawValue }

        /// The request was made.
        public static let first = Reason(rawValue: "first")
        /// The answer before sent it on, see ``RedirectPolicy``.
        public static let redirect = Reason(rawValue: "redirect")
        /// The attempt before failed, see ``RetryPolicy``.
        public static let retry = Reason(rawValue: "retry")
        /// The server refused the credential of the attempt before, and there is another one.
        public static let authentication = Reason(rawValue: "authentication")
        /// The answer before, a 304, confirmed something else than what the cache has.
        public static let unconditional = Reason(rawValue: "unconditional")
        /// The answer before did not fit the part of the body that was there already, see ``DownloadOperation``.
        public static let startOver = Reason(rawValue: "start over")
        /// An interceptor wants it once more, see ``ResponseDecision/sendAgain(after:)``.
        public static let again = Reason(rawValue: "again")
    }

    public var reason: Reason

    /// The first line of the message.
    public var request: NetworkError.Request

    /// For how many seconds the request waited before it, as a ``RetryPolicy`` or an interceptor said.
    public var delay: TimeInterval

    /// The status of the answer; nil when none came.
    public var statusCode: Int?

    /// Why no whole answer came; nil when one did.
    public var errorCode: NetworkError.Code?

    /// How the exchange went; nil when nobody measured it.
    public var metrics: TransportMetrics?

    /// Why the cache did not answer instead; nil when it was not asked.
    public var cacheMiss: CacheMiss?

    public init(
        reason: Reason = .first,
        request: NetworkError.Request,
        delay: TimeInterval = 0,
        statusCode: Int? = nil,
        errorCode: NetworkError.Code? = nil,
        metrics: TransportMetrics? = nil
    ) {
        self.reason = reason
        self.request = request
        self.delay = delay
        self.statusCode = statusCode
        self.errorCode = errorCode
        self.metrics = metrics
    }
}

extension [NetworkAttempt] {
    /// How many times sending was tried: a redirect that is followed is a part of its attempt.
    var attemptCount: Int {
        count { $0.reason != .redirect }
    }
}

extension NetworkError {
    /// Takes in what was sent until it failed.
    mutating func adopt(_ history: [NetworkAttempt]) {
        self.history = history
        attempts = history.attemptCount
        request = history.last?.request
    }
}
