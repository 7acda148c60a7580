import Foundation

/// The cookies of a client, and the rules for taking and giving them (RFC 6265, sections 5.3 and 5.4).
struct CookieStore {
    /// How many cookies one domain may have, and all of them; of more those go that were used least lately.
    static let maximumCountPerDomain = 50
    static let maximumCount = 3_000

    /// How many `Set-Cookie` fields of one answer are looked at.
    static let maximumFieldCount = 200

    private struct Entry {
        var cookie: Cookie
        /// The order in which they were made; kept when a cookie is replaced.
        var created: Int
        /// The order in which they were last used or set.
        var used: Int
    }

    /// By domain, so that a request looks at those of its own host only.
    private var entries: [String: [Entry]] = [:]
    private(set) var count = 0
    private var lastOrder = 0

    init() {}

    /// In the order in which they were made.
    func cookies(at date: Date) -> [Cookie] {
        let alive = entries.values.joined().filter { !$0.cookie.isExpired(at: date) }
        return alive.sorted { $0.created < $1.created }.map(\.cookie)
    }

    /// Takes over what the `Set-Cookie` fields of an answer say.
    ///
    /// - Returns: whether anything changed that a file would keep.
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

    /// The value of the `Cookie` field for a request; nil when there is none.
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
        // Longer paths first, of these the older ones: servers that look for the first of a name rely on it.
        found.sort { left, right in
            let (longer, shorter) = (left.cookie.path.utf8.count, right.cookie.path.utf8.count)
            return longer != shorter ? longer > shorter : left.created < right.created
        }
        return found.isEmpty ? nil : found.map { "\($0.cookie.name)=\($0.cookie.value)" }.joined(separator: "; ")
    }

    /// Puts a cookie in, in the place of one of the same name, domain and path. One that has expired takes that away.
    ///
    /// - Returns: whether anything changed that a file would keep.
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

    /// - Returns: how many were removed.
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

    /// Whether what came without TLS would lie over a cookie that is secure: somebody on the way could have written it
    /// (RFC 6265bis, section 5.7).
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

/// What of a request cookies depend on.
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

    /// What the server may have kept, as it is kept (section 5.3); nil when it may not.
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
        // A __Host- cookie may name no domain, not even its own, and has to name its path.
        let isForHost = parsed.name.lowercased().hasPrefix("__host-")
        guard !isForHost || parsed.domain == nil && parsed.path == "/" else { return nil }
        let cookie = Cookie(
            uncheckedName: parsed.name,
            value: parsed.value,
            domain: parsed.domain ?? host,
            isHostOnly: isHostOnly,
            path: parsed.path ?? CookieDomain.defaultPath(path),
            expires: expiry(parsed, at: date),
            isSecure: parsed.isSecure,
            isHTTPOnly: parsed.isHTTPOnly
        )
        return cookie.keepsPromiseOfName ? cookie : nil
    }

    private func expiry(_ parsed: SetCookie, at date: Date) -> Date? {
        guard let age = parsed.maximumAge else { return parsed.expires }
        guard age > 0 else { return .distantPast }
        return min(date.addingTimeInterval(min(age, 1e12)), .distantFuture)
    }

    /// Whether a cookie goes along (section 5.4).
    func wants(_ cookie: Cookie, at date: Date) -> Bool {
        (cookie.isHostOnly ? host == cookie.domain : CookieDomain.matches(host, domain: cookie.domain))
            && (isSecure || !cookie.isSecure) && CookieDomain.pathMatches(path, path: cookie.path)
            && !cookie.isExpired(at: date)
    }
}
