import Foundation

/// The rules for storing responses in a private cache (RFC 9111, section 3).
///
/// Such a cache may store responses with `private`, and responses to requests with credentials (section 3.5).
enum HTTPStorability {
    /// The statuses with a heuristic lifetime (RFC 9110, section 15.1), without 206, since this cache stores no parts.
    static let heuristicStatuses: Set<Int> = [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501]

    /// The statuses whose caching requirements this cache fulfills, for `must-understand` (RFC 9111, section 5.2.2.3).
    private static let understoodStatuses = heuristicStatuses.union([302, 303, 307, 400, 403, 500, 502, 503, 504])

    /// The reason why a response is not stored.
    enum Obstacle: String, Error, Hashable, Sendable {
        /// The method is not GET.
        case method
        /// The status is not final, or 304.
        case status
        /// The status is 206. In other responses `Content-Range` has no meaning (RFC 9110, section 14.4).
        case partial
        /// The request has `Range` or a condition.
        case condition
        /// The status is 401 or 407, which a request with credentials must not receive.
        case challenge
        /// The host added a credential, and the response is neither public nor in a partition (RFC 9111, section 3.5).
        case credential
        /// `no-store` in the request.
        case requestNoStore
        /// `no-store` in the response.
        case noStore
        /// `must-understand`, and an unknown status.
        case mustUnderstand
        /// A `Vary` that no request matches.
        case vary
        /// No rule allows storing it.
        case notCacheable
        /// It is neither fresh at any time nor has it a validator.
        case useless

        /// Whether the reason is the request, so that the stored response stays valid.
        var isAboutRequest: Bool { [.method, .partial, .condition, .requestNoStore].contains(self) }
    }

    /// - Parameters:
    ///   - stored: the response as it would be stored.
    ///   - control: the directives of the response as it arrived.
    ///   - request: the fields as they were sent, without the conditions of the cache.
    /// - Returns: nil when the response may be stored.
    static func obstacle(
        to stored: StoredResponse,
        _ control: CacheControl,
        method: NetworkService.Method,
        request: HTTPHeaders
    ) -> Obstacle? {
        let status = stored.status
        guard method == .get else { return .method }
        guard status >= 200, status != 304 else { return .status }
        guard status != 206 else { return .partial }
        guard status == 200 || !request.hasConditions else { return .condition }
        guard status != 401, status != 407 else { return .challenge }
        let asked = CacheControl(request: request)
        guard !asked.noStore else { return .requestNoStore }
        if control.mustUnderstand {
            // Then "no-store" is for caches that do not support "must-understand" (section 5.2.2.3).
            guard understoodStatuses.contains(status) else { return .mustUnderstand }
        } else if control.noStore {
            return .noStore
        }
        guard !stored.nominated.matchesNone else { return .vary }
        guard isCacheable(stored, control) else { return .notCacheable }
        return isUseful(stored, control, asked) ? nil : .useless
    }

    /// The last condition of section 3.
    private static func isCacheable(_ stored: StoredResponse, _ control: CacheControl) -> Bool {
        control.maxAge != nil || stored.headers["Expires"] != nil || control.isPublic || control.isPrivate
            || heuristicStatuses.contains(stored.status)
    }

    /// Whether any request can use it: while it is fresh, after validation, or stale.
    private static func isUseful(_ stored: StoredResponse, _ control: CacheControl, _ asked: CacheControl) -> Bool {
        if !stored.conditionalHeaders.isEmpty { return true }
        if control.noCache { return false }
        if stored.freshness.lifetime > 0 { return true }
        if control.mustRevalidate { return false }
        // A request that accepts stale responses may be repeated.
        let windows = [control.staleWhileRevalidate, control.staleIfError, asked.maxStale, asked.staleIfError]
        return windows.contains { ($0 ?? 0) > 0 }
    }
}

extension HTTPHeaders {
    /// Whether a request is for a part, or conditional (RFC 9110, sections 13.1 and 14.2).
    var hasConditions: Bool {
        ["Range", "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "If-Range"]
            .contains { self[$0] != nil }
    }
}

/// The stored responses that are out of date after an unsafe request (RFC 9111, section 4.4).
enum HTTPInvalidation {
    /// RFC 9110, section 9.2.1. Unknown methods are unsafe.
    private static let safeMethods = ["GET", "HEAD", "OPTIONS", "TRACE"]

    /// The URLs to invalidate, absolute and without fragment, the target first.
    ///
    /// Empty after a safe method or an error. Without URLs of other origins, since a server must not clear their caches.
    ///
    /// - Parameter target: the URL of the request.
    static func urls(method: NetworkService.Method, target: URL, status: Int, response: HTTPHeaders) -> [URL] {
        guard !safeMethods.contains(method.rawValue), (200..<400).contains(status), let origin = target.origin
        else { return [] }
        let named = ["Location", "Content-Location"].flatMap { response.values(for: $0) }
            .compactMap { URL(string: PercentEncoding.mend($0.trimmed, .reference), relativeTo: target) }
            .filter { $0.absoluteURL.origin == origin }
        var seen: Set<URL> = []
        return ([target] + named).compactMap(withoutFragment).filter { seen.insert($0).inserted }
    }

    private static func withoutFragment(_ url: URL) -> URL? {
        var components = URLComponents(url: url.absoluteURL, resolvingAgainstBaseURL: true)
        components?.fragment = nil
        return components?.url
    }
}
