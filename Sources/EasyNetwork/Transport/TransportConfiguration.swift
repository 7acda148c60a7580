import Foundation

/// The limits, the trust and the proxy of a transport.
///
/// ```swift
/// var configuration = TransportConfiguration()
/// configuration.tls.pinnedPublicKeys = [try PublicKeyPin("sha256//…")]
/// let host = HostConfiguration(baseURL: url, transport: configuration.makeTransport())
/// ```
///
/// A transport reads its configuration once. A connection that was established under one trust setting is never used
/// under another.
public struct TransportConfiguration: Hashable, Sendable {
    /// The maximum number of exchanges in progress per scheme, host and port. Further exchanges wait, and their
    /// deadlines begin after that. Defaults to 64. The ``NetworkQueue`` limits how many requests run at once.
    public var maximumConnectionsPerHost: Int

    /// The maximum number of exchanges in progress in total. Defaults to 256.
    public var maximumConnections: Int

    /// The maximum number of exchanges in progress to a host that has responded over HTTP/2, where exchanges share a
    /// connection. It replaces ``maximumConnectionsPerHost`` for such a host, with ``CurlTransport`` and libcurl 8.3 or
    /// later. Defaults to 100, the minimum that RFC 9113, section 6.5.2, recommends servers to allow. A server that
    /// allows fewer receives as many as it allows, or as many as over HTTP/1.1 if that is more.
    public var maximumStreamsPerHost: Int

    /// The trust in servers, and the client's certificate. Defaults to the system's trust, and TLS 1.2 or later.
    public var tls: TLSConfiguration

    /// The proxy. Defaults to ``ProxyConfiguration/system``.
    public var proxy: ProxyConfiguration

    /// The maximum number of bytes of a body whose content coding, such as gzip, is removed; nil means no limit. A
    /// longer body ends the exchange with ``NetworkError/Code/bodyTooLong``, because a few bytes of gzip can expand to
    /// gigabytes. If a body has several codings, the limit applies to each. A body without content coding is not
    /// limited here. Defaults to 268,435,456 (256 MiB).
    public var maximumDecodedBodyCount: Int?

    /// Creates a configuration. The default arguments are the defaults of the properties.
    public init(
        maximumConnectionsPerHost: Int = 64,
        maximumConnections: Int = 256,
        maximumStreamsPerHost: Int = 100,
        tls: TLSConfiguration = TLSConfiguration(),
        proxy: ProxyConfiguration = .system,
        maximumDecodedBodyCount: Int? = 268_435_456
    ) {
        self.maximumConnectionsPerHost = maximumConnectionsPerHost
        self.maximumConnections = maximumConnections
        self.maximumStreamsPerHost = maximumStreamsPerHost
        self.tls = tls
        self.proxy = proxy
        self.maximumDecodedBodyCount = maximumDecodedBodyCount
    }
}

extension TransportConfiguration {
    /// The transport of hosts that set no other, with the default configuration.
    public static let sharedTransport: any NetworkTransport = TransportConfiguration().makeTransport()

    /// Creates the platform's transport: `CurlTransport` on Linux, where URLSession loses responses and crashes the
    /// process, and ``URLSessionTransport`` on Apple platforms.
    ///
    /// On Linux without libcurl 7.81 or later, each exchange ends with ``NetworkError/Code/invalidRequest``, whose
    /// message explains what to install. URLSession does not replace libcurl automatically, because there a server can
    /// crash the process. A host that accepts this can set ``HostSettings/transport`` to a ``URLSessionTransport``.
    ///
    /// - Parameter clock: The clock of the deadlines. Defaults to the machine's clock.
    public func makeTransport(clock: any NetworkClock = SystemClock()) -> any NetworkTransport {
        #if os(Linux) && canImport(CCurl)
        return CurlTransport(self, clock: clock)
        #else
        return URLSessionTransport(self, clock: clock)
        #endif
    }
}

/// The proxy through which a transport sends its messages.
///
/// ```swift
/// let transport = TransportConfiguration(proxy: .url(proxy)).makeTransport()
/// ```
public enum ProxyConfiguration: Hashable, Sendable {
    /// On Linux, the proxy of the environment, as with the `curl` command: `http_proxy`, `https_proxy`, `all_proxy`,
    /// and `no_proxy` for hosts that are reached directly. ``CurlTransport`` looks for a proxy there once, with its first
    /// exchange. On Apple platforms, the proxy of the system's settings.
    case system
    /// No proxy, regardless of the system's settings.
    case none
    /// This proxy, regardless of `no_proxy`, for http, and for https with CONNECT (RFC 9110, section 9.3.6).
    ///
    /// The URL needs a port. Its scheme is `http`; ``CurlTransport`` also supports `https`, `socks4`, `socks4a`,
    /// `socks5` and `socks5h`. Its user and password are sent to the proxy; over HTTP they are sent when the proxy
    /// requires Digest or Basic. An `https` proxy is checked by the system's trust, because ``TLSConfiguration``
    /// applies only to the servers behind the proxy. Any other URL ends every exchange with
    /// ``NetworkError/Code/invalidRequest``.
    case url(URL)
}

extension ProxyConfiguration: CustomStringConvertible, CustomReflectable {
    /// The case, and the URL without user and password.
    public var description: String {
        switch self {
        case .system: "system"
        case .none: "none"
        case .url(let url): "url(\(Redaction.standard.redacted(url)))"
        }
    }

    /// An empty mirror, so that a dump shows no secret.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
