import Foundation

/// The lifetime and the age of a response in seconds (RFC 9111, section 4.2).
///
/// ```swift
/// let freshness = HTTPFreshness(status: 200, headers: headers, requestDate: sent, responseDate: received)
/// freshness.isFresh(at: now)
/// ```
struct HTTPFreshness: Hashable, Sendable {
    /// The fraction of the time since the last modification that is the heuristic lifetime.
    private static let heuristicFraction = 0.1
    private static let maximumHeuristicLifetime: TimeInterval = 86_400

    /// The time since the creation of the response during which it is fresh.
    let lifetime: TimeInterval
    /// Whether the lifetime is from the server and not heuristic.
    let isExplicit: Bool
    /// The age at the arrival of the response (section 4.2.3, `corrected_initial_age`).
    let initialAge: TimeInterval
    private let responseDate: Date

    /// - Parameters:
    ///   - control: the directives of `headers`. Default nil: they are parsed.
    ///   - requestDate: the date of the request, by this machine's clock.
    ///   - responseDate: the date at which the head of the response arrived, by the same clock.
    init(
        status: Int,
        headers: HTTPHeaders,
        control: CacheControl? = nil,
        requestDate: Date,
        responseDate: Date
    ) {
        let control = control ?? CacheControl(response: headers)
        self.responseDate = responseDate
        let date = headers.httpDate("Date", now: responseDate)
        // Negative, and without effect, if the server's clock is ahead.
        let apparentAge = responseDate.timeIntervalSince(date ?? responseDate)
        // The clock may have been set back.
        let delay = max(0, responseDate.timeIntervalSince(requestDate))
        initialAge = max(apparentAge, Self.ageValue(headers) + delay)
        let explicit = Self.explicitLifetime(headers, control, date: date ?? responseDate, now: responseDate)
        isExplicit = explicit != nil
        lifetime =
            explicit ?? Self.heuristicLifetime(status, headers, control, date: date ?? responseDate, now: responseDate)
    }

    /// The age at a date. If the clock has been set back, the size of the step counts, so that an entry from the future does
    /// not stay fresh.
    func age(at now: Date) -> TimeInterval {
        initialAge + abs(now.timeIntervalSince(responseDate))
    }

    /// The time since the end of freshness; negative for a fresh response.
    func staleness(at now: Date) -> TimeInterval {
        age(at: now) - lifetime
    }

    func isFresh(at now: Date) -> Bool {
        lifetime > age(at: now)
    }

    /// The first member of the field; 0 when it is not a number (section 5.1).
    private static func ageValue(_ headers: HTTPHeaders) -> TimeInterval {
        let field = headers.values(for: "Age").first ?? ""
        let first = field.split(separator: ",", omittingEmptySubsequences: false).first ?? ""
        return CacheControl.deltaSeconds(first.trimmed) ?? 0
    }

    /// Section 4.2.1; `s-maxage` is for shared caches.
    private static func explicitLifetime(
        _ headers: HTTPHeaders,
        _ control: CacheControl,
        date: Date,
        now: Date
    ) -> TimeInterval? {
        if let maxAge = control.maxAge { return maxAge }
        guard headers["Expires"] != nil else { return nil }
        // An invalid or repeated date is in the past (section 5.3).
        guard let expires = headers.httpDate("Expires", now: now) else { return 0 }
        return max(0, expires.timeIntervalSince(date))
    }

    /// Section 4.2.2.
    private static func heuristicLifetime(
        _ status: Int,
        _ headers: HTTPHeaders,
        _ control: CacheControl,
        date: Date,
        now: Date
    ) -> TimeInterval {
        guard HTTPStorability.heuristicStatuses.contains(status) || control.isPublic,
            let lastModified = headers.httpDate("Last-Modified", now: now)
        else { return 0 }
        let sinceChange = max(0, date.timeIntervalSince(lastModified))
        return min(sinceChange * heuristicFraction, maximumHeuristicLifetime)
    }
}
