import Foundation

/// The metrics of one exchange: times, bytes and connection.
///
/// ```swift
/// if let metrics = response.metrics { print(metrics.total, metrics.bytesReceived ?? 0) }
/// ```
///
/// Times are seconds from the start of the exchange, after any wait for a free connection. A value is nil if the
/// transport cannot measure it or the exchange did not reach it.
public struct TransportMetrics: Hashable, Sendable {
    struct Values: Hashable, Sendable {
        var nameLookup: TimeInterval?
        var connect: TimeInterval?
        var tls: TimeInterval?
        var firstByte: TimeInterval?
        var total: TimeInterval
        var wait: TimeInterval = 0
        var bytesSent: Int?
        var bytesReceived: Int?
        var networkProtocol: String?
        var isReusedConnection: Bool?
        var remoteAddress: String?
    }

    /// The values in an object of their own, because responses, errors and attempts pass them on.
    private var values: Shared<Values>

    /// The time until the host's name was resolved; nil on a reused connection.
    public var nameLookup: TimeInterval? {
        get { values.value.nameLookup }
        set { values.value.nameLookup = newValue }
    }

    /// The time until the connection was established; nil on a reused connection.
    public var connect: TimeInterval? {
        get { values.value.connect }
        set { values.value.connect = newValue }
    }

    /// The time until the TLS handshake was complete; nil on a reused connection and without TLS.
    public var tls: TimeInterval? {
        get { values.value.tls }
        set { values.value.tls = newValue }
    }

    /// The time until the first byte of the response.
    public var firstByte: TimeInterval? {
        get { values.value.firstByte }
        set { values.value.firstByte = newValue }
    }

    /// The time until the end of the exchange.
    public var total: TimeInterval {
        get { values.value.total }
        set { values.value.total = newValue }
    }

    /// The number of seconds that the exchange waited for a free connection before its start.
    public var wait: TimeInterval {
        get { values.value.wait }
        set { values.value.wait = newValue }
    }

    /// The number of bytes sent: the head of the request and its body.
    public var bytesSent: Int? {
        get { values.value.bytesSent }
        set { values.value.bytesSent = newValue }
    }

    /// The number of bytes received: the head of the response and its body, before content codings are removed.
    public var bytesReceived: Int? {
        get { values.value.bytesReceived }
        set { values.value.bytesReceived = newValue }
    }

    /// The protocol, such as `HTTP/1.1` or `HTTP/2`.
    public var networkProtocol: String? {
        get { values.value.networkProtocol }
        set { values.value.networkProtocol = newValue }
    }

    /// Whether the connection had been used before; nil if this is unknown.
    public var isReusedConnection: Bool? {
        get { values.value.isReusedConnection }
        set { values.value.isReusedConnection = newValue }
    }

    /// The address and port of the server or of the proxy: `192.0.2.1:443`, `[2001:db8::1]:443`.
    public var remoteAddress: String? {
        get { values.value.remoteAddress }
        set { values.value.remoteAddress = newValue }
    }

    /// Creates metrics with only a total time. A transport sets the other values that it can measure.
    public init(total: TimeInterval) {
        values = Shared(Values(total: total))
    }

    /// Creates metrics with all values.
    init(_ values: Values) {
        self.values = Shared(values)
    }
}

extension TransportMetrics: CustomStringConvertible {
    /// The available measurements, on one line.
    public var description: String {
        func seconds(_ time: TimeInterval) -> String { "\((time * 1_000_000).rounded() / 1_000_000) s" }
        let parts = [
            "total \(seconds(total))", "waited \(seconds(wait))", nameLookup.map { "name at \(seconds($0))" },
            connect.map { "connected at \(seconds($0))" }, tls.map { "secure at \(seconds($0))" },
            firstByte.map { "first byte at \(seconds($0))" }, bytesSent.map { "\($0) bytes out" },
            bytesReceived.map { "\($0) bytes in" }, networkProtocol, remoteAddress,
            isReusedConnection.map { $0 ? "connection reused" : "new connection" },
        ]
        return parts.compactMap { $0 }.joined(separator: ", ")
    }
}

/// The phases of an exchange, in order.
///
/// ```swift
/// if let phase = error.phase, phase < .send { print("nothing was sent") }
/// ```
public enum TransportPhase: Comparable, Hashable, Sendable, CaseIterable {
    /// Waiting for a free connection.
    case waiting
    /// Resolving the host's name.
    case resolve
    /// Connecting.
    case connect
    /// The TLS handshake.
    case tls
    /// Sending the request.
    case send
    /// Waiting for the head of the response.
    case firstByte
    /// Receiving the body.
    case body
}
