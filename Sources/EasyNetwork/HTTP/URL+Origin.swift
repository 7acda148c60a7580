import Foundation

extension URL {
    /// The host in lower case, with the port if the URL names one: the key of limits by host.
    var hostAndPort: String? { URLParts.hostAndPort(of: absoluteString) }

    /// Scheme, host and port (RFC 6454, section 4): `https://api.example.com:443`. Nil without a host.
    var origin: String? {
        guard let scheme = scheme?.lowercased(), let host = host?.lowercased(), !host.isEmpty else { return nil }
        guard let port = port ?? ["http": 80, "https": 443][scheme] else { return nil }
        return "\(scheme)://\(host):\(port)"
    }

    /// The URL without user and password.
    var withoutUser: URL {
        guard user != nil || password != nil, var parts = URLComponents(url: self, resolvingAgainstBaseURL: true)
        else { return self }
        parts.user = nil
        parts.password = nil
        return parts.url ?? self
    }

    /// Path and query as in the first line of a request (RFC 9112, section 3.2.1).
    var requestTarget: String {
        let components = URLComponents(url: self, resolvingAgainstBaseURL: true)
        let path = components?.percentEncodedPath ?? ""
        let query = components?.percentEncodedQuery.map { "?" + $0 } ?? ""
        return (path.isEmpty ? "/" : path) + query
    }
}
