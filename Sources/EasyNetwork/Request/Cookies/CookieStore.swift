import Foundation

/// The cookies of a client, and the rules for storing and sending them (RFC 6265, sections 5.3 and 5.4).
struct CookieStore {
    /// The limits for one domain and in total. The least recently used cookies are removed first.
    static let maximumCountPerDomain = 50
    static let maximumCount = 3_000

    /// The number of `Set-Cookie` fields of one response that are read.
    static let maximumFieldCount = 200

    /// A cookie, and the order of its last use or change.
    private typealias Entry = (cookie: Cookie, used: Int)

    /// The entries in the order of creation. A cookie that replaces another takes its position.
    private var entries: [Entry] = []
    private var lastUse = 0

    var count: Int { entries.count }

    /// Returns the cookies that have not expired, in the order of their creation.
    func cookies(at date: Date) -> [Cookie] {
        entries.map { $0.cookie }.filter { !$0.isExpired(at: date) }
    }

    /// Applies the `Set-Cookie` fields of a response.
    ///
    /// - Returns: whether a cookie that is written to a file changed.
    mutating func store(_ headers: HTTPHeaders, from url: URL, at date: Date) -> Bool {
        guard let request = CookieRequest(url) else { return false }
        var isChanged = false
        for field in headers.rawValues(for: "Set-Cookie").prefix(Self.maximumFieldCount) {
            guard let cookie = Cookie(field, from: request, at: date) else { continue }
            guard request.isSecure || !hasSecure(over: cookie, at: date) else { continue }
            if set(cookie, at: date) { isChanged = true }
        }
        return isChanged
    }

    /// Returns the value of the `Cookie` field for a request, or nil without a cookie.
    mutating func header(for url: URL, at date: Date) -> String? {
        guard let request = CookieRequest(url) else { return nil }
        var found: [Cookie] = []
        for index in entries.indices where request.wants(entries[index].cookie, at: date) {
            lastUse += 1
            entries[index].used = lastUse
            found.append(entries[index].cookie)
        }
        guard !found.isEmpty else { return nil }
        // Longer paths first, then older cookies: some servers use the first cookie with a name.
        let sorted = found.enumerated().sorted { left, right in
            (right.element.path.utf8.count, left.offset) < (left.element.path.utf8.count, right.offset)
        }
        return sorted.map { "\($0.element.name)=\($0.element.value)" }.joined(separator: "; ")
    }

    /// Stores a cookie, replacing the one with the same name, domain and path. An expired cookie only removes it.
    ///
    /// - Returns: whether a cookie that is written to a file changed.
    mutating func set(_ cookie: Cookie, at date: Date) -> Bool {
        let index = entries.firstIndex { entry in
            entry.cookie.name == cookie.name && entry.cookie.domain == cookie.domain && entry.cookie.path == cookie.path
        }
        let old = index.map { entries[$0].cookie }
        guard !cookie.isExpired(at: date) else {
            if let index { entries.remove(at: index) }
            return old?.expires != nil
        }
        lastUse += 1
        let entry = (cookie: cookie, used: lastUse)
        if let index {
            entries[index] = entry
        } else {
            entries.append(entry)
            trim(to: Self.maximumCountPerDomain, of: cookie.domain, at: date)
            trim(to: Self.maximumCount, of: nil, at: date)
        }
        return old?.expires != nil || cookie.expires != nil
    }

    /// - Returns: whether a cookie was removed.
    mutating func remove(where isUnwanted: (Cookie) -> Bool) -> Bool {
        let before = count
        entries.removeAll { isUnwanted($0.cookie) }
        return count < before
    }

