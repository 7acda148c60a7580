import Foundation

/// The cookies of a client, and the rules for storing and sending them (RFC 6265, sections 5.3 and 5.4).
struct CookieStore {
    /// The limits of cookies for one domain and in all; the least recently used cookies are removed first.
    static let maximumCountPerDomain = 50
    static let maximumCount = 3_000

    /// The number of `Set-Cookie` fields of one response that are read.
    static let maximumFieldCount = 200

    private struct Entry {
        var cookie: Cookie
        /// The order of creation, which a replacement keeps.
        var created: Int
        /// The order of the last use or change.
        var used: Int
    }

    /// By domain, so that a request searches the cookies of its own host only.
    private var entries: [String: [Entry]] = [:]
    private(set) var count = 0
    private var lastOrder = 0

    init() {}

    /// The cookies that have not expired, in the order of their creation.
    func cookies(at date: Date) -> [Cookie] {
        let alive = entries.values.joined().filter { !$0.cookie.isExpired(at: date) }
        return alive.sorted { $0.created < $1.created }.map(\.cookie)
    }

    /// Applies the `Set-Cookie` fields of a response.
    ///
    /// - Returns: whether a cookie changed that is written to a file.
    mutating func store(_ headers: HTTPHeaders, from url: URL, at date: Date) -> Bool {
        guard let request = CookieRequest(url) else { return false }
        var isChanged = false
        for field in headers.values(for: "Set-Cookie").prefix(Self.maximumFieldCount) {
            guard let parsed = SetCookie(field), let cookie = request.cookie(parsed, at: date) else { continue }
            guard request.isSecure || !hasSecure(over: cookie, at: date) else { continue }
            if set(cookie, at: date) { isChanged = true }
        }
        return isChanged
    }

    /// The value of the `Cookie` field for a request; nil without a cookie.
    mutating func header(for url: URL, at date: Date) -> String? {
        guard let request = CookieRequest(url) else { return nil }
        var found: [Entry] = []
        for domain in CookieDomain.above(request.host) {
            guard var list = entries[domain] else { continue }
            for index in list.indices where request.wants(list[index].cookie, at: date) {
                lastOrder += 1
                list[index].used = lastOrder
                found.append(list[index])
            }
            entries[domain] = list
        }
        // Longer paths first, then older cookies: some servers use the first cookie of a name.
        found.sort { left, right in
            let (longer, shorter) = (left.cookie.path.utf8.count, right.cookie.path.utf8.count)
            return longer != shorter ? longer > shorter : left.created < right.created
        }
        return found.isEmpty ? nil : found.map { "\($0.cookie.name)=\($0.cookie.value)" }.joined(separator: "; ")
    }

    /// Stores a cookie in the place of the one with the same name, domain and path, which an expired cookie removes.
    ///
    /// - Returns: whether a cookie changed that is written to a file.
    mutating func set(_ cookie: Cookie, at date: Date) -> Bool {
        var list = entries[cookie.domain] ?? []
        let index = list.firstIndex { $0.cookie.name == cookie.name && $0.cookie.path == cookie.path }
        let old = index.map { list[$0].cookie }
        count -= list.count
        if cookie.isExpired(at: date) {
            if let index { list.remove(at: index) }
        } else {
            lastOrder += 1
            let entry = Entry(cookie: cookie, created: index.map { list[$0].created } ?? lastOrder, used: lastOrder)
            if let index { list[index] = entry } else { list.append(entry) }
            Self.trim(&list, at: date)
        }
        count += list.count
        entries[cookie.domain] = list.isEmpty ? nil : list
        trim(at: date)
        return old?.expires != nil || cookie.expires != nil && !cookie.isExpired(at: date)
    }

    /// - Returns: the number of removed cookies.
    @discardableResult
    mutating func remove(where isUnwanted: (Cookie) -> Bool) -> Int {
        let before = count
        entries = entries.compactMapValues { list in
            let kept = list.filter { !isUnwanted($0.cookie) }
            return kept.isEmpty ? nil : kept
        }
        count = entries.values.reduce(0) { $0 + $1.count }
        return before - count
    }

    // MARK: - Limits and precedence

    /// Whether a cookie that was received without TLS, and may be forged, would hide a secure one (RFC 6265bis, section
    /// 5.7).
    private func hasSecure(over cookie: Cookie, at date: Date) -> Bool {
        entries.contains { domain, list in
            let isCovered = list.contains { entry in
                entry.cookie.isSecure && entry.cookie.name == cookie.name && !entry.cookie.isExpired(at: date)
                    && CookieDomain.pathMatches(cookie.path, path: entry.cookie.path)
            }
            return isCovered
                && (CookieDomain.matches(domain, domain: cookie.domain)
                    || CookieDomain.matches(cookie.domain, domain: domain))
        }
    }

    private static func trim(_ list: inout [Entry], at date: Date) {
        guard list.count > maximumCountPerDomain else { return }
        list.removeAll { $0.cookie.isExpired(at: date) }
        while list.count > maximumCountPerDomain, let oldest = list.indices.min(by: { list[$0].used < list[$1].used }) {
            list.remove(at: oldest)
        }
    }

