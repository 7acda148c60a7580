import Foundation

/// What an answer that is kept is worth to a new request for the same URL (RFC 9111, section 4).
enum HTTPReuse: Hashable, Sendable {
    /// It is the answer.
    case fresh
    /// It is the answer if the server confirms it: the request is sent with these fields added, and a 304 means yes.
    case revalidate(HTTPHeaders)
    /// It is the answer though it is stale.
    ///
    /// With fields the same request is to be sent with these added, for the sake of the cache and not of the caller (RFC
    /// 5861, section 3); there may be none among them. Nil when the request said that it takes a stale answer.
    case stale(whileRevalidating: HTTPHeaders?)
    /// It is not the answer.
    case unusable(Obstacle)

    /// Why it is not the answer.
    enum Obstacle: String, Hashable, Sendable {
        /// Only GET is answered, from answers to GET.
        case method
        /// The request asks for a part, or has conditions of its own.
        case condition
        /// `no-store` in the request, or meanwhile in the answer.
        case noStore
        /// The request differs in a field that `Vary` names.
        case vary
        /// It would have to be confirmed, and has no validator.
        case noValidator
        /// The request is not to be sent, and no answer may be used without: the caller gets
        /// ``NetworkError/Code/notCached``.
        case onlyIfCached
    }

    /// - Parameters:
    ///   - method: the new request's.
    ///   - request: its fields as they are to be sent, credentials and cookies included.
    init(of stored: StoredResponse, for method: NetworkService.Method, _ request: HTTPHeaders, at now: Date) {
        let asked = CacheControl(request: request)
        self = Self.decision(stored, method, request, asked, now)
        guard asked.onlyIfCached else { return }
        switch self {
        case .fresh, .stale: break
        case .revalidate, .unusable: self = .unusable(.onlyIfCached)
        }
    }

    private static func decision(
        _ stored: StoredResponse,
        _ method: NetworkService.Method,
        _ request: HTTPHeaders,
        _ asked: CacheControl,
        _ now: Date
    ) -> HTTPReuse {
        let control = stored.cacheControl
        guard method == .get, stored.method == .get else { return .unusable(.method) }
        guard !request.hasConditions else { return .unusable(.condition) }
        // A 304 may have brought it.
        guard !asked.noStore, !control.noStore || control.mustUnderstand else { return .unusable(.noStore) }
        guard stored.nominated.match(request) else { return .unusable(.vary) }
        let conditions = stored.conditionalHeaders
        let validation = conditions.isEmpty ? HTTPReuse.unusable(.noValidator) : .revalidate(conditions)
        guard !asked.noCache, !control.noCache else { return validation }
        let freshness = stored.freshness
        if freshness.isFresh(at: now) {
            return suits(freshness, control, asked, now) ? .fresh : validation
        }
        guard !control.mustRevalidate, asked.minFresh == nil else { return validation }
        let staleness = freshness.staleness(at: now)
        if let window = control.staleWhileRevalidate, staleness <= window, asked.maxAge == nil, !asked.onlyIfCached {
            return .stale(whileRevalidating: conditions)
        }
        if let maxStale = asked.maxStale, staleness <= maxStale, freshness.age(at: now) <= asked.maxAge ?? .infinity {
            return .stale(whileRevalidating: nil)
        }
        return validation
    }

    /// Whether a fresh answer is young enough for the request (section 5.2.1).
    private static func suits(
        _ freshness: HTTPFreshness,
        _ control: CacheControl,
        _ asked: CacheControl,
        _ now: Date
    ) -> Bool {
        // What never changes needs no reload; "no-cache" would be one by force (RFC 8246, section 2).
        let isImmutable = control.immutable && freshness.isExplicit
        let isYoung = isImmutable || freshness.age(at: now) <= asked.maxAge ?? .infinity
        return isYoung && -freshness.staleness(at: now) >= asked.minFresh ?? 0
    }
}
