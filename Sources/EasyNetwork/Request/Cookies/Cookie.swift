import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A name and a value that a server asks a client to store and to send back (RFC 6265). A jar keeps only cookies that
/// pass ``check()``.
///
/// Foundation's `HTTPCookie`, which users of the package see, accepts values that a header field must not contain.
struct Cookie: Hashable, Sendable, Codable {
    /// The maximum sum of the bytes of name and value (section 6.1).
    static let maximumCount = 4_096

    let name: String
    let value: String
    /// The host, or the domain with all hosts below it, in lowercase and without a leading dot.
    let domain: String
    /// Whether the cookie is sent to ``domain`` only, and not to the hosts below it.
    var isHostOnly = true
    /// The path prefix, in whole segments, of the requests that the cookie is sent with.
    var path = "/"
    /// The expiry date; nil for a session cookie, which lasts as long as the jar and is not written to a file.
    var expires: Date?
    /// Whether the cookie is sent over https only.
    var isSecure = true
    /// Whether the server hides the cookie from scripts. The package does not use it.
    var isHTTPOnly = false

    /// - Throws: ``NetworkError/Code/invalidRequest`` if a name, value, domain or path is invalid; if the domain is a
    ///   single label or an address and the cookie is not host-only; or if the name begins with `__Secure-` or
    ///   `__Host-` and the cookie lacks the properties that the prefix requires.
    func check() throws(NetworkError) {
        guard let fault else { return }
        throw NetworkError(code: .invalidRequest, message: "the cookie \(name.prefix(40).debugDescription) \(fault)")
    }

    private var fault: String? {
        if name.isEmpty || name.utf8.contains(UInt8(ascii: "=")) || !Self.isSendable(name) || !Self.isSendable(value) {
            return "has a semicolon, a control character, a space at an end, or an = in its name"
        }
        if name.fieldBytes.count + value.fieldBytes.count > Self.maximumCount {
            return "has more than \(Self.maximumCount) bytes"
        }
        if domain.isEmpty || !domain.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) {
            return "has an invalid domain: \(domain.prefix(100).debugDescription)"
        }
        if !isHostOnly, Self.isPublicSuffix(domain) || Self.isAddress(domain) {
            return "must be host-only, because \(domain.debugDescription) is an address or a single label"
        }
        if path.utf8.first != UInt8(ascii: "/") || !HTTPSyntax.isFieldValue(path.utf8) {
            return "has an invalid path: \(path.prefix(100).debugDescription)"
        }
        if expires?.timeIntervalSince1970.isFinite == false { return "has an invalid expiry date" }
        // RFC 6265bis, section 4.1.3.
        let prefix = name.lowercased()
        let isForHost = prefix.hasPrefix("__host-")
        if !isSecure, isForHost || prefix.hasPrefix("__secure-") {
            return "must be secure, because its name begins with __Host- or __Secure-"
        }
        if isForHost, !isHostOnly || path != "/" {
            return "must be host-only and have the path /, because its name begins with __Host-"
        }
        return nil
    }

    /// Returns whether a string can be part of a `Cookie` field without becoming another cookie or another field.
    private static func isSendable(_ text: String) -> Bool {
        HTTPSyntax.isFieldValue(text.utf8) && !text.utf8.contains(UInt8(ascii: ";")) && text.trimmed == text
    }

    func isExpired(at date: Date) -> Bool {
        expires.map { $0 <= date } ?? false
    }
}

extension Cookie {
    /// - Throws: see ``check()``.
    init(_ cookie: HTTPCookie) throws(NetworkError) {
        self.init(
            name: cookie.name,
            value: cookie.value,
            domain: Self.canonicalDomain(cookie.domain),
            isHostOnly: !cookie.domain.hasPrefix("."),
            path: cookie.path,
            expires: cookie.expiresDate,
            isSecure: cookie.isSecure,
            isHTTPOnly: cookie.isHTTPOnly
        )
        try check()
    }

    /// The cookie as Foundation's type; nil if Foundation rejects it.
    var httpCookie: HTTPCookie? { httpCookie(value: value) }

    func httpCookie(value: String) -> HTTPCookie? {
        var properties: [HTTPCookiePropertyKey: Any] = [
            .name: name, .value: value, .domain: (isHostOnly ? "" : ".") + domain, .path: path,
        ]
        properties[.expires] = expires
        if isSecure { properties[.secure] = "TRUE" }
        if isHTTPOnly { properties[HTTPCookiePropertyKey("HttpOnly")] = "TRUE" }
        return HTTPCookie(properties: properties)
    }
}

// MARK: - Set-Cookie

extension Cookie {
    /// The maximum length of an attribute in bytes. Longer ones are ignored (RFC 6265bis, section 5.6).
    private static let maximumAttributeCount = 1_024

