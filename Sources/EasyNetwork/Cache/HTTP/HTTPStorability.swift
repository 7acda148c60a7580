import Foundation

/// The permission to store a response in a private cache (RFC 9111, section 3), or under an explicit policy.
///
/// A private cache can store responses with `private`, and responses to requests with credentials (section 3.5).
enum HTTPStorability: Hashable, Sendable {
    case storable
    /// The response must not be stored, and the stored response is out of date.
    case notStorable
    /// The request forbids storing the response. The stored response stays valid.
    case unrelated
}

extension StoredResponse {
    /// The statuses with a heuristic lifetime (RFC 9110, section 15.1).
    static let heuristicStatuses: Set<Int> = [200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501]

    /// The statuses whose caching requirements this cache fulfills, for `must-understand` (RFC 9111, section 5.2.2.3).
    private static let understoodStatuses = heuristicStatuses.union([302, 303, 307, 400, 403, 500, 502, 503, 504])

    /// Returns whether the response can be stored, in the form in which it would be stored. For a 206, the caller
    /// checks ``StoredResponse/contents(_:)``.
    ///
    /// - Parameters:
    ///   - method: the method of the request.
    ///   - request: the fields as they were sent, without the conditions of the cache.
    func storability(method: NetworkService.Method, request: HTTPHeaders) -> HTTPStorability {
        let (status, control, asked) = (entry.statusCode, cacheControl, CacheControl(request: request))
        guard method == .get else { return .unrelated }
        guard status >= 200, status != 304 else { return .notStorable }
        // Except in a 206, `Content-Range` has no meaning (RFC 9110, section 14.4).
        guard status == 206 ? request["Range"] != nil : status == 200 || !request.hasConditions
        else { return .unrelated }
        // A request with credentials must not receive a challenge.
        guard status != 401, status != 407 else { return .notStorable }
        guard !asked.noStore else { return .unrelated }
        // With "must-understand", "no-store" is meant for caches that don't support "must-understand" (section
        // 5.2.2.3).
        guard control.mustUnderstand ? Self.understoodStatuses.contains(status) : !control.noStore
        else { return .notStorable }
        return !nominated.matchesNone && isCacheable && isUseful(asked) ? .storable : .notStorable
    }

    /// Whether the last condition of section 3 is met.
    private var isCacheable: Bool {
        cacheControl.maxAge != nil || headers["Expires"] != nil || cacheControl.isPublic || cacheControl.isPrivate
            || Self.heuristicStatuses.contains(entry.statusCode)
    }

    /// Returns whether any request can use the response: while it is fresh, after validation, or stale.
    private func isUseful(_ asked: CacheControl) -> Bool {
        // A part is never validated.
        if !conditionalHeaders.isEmpty, entry.statusCode != 206 { return true }
        if cacheControl.noCache { return false }
        if lifetime > 0 { return true }
        if cacheControl.mustRevalidate { return false }
        // A request that accepts stale responses could be repeated.
        let windows = [
            cacheControl.staleWhileRevalidate, cacheControl.staleIfError, asked.maxStale, asked.staleIfError,
        ]
        return windows.contains { ($0 ?? 0) > 0 }
    }
}

extension HTTPHeaders {
    /// The safe methods (RFC 9110, section 9.2.1). Unknown methods are unsafe.
    static let safeMethods = ["GET", "HEAD", "OPTIONS", "TRACE"]

    /// Returns the URLs whose stored responses are out of date after this response to an unsafe request (RFC 9111,
    /// section 4.4). The URLs are absolute and without a fragment, and the target is the first.
    ///
    /// The array is empty after a safe method or an error. It contains no URLs of other origins, because a server must
    /// not clear their caches.
    ///
    /// - Parameter target: the URL of the request.
    func invalidatedURLs(method: NetworkService.Method, target: URL, status: Int) -> [URL] {
        guard !Self.safeMethods.contains(method.rawValue), (200..<400).contains(status), let origin = target.origin
        else { return [] }
        let named = ["Location", "Content-Location"].flatMap { rawValues(for: $0) }
            .compactMap { try? URLBuilder.url(resolving: $0, against: target, what: "it") }
            .filter { $0.origin == origin }
        var seen: Set<URL> = []
        let urls = ([target] + named).compactMap { URL(string: $0.textWithoutFragment) }
        return urls.filter { seen.insert($0).inserted }
    }
}
