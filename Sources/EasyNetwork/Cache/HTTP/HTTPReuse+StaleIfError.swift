import Foundation

extension HTTPReuse {
    /// How a request that was sent failed.
    enum Failure: Hashable, Sendable {
        /// No answer came: the server could not be reached, or not in time, or did not speak HTTP.
        case transport
        case status(Int)

        /// - Returns: nil for what is no failure of the server: a request that cannot be sent or was cancelled, and a
        ///   connection that is not secure, which is not to go unseen.
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

    /// Whether an answer that is kept may stand in for the failure of a request for the same URL (RFC 5861, section 4).
    ///
    /// `stale-if-error` of the request counts before that of the answer, as it is for this request alone.
    static func standsIn(
        _ stored: StoredResponse,
        for failure: Failure,
        of method: NetworkService.Method,
        _ request: HTTPHeaders,
        at now: Date
    ) -> Bool {
        if case .status(let status) = failure, !CacheableStatus.replaceable.contains(status) { return false }
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
