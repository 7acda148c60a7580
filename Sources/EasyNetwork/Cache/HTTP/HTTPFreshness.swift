import Foundation

/// How long an answer is fresh, and how old it is (RFC 9111, section 4.2), in seconds.
///
/// ```swift
/// let freshness = HTTPFreshness(status: 200, headers: headers, requestDate: sent, responseDate: received)
/// freshness.isFresh(at: now)
/// ```
struct HTTPFreshness: Hashable, Sendable {
    /// The part of the time since the last change for which an answer without a word of the server is fresh.
    private static let heuristicFraction = 0.1
    /// A guess is worth no more than a day.
    private static let maximumHeuristicLifetime: TimeInterval = 86_400

    /// From the moment at which the origin made the answer; 0 when it never was fresh.
    let lifetime: TimeInterval
    /// Whether the server said it, and it is no guess.
    let isExplicit: Bool
    /// The age at the moment when the answer was received (section 4.2.3, `corrected_initial_age`).
    let initialAge: TimeInterval
    private let responseDate: Date

    /// - Parameters:
    ///   - control: the directives of `headers`. Default nil: they are read from there.
    ///   - requestDate: when the request was begun, by this machine's clock.
    ///   - responseDate: when the head of the answer was received, by the same clock.
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
        // Below zero when the server's clock is ahead, and then it does not count: the other age never is.
        let apparentAge = responseDate.timeIntervalSince(date ?? responseDate)
        // The clock may have been set back meanwhile.
        let delay = max(0, responseDate.timeIntervalSince(requestDate))
        initialAge = max(apparentAge, Self.ageValue(headers) + delay)
        let explicit = Self.explicitLifetime(headers, control, date: date ?? responseDate, now: responseDate)
        isExplicit = explicit != nil
        lifetime =
            explicit ?? Self.heuristicLifetime(status, headers, control, date: date ?? responseDate, now: responseDate)
    }

    /// A clock that was set back since makes the time since then negative. How long it really was nobody knows; the size
    /// of the step is taken, so that an entry from years ahead is not fresh for years.
    func age(at now: Date) -> TimeInterval {
        initialAge + abs(now.timeIntervalSince(responseDate))
    }

    /// How far it is beyond its freshness; negative as long as it is fresh.
    func staleness(at now: Date) -> TimeInterval {
        age(at: now) - lifetime
    }

    func isFresh(at now: Date) -> Bool {
        lifetime > age(at: now)
    }

    /// The first member of the field; 0 when it is no number (section 5.1).
    private static func ageValue(_ headers: HTTPHeaders) -> TimeInterval {
        let field = headers.values(for: "Age").first ?? ""
        let first = field.split(separator: ",", omittingEmptySubsequences: false).first ?? ""
        return DeltaSeconds.parse(first.trimmed) ?? 0
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
        // What is no date is in the past (section 5.3), and so are two of them.
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
        guard CacheableStatus.heuristic.contains(status) || control.isPublic,
            let lastModified = headers.httpDate("Last-Modified", now: now)
        else { return 0 }
        let sinceChange = max(0, date.timeIntervalSince(lastModified))
        return min(sinceChange * heuristicFraction, maximumHeuristicLifetime)
    }
}
