import Foundation

/// What a transport sends its messages through.
public enum ProxyConfiguration: Hashable, Sendable {
    /// On Linux what the environment says, as with the `curl` command: `http_proxy`, `https_proxy`, `all_proxy`, and
    /// `no_proxy` for hosts that are reached without. On Apple's platforms the system's settings.
    case system
    /// None, whatever the system says.
    case none
    /// This one, whatever `no_proxy` says, for http and https, which goes through it with CONNECT (RFC 9110, section 9.3.6).
    ///
    /// It needs a port. The scheme is `http`, or, with ``CurlTransport``, `https`, `socks4`, `socks4a`, `socks5` or `socks5h`. User and
    /// password in the URL are for the proxy. An `https` proxy is trusted as the system says: ``TLSConfiguration`` is about
    /// the servers behind it. Anything else ends every exchange with
    /// ``NetworkError/Code/invalidRequest``.
    case url(URL)
}

extension ProxyConfiguration: CustomStringConvertible, CustomReflectable {
    /// The case, with the URL without user and password.
    public var description: String {
        switch self {
        case .system: "system"
        case .none: "none"
        case .url(let url): "url(\(Redaction.standard.redacted(url)))"
        }
    }

    /// Without children, so that a dump has no secret either.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
