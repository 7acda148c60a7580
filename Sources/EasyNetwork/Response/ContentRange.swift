/// Which bytes of a representation an answer has (RFC 9110, section 14.4).
///
/// Nothing is overlooked here: bytes that are put at a wrong place spoil a file.
struct ContentRange: Equatable {
    /// Nil when the server has no such range, and says with a 416 only how long the representation is.
    let range: Range<Int64>?
    /// The length of the whole representation; nil when the server does not know it, and never when ``range`` is.
    let total: Int64?

    /// - Parameter fieldValue: the value of the header field; nil comes back for other units than bytes, for what is not
    ///   of the grammar, and for a range that does not lie in its representation or ends past the greatest `Int64`.
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

    /// - Returns: nil for what is not made of digits alone, and for more than an `Int64` holds.
    private static func number(_ text: Substring) -> Int64? {
        text.utf8.allSatisfy(\.isDigit) ? Int64(text) : nil
    }
}
