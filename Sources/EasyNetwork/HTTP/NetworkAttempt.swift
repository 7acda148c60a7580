import Foundation

/// A message that was sent for a request, and its outcome. Despite its name, it is one message: an attempt of a request
/// has another message for each redirect.
///
/// ```swift
/// for attempt in error.history { print(attempt) }
/// // first: GET https://api.example.com/users/1 → 503
/// // retry: GET https://api.example.com/users/1 → 404
/// ```
///
/// A request that is redirected, retried or resent with other credentials has several messages.
/// ``NetworkResponse/history`` and ``NetworkError/history`` list them in order.
public struct NetworkAttempt: Sendable {
    /// The reason why a message was sent.
    ///
    /// ```swift
    /// let redirects = response.history.filter { $0.reason == .redirect }
    /// ```
    ///
    /// This type is a struct instead of an enum, so that a new reason breaks no `switch`.
    public struct Reason: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
        public let rawValue: String

        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        public var description: String { rawValue }

        /// The first message of the request.
        public static let first = Reason(rawValue: "first")
        /// The previous response was a redirect; see ``RedirectPolicy``.
        public static let redirect = Reason(rawValue: "redirect")
        /// The previous message failed; see ``RetryPolicy``.
        public static let retry = Reason(rawValue: "retry")
        /// The server rejected the credential of the previous message, and another one is available.
        public static let authentication = Reason(rawValue: "authentication")
        /// The previous response, a 304, confirmed a different entry from the one in the cache.
        public static let unconditional = Reason(rawValue: "unconditional")
        /// The previous response did not continue the part of the body that was already received; see
        /// ``DownloadOperation``.
        public static let startOver = Reason(rawValue: "start over")
        /// An interceptor asked to resend the request; see ``ResponseDecision/sendAgain(after:)``.
        public static let again = Reason(rawValue: "again")
    }

    /// The reason why the message was sent.
    public internal(set) var reason = Reason.first

    /// The head of the message.
    public internal(set) var request: NetworkError.Request

    /// The number of seconds that the request waited before this message, as a ``RetryPolicy`` or an interceptor
    /// requested.
    public internal(set) var delay: TimeInterval = 0

    /// The status of the response; nil if there was none.
    public internal(set) var statusCode: Int?

    /// The reason why no complete response was received; nil if one was. The status of a redirect, a challenge or a
    /// refusal takes effect even if the response is incomplete.
    public internal(set) var errorCode: NetworkError.Code?

    /// The phase in which the message failed; nil if it did not, or if that is not known.
    var phase: TransportPhase?

    /// The metrics of the exchange; nil if there are none.
    public internal(set) var metrics: TransportMetrics?

    /// The reason why the cache did not provide the response; nil if it was not consulted.
    public internal(set) var cacheMiss: CacheMiss?

    /// The span of the message; nil if it is not traced.
    package internal(set) var span: TraceSpan?

    /// The beginning of a body that was consumed as it arrived, for a listener that requested an excerpt.
    package internal(set) var beginning: BodyExcerpt?

    /// Whether a server may have processed the message.
    ///
    /// A server that answers with 4xx has rejected the message (RFC 9110, section 15.5), and one that answers with 307
    /// or 308 has left it to another URL (sections 15.4.8 and 15.4.9).
    var mayHaveActed: Bool {
        if let phase, phase < .send { return false }
        // A status is then the status of a proxy.
        if errorCode?.meansNotSent == true { return false }
        guard let statusCode else { return true }
        return ![304, 307, 308].contains(statusCode) && !(400..<500 ~= statusCode)
    }

    /// Returns the message with an excerpt of the body, for listeners. The history does not keep the excerpt.
    func adding(beginning: BodyExcerpt?) -> NetworkAttempt {
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

    /// An empty mirror, so that a dump shows no secrets.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// The reason why the cache did not provide the response.
///
/// ```swift
/// if error.code == .notCached, error.cacheMiss == .expired { showOldItems() }
/// ```
///
/// This type is a struct instead of an enum, so that a new reason breaks no `switch`.
public struct CacheMiss: RawRepresentable, Hashable, Error, CustomStringConvertible {
    public let rawValue: String

    public init(rawValue: String) {
        self.rawValue = rawValue
    }

    public var description: String { rawValue }

    /// The cache has no entry.
    public static let absent = CacheMiss(rawValue: "absent")
    /// The entry is older than the policy, the cache or its own headers allow.
    public static let expired = CacheMiss(rawValue: "expired")
    /// The entry was stored with another ``CachePolicy/version``.
    public static let version = CacheMiss(rawValue: "version")
    /// The entry was stored with another value of ``CachePolicy/sensitiveData``.
    public static let sensitiveData = CacheMiss(rawValue: "sensitive data")
    /// The entry was stored by another version of the app.
    public static let appVersion = CacheMiss(rawValue: "app version")
    /// The entry's file was truncated or altered. It has been removed.
    public static let damaged = CacheMiss(rawValue: "damaged")
    /// The entry fails the current validation or mapping. If mapping failed, it has been removed.
    public static let unreadable = CacheMiss(rawValue: "unreadable")
    /// The entry belongs to a request with other header fields (`Vary`; RFC 9111, section 4.1).
    public static let varies = CacheMiss(rawValue: "varies")
    /// The request or the entry requires a request to the server: for `no-cache`, for a range that the entry does not
    /// have, or for a precondition.
    public static let mustAsk = CacheMiss(rawValue: "must ask")
    /// The call ignored the cache; see ``RequestOperation/ignoresCache``.
    public static let ignored = CacheMiss(rawValue: "ignored")
    /// A request of this kind has no key; see ``CachePolicy``.
    public static let noKey = CacheMiss(rawValue: "no key")
}
