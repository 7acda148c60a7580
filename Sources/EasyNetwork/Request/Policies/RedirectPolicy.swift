/// Whether and how a request follows redirects (RFC 9110, section 15.4), as a value.
///
/// Followed are 301, 302, 303, 307 and 308 with a `Location`. A 303 makes any method but HEAD a GET without body, a 301
/// or 302 a POST; 307 and 308 keep method and body. A redirect that cannot be followed ends the request with
/// ``NetworkError/Code/redirectFailed``, whose ``NetworkError/history`` has the way.
///
/// To another origin (scheme, host or port) go the body and the header fields that HTTP itself defines and that tell no
/// secret: `Accept` and its kin, `User-Agent`, `Range`, `Cache-Control`, `Pragma`, `Prefer`, `Priority`, `TE`, the
/// conditions (`If-…`), those of the content (`Content-Type`, `Content-Encoding`, …), `Idempotency-Key` and
/// `Last-Event-ID`. All others stay behind, whatever they are called, and so do `Authorization`, `Cookie` and the
/// credential of the host; ``crossOriginHeaders`` are what is allowed beside them.
///
/// ```swift
/// host.redirects.crossOriginHeaders = ["X-Request-Id"]
/// ```
public struct RedirectPolicy: Sendable {
    /// How many redirects one attempt follows; one more fails. 0 means that a redirect is the answer, for the
    /// ``ResponseValidation`` to judge. Default 20.
    public var limit: Int

    /// Whether https may redirect to http. Default false: it fails.
    public var allowsDowngrade: Bool

    /// The names of further header fields that go to another origin with a redirect, compared without case. What is named
    /// goes, also a secret. Default none.
    public var crossOriginHeaders: Set<String>

    /// Asked for each redirect, after the rules have been worked in: to follow it, to refuse it, or to alter the
    /// message. Called in a task of its own. Default nil: all are followed.
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

    /// Follows nothing: a redirect is the answer.
    public static let never = RedirectPolicy(limit: 0)
}

/// A redirect that is about to be followed.
public struct Redirect: Sendable {
    /// What becomes of it.
    public enum Decision: Sendable {
        case follow
        /// The redirect is the answer, for the ``ResponseValidation`` to judge.
        case refuse
        /// Sends this message instead; http and https only.
        case alter(TransportRequest)
    }

    /// The message that was answered with the redirect.
    public let original: TransportRequest
    /// The redirect.
    public let response: NetworkResponse
    /// The message that would be sent.
    public let message: TransportRequest
    /// Whether it goes to another scheme, host or port.
    public let isCrossOrigin: Bool
}
