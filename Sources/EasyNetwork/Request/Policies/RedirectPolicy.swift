/// The rules for following redirects (RFC 9110, section 15.4), as a value.
///
/// A request follows 301, 302, 303, 307 and 308 with a `Location`. A 303 changes every method except HEAD to a GET
/// without a body; a 301 or 302 changes only a POST; 307 and 308 keep method and body. If a redirect cannot be
/// followed, the request fails with ``NetworkError/Code/redirectFailed``, and its ``NetworkError/history`` lists the
/// earlier redirects.
///
/// Another origin (scheme, host or port) gets the body and the header fields that HTTP itself defines and that are not
/// secrets: `Accept` and related fields, `User-Agent`, `Range`, `Cache-Control`, `Pragma`, `Prefer`, `Priority`, `TE`,
/// the conditions (`If-…`), the fields of the content (`Content-Type`, `Content-Encoding`, …), `Idempotency-Key` and
/// `Last-Event-ID`. It gets no other field, not even `Authorization`, `Cookie` or the credential of the host, unless
/// ``crossOriginHeaders`` names the field.
///
/// ```swift
/// host.redirects.crossOriginHeaders = ["X-Request-Id"]
/// ```
public struct RedirectPolicy: Sendable {
    /// The maximum number of redirects in one attempt; the next one fails. With 0, a redirect is the response, and
    /// ``ResponseValidation`` judges it. Defaults to 20.
    public var limit: Int

    /// Whether https can redirect to http. Defaults to `false`: the request fails.
    public var allowsDowngrade: Bool

    /// The names of additional header fields that another origin gets, including secrets. Names are case-insensitive.
    /// Defaults to an empty set.
    ///
    /// With `traceparent` and `tracestate`, ``HostSettings/sendsTraceContext`` applies to every origin.
    public var crossOriginHeaders: Set<String>

    /// A closure that decides about each redirect after the rules above have been applied. It gets the message that
    /// would follow the redirect, and the response that is the redirect, whose ``NetworkResponse/url`` is the URL
    /// before it. It is called in a separate task. The body of the redirect can be incomplete, and has at most 64 KiB.
    ///
    /// The closure returns the message to send, changed or not; its scheme must be http or https. If it returns `nil`,
    /// the redirect is the response, and ``ResponseValidation`` judges it; the redirect is accepted only with its whole
    /// body. If the closure changes the origin, the rules above apply to the fields that it leaves unchanged; fields
    /// that it sets itself are sent. Defaults to `nil`: all redirects are followed.
    public var decide: (@Sendable (_ message: TransportRequest, _ answer: NetworkResponse) async -> TransportRequest?)?

    /// Creates a policy with the given properties.
    public init(
        limit: Int = 20,
        allowsDowngrade: Bool = false,
        crossOriginHeaders: Set<String> = [],
        decide: (@Sendable (_ message: TransportRequest, _ answer: NetworkResponse) async -> TransportRequest?)? = nil
    ) {
        self.limit = limit
        self.allowsDowngrade = allowsDowngrade
        self.crossOriginHeaders = crossOriginHeaders
        self.decide = decide
    }

    /// A policy that follows no redirects: a redirect is the response.
    public static let never = RedirectPolicy(limit: 0)

    func sendsToOtherOrigins(_ name: String) -> Bool {
        crossOriginHeaders.contains { $0.isEqualIgnoringASCIICase(to: name) }
    }

    /// All properties except the closure, which cannot be compared.
    var identity: [String] { ["\(limit)", "\(allowsDowngrade)"] + crossOriginHeaders.map { $0.lowercased() }.sorted() }
}
