import Foundation

/// Whether an answer may be kept in a cache of one user (RFC 9111, section 3).
///
/// `private` does not keep it out of such a cache, and neither do credentials in the request (section 3.5).
enum HTTPStorability {
    /// Why an answer is not kept.
    enum Obstacle: String, Hashable, Sendable {
        /// Only answers to GET are.
        case method
        /// Not a final status, or one that is no answer of its own: 304.
        case status
        /// A part: 206. In any other answer `Content-Range` means nothing (RFC 9110, section 14.4).
        case partial
        /// To a request with `Range` or conditions of its own, and therefore not to others.
        case condition
        /// 401 and 407 ask this request for credentials; kept, they would also answer the one that has them.
        case challenge
        /// `no-store` in the request.
        case requestNoStore
        /// `no-store` in the answer.
        case noStore
        /// `must-understand`, and a status that this cache knows nothing of.
        case mustUnderstand
        /// A `Vary` that no request matches.
        case vary
        /// Nothing in it allows to keep it.
        case notCacheable
        /// Never fresh, nor could it be validated: it would never be used.
        case useless
    }

    /// - Parameters:
    ///   - stored: the answer as it would be kept.
    ///   - control: the directives of the answer as it came.
    ///   - request: the fields as they were sent, without the conditions that the cache added.
    /// - Returns: nil when the answer may be kept.
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
            // With it "no-store" is for caches that do not know it (section 5.2.2.3).
            guard CacheableStatus.understood.contains(status) else { return .mustUnderstand }
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
            || CacheableStatus.heuristic.contains(stored.status)
    }

    /// Whether there is a request that could get it: while it is fresh, after validation, or stale.
    private static func isUseful(_ stored: StoredResponse, _ control: CacheControl, _ asked: CacheControl) -> Bool {
        if !stored.conditionalHeaders.isEmpty { return true }
        if control.noCache { return false }
        if stored.freshness.lifetime > 0 { return true }
        if control.mustRevalidate { return false }
        // A request that takes stale answers will be asked again.
        let windows = [control.staleWhileRevalidate, control.staleIfError, asked.maxStale, asked.staleIfError]
        return windows.contains { ($0 ?? 0) > 0 }
    }
}

extension HTTPHeaders {
    /// Whether a request asks for a part, or has conditions of its own (RFC 9110, sections 13.1 and 14.2).
    var hasConditions: Bool {
        ["Range", "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "If-Range"]
            .contains { self[$0] != nil }
    }
}
