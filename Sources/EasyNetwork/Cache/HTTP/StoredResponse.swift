import Foundation

/// A stored response for the rules of RFC 9111: the properties of its entry, with its lifetime and age in seconds.
struct StoredResponse: Hashable, Sendable {
    /// The fraction of the time since the last modification that is the heuristic lifetime.
    private static let heuristicFraction = 0.1
    private static let maximumHeuristicLifetime: TimeInterval = 86_400

    let entry: NetworkCache.Entry
    let cacheControl: CacheControl
    /// The time since the creation of the response during which it is fresh (section 4.2).
    let lifetime: TimeInterval
    /// Whether the lifetime comes from the server and is not heuristic.
    let isLifetimeExplicit: Bool
    /// The age at the arrival of the response (section 4.2.3, `corrected_initial_age`).
    let initialAge: TimeInterval

    /// The stored fields, always with a `Date`.
    var headers: HTTPHeaders { entry.headers }

    /// The request fields that the response depends on. An entry without them matches no request.
    var nominated: NominatedFields { entry.nominated ?? NominatedFields(vary: ["Vary": "*"], of: HTTPHeaders()) }

    /// Creates a response that is already stored.
    init(_ entry: NetworkCache.Entry) {
        self.entry = entry
        let (headers, responseDate) = (entry.headers, entry.receivedAt)
        let control = CacheControl(response: headers)
        cacheControl = control
        let date = headers.httpDate("Date", now: responseDate) ?? responseDate
        // The clock can have been set back.
        let delay = max(0, responseDate.timeIntervalSince(entry.requestedAt))
        // If the server's clock is ahead, the apparent age is negative, and `max` ignores it.
        initialAge = max(responseDate.timeIntervalSince(date), Self.ageValue(headers) + delay)
        // Section 4.2.1; `s-maxage` is for shared caches.
        if let maxAge = control.maxAge {
            (lifetime, isLifetimeExplicit) = (maxAge, true)
        } else if headers["Expires"] != nil {
            // An invalid or repeated date is in the past (section 5.3).
            let expires = headers.httpDate("Expires", now: responseDate, isStrict: true)
            (lifetime, isLifetimeExplicit) = (max(0, expires?.timeIntervalSince(date) ?? 0), true)
        } else if Self.heuristicStatuses.contains(entry.statusCode) || control.isPublic,
            let lastModified = headers.httpDate("Last-Modified", now: responseDate)
        {
            // Section 4.2.2.
            let sinceChange = max(0, date.timeIntervalSince(lastModified))
            lifetime = min(sinceChange * Self.heuristicFraction, Self.maximumHeuristicLifetime)
            isLifetimeExplicit = false
        } else {
            (lifetime, isLifetimeExplicit) = (0, false)
        }
    }

    /// Returns the first member of the field, or 0 if it is not a number (section 5.1).
    private static func ageValue(_ headers: HTTPHeaders) -> TimeInterval {
        headers.single("Age", .first) { field in
            let first = field.split(separator: ",", omittingEmptySubsequences: false).first ?? ""
            return CacheControl.deltaSeconds(first.trimmed) ?? 0
        } ?? 0
    }

    /// Creates a response that has just arrived. It is not necessarily storable; see ``storability(method:request:)``.
    ///
    /// - Parameters:
    ///   - entry: the response with the fields as they arrived.
    ///   - request: the fields as they were sent, with credentials and cookies.
    ///   - names: fields that the response depends on, such as `Authorization`, in addition to those in `Vary`.
    init(arrived entry: NetworkCache.Entry, request: HTTPHeaders, nominating names: [String] = []) {
        let response = entry.headers
        var entry = entry
        let part = entry.statusCode == 206 ? ContentRange(response) : nil
        entry.nominated = NominatedFields(vary: response, and: names, of: request, part: part)
        entry.headers = Self.dated(response.storedFields, entry.receivedAt)
        self.init(entry)
    }

    /// Adds the date of arrival to a response without a date (RFC 9110, section 6.6.1).
    static func dated(_ headers: HTTPHeaders, _ date: Date) -> HTTPHeaders {
        guard headers.httpDate("Date", now: date) == nil else { return headers }
        var headers = headers
        headers["Date"] = date.httpText
        return headers
    }
}

extension StoredResponse {
    /// Returns the age at a date. If the clock has been set back, the difference counts as age, so that an entry from
    /// the future does not stay fresh.
    func age(at now: Date) -> TimeInterval {
        initialAge + abs(now.timeIntervalSince(entry.receivedAt))
    }

    /// Returns the time since the end of freshness; negative for a fresh response.
    func staleness(at now: Date) -> TimeInterval {
        age(at: now) - lifetime
    }

    func isFresh(at now: Date) -> Bool {
        lifetime > age(at: now)
    }

    /// Returns the bytes of the representation that a body has. Nil for statuses other than 200 and 206, for a 206
    /// whose length differs from its `Content-Range`, and for a response with a content coding, which has been removed
    /// from the body of a 200.
    func contents(_ bodyCount: Int) -> ContentRange? {
        let status = entry.statusCode
        guard headers.contentCodings.isEmpty, status == 200 || status == 206 else { return nil }
        guard status == 206 else { return ContentRange(bodyCount: bodyCount) }
        let contents = ContentRange(headers)
        return contents?.range?.count == bodyCount ? contents : nil
    }

