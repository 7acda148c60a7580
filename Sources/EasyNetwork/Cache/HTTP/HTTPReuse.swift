import Foundation

/// The possible use of a stored response for a request with the same URL (RFC 9111, section 4).
enum HTTPReuse: Hashable, Sendable {
    /// Usable without validation.
    case fresh
    /// Usable although it is stale, because the request accepts that.
    case stale
    /// Usable although it is stale; a validation request follows in the background (RFC 5861, section 3).
    case staleWhileRevalidate
    /// Usable after validation, and unusable without a validator.
    case revalidate
    /// Unusable: the request differs in a field that `Vary` names.
    case varies
    /// Unusable: the request is not a GET, is conditional or is for a part that the response does not have, the
    /// response is only a part, or one of the two has `no-store`.
    case unusable
}

extension StoredResponse {
    /// - Parameters:
    ///   - request: the fields of the new request, with credentials and cookies.
    ///   - isPart: whether the response has the part that the request asks for. Defaults to false.
    func reuse(
        for method: NetworkService.Method,
        _ request: HTTPHeaders,
        isPart: Bool = false,
        at now: Date
    ) -> HTTPReuse {
        let asked = CacheControl(request: request)
        guard method == .get, !asked.noStore, !forbidsUse,
            isPart ? !request.hasPreconditions : !request.hasConditions && entry.statusCode != 206
        else { return .unusable }
        guard nominated.match(request) else { return .varies }
        guard !asked.noCache, !cacheControl.noCache else { return .revalidate }
        let (age, staleness) = (age(at: now), staleness(at: now))
        let isYoung = age <= asked.maxAge ?? .infinity
        if isFresh(at: now) {
            // An immutable response needs no reload, except with "no-cache" (RFC 8246, section 2).
            let isImmutable = cacheControl.immutable && isLifetimeExplicit
            return (isYoung || isImmutable) && -staleness >= asked.minFresh ?? 0 ? .fresh : .revalidate
        }
        guard !cacheControl.mustRevalidate, asked.minFresh == nil else { return .revalidate }
        if let window = cacheControl.staleWhileRevalidate, staleness <= window, asked.maxAge == nil, !asked.onlyIfCached
        {
            return .staleWhileRevalidate
        }
        if let maxStale = asked.maxStale, staleness <= maxStale, isYoung { return .stale }
        return .revalidate
    }

    /// Whether the response has `no-store`, which a 304 can have added.
    private var forbidsUse: Bool { cacheControl.noStore && !cacheControl.mustUnderstand }

    /// Returns whether the response can replace the error of a GET (RFC 5861, section 4).
    ///
    /// The request's `stale-if-error` has precedence over the response's. The response replaces only errors of the
    /// server, the connection or an open circuit, but not the error of an invalid or cancelled request. The error of an
    /// insecure connection is not replaced either, because it must not be hidden.
    func isUsable(onError error: NetworkError, of request: HTTPHeaders, at now: Date) -> Bool {
        switch error.code {
        case .cannotConnect, .notConnected, .timedOut, .connectionLost, .badServerResponse, .circuitOpen: break
        case .unacceptableStatus where [500, 502, 503, 504].contains(error.statusCode): break
        default: return false
        }
        let asked = CacheControl(request: request)
        guard !request.hasConditions, nominated.match(request), !asked.noStore, !asked.noCache,
            !forbidsUse, !cacheControl.noCache, !cacheControl.mustRevalidate,
            let window = asked.staleIfError ?? cacheControl.staleIfError
        else { return false }
        return staleness(at: now) <= window
    }
}

extension HTTPHeaders {
    /// Whether a request is for a part, or conditional (RFC 9110, sections 13.1 and 14.2).
    var hasConditions: Bool { hasPreconditions || self["Range"] != nil || self["If-Range"] != nil }

    var hasPreconditions: Bool {
        ["If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since"].contains { self[$0] != nil }
    }
}
