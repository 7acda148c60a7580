import Foundation

/// The components of a URL, percent-encoded where needed (RFC 3986, section 3).
struct URLParts {
    /// `https://host:443`; empty for a relative reference.
    private(set) var origin = ""
    private(set) var path = ""
    private(set) var query: String?
    private(set) var fragment: String?

    init(relative text: some StringProtocol) {
        // By bytes, since `?` with a combining accent is another Character.
        let bytes = text.utf8
        let hash = bytes.firstIndex(of: UInt8(ascii: "#")) ?? bytes.endIndex
        let mark = bytes[..<hash].firstIndex(of: UInt8(ascii: "?")) ?? hash
        path = PercentEncoding.mend(text[..<mark], .path)
        if mark != hash { query = PercentEncoding.mend(text[bytes.index(after: mark)..<hash], .query) }
        if hash != bytes.endIndex { fragment = PercentEncoding.mend(text[bytes.index(after: hash)...], .query) }
    }

    /// - Parameters:
    ///   - text: an address that begins with the scheme and `://`.
    ///   - what: the subject of messages: `the address`.
    ///   - dropsUser: whether user and password are left out, instead of an error. Defaults to `false`.
    /// - Throws: ``NetworkError/Code/invalidRequest`` for a scheme other than http and https, for an invalid host or
    ///   port, and for a user or a password.
    init(absolute text: String, scheme: String, what: String, dropsUser: Bool = false) throws(NetworkError) {
        let scheme = scheme.lowercased()
        guard scheme == "http" || scheme == "https" else {
            throw .invalidRequest("\(what) has the scheme \"\(scheme.prefix(40))\", only http and https can be sent")
        }
        let authority = Self.authorityText(of: text, scheme: scheme)
        self.init(relative: text[authority.endIndex...])
        origin = scheme + "://" + (try Self.authority(authority, what, dropsUser: dropsUser))
    }

    /// The target of a reference that a server has sent, such as a `Location` (RFC 3986, section 5.2.2). A user and a
    /// password are left out: a server must not choose the client's.
    ///
    /// - Parameters:
    ///   - reference: an absolute address, or one relative to the base.
    ///   - base: the URL of the request.
    /// - Throws: ``NetworkError/Code/invalidRequest`` for a reference that is not an http or https address.
    init(resolving reference: String, against base: URL, what: String) throws(NetworkError) {
        let baseText = base.absoluteString
        let baseScheme = URLBuilder.scheme(of: baseText) ?? ""
        let base = try URLParts(absolute: baseText, scheme: baseScheme, what: "the request", dropsUser: true)
        let reference = PercentEncoding.mendBytes(of: reference).trimmed
        let isNetworkPath = reference.utf8.starts(with: "//".utf8)
        if let scheme = isNetworkPath ? baseScheme : URLBuilder.scheme(of: reference, before: ":") {
            let rest = isNetworkPath ? reference : String(Substring(reference.utf8.dropFirst(scheme.utf8.count + 1)))
            // Without slashes it has no host.
            let isAbsolute = rest.utf8.starts(with: "//".utf8)
            let text = "\(scheme):\(isAbsolute ? rest : "//")"
            try self.init(absolute: text, scheme: scheme, what: what, dropsUser: true)
            path = Self.withoutDotSegments(path)
        } else {
            self.init(relative: reference)
            origin = base.origin
            if path.isEmpty {
                path = base.path
                query = query ?? base.query
            } else {
                if path.utf8.first != UInt8(ascii: "/") {
                    let end = base.path.utf8.lastIndex(of: UInt8(ascii: "/")).map(base.path.utf8.index(after:))
                    path = (end.map { String(base.path[..<$0]) } ?? "/") + path
                }
                path = Self.withoutDotSegments(path)
            }
        }
        // RFC 9110, section 10.2.2.
        fragment = fragment ?? base.fragment
    }

    /// The path without the segments `.` and `..` (RFC 3986, section 5.2.4).
    private static func withoutDotSegments(_ path: String) -> String {
        let segments = path.split(separator: "/", omittingEmptySubsequences: false)
        guard segments.contains(where: { $0 == "." || $0 == ".." }) else { return path }
        var kept: [Substring] = []
        for segment in segments {
            // The first segment is the empty text before the slash.
            if segment == "..", kept.count > 1 { kept.removeLast() }
            if segment != ".", segment != ".." { kept.append(segment) }
        }
        if segments.last == "." || segments.last == ".." { kept.append("") }
        return kept.joined(separator: "/")
    }

