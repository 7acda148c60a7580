import Foundation

/// The bytes of a representation that a response contains (RFC 9110, section 14.4).
///
/// The field is parsed strictly, because bytes at a wrong position damage a file.
struct ContentRange: Equatable {
    /// The range of the bytes; nil if the field reports only the length of the representation, as in a 416.
    let range: Range<Int64>?
    /// The length of the whole representation, or nil if the server does not know it. Never nil if ``range`` is nil.
    let total: Int64?

    /// - Parameter fieldValue: the value of the header field. The result is nil for units other than bytes, for a
    ///   syntax error, and for a range that exceeds its representation or `Int64`.
    init?(_ fieldValue: String) {
        let words = fieldValue.trimmed.split(separator: " ", omittingEmptySubsequences: false)
        guard words.count == 2, words[0].lowercased() == "bytes" else { return nil }
        let parts = words[1].split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        (range, total) = (Self.range(parts[0]), Self.number(parts[1]))
        guard range != nil || parts[0] == "*", total != nil || parts[1] == "*", range != nil || total != nil,
            range?.upperBound ?? 0 <= total ?? .max
        else { return nil }
    }

    /// - Returns: nil if there is no valid `Content-Range`, or if two differ.
    init?(_ headers: HTTPHeaders) {
        guard let contents = headers.single("Content-Range", .unanimous, ContentRange.init(_:)) else { return nil }
        self = contents
    }

    /// Creates the range of a whole body.
    init(bodyCount: Int) {
        (range, total) = (0..<Int64(bodyCount), Int64(bodyCount))
    }

    private init(range: Range<Int64>, total: Int64?) {
        (self.range, self.total) = (range, total)
    }

    /// Returns the part that a `Range` field requests (RFC 9110, section 14.1.2).
    ///
    /// - Returns: nil if these bytes do not contain the part, and for several parts, other units, and syntax errors.
    func part(_ fieldValue: String) -> ContentRange? {
        let words = fieldValue.trimmed.split(separator: "=", omittingEmptySubsequences: false)
        guard let range, words.count == 2, words[0].lowercased() == "bytes" else { return nil }
        let bounds = words[1].trimmed.split(separator: "-", omittingEmptySubsequences: false)
        guard bounds.count == 2 else { return nil }
        let end = total ?? .max
        let wanted: Range<Int64>
        switch (Self.number(bounds[0]), Self.number(bounds[1])) {
        case (let first?, let last?) where first <= last && first < end: wanted = first..<min(last, end - 1) + 1
        case (let first?, nil) where bounds[1].isEmpty && total != nil && first < end: wanted = first..<end
        case (nil, let count?) where bounds[0].isEmpty && total != nil && count > 0 && end > 0:
            wanted = max(0, end - count)..<end
        default: return nil
        }
        guard range.lowerBound <= wanted.lowerBound, wanted.upperBound <= range.upperBound else { return nil }
        return ContentRange(range: wanted, total: total)
    }

    /// The value of the field, or nil without a range.
    var fieldValue: String? {
        range.map { "bytes \($0.lowerBound)-\($0.upperBound - 1)/\(total.map(String.init) ?? "*")" }
    }

    private static func range(_ text: Substring) -> Range<Int64>? {
        let bounds = text.split(separator: "-", omittingEmptySubsequences: false)
        guard bounds.count == 2, let first = number(bounds[0]), let last = number(bounds[1]), first <= last, last < .max
        else { return nil }
        return first..<last + 1
    }

    /// - Returns: nil if there are characters other than digits, or if the number exceeds `Int64.max`.
    private static func number(_ text: Substring) -> Int64? {
        text.utf8.allSatisfy(\.isDigit) ? Int64(text) : nil
    }
}

/// A validator that proves that the rest of a representation belongs to the received part: the value of `If-Range` (RFC
/// 9110, section 13.1.5).
enum RangeValidator: Codable, Hashable, Sendable {
    /// A strong entity tag, as the server wrote it.
    case entityTag(String)
    /// The value of `Last-Modified`, as the server wrote it, because some servers compare only the string.
    case date(String)

    /// - Parameters:
    ///   - headers: the headers of the interrupted response.
    ///   - now: the current date, which decides the century of two-digit years.
    /// - Returns: nil if there is no strong validator, so that the body cannot be continued.
    init?(_ headers: HTTPHeaders, now: Date = Date()) {
        if headers["ETag"] != nil {
            // Don't replace a weak tag by the date. With a weak tag, the server says that the bytes can differ while
            // the tag, and most likely the date, stays the same.
            guard let tag = EntityTag(headers), !tag.isWeak else { return nil }
            self = .entityTag(tag.text)
        } else {
            // A change in the second of the response is possibly not the last one in that second (section 8.8.2.2).
            guard let modified = headers.httpDate("Last-Modified", now: now),
                let date = headers.httpDate("Date", now: now), date.timeIntervalSince(modified) >= 1,
                let text = headers.single("Last-Modified", .unanimous, \.trimmed)
            else { return nil }
            self = .date(text)
        }
    }

    /// The value of `If-Range`.
    var fieldValue: String {
        switch self {
        case .entityTag(let text), .date(let text): text
        }
    }
}
