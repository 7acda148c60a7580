import Foundation

/// The measurements of one exchange: times, bytes, connection.
///
/// ```swift
/// if let metrics = response.metrics { print(metrics.total, metrics.bytesReceived ?? 0) }
/// ```
///
/// Times are seconds from the start of the exchange, after any wait for a free connection. A value is nil if the
/// transport cannot measure it or the exchange did not reach it.
public struct TransportMetrics: Hashable, Sendable {
    private struct Values: Hashable, Sendable {
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

    /// In an object of its own: answers, errors and attempts pass them on.
    private var values: Shared<Values>

    /// Until the host's name was resolved; nil on a reused connection.
    public var nameLookup: TimeInterval? {
        get { values.value.nameLookup }
        set { values.value.nameLookup = newValue }
    }

    /// Until the connection was made; nil on a reused connection.
    public var connect: TimeInterval? {
        get { values.value.connect }
        set { values.value.connect = newValue }
    }

    /// Until the connection was secure; nil on a reused connection and without TLS.
    public var tls: TimeInterval? {
        get { values.value.tls }
        set { values.value.tls = newValue }
    }

    /// Until the first byte of the answer.
    public var firstByte: TimeInterval? {
        get { values.value.firstByte }
        set { values.value.firstByte = newValue }
    }

    /// Until the end.
    public var total: TimeInterval {
        get { values.value.total }
        set { values.value.total = newValue }
    }

    /// The seconds of waiting for a free connection before the start.
    public var wait: TimeInterval {
        get { values.value.wait }
        set { values.value.wait = newValue }
    }

    /// The bytes sent: the head of the request and its body.
    public var bytesSent: Int? {
        get { values.value.bytesSent }
        set { values.value.bytesSent = newValue }
    }

    /// The bytes received: the head of the answer and its body, with content codings on.
    public var bytesReceived: Int? {
        get { values.value.bytesReceived }
        set { values.value.bytesReceived = newValue }
    }

    /// Such as `HTTP/1.1` or `HTTP/2`.
    public var networkProtocol: String? {
        get { values.value.networkProtocol }
        set { values.value.networkProtocol = newValue }
    }

    /// Whether the connection was open before; nil when that is not known.
    public var isReusedConnection: Bool? {
        get { values.value.isReusedConnection }
        set { values.value.isReusedConnection = newValue }
    }

    /// The address and port of the server or of the proxy: `192.0.2.1:443`, `[2001:db8::1]:443`.
    public var remoteAddress: String? {
        get { values.value.remoteAddress }
        set { values.value.remoteAddress = newValue }
    }

    /// Measurements of the end alone; a transport sets the others that it can measure.
    public init(total: TimeInterval) {
        values = Shared(Values(total: total))
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
    /// Waiting for the head of the answer.
    case firstByte
    /// Receiving the body.
    case body
}
