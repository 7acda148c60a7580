import Foundation

/// How one exchange went: times, bytes, connection.
///
/// Times are seconds from the moment when the transport began, after any wait for a free connection. What a transport
/// cannot tell, or what the exchange did not come to, is nil.
public struct TransportMetrics: Hashable, Sendable {
    /// Until the host's name was looked up; nil on a connection that was there already.
    public var nameLookup: TimeInterval?
    /// Until the connection was made; nil on one that was there already.
    public var connect: TimeInterval?
    /// Until it was secure; nil on one that was there already, and without TLS.
    public var tls: TimeInterval?
    /// Until the first byte of the answer.
    public var firstByte: TimeInterval?
    /// Until the end.
    public var total: TimeInterval
    /// Seconds before that for which the exchange waited for a free connection.
    public var wait: TimeInterval
    /// Bytes that went out: the head of the request and its body.
    public var bytesSent: Int?
    /// Bytes that came in: the head of the answer and its body, as they came, with content codings on.
    public var bytesReceived: Int?
    /// Such as `HTTP/1.1` or `HTTP/2`.
    public var networkProtocol: String?
    /// Whether the connection was there already.
    public var isReusedConnection: Bool?
    /// The address at the other end, and its port: `192.0.2.1:443`, `[2001:db8::1]:443`. With a proxy, the proxy's.
    public var remoteAddress: String?

    public init(
        nameLookup: TimeInterval? = nil,
        connect: TimeInterval? = nil,
        tls: TimeInterval? = nil,
        firstByte: TimeInterval? = nil,
        total: TimeInterval,
        wait: TimeInterval = 0,
        bytesSent: Int? = nil,
        bytesReceived: Int? = nil,
        networkProtocol: String? = nil,
        isReusedConnection: Bool? = nil,
        remoteAddress: String? = nil
    ) {
        self.nameLookup = nameLookup
        self.connect = connect
        self.tls = tls
        self.firstByte = firstByte
        self.total = total
        self.wait = wait
        self.bytesSent = bytesSent
        self.bytesReceived = bytesReceived
        self.networkProtocol = networkProtocol
        self.isReusedConnection = isReusedConnection
        self.remoteAddress = remoteAddress
    }
}
