import Foundation

/// The components of a URL, percent-encoded where needed (RFC 3986, section 3).
struct URLParts {
    /// Scheme, host and port, such as `https://host:443`; empty for a relative reference.
    var origin = ""
    var path = ""
    var query: String?
    var fragment: String?

    init(relative text: some StringProtocol) {
        // Most references are a path that needs no encoding.
        if PercentEncoding.needsNone(text, .path) {
            path = String(text)
            return
        }
        // Compare bytes, because `?` with a combining accent is another Character.
        let bytes = text.utf8
        let hash = bytes.firstIndex(of: UInt8(ascii: "#")) ?? bytes.endIndex
        let mark = bytes[..<hash].firstIndex(of: UInt8(ascii: "?")) ?? hash
        path = PercentEncoding.encode(text[..<mark], .path)
        if mark != hash { query = PercentEncoding.encode(text[bytes.index(after: mark)..<hash], .query) }
        if hash != bytes.endIndex { fragment = PercentEncoding.encode(text[bytes.index(after: hash)...], .query) }
    }

    /// Parses an absolute URL.
    ///
    /// - Parameters:
    ///   - text: A URL that begins with the scheme and `://`.
    ///   - what: The subject of messages, such as `the URL`.
    ///   - dropsUser: Whether user and password are omitted instead of being an error. Defaults to `false`.
    /// - Throws: ``NetworkError/Code/invalidRequest`` for a scheme other than http and https, for an invalid host or
    ///   port, and for a user or a password.
    init(absolute text: String, scheme: String, what: String, dropsUser: Bool = false) throws(NetworkError) {
        let scheme = scheme.lowercased()
        guard scheme == "http" || scheme == "https" else {
            throw .invalidRequest("\(what) has the scheme \"\(scheme.prefix(40))\"; only http and https are supported")
        }
        let authority = Self.authorityText(of: text, scheme: scheme)
        self.init(relative: text[authority.endIndex...])
        origin = scheme + "://" + (try Self.authority(authority, what, dropsUser: dropsUser))
    }

