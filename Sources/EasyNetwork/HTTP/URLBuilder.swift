import Foundation

/// Joins base URL, api and query into the URL that is sent.
///
/// It works on the text: Foundation's ways to join escape `?` in a path, and escape what is escaped already.
///
/// Bytes that are escaped stay as they are. What the component may not hold, control characters, NUL and line breaks
/// included, is percent-encoded; in user, host and port they are an error instead.
enum URLBuilder {
    /// - Parameters:
    ///   - api: an absolute http or https URL, which wins; or a path below the base, with or without slashes at its
    ///     start, with query and fragment if it has any. Empty: the base itself.
    ///   - base: with a path and a query of its own, which are kept; its fragment is not.
    ///   - query: encoded already; it follows the query of the base and that of the api.
    /// - Throws: ``NetworkError/Code/invalidRequest`` that says what to mend.
    static func url(api: String, base: URL?, query: String?) throws(NetworkError) -> URL {
        if let scheme = scheme(of: api) {
            let parts = try URLParts(absolute: api, scheme: scheme, what: "the address")
            return try url(parts.origin, parts.path, [parts.query, query], parts.fragment)
        }
        let relative = URLParts(relative: api)
        guard let base else {
            throw failure(
                "the address \"\(shown(api))\" is relative and there is no base URL; "
                    + "set one with HostConfiguration.baseURL(\"https://…\"), or give an absolute URL"
            )
        }
        let parts = try self.parts(ofBase: base.absoluteString)
        let path = join(parts.path, relative.path)
        return try url(parts.origin, path, [parts.query, relative.query, query], relative.fragment)
    }

    /// A base URL from its text.
    ///
    /// - Throws: ``NetworkError/Code/invalidRequest`` when it is no absolute http or https URL with a host.
    static func base(_ string: String) throws(NetworkError) -> URL {
        let parts = try self.parts(ofBase: string)
        return try url(parts.origin, parts.path, [parts.query], parts.fragment)
    }

    private static func parts(ofBase base: String) throws(NetworkError) -> URLParts {
        guard let scheme = scheme(of: base) else {
            throw failure("the base URL \"\(shown(base))\" does not begin with https:// or http://")
        }
        let isWeb = ["http", "https"].contains(scheme.lowercased())
        if isWeb, URLParts.authorityText(of: base, scheme: scheme).isEmpty {
            throw failure(
                "the base URL \"\(shown(base))\" has no host; call HostConfiguration.baseURL(_:) when it is complete, "
                    + "as \"https://api.example.com/v1\", and give requests an absolute URL before that"
            )
        }
        return try URLParts(absolute: base, scheme: scheme, what: "the base URL")
    }

    /// What stands before `://`, if it has the form of a scheme (RFC 3986, section 3.1). `users/batch:get` has none.
    static func scheme(of text: String) -> String? {
        var text = text
        return text.withUTF8 { bytes in
            let scheme = bytes.prefix { byte in
                byte.isLetter || byte.isDigit
                    || byte == UInt8(ascii: "+") || byte == UInt8(ascii: "-") || byte == UInt8(ascii: ".")
            }
            guard let first = scheme.first, first.isLetter else { return nil }
            guard bytes[scheme.endIndex...].starts(with: "://".utf8) else { return nil }
            return String(decoding: scheme, as: UTF8.self)
        }
    }

    /// With exactly one slash at the seam, whatever both sides have.
    private static func join(_ base: String, _ path: String) -> String {
        if path.isEmpty { return base }
        let slash = UInt8(ascii: "/")
        let end = base.utf8.lastIndex { $0 != slash }.map { base.utf8.index(after: $0) } ?? base.startIndex
        // All slashes are leading ones: `//evil.example` is a path as well and never another host.
        let start = path.utf8.firstIndex { $0 != slash } ?? path.endIndex
        return base[..<end] + "/" + path[start...]
    }

    private static func url(
        _ origin: String,
        _ path: String,
        _ queries: [String?],
        _ fragment: String?
    ) throws(NetworkError) -> URL {
        let queries = queries.compactMap { $0 }
        var text = origin + path
        // An empty query is kept if the address had one: `?` may be there for a reason.
        if !queries.isEmpty { text += "?" + queries.filter { !$0.isEmpty }.joined(separator: "&") }
        if let fragment { text += "#" + fragment }
        guard let url = URL(string: text), url.host?.isEmpty == false else {
            throw failure("\(origin) is no address")
        }
        return url
    }

    /// The text for a message: without query and fragment, and without what may be a user and a password.
    private static func shown(_ text: String) -> String {
        let path = text.utf8.prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }
        let start = path.lastIndex(of: UInt8(ascii: "@")) ?? path.startIndex
        return (start == path.startIndex ? "" : "…") + String(decoding: path[start...].prefix(100), as: UTF8.self)
    }

    static func failure(_ message: String) -> NetworkError {
        NetworkError(code: .invalidRequest, message: message)
    }
}
