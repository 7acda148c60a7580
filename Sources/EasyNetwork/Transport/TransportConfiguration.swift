import Foundation

/// The limits, the trust and the proxy of a transport.
///
/// ```swift
/// var configuration = TransportConfiguration()
/// configuration.tls.pinnedPublicKeys = [try PublicKeyPin("sha256//…")]
/// let host = HostConfiguration(baseURL: url, transport: configuration.makeTransport())
/// ```
///
/// A transport takes its configuration once: a connection that was made under one trust is never used under another.
public struct TransportConfiguration: Hashable, Sendable {
    /// The most exchanges under way to one scheme, host and port. More wait, and their deadlines begin after that.
    /// Default 64; the ``NetworkQueue`` limits how many requests run at once.
    public var maximumConnectionsPerHost: Int

    /// The most exchanges under way in all. Default 256.
    public var maximumConnections: Int

    /// The same as ``maximumConnectionsPerHost`` for a host that has answered over HTTP/2, where exchanges share a
    /// connection; with ``CurlTransport`` from libcurl 8.3 on. Default 100, the least that RFC 9113, section 6.5.2,
    /// advises servers to allow. A server that allows fewer gets as many as it allows, or as it would over HTTP/1.1.
    public var maximumStreamsPerHost: Int

    /// The trust in servers, and the client's certificate. Default: the system's trust, TLS 1.2 and later.
    public var tls: TLSConfiguration

    /// Default ``ProxyConfiguration/system``.
    public var proxy: ProxyConfiguration

    /// The most bytes of a body whose content coding, such as gzip, is removed; nil means no limit. More ends the
    /// exchange with ``NetworkError/Code/bodyTooLong``: a few bytes of gzip can become gigabytes. If a body has several
    /// codings, the limit holds for each. A body without content coding has no limit here. Default 268,435,456 (256 MiB).
    public var maximumDecodedBodyCount: Int?

    /// Creates a configuration. The defaults are those of the properties.
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
    /// The transport of hosts that name no other, with the default configuration.
    public static let sharedTransport: any NetworkTransport = TransportConfiguration().makeTransport()

    /// Makes the platform's transport: `CurlTransport` on Linux, where URLSession loses answers and stops the process;
    /// ``URLSessionTransport`` on Apple's platforms.
    ///
    /// On Linux without libcurl 7.81 or later each exchange ends with ``NetworkError/Code/invalidRequest``, whose
    /// message says what to install. URLSession does not take its place unasked, since a server can stop the process
    /// there; a host that accepts this gets a ``URLSessionTransport`` as its ``HostSettings/transport``.
    ///
    /// - Parameter clock: The clock of the deadlines. Default the machine's.
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
    /// On Linux the proxy of the environment, as with the `curl` command: `http_proxy`, `https_proxy`, `all_proxy`, and
    /// `no_proxy` for hosts that are reached directly. On Apple's platforms the proxy of the system's settings.
    case system
    /// No proxy, whatever the system says.
    case none
    /// This proxy, whatever `no_proxy` says, for http, and for https with CONNECT (RFC 9110, section 9.3.6).
    ///
    /// The URL needs a port. Its scheme is `http`; with ``CurlTransport`` also `https`, `socks4`, `socks4a`, `socks5`
    /// or `socks5h`. Its user and password are for the proxy: over HTTP it gets them when it asks for Digest or Basic.
    /// An `https` proxy has the system's trust: ``TLSConfiguration`` is about the servers behind it. Any other URL ends
    /// every exchange with ``NetworkError/Code/invalidRequest``.
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

    /// Without children, so that a dump shows no secret.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
