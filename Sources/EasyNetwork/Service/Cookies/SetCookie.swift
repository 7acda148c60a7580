import Foundation

/// A `Set-Cookie` field, read as leniently as browsers do (RFC 6265, section 5.2).
struct SetCookie: Hashable {
    /// Longer attributes, in bytes, are ignored (RFC 6265bis, section 5.6).
    private static let maximumAttributeCount = 1_024

    var name: String
    var value: String
    /// In seconds; the cookie expires at once for zero or less. Takes precedence over ``expires``.
    var maximumAge: TimeInterval?
    var expires: Date?
    /// In lower case, without a leading dot.
    var domain: String?
    /// Nil when it is absent or does not begin with `/`.
    var path: String?
    var isSecure = false
    var isHTTPOnly = false

    /// - Returns: nil for a field without name or `=`, with a control character, or with too long a name and value.
    init?(_ field: String) {
        guard HTTPSyntax.isFieldValue(field.utf8) else { return nil }
        let parts = field.utf8.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false)
        guard let pair = parts.first, let sign = pair.firstIndex(of: UInt8(ascii: "=")) else { return nil }
        name = Self.trimmed(pair[..<sign])
        value = Self.trimmed(pair[sign...].dropFirst())
        guard !name.isEmpty, name.utf8.count + value.utf8.count <= Cookie.maximumCount else { return nil }
        for attribute in parts.dropFirst() { read(attribute) }
    }

    /// The last attribute of a name counts, unless it is invalid.
    private mutating func read(_ attribute: Substring.UTF8View) {
        let sign = attribute.firstIndex(of: UInt8(ascii: "=")) ?? attribute.endIndex
        let value = Self.trimmed(attribute[sign...].dropFirst())
        guard value.utf8.count <= Self.maximumAttributeCount else { return }
        switch Self.trimmed(attribute[..<sign]).lowercased() {
        case "expires":
            expires = Date(cookieText: value) ?? expires
        case "max-age":
            let digits = value.utf8.first == UInt8(ascii: "-") ? value.utf8.dropFirst() : value.utf8[...]
            if !digits.isEmpty, digits.allSatisfy(\.isDigit) { maximumAge = Double(value) }
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

    private static func trimmed(_ text: Substring.UTF8View) -> String {
        func isBlank(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
        let start = text.drop(while: isBlank)
        return start.lastIndex { !isBlank($0) }.map { String(decoding: start[...$0], as: UTF8.self) } ?? ""
    }
}

extension Date {
    /// A date as cookies have it: a time, a day, a month and a year in any order and form (RFC 6265, section 5.1.1).
    ///
    /// - Returns: nil when one of them is missing, or the day does not exist.
    init?(cookieText text: String) {
        var time: CivilDate?
        var day: Int?
        var month: Int?
        var year: Int?
        for word in text.utf8.split(whereSeparator: Self.isCookieDelimiter) {
            if time == nil, let found = Self.cookieTime(word) {
                time = found
            } else if day == nil, let found = Self.number(word, digits: 1...2) {
                day = found
            } else if month == nil, let found = CivilDate.month(word) {
                month = found
            } else if year == nil, let found = Self.number(word, digits: 2...4) {
                year = found
            }
        }
        guard var moment = time, let day, let month, var year else { return nil }
        if (70...99).contains(year) { year += 1_900 }
        if (0...69).contains(year) { year += 2_000 }
        (moment.year, moment.month, moment.day) = (year, month, day)
        guard year >= 1_601, moment.second <= 59, let date = moment.date else { return nil }
        self = date
    }

    private static func isCookieDelimiter(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x09, 0x20...0x2F, 0x3B...0x40, 0x5B...0x60, 0x7B...0x7E: true
        default: false
        }
    }

    /// `8:49:37`, with anything behind it that does not begin with a digit.
    private static func cookieTime(_ word: Substring.UTF8View) -> CivilDate? {
        let parts = word.split(separator: UInt8(ascii: ":"), maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0].allSatisfy(\.isDigit), parts[1].allSatisfy(\.isDigit),
            let hour = number(parts[0], digits: 1...2), let minute = number(parts[1], digits: 1...2),
            let second = number(parts[2], digits: 1...2)
        else { return nil }
        return CivilDate(hour: hour, minute: minute, second: second)
    }

    /// The leading digits, if their count is allowed.
    private static func number(_ text: Substring.UTF8View, digits: ClosedRange<Int>) -> Int? {
        let found = text.prefix(while: \.isDigit)
        return digits.contains(found.count) ? Int(Substring(found)) : nil
    }
}