    /// Removes the cookies that have expired, then the least recently used, down to the limit.
    ///
    /// - Parameter domain: the domain of the cookies to count; nil for all.
    private mutating func trim(to limit: Int, of domain: String?, at date: Date) {
        func counts(_ entry: Entry) -> Bool { domain == nil || entry.cookie.domain == domain }
        guard entries.reduce(0, { counts($1) ? $0 + 1 : $0 }) > limit else { return }
        entries.removeAll { counts($0) && $0.cookie.isExpired(at: date) }
        let uses = entries.filter(counts).map { $0.used }.sorted()
        guard uses.count > limit else { return }
        let oldestKept = uses[uses.count - limit]
        entries.removeAll { counts($0) && $0.used < oldestKept }
    }

    /// Returns whether a cookie that was received without TLS, and could be forged, would hide a secure one (RFC
    /// 6265bis, section 5.7).
    private func hasSecure(over cookie: Cookie, at date: Date) -> Bool {
        entries.lazy.map { $0.cookie }.contains { secure in
            secure.isSecure && secure.name == cookie.name && !secure.isExpired(at: date)
                && Cookie.pathMatches(cookie.path, path: secure.path)
                && (Cookie.hostMatches(secure.domain, domain: cookie.domain)
                    || Cookie.hostMatches(cookie.domain, domain: secure.domain))
        }
    }
}

/// The properties of a request that select cookies.
struct CookieRequest {
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

    /// Returns whether a cookie is sent with the request (section 5.4).
    func wants(_ cookie: Cookie, at date: Date) -> Bool {
        (cookie.isHostOnly ? host == cookie.domain : Cookie.hostMatches(host, domain: cookie.domain))
            && (isSecure || !cookie.isSecure) && Cookie.pathMatches(path, path: cookie.path)
            && !cookie.isExpired(at: date)
    }
}

// The rules that relate hosts and paths to a cookie (RFC 6265, section 5.1).
extension Cookie {
    /// Returns a domain in lowercase and without a leading dot (sections 5.1.2 and 5.2.3).
    static func canonicalDomain(_ domain: String) -> String {
        let domain = domain.lowercased()
        return domain.hasPrefix(".") ? String(domain.dropFirst()) : domain
    }

    /// Returns whether a host is a domain or below it (section 5.1.3). An address has no domain above it.
    static func hostMatches(_ host: String, domain: String) -> Bool {
        if host == domain { return true }
        // Compare bytes, because each request examines all cookies.
        let label = host.utf8.dropLast(domain.utf8.count)
        return !domain.isEmpty && label.last == UInt8(ascii: ".")
            && host.utf8[label.endIndex...].elementsEqual(domain.utf8)
            && !isAddress(host)
    }

    /// Returns whether a cookie must not be set for all hosts below the domain, as for the single label `com`.
    ///
    /// The package has no list of public suffixes, so it does not recognize `co.uk`.
    static func isPublicSuffix(_ domain: String) -> Bool {
        domain.split(separator: ".").count < 2
    }

    /// Returns whether a host is an IPv6 address or ends in a number, as only IPv4 addresses do.
    static func isAddress(_ host: String) -> Bool {
        if host.utf8.contains(UInt8(ascii: ":")) || host.utf8.first == UInt8(ascii: "[") { return true }
        guard let last = host.split(separator: ".").last else { return false }
        return last.hasPrefix("0x") ? last.utf8.dropFirst(2).allSatisfy(\.isHexDigit) : last.utf8.allSatisfy(\.isDigit)
    }

    /// Returns the path of a cookie that names none: the folder of the requested path (section 5.1.4).
    static func defaultPath(_ path: String) -> String {
        guard path.utf8.first == UInt8(ascii: "/"), let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")),
            slash != path.startIndex
        else { return "/" }
        return String(path[..<slash])
    }

    /// Returns whether a requested path is a cookie's path or below it (section 5.1.4).
    static func pathMatches(_ requested: String, path: String) -> Bool {
        guard requested.utf8.starts(with: path.utf8) else { return false }
        let rest = requested.utf8.dropFirst(path.utf8.count)
        return rest.isEmpty || path.utf8.last == UInt8(ascii: "/") || rest.first == UInt8(ascii: "/")
    }
}
