import Foundation

extension StoredResponse {
    /// The fields that ask the server whether this answer is still the right one; none when it has no validator (RFC 9111,
    /// section 4.3.1).
    ///
    /// Both validators go out, for servers that do not know entity tags. The date goes out as it came: some servers compare
    /// nothing but the text.
    var conditionalHeaders: HTTPHeaders {
        var conditions = HTTPHeaders()
        if let tag = EntityTag(headers) { conditions["If-None-Match"] = tag.text }
        if headers.httpDate("Last-Modified", now: responseDate) != nil {
            conditions["If-Modified-Since"] = headers["Last-Modified"]
        }
        return conditions
    }

    /// This answer as a 304 (Not Modified) confirms it (RFC 9111, section 4.3.4).
    ///
    /// What comes back may not be storable any more; see ``HTTPStorability``.
    ///
    /// - Parameters:
    ///   - response: the fields of the 304.
    ///   - request: the fields of the request that it answers, without the conditions that the cache added.
    /// - Returns: nil when the 304 speaks of another state of the resource than the one that is stored. Then this one is
    ///   to be forgotten, and the request to be sent again without conditions.
    func freshened(
        by response: HTTPHeaders,
        request: HTTPHeaders,
        requestDate: Date,
        responseDate: Date
    ) -> StoredResponse? {
        guard isConfirmed(by: response) else { return nil }
        var kept = headers
        // Time counts anew from the 304 on, which has a date in any case.
        kept.remove("Age")
        var fresh = response.freshFields
        // It is the same but for its weakness, which tells of the body that is stored.
        if let tag = EntityTag(headers), tag.isWeak { fresh["ETag"] = tag.text }
        let merged = kept.merging(Self.dated(fresh, responseDate)).storedFields()
        return StoredResponse(
            method: method,
            status: status,
            headers: merged,
            nominated: NominatedFields(vary: merged, and: Array(nominated.digests.keys), of: request),
            requestDate: requestDate,
            responseDate: responseDate
        )
    }

    /// Whether the validators of a 304 are those of this answer.
    ///
    /// More is let pass than section 4.3.4 does, as only one answer was asked about: a 304 without a validator, and a tag
    /// that differs in weakness alone. nginx marks the tag of an answer as weak when it compresses it, but not that of a
    /// 304; to be strict would be to load it anew each time.
    private func isConfirmed(by response: HTTPHeaders) -> Bool {
        switch (EntityTag(headers), EntityTag(response)) {
        case (let stored?, let confirmed?):
            return stored.isWeaklyEqual(to: confirmed)
        case (nil, _?) where headers["Last-Modified"] == nil:
            return false
        default:
            guard let stored = headers.httpDate("Last-Modified", now: responseDate),
                let confirmed = response.httpDate("Last-Modified", now: responseDate)
            else { return true }
            return stored == confirmed
        }
    }
}