    private mutating func trim(at date: Date) {
        guard count > Self.maximumCount else { return }
        remove { $0.isExpired(at: date) }
        while count > Self.maximumCount {
            let oldest = entries.compactMap { domain, list in
                list.indices.min { list[$0].used < list[$1].used }.map { (domain, $0, list[$0].used) }
            }.min { $0.2 < $1.2 }
            guard let (domain, index, _) = oldest else { return }
            entries[domain]?.remove(at: index)
            if entries[domain]?.isEmpty == true { entries[domain] = nil }
            count -= 1
        }
    }
}

/// The properties of a request that select cookies.
private struct CookieRequest {
    let host: String
    let path: String
    let isSecure: Bool

    init?(_ url: URL) {
        let components = URLComponents(url: url, resolvingAgainstBaseURL: true)
        guard let scheme = components?.scheme?.lowercased(), scheme == "http" || scheme == "https",
            let host = components?.percentEncodedHost?.lowercased(), !host.isEmpty
        else { return nil }
        self.host = host
        path = components.map(\.percentEncodedPath).flatMap { $0.isEmpty ? nil : $0 } ?? "/"
        isSecure = scheme == "https"
    }

    /// The cookie that the server set (section 5.3); nil when it may not set it.
    func cookie(_ parsed: SetCookie, at date: Date) -> Cookie? {
        var isHostOnly = parsed.domain == nil
        if let domain = parsed.domain {
            guard CookieDomain.matches(host, domain: domain) else { return nil }
            if CookieDomain.isPublicSuffix(domain) || CookieDomain.isAddress(domain) {
                guard domain == host else { return nil }
                isHostOnly = true
            }
        }
        guard isSecure || !parsed.isSecure else { return nil }
        // A __Host- cookie must not name a domain, and must name its path.
        let isForHost = parsed.name.lowercased().hasPrefix("__host-")
        guard !isForHost || parsed.domain == nil && parsed.path == "/" else { return nil }
        var expires = parsed.expires
        if let age = parsed.maximumAge {
            expires = age > 0 ? min(date.addingTimeInterval(min(age, 1e12)), .distantFuture) : .distantPast
        }
        return try? Cookie(
            name: parsed.name,
            value: parsed.value,
            domain: parsed.domain ?? host,
            isHostOnly: isHostOnly,
            path: parsed.path ?? CookieDomain.defaultPath(path),
            expires: expires,
            isSecure: parsed.isSecure,
            isHTTPOnly: parsed.isHTTPOnly
        )
    }

    /// Whether a cookie is sent with the request (section 5.4).
    func wants(_ cookie: Cookie, at date: Date) -> Bool {
        (cookie.isHostOnly ? host == cookie.domain : CookieDomain.matches(host, domain: cookie.domain))
            && (isSecure || !cookie.isSecure) && CookieDomain.pathMatches(path, path: cookie.path)
            && !cookie.isExpired(at: date)
    }
}

/// The rules that relate hosts and paths to a cookie (RFC 6265, section 5.1).
enum CookieDomain {
    /// In lower case and without a leading dot (sections 5.1.2 and 5.2.3).
    static func canonical(_ domain: String) -> String {
        let domain = domain.lowercased()
        return domain.hasPrefix(".") ? String(domain.dropFirst()) : domain
    }

    /// Whether a host is a domain or below it (section 5.1.3). An address has no domain above it.
    static func matches(_ host: String, domain: String) -> Bool {
        host == domain || !domain.isEmpty && !isAddress(host) && host.hasSuffix("." + domain)
    }

    /// A host and the domains above it.
    static func above(_ host: String) -> [String] {
        guard !isAddress(host) else { return [host] }
        var domains = [host]
        var rest = host[...]
        while let dot = rest.utf8.firstIndex(of: UInt8(ascii: ".")) {
            rest = rest[rest.utf8.index(after: dot)...]
            // A name has at most 127 labels.
            guard !rest.isEmpty, domains.count < 128 else { break }
            domains.append(String(rest))
        }
        return domains
    }

    /// Whether cookies must not be set for all hosts below, as for the single label `com`.
    ///
    /// The package has no list of public suffixes, so it does not recognize `co.uk`.
    static func isPublicSuffix(_ domain: String) -> Bool {
        domain.split(separator: ".").count < 2
    }

    /// Whether a host is an IPv6 address or ends in a number, as only IPv4 addresses do.
    static func isAddress(_ host: String) -> Bool {
        if host.utf8.contains(UInt8(ascii: ":")) || host.utf8.first == UInt8(ascii: "[") { return true }
        guard let last = host.split(separator: ".").last else { return false }
        return last.hasPrefix("0x") ? last.utf8.dropFirst(2).allSatisfy(\.isHexDigit) : last.utf8.allSatisfy(\.isDigit)
    }

    /// The path of a cookie that names none: the folder of the requested path (section 5.1.4).
    static func defaultPath(_ path: String) -> String {
        guard path.utf8.first == UInt8(ascii: "/"), let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")),
            slash != path.startIndex
        else { return "/" }
        return String(path[..<slash])
    }

    /// Whether a requested path is a cookie's path or below it (section 5.1.4).
    static func pathMatches(_ requested: String, path: String) -> Bool {
        guard requested.utf8.starts(with: path.utf8) else { return false }
        let rest = requested.utf8.dropFirst(path.utf8.count)
        return rest.isEmpty || path.utf8.last == UInt8(ascii: "/") || rest.first == UInt8(ascii: "/")
    }
}
