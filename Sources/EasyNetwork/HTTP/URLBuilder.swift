import Foundation

/// Joins base URL, api and query into the URL that is sent.
///
/// It joins strings, because Foundation escapes `?` in a path and escapes `%20` a second time.
///
/// Escaped bytes are kept. Bytes that a component does not allow, including control characters, are percent-encoded. In
/// the host and port they are an error, as are a user and a password.
enum URLBuilder {
    /// Builds a URL.
    ///
    /// - Parameters:
    ///   - api: An absolute http or https URL, which replaces the base; or a path below the base, with or without a
    ///     leading slash, query and fragment. Empty for the base itself.
    ///   - base: The base URL, evaluated only if the api is a path. Its path and query are kept, its fragment is not.
    ///   - query: An encoded query, which is appended to the queries of base and api.
    /// - Throws: ``NetworkError/Code/invalidRequest`` with a message that explains how to fix it.
    static func url(
        api: String,
        base: @autoclosure () throws(NetworkError) -> URLParts?,
        query: String?
    ) throws(NetworkError) -> URL {
        // With a leading byte order mark or line break from copying, an absolute URL would be read as a path.
        if let first = api.unicodeScalars.first,
            first.value <= 0x20 || !first.isASCII && first.properties.isWhitespace || first == "\u{FEFF}"
        {
            throw .invalidRequest("the URL \"\(shown(api))\" must not begin with a blank")
        }
        if let scheme = scheme(of: api) {
            var parts = try URLParts(absolute: api, scheme: scheme, what: "the URL")
            parts.query = joined(parts.query, query)
            let url = try url(parts)
            guard hasHost(url) else { throw .invalidRequest("\(parts.origin) is not a valid URL") }
            return url
        }
        var parts = URLParts(relative: api)
        guard let base = try base() else {
            throw .invalidRequest(
                "the URL \"\(shown(api))\" is relative and there is no base URL; "
                    + "set one with HostConfiguration.baseURL(\"https://…\"), or give an absolute URL"
            )
        }
        parts.origin = base.origin
        parts.path = join(base.path, parts.path)
        parts.query = joined(joined(base.query, parts.query), query)
        return try url(parts)
    }

    /// Resolves a reference that a server sent. The result has no user and no password.
    ///
    /// - Throws: The error of ``URLParts/init(resolving:against:what:)``.
    static func url(resolving reference: String, against base: URL, what: String) throws(NetworkError) -> URL {
        let parts = try URLParts(resolving: reference, against: base, what: what)
        let url = try url(parts)
        guard hasHost(url) else { throw .invalidRequest("\(what) has no host") }
        return url
    }

    /// Returns the base URL that the string contains.
    ///
    /// - Throws: ``NetworkError/Code/invalidRequest`` if the string is not an absolute http or https URL with a host.
    static func base(_ string: String) throws(NetworkError) -> URL {
        try url(parts(ofBase: string))
    }

    /// Returns the components of a base URL.
    ///
    /// - Throws: The error of ``base(_:)``.
    static func parts(ofBase base: String) throws(NetworkError) -> URLParts {
        guard let scheme = scheme(of: base) else {
            throw .invalidRequest("the base URL \"\(shown(base))\" must begin with https:// or http://")
        }
        let isWeb = ["http", "https"].contains(scheme.lowercased())
        if isWeb, URLParts.authorityText(of: base, scheme: scheme).isEmpty {
            throw .invalidRequest(
                "the base URL \"\(shown(base))\" has no host; call HostConfiguration.baseURL(_:) when it is complete, "
                    + "as \"https://api.example.com/v1\", and give requests an absolute URL before that"
            )
        }
        let parts = try URLParts(absolute: base, scheme: scheme, what: "the base URL")
        guard let url = URL(string: parts.origin), hasHost(url) else {
            throw .invalidRequest("\(parts.origin) is not a valid URL")
        }
        return parts
    }

    private static func hasHost(_ url: URL) -> Bool { url.host?.isEmpty == false }

    /// Returns the scheme (RFC 3986, section 3.1) before `://`; nil if there is none, as in `users/batch:get`.
    ///
    /// - Parameter end: The text after the scheme. Defaults to `://`.
    static func scheme(of text: String, before end: StaticString = "://") -> String? {
        text.utf8Bytes { bytes in
            let scheme = bytes.prefix { $0.isLetter || $0.isDigit || "+-.".utf8.contains($0) }
            let end = UnsafeBufferPointer(start: end.utf8Start, count: end.utf8CodeUnitCount)
            guard bytes.first?.isLetter == true, bytes[scheme.endIndex...].starts(with: end) else { return nil }
            return String(decoding: scheme, as: UTF8.self)
        }
    }

    /// Joins two paths with exactly one slash, regardless of the slashes on both sides.
    private static func join(_ base: String, _ path: String) -> String {
        if path.isEmpty { return base }
        var (base, path) = (base[...], path[...])
        while base.utf8.last == UInt8(ascii: "/") { base = base.dropLast() }
        // Remove all leading slashes, so that `//evil.example` is a path instead of another host.
        while path.utf8.first == UInt8(ascii: "/") { path = path.dropFirst() }
        return base + "/" + path
    }

    /// Joins two queries. An empty query is kept if there is no other one, because the `?` can be intended.
    private static func joined(_ first: String?, _ second: String?) -> String? {
        guard let first, !first.isEmpty else { return second ?? first }
        guard let second, !second.isEmpty else { return first }
        return first + "&" + second
    }

    private static func url(_ parts: URLParts) throws(NetworkError) -> URL {
        var text = parts.origin + parts.path
        if let query = parts.query { text += "?" + query }
        if let fragment = parts.fragment { text += "#" + fragment }
        if text.utf8.contains(UInt8(ascii: "%")), SegmentMark.isIn(text) {
            throw SegmentMark.refusal("the address \"\(shown(SegmentMark.shown(text)))\"")
        }
        guard let url = URL(string: text) else { throw .invalidRequest("\(parts.origin) is not a valid URL") }
        return url
    }

    /// Returns a URL for use in a message: without query and fragment, and without a possible user and password.
    private static func shown(_ text: String) -> String {
        let path = text.utf8.prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }
        let start = path.lastIndex(of: UInt8(ascii: "@")) ?? path.startIndex
        return (start == path.startIndex ? "" : "…") + String(decoding: path[start...].prefix(100), as: UTF8.self)
    }
}