    /// Reads a `Set-Cookie` field as leniently as browsers do (RFC 6265, sections 5.2 and 5.3).
    ///
    /// - Parameters:
    ///   - request: the request whose response has the field.
    ///   - date: the current date.
    /// - Returns: nil for a field without a name or `=`, with a control character, or whose name and value are too
    ///   long; and for a cookie that the server is not allowed to set.
    init?(_ field: String, from request: CookieRequest, at date: Date) {
        guard HTTPSyntax.isFieldValue(field.utf8) else { return nil }
        let parts = field.utf8.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false)
        guard let pair = parts.first, pair.contains(UInt8(ascii: "=")) else { return nil }
        let (name, value) = Self.pair(pair)
        var expires: Date?
        var age: TimeInterval?
        var domain: String?
        var path: String?
        var (isSecure, isHTTPOnly) = (false, false)
        // The last attribute of a name counts, unless it is invalid.
        for attribute in parts.dropFirst() {
            let (name, value) = Self.pair(attribute)
            guard value.utf8.count <= Self.maximumAttributeCount else { continue }
            switch name.lowercased() {
            case "expires": expires = Date(cookieText: value) ?? expires
            case "max-age": age = Self.seconds(value) ?? age
            case "domain": domain = value.isEmpty || value == "." ? domain : Self.canonicalDomain(value)
            case "path": path = value.utf8.first == UInt8(ascii: "/") ? value : nil
            case "secure": isSecure = true
            case "httponly": isHTTPOnly = true
            default: break
            }
        }
        if let age { expires = age > 0 ? min(date.addingTimeInterval(min(age, 1e12)), .distantFuture) : .distantPast }
        guard request.isSecure || !isSecure, Self.hostMatches(request.host, domain: domain ?? request.host)
        else { return nil }
        // A __Host- cookie must not name a domain, and must name its path.
        guard !name.lowercased().hasPrefix("__host-") || domain == nil && path == "/" else { return nil }
        var isHostOnly = domain == nil
        if let domain, Self.isPublicSuffix(domain) || Self.isAddress(domain) {
            guard domain == request.host else { return nil }
            isHostOnly = true
        }
        self.init(
            name: name,
            value: value,
            domain: domain ?? request.host,
            isHostOnly: isHostOnly,
            path: path ?? Self.defaultPath(request.path),
            expires: expires,
            isSecure: isSecure,
            isHTTPOnly: isHTTPOnly
        )
        guard fault == nil else { return nil }
    }

    /// Returns the strings before and after the first `=`, without spaces and tabs at their ends.
    private static func pair(_ text: Substring.UTF8View) -> (name: String, value: String) {
        let sign = text.firstIndex(of: UInt8(ascii: "=")) ?? text.endIndex
        return (Substring(text[..<sign]).trimmed, Substring(text[sign...].dropFirst()).trimmed)
    }

    /// Returns the number of `Max-Age`, or nil for any other string.
    private static func seconds(_ text: String) -> TimeInterval? {
        let digits = text.utf8.first == UInt8(ascii: "-") ? text.utf8.dropFirst() : text.utf8[...]
        return !digits.isEmpty && digits.allSatisfy(\.isDigit) ? Double(text) : nil
    }
}

extension Date {
    /// Reads a date in a cookie: a time, a day, a month and a year in any order and form (RFC 6265, section 5.1.1).
    ///
    /// - Returns: nil if one of them is missing, or if the day does not exist.
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

    /// Returns whether the byte is a tab, or any printable ASCII character except a letter, a digit or a colon.
    private static func isCookieDelimiter(_ byte: UInt8) -> Bool {
        byte == 0x09 || 0x20...0x7E ~= byte && !byte.isLetter && !byte.isDigit && byte != UInt8(ascii: ":")
    }

    /// Reads `8:49:37`, followed by anything that does not begin with a digit.
    private static func cookieTime(_ word: Substring.UTF8View) -> CivilDate? {
        let parts = word.split(separator: UInt8(ascii: ":"), maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0].allSatisfy(\.isDigit), parts[1].allSatisfy(\.isDigit),
            let hour = number(parts[0], digits: 1...2), let minute = number(parts[1], digits: 1...2),
            let second = number(parts[2], digits: 1...2)
        else { return nil }
        return CivilDate(hour: hour, minute: minute, second: second)
    }

    /// Returns the leading digits as a number, if their count is allowed.
    private static func number(_ text: Substring.UTF8View, digits: ClosedRange<Int>) -> Int? {
        let found = text.prefix(while: \.isDigit)
        return digits.contains(found.count) ? Int(Substring(found)) : nil
    }
}
