import Foundation

/// A name and a value that a server asks a client to keep and to send back (RFC 6265).
///
/// ```swift
/// let cookie = try Cookie(name: "theme", value: "dark", domain: "example.com")
/// jar.set(cookie)
/// ```
///
/// The value may be a secret: the description leaves it out.
public struct Cookie: Hashable, Sendable {
    /// The largest sum of the bytes of name and value (section 6.1).
    static let maximumCount = 4_096

    public let name: String
    public let value: String
    /// The host, or the domain with all hosts below it, in lower case and without a leading dot.
    public let domain: String
    /// Whether the cookie is sent to ``domain`` only, and not to the hosts below it.
    public let isHostOnly: Bool
    /// The cookie is sent to paths that begin with this one, as whole segments.
    public let path: String
    /// The end of the cookie's life; nil for a session cookie, which lasts as long as the jar and is not written to a file.
    public let expires: Date?
    /// Whether the cookie is sent over https only.
    public let isSecure: Bool
    /// Whether the server hides the cookie from scripts; the package does not use it.
    public let isHTTPOnly: Bool

    /// Creates a cookie.
    ///
    /// - Parameters:
    ///   - domain: a host, or a domain above several hosts.
    ///   - isHostOnly: default true.
    ///   - path: default `/`.
    ///   - expires: default nil, a session cookie.
    ///   - isSecure: default true.
    ///   - isHTTPOnly: default false.
    /// - Throws: ``NetworkError/Code/invalidRequest`` for a name, value, domain or path that is not valid, for a domain of
    ///   a single label or an address that is not host-only, and for a name that begins with `__Secure-` or `__Host-`
    ///   without the properties that this requires.
    public init(
        name: String,
        value: String,
        domain: String,
        isHostOnly: Bool = true,
        path: String = "/",
        expires: Date? = nil,
        isSecure: Bool = true,
        isHTTPOnly: Bool = false
    ) throws(NetworkError) {
        func check(_ isValid: Bool, _ reason: @autoclosure () -> String) throws(NetworkError) {
            guard !isValid else { return }
            throw NetworkError(
                code: .invalidRequest,
                message: "the cookie \(name.prefix(40).debugDescription) \(reason())"
            )
        }
        try check(
            !name.isEmpty && Self.isSendable(name) && !name.utf8.contains(UInt8(ascii: "=")) && Self.isSendable(value),
            "has a semicolon, a control character, a space at an end, or an = in its name"
        )
        try check(name.utf8.count + value.utf8.count <= Self.maximumCount, "has more than \(Self.maximumCount) bytes")
        let host = CookieDomain.canonical(domain)
        try check(
            !host.isEmpty && host.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7F },
            "has an invalid domain: \(domain.prefix(100).debugDescription)"
        )
        try check(
            isHostOnly || !CookieDomain.isPublicSuffix(host) && !CookieDomain.isAddress(host),
            "has to be host-only, since \(host.debugDescription) is an address or a single label"
        )
        try check(
            path.utf8.first == UInt8(ascii: "/") && HTTPSyntax.isFieldValue(path.utf8),
            "has an invalid path: \(path.prefix(100).debugDescription)"
        )
        try check(expires?.timeIntervalSince1970.isFinite ?? true, "has an invalid expiry date")
        // RFC 6265bis, section 4.1.3.
        let prefix = name.lowercased()
        let isForHost = prefix.hasPrefix("__host-")
        try check(
            isSecure || !isForHost && !prefix.hasPrefix("__secure-"),
            "has to be secure, since its name begins with __Host- or __Secure-"
        )
        try check(
            isHostOnly && path == "/" || !isForHost,
            "has to be host-only and for the path /, since its name begins with __Host-"
        )
        self.name = name
        self.value = value
        self.domain = host
        self.isHostOnly = isHostOnly
        self.path = path
        self.expires = expires
        self.isSecure = isSecure
        self.isHTTPOnly = isHTTPOnly
    }

    /// Whether a text can be part of a `Cookie` field without becoming another cookie or another field.
    private static func isSendable(_ text: String) -> Bool {
        func isBlank(_ byte: UInt8?) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
        return !isBlank(text.utf8.first) && !isBlank(text.utf8.last) && HTTPSyntax.isFieldValue(text.utf8)
            && !text.utf8.contains(UInt8(ascii: ";"))
    }

    func isExpired(at date: Date) -> Bool {
        expires.map { $0 <= date } ?? false
    }
}

extension Cookie: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String {
        "\(name)=… for \(isHostOnly ? "" : "*.")\(domain)\(path)"
    }

    public var debugDescription: String { description }
    /// Empty, so that `dump` does not print the value either.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
