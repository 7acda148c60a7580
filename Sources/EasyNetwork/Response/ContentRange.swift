import Foundation

/// The bytes of a representation that an answer contains (RFC 9110, section 14.4).
///
/// It is parsed strictly, since bytes at a wrong place damage a file.
struct ContentRange: Equatable {
    /// Nil if the server has no such range, and its 416 only reports the length of the representation.
    let range: Range<Int64>?
    /// The length of the whole representation; nil if the server does not know it. Never nil if ``range`` is.
    let total: Int64?

    /// - Parameter fieldValue: the value of the header field. The result is nil for other units than bytes, for a
    ///   syntax error, and for a range that is not within its representation or exceeds `Int64`.
    init?(_ fieldValue: String) {
        let words = fieldValue.trimmed.split(separator: " ", omittingEmptySubsequences: false)
        guard words.count == 2, words[0].lowercased() == "bytes" else { return nil }
        let parts = words[1].split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        total = Self.number(parts[1])
        guard total != nil || parts[1] == "*" else { return nil }
        if parts[0] == "*" {
            guard total != nil else { return nil }
            range = nil
        } else {
            guard let range = Self.range(parts[0]), range.upperBound <= total ?? .max else { return nil }
            self.range = range
        }
    }

    private static func range(_ text: Substring) -> Range<Int64>? {
        let bounds = text.split(separator: "-", omittingEmptySubsequences: false)
        guard bounds.count == 2, let first = number(bounds[0]), let last = number(bounds[1]), first <= last, last < .max
        else { return nil }
        return first..<last + 1
    }

    /// - Returns: nil for other characters than digits, and for more than `Int64.max`.
    private static func number(_ text: Substring) -> Int64? {
        text.utf8.allSatisfy(\.isDigit) ? Int64(text) : nil
    }
}

/// A validator that proves that the rest of a representation belongs to the part that was received: the value of
/// `If-Range` (RFC 9110, section 13.1.5).
enum RangeValidator: Codable, Hashable, Sendable {
    /// A strong entity tag, as the server wrote it.
    case entityTag(String)
    /// The text of `Last-Modified`, as the server wrote it: some servers compare only the text.
    case date(String)

    /// - Parameters:
    ///   - headers: the headers of the answer that broke off.
    ///   - now: decides the century of dates whose year has two digits.
    /// - Returns: nil if there is no strong validator, so that the body cannot be continued.
    init?(_ headers: HTTPHeaders, now: Date = Date()) {
        if headers["ETag"] != nil {
            // The date is no replacement for a weak tag: such a server says that the bytes may differ while the tag,
            // and most likely the date, stays the same.
            guard let tag = EntityTag(headers), !tag.isWeak else { return nil }
            self = .entityTag(tag.text)
        } else {
            // A change in the second of the answer may not have been the last one in it (section 8.8.2.2).
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
