/// The rules for following redirects (RFC 9110, section 15.4), as a value.
///
/// A request follows 301, 302, 303, 307 and 308 with a `Location`. A 303 turns every method but HEAD into a GET without
/// body, a 301 or 302 turns a POST into it; 307 and 308 keep method and body. A redirect that cannot be followed ends
/// the request with ``NetworkError/Code/redirectFailed``; its ``NetworkError/history`` lists the redirects before.
///
/// Another origin (scheme, host or port) gets the body and the header fields that HTTP itself defines and that are no
/// secrets: `Accept` and its relatives, `User-Agent`, `Range`, `Cache-Control`, `Pragma`, `Prefer`, `Priority`, `TE`,
/// the conditions (`If-…`), the fields of the content (`Content-Type`, `Content-Encoding`, …), `Idempotency-Key` and
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

    /// The names of further header fields for another origin, secrets included; their case does not count. Default
    /// none.
    ///
    /// With `traceparent` and `tracestate`, ``HostSettings/sendsTraceContext`` applies to every origin.
    public var crossOriginHeaders: Set<String>

    /// Decides about each redirect after the rules above have been applied, with the message that would follow it and
    /// the answer that is the redirect, whose ``NetworkResponse/url`` is the address before. Called in a separate task.
    /// The body of the redirect may be incomplete, and has at most 64 KiB.
    ///
    /// It returns the message to send, changed or not, http and https only; nil makes the redirect the answer, for the
    /// ``ResponseValidation`` to judge; an accepted one needs its whole body. Where it changes the origin, the rules
    /// above apply to the fields that it leaves as they are; those that it sets itself are sent. Default nil: all
    /// redirects are followed.
    public var decide: (@Sendable (_ message: TransportRequest, _ answer: NetworkResponse) async -> TransportRequest?)?

    /// Creates a policy. The defaults are those of the properties.
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

    /// Follows no redirect: it is the answer.
    public static let never = RedirectPolicy(limit: 0)

    /// Whether another origin gets the header field with this name.
    func sendsToOtherOrigins(_ name: String) -> Bool {
        crossOriginHeaders.contains { $0.isEqualIgnoringASCIICase(to: name) }
    }

    /// Everything but the closure, which has no comparison.
    var identity: [String] { ["\(limit)", "\(allowsDowngrade)"] + crossOriginHeaders.map { $0.lowercased() }.sorted() }
}
