/// The rules for following redirects (RFC 9110, section 15.4), as a value.
///
/// A request follows 301, 302, 303, 307 and 308 with a `Location`. A 303 turns every method but HEAD into a GET without
/// body, a 301 or 302 turns a POST into it; 307 and 308 keep method and body. A redirect that cannot be followed ends the
/// request with ``NetworkError/Code/redirectFailed``; its ``NetworkError/history`` lists the redirects before.
///
/// Another origin (scheme, host or port) gets the body and the header fields that HTTP itself defines and that are no
/// secrets: `Accept` and its relatives, `User-Agent`, `Range`, `Cache-Control`, `Pragma`, `Prefer`, `Priority`, `TE`, the
/// conditions (`If-…`), the fields of the content (`Content-Type`, `Content-Encoding`, …), `Idempotency-Key` and
/// `Last-Event-ID`. It gets no other field: neither `Authorization` nor `Cookie` nor the credential of the host, unless
/// ``crossOriginHeaders`` names the field.
///
/// ```swift
/// host.redirects.crossOriginHeaders = ["X-Request-Id"]
/// ```
public struct RedirectPolicy: Sendable {
    /// The largest number of redirects in one attempt; the next one fails. With 0 a redirect is the answer, for the
    /// ``ResponseValidation`` to judge. Default 20.
    public var limit: Int

    /// Whether https may redirect to http. Default false: the request fails.
    public var allowsDowngrade: Bool

    /// The names of further header fields for another origin, secrets included; their case does not count. Default none.
    public var crossOriginHeaders: Set<String>

    /// Decides about each redirect after the rules above have been applied. Called in a separate task. Default nil: all
    /// redirects are followed.
    public var decide: (@Sendable (Redirect) async -> Redirect.Decision)?

    public init(
        limit: Int = 20,
        allowsDowngrade: Bool = false,
        crossOriginHeaders: Set<String> = [],
        decide: (@Sendable (Redirect) async -> Redirect.Decision)? = nil
    ) {
        self.limit = limit
        self.allowsDowngrade = allowsDowngrade
        self.crossOriginHeaders = crossOriginHeaders
        self.decide = decide
    }

    /// Follows no redirect: it is the answer.
    public static let never = RedirectPolicy(limit: 0)
}

/// A redirect before it is followed.
public struct Redirect: Sendable {
    /// A decision about a redirect.
    public enum Decision: Sendable {
        /// Sends ``Redirect/message``.
        case follow
        /// Makes the redirect the answer, for the ``ResponseValidation`` to judge.
        case refuse
        /// Sends this message instead; http and https only.
        case alter(TransportRequest)
    }

    /// The message that was answered with the redirect.
    public let original: TransportRequest
    /// The answer that is the redirect.
    public let response: NetworkResponse
    /// The message that follows the redirect.
    public let message: TransportRequest
    /// Whether it goes to another scheme, host or port.
    public let isCrossOrigin: Bool
}
