import Foundation

/// A `Set-Cookie` field, read as servers write it (RFC 6265, section 5.2).
struct SetCookie: Hashable {
    /// Bytes of an attribute that count; one with more is passed over (RFC 6265bis, section 5.6).
    private static let maximumAttributeCount = 1_024

    var name: String
    var value: String
    /// Seconds; zero or less means at once. Comes before ``expires``.
    var maximumAge: TimeInterval?
    var expires: Date?
    /// In lower case, without a dot at its beginning.
    var domain: String?
    /// Nil when there is none, or it is none.
    var path: String?
    var isSecure = false
    var isHTTPOnly = false

    /// - Returns: nil for what has no name or no `=`, for a control character, and for what is too long to be kept.
    init?(_ field: String) {
        guard HTTPSyntax.isFieldValue(field.utf8) else { return nil }
        let parts = field.utf8.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false)
        guard let pair = parts.first, let sign = pair.firstIndex(of: UInt8(ascii: "=")) else { return nil }
        name = Self.trimmed(pair[..<sign])
        value = Self.trimmed(pair[pair.index(after: sign)...])
        guard !name.isEmpty, name.utf8.count + value.utf8.count <= Cookie.maximumCount else { return nil }
        for attribute in parts.dropFirst() { read(attribute) }
    }

    /// The last attribute of a name counts, except that one that cannot be understood is passed over.
    private mutating func read(_ attribute: Substring.UTF8View) {
        let sign = attribute.firstIndex(of: UInt8(ascii: "=")) ?? attribute.endIndex
        let name = Self.trimmed(attribute[..<sign])
        let value = Self.trimmed(attribute[sign...].dropFirst())
        guard value.utf8.count <= Self.maximumAttributeCount else { return }
        switch name.lowercased() {
        case "expires":
            if let date = CookieDate.parse(value) { expires = date }
        case "max-age":
            if let age = Self.age(value) { maximumAge = age }
        case "domain":
            let domain = CookieDomain.canonical(value)
            if !domain.isEmpty { self.domain = domain }
        case "path":
            path = value.utf8.first == UInt8(ascii: "/") ? value : nil
        case "secure":
            isSecure = true
        case "httponly":
            isHTTPOnly = true
        default:
            break
        }
    }

    private static func age(_ text: String) -> TimeInterval? {
        let digits = text.utf8.first == UInt8(ascii: "-") ? text.utf8.dropFirst() : text.utf8[...]
        guard !digits.isEmpty, digits.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else {
            return nil
        }
        return Double(text)
    }

    private static func trimmed(_ text: Substring.UTF8View) -> String {
        func isBlank(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
        let start = text.drop(while: isBlank)
        guard let last = start.lastIndex(where: { !isBlank($0) }) else { return "" }
        return String(decoding: start[...last], as: UTF8.self)
    }
}
