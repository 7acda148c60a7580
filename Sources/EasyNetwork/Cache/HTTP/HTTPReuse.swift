import Foundation

/// How a stored response can be used for a request with the same URL (RFC 9111, section 4).
enum HTTPReuse: Hashable, Sendable {
    /// Without validation.
    case fresh
    /// After validation: send the request with these fields.
    case revalidate(HTTPHeaders)
    /// Without validation, although it is stale. With fields, which may be empty, a validation request follows in the
    /// background (RFC 5861, section 3). Nil when the request accepts a stale response.
    case stale(whileRevalidating: HTTPHeaders?)
    /// Not at all.
    case unusable(Obstacle)

    /// The reason why a response cannot be used.
    enum Obstacle: String, Hashable, Sendable {
        /// The request or the stored response is not one of GET.
        case method
        /// The request is for a part, or conditional.
        case condition
        /// `no-store` in the request, or in the response after a 304.
        case noStore
        /// The request differs in a field that `Vary` names.
        case vary
        /// It requires validation, and has no validator.
        case noValidator
        /// The request must not be sent, and is necessary: it fails with ``NetworkError/Code/notCached``.
        case onlyIfCached
    }

    /// - Parameter request: the fields of the new request, with credentials and cookies.
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
        // A 304 may have added it.
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

    /// Whether a fresh response is young enough for the request (section 5.2.1).
    private static func suits(
        _ freshness: HTTPFreshness,
        _ control: CacheControl,
        _ asked: CacheControl,
        _ now: Date
    ) -> Bool {
        // An immutable response needs no reload, except with "no-cache" (RFC 8246, section 2).
        let isImmutable = control.immutable && freshness.isExplicit
        let isYoung = isImmutable || freshness.age(at: now) <= asked.maxAge ?? .infinity
        return isYoung && -freshness.staleness(at: now) >= asked.minFresh ?? 0
    }
}

extension HTTPReuse {
    /// The failure of a request.
    enum Failure: Hashable, Sendable {
        /// There was no response: the server was not reached, or not in time, or did not send HTTP.
        case transport
        case status(Int)

        /// - Returns: nil for an error that is not one of the server, such as an invalid or cancelled request, and for an
        ///   insecure connection, which must not be hidden.
        init?(_ error: NetworkError) {
            switch error.code {
            case .cannotConnect, .notConnected, .timedOut, .connectionLost, .badServerResponse:
                self = .transport
            case .unacceptableStatus:
                guard let status = error.statusCode else { return nil }
                self = .status(status)
            default:
                return nil
            }
        }
    }

    /// Whether a stored response may replace a failure (RFC 5861, section 4).
    ///
    /// `stale-if-error` of the request has precedence over that of the response.
    static func standsIn(
        _ stored: StoredResponse,
        for failure: Failure,
        of method: NetworkService.Method,
        _ request: HTTPHeaders,
        at now: Date
    ) -> Bool {
        if case .status(let status) = failure, ![500, 502, 503, 504].contains(status) { return false }
        let asked = CacheControl(request: request)
        let control = stored.cacheControl
        guard method == .get, stored.method == .get, !request.hasConditions, stored.nominated.match(request),
            !asked.noStore, !asked.noCache, !control.noCache, !control.mustRevalidate,
            !control.noStore || control.mustUnderstand,
            let window = asked.staleIfError ?? control.staleIfError
        else { return false }
        return stored.freshness.staleness(at: now) <= window
    }
}
