import Foundation

/// A name and a value that a server had a client keep, and to whom they go back (RFC 6265).
///
/// ```swift
/// let cookie = try Cookie(name: "theme", value: "dark", domain: "example.com")
/// jar.set(cookie)
/// ```
///
/// The value may be a secret: the description leaves it out.
public struct Cookie: Hashable, Sendable {
    /// Sum of the bytes of name and value that a cookie may have; a longer one is not kept (section 6.1).
    static let maximumCount = 4_096

    public let name: String
    public let value: String
    /// The host, or the domain with all hosts below it, in lower case and without a dot at its beginning.
    public let domain: String
    /// Whether it goes to ``domain`` only, and not to the hosts below.
    public let isHostOnly: Bool
    /// It goes to paths that begin with this one, as whole segments.
    public let path: String
    /// When it is not sent any more; nil for a session cookie, which lasts as long as the jar and is in no file.
    public let expires: Date?
    /// Whether it goes over https only.
    public let isSecure: Bool
    /// Whether the server wants no script to see it; here nothing depends on it.
    public let isHTTPOnly: Bool

    /// - Parameters:
    ///   - domain: a host's name, or the one of a domain above several hosts.
    ///   - isHostOnly: default true.
    ///   - path: default `/`.
    ///   - expires: default nil.
    ///   - isSecure: default true.
    ///   - isHTTPOnly: default false.
    /// - Throws: ``NetworkError/Code/invalidRequest`` for what a `Cookie` field cannot carry, for a domain that is
    ///   none, for one of a single label or of an address that is not host-only, and for what a `__Secure-` or `__Host-`
    ///   at the beginning of the name forbids.
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
        func invalid(_ reason: String) -> NetworkError {
            NetworkError(code: .invalidRequest, message: "the cookie \(name.prefix(40).debugDescription) \(reason)")
        }
        guard CookieSyntax.isSendable(name: name), CookieSyntax.isSendable(value: value) else {
            throw invalid("has a semicolon, a control character or a blank at an end, or its name has an =")
        }
        guard name.utf8.count + value.utf8.count <= Self.maximumCount else {
            throw invalid("has more than \(Self.maximumCount) bytes")
        }
        let host = CookieDomain.canonical(domain)
        guard !host.isEmpty, host.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else {
            throw invalid("has the domain \(domain.prefix(100).debugDescription), which is none")
        }
        guard isHostOnly || !CookieDomain.isPublicSuffix(host) && !CookieDomain.isAddress(host) else {
            throw invalid("is for \(host.debugDescription) and all below; that can be host-only at most")
        }
        guard path.utf8.first == UInt8(ascii: "/"), CookieSyntax.isSendable(value: path) else {
            throw invalid("has the path \(path.prefix(100).debugDescription), which is none")
        }
        guard expires?.timeIntervalSince1970.isFinite ?? true else { throw invalid("expires at no time that there is") }
        self.init(
            uncheckedName: name,
            value: value,
            domain: host,
            isHostOnly: isHostOnly,
            path: path,
            expires: expires,
            isSecure: isSecure,
            isHTTPOnly: isHTTPOnly
        )
        guard keepsPromiseOfName else {
            throw invalid("must be secure, and with __Host- host-only and for the path / too")
        }
    }

    init(
        uncheckedName name: String,
        value: String,
        domain: String,
        isHostOnly: Bool,
        path: String,
        expires: Date?,
        isSecure: Bool,
        isHTTPOnly: Bool
    ) {
        self.name = name
        self.value = value
        self.domain = domain
        self.isHostOnly = isHostOnly
        self.path = path
        self.expires = expires
        self.isSecure = isSecure
        self.isHTTPOnly = isHTTPOnly
    }

    /// Whether it is what the beginning of its name says (RFC 6265bis, section 4.1.3).
    var keepsPromiseOfName: Bool {
        let name = name.lowercased()
        if name.hasPrefix("__host-") { return isSecure && isHostOnly && path == "/" }
        return isSecure || !name.hasPrefix("__secure-")
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
    /// Without children, so that a dump has no secret either.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// What may stand in a `Cookie` field without becoming another cookie or another field.
enum CookieSyntax {
    static func isSendable(name: String) -> Bool {
        !name.isEmpty && isSendable(value: name) && !name.utf8.contains(UInt8(ascii: "="))
    }

    static func isSendable(value: String) -> Bool {
        func isBlank(_ byte: UInt8?) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
        return !isBlank(value.utf8.first) && !isBlank(value.utf8.last) && HTTPSyntax.isFieldValue(value.utf8)
            && !value.utf8.contains(UInt8(ascii: ";"))
    }
}