    /// Returns the part of the body that a request asks for (RFC 9110, sections 13.1.5 and 14.2). Nil if the server
    /// must respond, for example because `If-Range` is not the strong validator of this response.
    func part(for request: HTTPHeaders, bodyCount: Int) -> ContentRange? {
        guard let range = request["Range"], let part = contents(bodyCount)?.part(range) else { return nil }
        let isSame = request["If-Range"].map { $0 == RangeValidator(headers, now: entry.receivedAt)?.fieldValue }
        return isSame ?? true ? part : nil
    }

    /// Returns the fields for using the response, with its `Age` (RFC 9111, sections 4 and 5.1).
    func headers(at now: Date) -> HTTPHeaders {
        var headers = headers
        let age = age(at: now)
        let maximum = CacheControl.maximumSeconds
        headers["Age"] = String(Int64(age.isFinite ? min(max(age, 0), maximum) : maximum))
        return headers
    }
}

extension StoredResponse {
    /// The fields of a validation request; empty without a validator (RFC 9111, section 4.3.1).
    ///
    /// The request has both validators, for servers that do not support entity tags, and the date as it was received,
    /// for servers that compare strings.
    var conditionalHeaders: HTTPHeaders {
        var conditions = HTTPHeaders()
        if let tag = EntityTag(headers) { conditions["If-None-Match"] = tag.text }
        if headers.httpDate("Last-Modified", now: entry.receivedAt) != nil {
            conditions["If-Modified-Since"] = headers.single("Last-Modified", .unanimous) { $0 }
        }
        return conditions
    }

    /// Returns the response after a 304 (Not Modified) (RFC 9111, section 4.3.4). The result might no longer be
    /// storable; see ``storability(method:request:)``.
    ///
    /// - Parameters:
    ///   - response: the fields of the 304.
    ///   - request: the fields of the request, without the conditions of the cache.
    /// - Returns: nil if the 304 has another validator. Then remove the entry, and repeat the request without
    ///   conditions.
    func freshened(
        by response: HTTPHeaders,
        request: HTTPHeaders,
        requestDate: Date,
        responseDate: Date
    ) -> StoredResponse? {
        guard isConfirmed(by: response) else { return nil }
        var kept = headers
        // The 304 starts the age again.
        kept.remove("Age")
        var fresh = response.freshFields
        // The stored body decides whether the tag is weak.
        if let tag = EntityTag(headers), tag.isWeak { fresh["ETag"] = tag.text }
        let merged = kept.merging(Self.dated(fresh, responseDate)).storedFields
        var entry = entry
        entry.headers = merged
        entry.nominated = NominatedFields(vary: merged, and: Array(nominated.digests.keys), of: request)
        entry.requestedAt = requestDate
        entry.receivedAt = responseDate
        return StoredResponse(entry)
    }

    /// Returns whether the validators of a 304 are those of this response.
    ///
    /// The check is more lenient than section 4.3.4, because the request was for one stored response: it accepts a 304
    /// without a validator, and a tag that differs only in weakness. nginx makes the tag of a compressed response weak,
    /// but not the tag of a 304.
    private func isConfirmed(by response: HTTPHeaders) -> Bool {
        switch (EntityTag(headers), EntityTag(response)) {
        case (let stored?, let confirmed?):
            return stored.opaqueTag == confirmed.opaqueTag
        case (nil, _?) where headers["Last-Modified"] == nil:
            return false
        default:
            guard let stored = headers.httpDate("Last-Modified", now: entry.receivedAt),
                let confirmed = response.httpDate("Last-Modified", now: entry.receivedAt)
            else { return true }
            return stored == confirmed
        }
    }
}

extension HTTPHeaders {
    /// The fields of a connection or a proxy (RFC 9111, section 3.1; RFC 9110, section 7.6.1).
    private static let connectionFields: Set<String> = [
        "connection", "keep-alive", "proxy-authenticate", "proxy-authentication-info", "proxy-authorization",
        "proxy-connection", "te", "transfer-encoding", "upgrade",
    ]

    /// The fields that describe the stored body, which a 304 cannot change (RFC 9111, section 3.2). The body has been
    /// decoded; its type can change.
    private static let bodyFields: Set<String> = ["content-encoding", "content-length", "content-range"]

    /// The fields to store, without the fields of the connection and those that `Connection` and `no-cache="…"` name
    /// (RFC 9111, section 3.1). `Cache-Control` is always kept, because it is not a field of a connection (RFC 9110,
    /// section 7.6.1).
    var storedFields: HTTPHeaders {
        let listed = listMembers("Connection").map { $0.lowercased() }.filter { $0 != "cache-control" }
        let dropped = Self.connectionFields.union(listed).union(CacheControl(response: self).fieldsNotToStore)
        return HTTPHeaders(filter { !dropped.contains($0.name.lowercased()) })
    }

    /// The fields of a 304 that replace stored ones.
    var freshFields: HTTPHeaders {
        HTTPHeaders(storedFields.filter { !Self.bodyFields.contains($0.name.lowercased()) })
    }

    /// Returns the members of a field that is a list of tokens.
    func listMembers(_ name: String) -> [String] {
        values(for: name).flatMap { $0.split(separator: ",") }.map(\.trimmed).filter { !$0.isEmpty }
    }
}
