import Foundation

/// A message that was sent for a request, and its outcome.
///
/// ```swift
/// for attempt in error.history { print(attempt) }
/// // first: GET https://api.example.com/users/1 → 503
/// // retry: GET https://api.example.com/users/1 → 404
/// ```
///
/// A request that is redirected, retried or sent again with other credentials has several; ``NetworkResponse/history``
/// and ``NetworkError/history`` list them in order.
public struct NetworkAttempt: Sendable {
    /// The reason why a message was sent.
    ///
    /// ```swift
    /// let redirects = response.history.filter { $0.reason == .redirect }
    /// ```
    ///
    /// A struct and not an enum, so that a new reason breaks no `switch`.
    public struct Reason: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
        public let rawValue: String

        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        public var description: String { rawValue }

        /// The first message of the request.
        public static let first = Reason(rawValue: "first")
        /// The previous answer was a redirect, see ``RedirectPolicy``.
        public static let redirect = Reason(rawValue: "redirect")
        /// The previous attempt failed, see ``RetryPolicy``.
        public static let retry = Reason(rawValue: "retry")
        /// The server refused the credential of the previous attempt, and there is another one.
        public static let authentication = Reason(rawValue: "authentication")
        /// The previous answer, a 304, confirmed something else than the cache has.
        public static let unconditional = Reason(rawValue: "unconditional")
        /// The previous answer did not continue the part of the body that was already there, see ``DownloadOperation``.
        public static let startOver = Reason(rawValue: "start over")
        /// An interceptor asked for it, see ``ResponseDecision/sendAgain(after:)``.
        public static let again = Reason(rawValue: "again")
    }

    /// The reason why the message was sent.
    public internal(set) var reason = Reason.first

    /// The head of the message.
    public internal(set) var request: NetworkError.Request

    /// The seconds that the request waited before it, as a ``RetryPolicy`` or an interceptor asked.
    public internal(set) var delay: TimeInterval = 0

    /// The status of the answer; nil if there was none.
    public internal(set) var statusCode: Int?

    /// The reason why there was no complete answer; nil if there was one. The status of a
    /// redirect, a challenge or a refusal counts all the same.
    public internal(set) var errorCode: NetworkError.Code?

    /// The measurements of the exchange; nil if there are none.
    public internal(set) var metrics: TransportMetrics?

    /// The reason why the cache did not answer instead; nil if it was not asked.
    public internal(set) var cacheMiss: CacheMiss?

    /// The span of the message; nil without a trace.
    package internal(set) var span: TraceSpan?

    /// The beginning of a body that was used while it came, for a listener that asked for it.
    package internal(set) var beginning: BodyExcerpt?

    /// The attempt for listeners; the history does not keep what they are told of the body.
    func told(with beginning: BodyExcerpt?) -> NetworkAttempt {
        guard let beginning else { return self }
        var copy = self
        copy.beginning = beginning
        return copy
    }
}

extension NetworkAttempt: CustomStringConvertible, CustomReflectable {
    /// `retry: GET https://example.com/a?token=REDACTED → 503`, without the secrets that ``Redaction`` recognizes.
    public var description: String {
        let end = statusCode.map { "\($0)" } ?? errorCode.map { "\($0)" } ?? "no end"
        return "\(reason): \(request.method) \(Redaction.standard.redacted(request.url)) → \(end)"
    }

    /// Without children, so that a dump has no secrets.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension [NetworkAttempt] {
    /// The number of attempts; a redirect is a part of its attempt.
    var attemptCount: Int {
        count { $0.reason != .redirect }
    }
}

/// The reason why the cache did not answer.
///
/// ```swift
/// if error.code == .notCached, error.cacheMiss == .expired { showOldItems() }
/// ```
///
/// A struct and not an enum, so that a new reason breaks no `switch`.
public struct CacheMiss: RawRepresentable, Hashable, Error, CustomStringConvertible {
    public let rawValue: String

    public init(rawValue: String) {
        self.rawValue = rawValue
    }

    public var description: String { rawValue }

    /// There is no entry.
    public static let absent = CacheMiss(rawValue: "absent")
    /// The entry is older than the policy, the cache or its own headers allow.
    public static let expired = CacheMiss(rawValue: "expired")
    /// It was stored with another ``CachePolicy/version``.
    public static let version = CacheMiss(rawValue: "version")
    /// It was stored with other ``CachePolicy/sensitiveData``.
    public static let sensitiveData = CacheMiss(rawValue: "sensitive data")
    /// It was stored by another version of the app.
    public static let appVersion = CacheMiss(rawValue: "app version")
    /// Its file was cut or altered, and has been removed.
    public static let damaged = CacheMiss(rawValue: "damaged")
    /// It fails today's validation, or today's mapping; in the latter case it has been removed.
    public static let unreadable = CacheMiss(rawValue: "unreadable")
    /// It answers a request with other header fields (`Vary`; RFC 9111, section 4.1).
    public static let varies = CacheMiss(rawValue: "varies")
    /// The request or the entry requires asking the server (`no-cache`, a range that it does not have, a precondition).
    public static let mustAsk = CacheMiss(rawValue: "must ask")
    /// The call ignored the cache: ``RequestOperation/ignoresCache``.
    public static let ignored = CacheMiss(rawValue: "ignored")
    /// A request of this kind has no key, see ``CachePolicy``.
    public static let noKey = CacheMiss(rawValue: "no key")
}