    static func userRefusal(_ what: String) -> NetworkError {
        // Neither an equals sign nor a colon follows a name: what looks like a secret is left out of descriptions.
        .invalidRequest(
            "\(what) has a user or a password before its host, which are not sent from there; give a request its "
                + "RequestOptions.credential by HTTPCredential.basic, and a host its HostSettings.authentication by "
                + "RequestAuthentication.password"
        )
    }

    /// The host of an absolute address in lower case, with the port if the address has one. Nil for a relative address
    /// and for an invalid host.
    static func hostAndPort(of text: String) -> String? {
        guard let scheme = URLBuilder.scheme(of: text),
            let host = try? authority(authorityText(of: text, scheme: scheme), "it", dropsUser: true).lowercased()
        else { return nil }
        // The port 080 is 80.
        guard let colon = host.utf8.lastIndex(of: UInt8(ascii: ":")),
            let port = Int(host[host.utf8.index(after: colon)...])
        else { return host }
        return "\(host[..<colon]):\(port)"
    }

    /// Whether a host in lower case, with or without a port, is this machine whatever the network (RFC 6761, section
    /// 6.3, and RFC 6890).
    static func isLoopback(_ host: String) -> Bool {
        if host.hasPrefix("[::1]") { return true }
        let name = host.prefix { $0 != ":" }
        let numbers = name.split(separator: ".", omittingEmptySubsequences: false)
        return name == "localhost" || name.hasSuffix(".localhost")
            || numbers.count == 4 && numbers[0] == "127" && numbers.allSatisfy { UInt8($0) != nil }
    }

    static func authorityText(of text: String, scheme: String) -> Substring {
        let rest = text.utf8.dropFirst(scheme.utf8.count + 3)
        let end = rest.firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") }
        return text[rest.startIndex..<(end ?? rest.endIndex)]
    }

