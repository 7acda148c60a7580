/// The rules by which hosts and paths belong to a cookie (RFC 6265, section 5.1).
enum CookieDomain {
    /// In lower case and without a dot at its beginning (sections 5.1.2 and 5.2.3).
    static func canonical(_ domain: String) -> String {
        let domain = domain.lowercased()
        return domain.hasPrefix(".") ? String(domain.dropFirst()) : domain
    }

    /// Section 5.1.3: the same, or below it. An address is below nothing.
    static func matches(_ host: String, domain: String) -> Bool {
        if host == domain { return true }
        return !domain.isEmpty && !isAddress(host) && host.utf8.count > domain.utf8.count
            && host.hasSuffix("." + domain)
    }

    /// The domains that a host is in, itself first.
    static func above(_ host: String) -> [String] {
        var domains = [host]
        guard !isAddress(host) else { return domains }
        var rest = host[...]
        while let dot = rest.utf8.firstIndex(of: UInt8(ascii: ".")) {
            rest = rest[rest.utf8.index(after: dot)...]
            // A name has 127 labels at most; what has more is no name, and would cost a step each.
            guard !rest.isEmpty, domains.count < 128 else { break }
            domains.append(String(rest))
        }
        return domains
    }

    /// Whether nobody may set a cookie for all below: a single label such as `com`.
    ///
    /// There is no list of public suffixes in here, so `co.uk` is not known for one.
    static func isPublicSuffix(_ domain: String) -> Bool {
        domain.split(separator: ".").count < 2
    }

    /// An IPv6 address, or what ends in a number as only IPv4 addresses do.
    static func isAddress(_ host: String) -> Bool {
        if host.utf8.contains(UInt8(ascii: ":")) || host.utf8.first == UInt8(ascii: "[") { return true }
        guard let last = host.split(separator: ".").last else { return false }
        let digits = last.utf8.starts(with: "0x".utf8) ? last.utf8.dropFirst(2) : last.utf8[...]
        let isHexadecimal = last.utf8.starts(with: "0x".utf8)
        return digits.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): true
            case UInt8(ascii: "a")...UInt8(ascii: "f"): isHexadecimal
            default: false
            }
        }
    }

    /// Section 5.1.4: the path of a cookie that names none.
    ///
    /// - Parameter path: of the request.
    static func defaultPath(_ path: String) -> String {
        guard path.utf8.first == UInt8(ascii: "/"), let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")),
            slash != path.startIndex
        else { return "/" }
        return String(path[..<slash])
    }

    /// Section 5.1.4: the same, or a segment of it.
    static func pathMatches(_ requested: String, path: String) -> Bool {
        let rest = requested.utf8.dropFirst(path.utf8.count)
        guard requested.utf8.starts(with: path.utf8) else { return false }
        return rest.isEmpty || path.utf8.last == UInt8(ascii: "/") || rest.first == UInt8(ascii: "/")
    }
}
