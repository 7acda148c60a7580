import Foundation

/// What tells for sure whether the rest of a representation still belongs to the part that is there: what may go into
/// `If-Range` (RFC 9110, section 13.1.5).
enum RangeValidator: Codable, Hashable, Sendable {
    /// A strong entity tag, as it was written.
    case entityTag(String)
    /// The text of `Last-Modified`, as it was written: some servers compare nothing but the text.
    case date(String)

    /// - Parameters:
    ///   - headers: those of the answer whose body is to be gone on with.
    ///   - now: decides the century of dates that have two digits for the year.
    /// - Returns: nil when no validator is a strong one. Then there is nothing to go on with.
    init?(_ headers: HTTPHeaders, now: Date = Date()) {
        if headers["ETag"] != nil {
            // Beside a tag the date is not to be sent, and this has a reason: a server that calls its tag weak says that
            // the bytes may differ while the tag, and so most likely the date, stays the same.
            guard let tag = EntityTag(headers), !tag.isWeak else { return nil }
            self = .entityTag(tag.text)
        } else {
            // What was changed in the second of the answer may have been changed again in it (section 8.8.2.2).
            guard let modified = headers.httpDate("Last-Modified", now: now),
                let date = headers.httpDate("Date", now: now), date.timeIntervalSince(modified) >= 1,
                let text = headers["Last-Modified"]
            else { return nil }
            self = .date(text.trimmed)
        }
    }

    /// The value of `If-Range`.
    var fieldValue: String {
        switch self {
        case .entityTag(let text), .date(let text): text
        }
    }
}
