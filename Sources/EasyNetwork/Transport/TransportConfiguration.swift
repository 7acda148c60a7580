/// How a transport connects: its limits, its trust, its proxy.
///
/// ```swift
/// var configuration = TransportConfiguration()
/// configuration.tls.pinnedPublicKeys = [try PublicKeyPin("sha256//…")]
/// let host = HostConfiguration(baseURL: url, transport: DefaultTransport(configuration))
/// ```
///
/// A transport takes it once, when it is made: a connection that was made under one trust is never used under another.
public struct TransportConfiguration: Hashable, Sendable {
    /// Exchanges under way to one scheme, host and port at once; more wait, and their deadlines begin after that.
    /// Default 64: how many requests run at once is for the ``NetworkQueue`` to say.
    public var maximumConnectionsPerHost: Int

    /// Exchanges under way in all. Default 256.
    public var maximumConnections: Int

    /// The same as ``maximumConnectionsPerHost`` for a host that has answered over HTTP/2, where many share one
    /// connection; with ``CurlTransport`` from libcurl 8.1 on. Default 100, the least that RFC 9113, section 6.5.2, advises servers to allow.
    public var maximumStreamsPerHost: Int

    /// Whom to trust, and how to be known. Default: the system's trust, TLS 1.2 and above.
    public var tls: TLSConfiguration

    /// Default: what the system says.
    public var proxy: ProxyConfiguration

    /// The most bytes that a body may have once its content coding, such as gzip, is taken off; nil means no limit.
    /// More ends the exchange with ``NetworkError/Code/bodyTooLong``: a few bytes of gzip can become gigabytes. A body
    /// without content coding has no limit here. Default 268,435,456 (256 MiB).
    public var maximumDecodedBodyCount: Int?

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