    /// Resolves a reference that a server sent, such as a `Location` (RFC 3986, section 5.2.2). A user and a password
    /// are omitted, because a server must not choose the client's.
    ///
    /// - Parameters:
    ///   - reference: An absolute URL, or one relative to the base.
    ///   - base: The URL of the request.
    /// - Throws: ``NetworkError/Code/invalidRequest`` for a reference that does not lead to an http or https URL.
    init(resolving reference: String, against base: URL, what: String) throws(NetworkError) {
        let baseText = base.absoluteString
        let baseScheme = URLBuilder.scheme(of: baseText) ?? ""
        let base = try URLParts(absolute: baseText, scheme: baseScheme, what: "the request", dropsUser: true)
        let reference = PercentEncoding.mendBytes(of: reference).trimmed
        let isNetworkPath = reference.utf8.starts(with: "//".utf8)
        if let scheme = isNetworkPath ? baseScheme : URLBuilder.scheme(of: reference, before: ":") {
            let rest = isNetworkPath ? reference : String(Substring(reference.utf8.dropFirst(scheme.utf8.count + 1)))
            // A reference without two slashes has no host.
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
        // A reference without fragment inherits the base's fragment (RFC 9110, section 10.2.2).
        fragment = fragment ?? base.fragment
    }

    /// Returns the path without the segments `.` and `..` (RFC 3986, section 5.2.4).
    private static func withoutDotSegments(_ path: String) -> String {
        let segments = path.split(separator: "/", omittingEmptySubsequences: false)
        guard segments.contains(where: { $0 == "." || $0 == ".." }) else { return path }
        var kept: [Substring] = []
        for segment in segments {
            // The first segment is the empty string before the first slash.
            if segment == "..", kept.count > 1 { kept.removeLast() }
            if segment != ".", segment != ".." { kept.append(segment) }
        }
        if segments.last == "." || segments.last == ".." { kept.append("") }
        return kept.joined(separator: "/")
    }

    static func userRefusal(_ what: String) -> NetworkError {
        // In this message no equals sign or colon follows a name. Descriptions would replace the text after it as a
        // secret.
        .invalidRequest(
            "\(what) must not have a user or a password before its host, because they are not sent from there; set "
                + "RequestOptions.credential of a request with HTTPCredential.basic, or HostSettings.authentication "
                + "of a host with RequestAuthentication.password"
        )
    }

    /// Returns the host of an absolute URL in lower case, with the port if the URL has one. Nil for a relative URL and
    /// for an invalid host.
    static func hostAndPort(of text: String) -> String? {
        guard let scheme = URLBuilder.scheme(of: text),
            let host = try? authority(authorityText(of: text, scheme: scheme), "it", dropsUser: true).lowercased()
        else { return nil }
        // The port 080 is the same as 80.
        guard let colon = host.utf8.lastIndex(of: UInt8(ascii: ":")),
            let port = Int(host[host.utf8.index(after: colon)...])
        else { return host }
        return "\(host[..<colon]):\(port)"
    }

    /// Returns whether a host in lower case, with or without a port, is always this machine (RFC 6761, section 6.3, and
    /// RFC 6890).
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

    /// Returns whether the authority is a name, with or without a port, that needs no encoding. Most authorities are.
    private static func isPlain(_ authority: Substring) -> Bool {
        authority.utf8.withContiguousStorageIfAvailable { bytes in
            let host = bytes.prefix { PercentEncoding.Allowed.unreserved.contains($0) }
            if host.isEmpty || host.count == bytes.count { return !host.isEmpty }
            let port = bytes[(host.endIndex + 1)...]
            return bytes[host.endIndex] == UInt8(ascii: ":") && (1...5).contains(port.count)
                && port.allSatisfy(\.isDigit) && port.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) } <= 65_535
        } ?? false
    }

    /// Returns host and port (RFC 3986, section 3.2).
    private static func authority(_ text: Substring, _ what: String, dropsUser: Bool) throws(NetworkError) -> String {
        if isPlain(text) { return String(text) }
        // A parser that treats a backslash as a slash would find another host.
        guard !text.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F || $0 == UInt8(ascii: "\\") }) else {
            throw .invalidRequest("\(what) must not have a control character or a backslash before its path")
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
                throw .invalidRequest("\(what) has the host \(host.prefix(100)), which is not an IPv6 address")
            }
            return String(host)
        }
        if host.utf8.allSatisfy({ $0.isLetter || $0.isDigit || "-._~".utf8.contains($0) }) { return String(host) }
        if let ascii = ascii(host) { return ascii }
        throw .invalidRequest(
            "\(what) has the host \"\(host.prefix(100))\", which is not a host name; write a Unicode name as xn--…"
        )
    }

    /// Returns the DNS name, `xn--…`, of a Unicode name. Nil with versions of Foundation that do not convert it.
    private static func ascii(_ host: Substring) -> String? {
        let isName = host.utf8.allSatisfy { $0 >= 0x80 || $0.isLetter || $0.isDigit || "-._".utf8.contains($0) }
        // Foundation's `host` must not be used: it resolves escapes, and there a wide form of `%41` is an A.
        guard isName, let ascii = URL(string: "https://\(host)/")?.absoluteString.dropFirst(8).dropLast() else {
            return nil
        }
        return ascii.utf8.allSatisfy { $0.isLetter || $0.isDigit || "-._".utf8.contains($0) } ? String(ascii) : nil
    }

    /// Returns whether the host is like `[2001:db8::1]`, with or without a zone after `%25` (RFC 6874).
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

    /// Returns the port with its colon; empty if there is none.
    ///
    /// - Parameter text: An empty string, or the port with its colon.
    private static func port(_ text: Substring, _ what: String) throws(NetworkError) -> String {
        guard !text.isEmpty else { return "" }
        let digits = text.utf8.dropFirst()
        guard text.utf8.first == UInt8(ascii: ":"), digits.allSatisfy(\.isDigit),
            digits.isEmpty || UInt16(String(decoding: digits, as: UTF8.self)) != nil
        else {
            // A slash in a password ends the authority. The message would show the password's beginning as the port.
            guard !text.base.utf8.contains(UInt8(ascii: "@")) else { throw userRefusal(what) }
            throw .invalidRequest("\(what) has the port \"\(text.dropFirst().prefix(40))\"; ports are 0 to 65535")
        }
        return digits.isEmpty ? "" : String(text)
    }
}

extension URLParts: CustomReflectable {
    /// An empty mirror, so that a dump shows no password.
    var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension URL {
    /// The host in lower case, with the port if the URL has one. Limits per host use it as their key.
    var hostAndPort: String? { URLParts.hostAndPort(of: absoluteString) }

    /// Scheme, host and port in a comparable form (RFC 6454, section 4): `https://api.example.com:443`. Nil without a
    /// host.
    var origin: String? {
        guard let scheme = scheme?.lowercased(), let host = host?.lowercased(), !host.isEmpty else { return nil }
        guard let port = port ?? ["http": 80, "https": 443][scheme] else { return nil }
        return "\(scheme)://\(host):\(port)"
    }

    /// Returns whether the origin differs from the origin of a host's base URL. If `base` is nil, any origin is
    /// allowed.
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
        // A path can contain parameters and other URLs.
        return Redaction.standard.redacted(components.string ?? "")
    }

    /// The path and query, as in the first line of a request (RFC 9112, section 3.2.1).
    var requestTarget: String {
        let components = URLComponents(url: self, resolvingAgainstBaseURL: true)
        let path = components?.percentEncodedPath ?? ""
        let query = components?.percentEncodedQuery.map { "?" + $0 } ?? ""
        return (path.isEmpty ? "/" : path) + query
    }
}
