/// What a `Content-Type` says: the type, and the charset if it names one (RFC 9110, section 8.3.1).
struct MediaType: Equatable {
    /// Type and subtype in lower case: `text/html`.
    let essence: String
    /// The value of the parameter `charset`, without quotes.
    let charset: String?

    /// - Parameter field: the value of the header field; nil comes back when it begins with no type.
    init?(_ field: String) {
        let parts = field.split(separator: ";", omittingEmptySubsequences: false)
        let essence = parts[0].trimmed.lowercased()
        guard essence.contains("/") else { return nil }
        self.essence = essence
        charset = parts.dropFirst().lazy.compactMap(Self.charset).first
    }

    var isJSON: Bool {
        essence == "application/json" || essence == "text/json" || essence.hasSuffix("+json")
    }

    /// RFC 7303, sections 9.1 to 9.3 and 8.
    var isXML: Bool {
        essence == "application/xml" || essence == "text/xml" || essence.hasSuffix("+xml")
    }

    var isHTML: Bool {
        essence == "text/html" || essence == "application/xhtml+xml"
    }

    /// Whether this type is the pattern's: `application/json`, `text/*`, `*/*`, or with a structured syntax suffix (RFC
    /// 6839) `*/*+json`.
    func matches(_ pattern: String) -> Bool {
        let pattern = MediaType(pattern)?.essence ?? pattern.lowercased()
        if pattern == "*/*" || pattern == essence { return true }
        if pattern.hasPrefix("*/*+") { return essence.hasSuffix(pattern.dropFirst(3)) }
        return pattern.hasSuffix("/*") && essence.hasPrefix(pattern.dropLast())
    }

    private static func charset(in parameter: Substring) -> String? {
        let pair = parameter.split(separator: "=", maxSplits: 1)
        guard pair.count == 2, pair[0].trimmed.isEqualIgnoringASCIICase(to: "charset") else { return nil }
        let value = pair[1].trimmed.filter { $0 != "\"" }
        return value.isEmpty ? nil : value
    }
}

extension StringProtocol {
    /// The text without white space at its ends.
    var trimmed: String {
        guard let first = firstIndex(where: { !$0.isWhitespace }), let last = lastIndex(where: { !$0.isWhitespace })
        else { return "" }
        return String(self[first...last])
    }
}