    /// Whether the authority is a name with or without a port, which needs no encoding. Most are.
    private static func isPlain(_ authority: Substring) -> Bool {
        authority.utf8.withContiguousStorageIfAvailable { bytes in
            let host = bytes.prefix { PercentEncoding.Allowed.unreserved.contains($0) }
            if host.isEmpty || host.count == bytes.count { return !host.isEmpty }
            let port = bytes[(host.endIndex + 1)...]
            return bytes[host.endIndex] == UInt8(ascii: ":") && (1...5).contains(port.count)
                && port.allSatisfy(\.isDigit) && port.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) } <= 65_535
        } ?? false
    }

    /// Host and port (RFC 3986, section 3.2).
    private static func authority(
        _ text: Substring,
        _ what: String,
        dropsUser: Bool
    ) throws(NetworkError) -> String {
        if isPlain(text) { return String(text) }
        // Readers that take a backslash for a slash would see another host.
        guard !text.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F || $0 == UInt8(ascii: "\\") }) else {
            throw .invalidRequest("\(what) has a control character or a backslash before its path")
        }
        let bytes = text.utf8
        var start = bytes.startIndex
        if let at = bytes.lastIndex(of: UInt8(ascii: "@")) {
            guard dropsUser else { throw userRefusal(what) }
            start = bytes.index(after: at)
        }
        let hostEnd: String.Index
        if bytes[start...].first == UInt8(ascii: "["), let bracket = bytes[start...].firstIndex(of: UInt8(ascii: "]")) {
            hostEnd = bytes.index(after: bracket)
        } else {
            hostEnd = bytes[start...].firstIndex(of: UInt8(ascii: ":")) ?? bytes.endIndex
        }
        let host = try self.host(text[start..<hostEnd], what)
        return host + (try port(text[hostEnd...], what))
    }

    private static func host(_ host: Substring, _ what: String) throws(NetworkError) -> String {
        guard !host.isEmpty else { throw .invalidRequest("\(what) has no host") }
        if host.utf8.first == UInt8(ascii: "[") {
            guard isIPv6(host) else {
                throw .invalidRequest("\(what) has the host \(host.prefix(100)), which is no IPv6 address")
            }
            return String(host)
        }
        if host.utf8.allSatisfy({ $0.isLetter || $0.isDigit || "-._~".utf8.contains($0) }) { return String(host) }
        if let ascii = ascii(host) { return ascii }
        throw .invalidRequest(
            "\(what) has the host \"\(host.prefix(100))\", which is no host name; one in Unicode is written xn--…"
        )
    }

    /// The name for DNS, `xn--…`, of a name in Unicode. Nil with versions of Foundation that do not convert it.
    private static func ascii(_ host: Substring) -> String? {
        let isName = host.utf8.allSatisfy { $0 >= 0x80 || $0.isLetter || $0.isDigit || "-._".utf8.contains($0) }
        // Not its `host`, which resolves escapes: wide forms of `%41` are an A there.
        guard isName, let ascii = URL(string: "https://\(host)/")?.absoluteString.dropFirst(8).dropLast() else {
            return nil
        }
        return ascii.utf8.allSatisfy { $0.isLetter || $0.isDigit || "-._".utf8.contains($0) } ? String(ascii) : nil
    }

    /// Whether the host is like `[2001:db8::1]`, with or without a zone behind `%25` (RFC 6874).
    private static func isIPv6(_ host: Substring) -> Bool {
        guard host.utf8.last == UInt8(ascii: "]") else { return false }
        let inner = host.utf8.dropFirst().dropLast()
        let address = inner.prefix { $0.isHexDigit || $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: ".") }
        let zone = inner[address.endIndex...]
        let zoneIsSound =
            zone.isEmpty
            || zone.starts(with: "%25".utf8) && zone.count > 3
                && zone.dropFirst(3).allSatisfy { $0.isLetter || $0.isDigit || "-._~".utf8.contains($0) }
        return zoneIsSound && address.filter { $0 == UInt8(ascii: ":") }.count >= 2
    }

    /// - Parameter text: empty, or the port with its colon.
    private static func port(_ text: Substring, _ what: String) throws(NetworkError) -> String {
        guard !text.isEmpty else { return "" }
        let digits = text.utf8.dropFirst()
        guard text.utf8.first == UInt8(ascii: ":"), digits.allSatisfy(\.isDigit),
            digits.isEmpty || UInt16(String(decoding: digits, as: UTF8.self)) != nil
        else {
            // A slash in a password ends the authority, and its beginning would be shown as the port.
            guard !text.base.utf8.contains(UInt8(ascii: "@")) else { throw userRefusal(what) }
            throw .invalidRequest("\(what) has the port \"\(text.dropFirst().prefix(40))\", ports are 0 to 65535")
        }
        return digits.isEmpty ? "" : String(text)
    }
}

extension URLParts: CustomReflectable {
    /// Without children, so that a dump shows no password.
    var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension URL {
    /// The host in lower case, with the port if the URL has one: the key of limits by host.
    var hostAndPort: String? { URLParts.hostAndPort(of: absoluteString) }

    /// Scheme, host and port, comparable (RFC 6454, section 4): `https://api.example.com:443`. Nil without a host.
    var origin: String? {
        guard let scheme = scheme?.lowercased(), let host = host?.lowercased(), !host.isEmpty else { return nil }
        guard let port = port ?? ["http": 80, "https": 443][scheme] else { return nil }
        return "\(scheme)://\(host):\(port)"
    }

    /// Whether the origin is not the one of a host's base URL; nil allows any origin.
    func isElsewhere(than base: URL?) -> Bool {
        base.map { $0.origin != origin } ?? false
    }

    /// The URL without user and password.
    package var withoutUser: URL {
        guard user != nil || password != nil, var parts = URLComponents(url: self, resolvingAgainstBaseURL: true)
        else { return self }
        parts.user = nil
        parts.password = nil
        return parts.url ?? self
    }

    /// The URL without user, password, query and fragment.
    package var withoutSecrets: String {
        guard var components = URLComponents(url: self, resolvingAgainstBaseURL: true) else { return scheme ?? "" }
        components.user = nil
        components.password = nil
        components.query = nil
        components.fragment = nil
        // A path may have parameters, and other addresses.
        return Redaction.standard.redacted(components.string ?? "")
    }

    /// Path and query as in the first line of a request (RFC 9112, section 3.2.1).
    var requestTarget: String {
        let components = URLComponents(url: self, resolvingAgainstBaseURL: true)
        let path = components?.percentEncodedPath ?? ""
        let query = components?.percentEncodedQuery.map { "?" + $0 } ?? ""
        return (path.isEmpty ? "/" : path) + query
    }
}
