import Foundation

/// How long one exchange may take, in seconds; parts of them count to the millisecond.
///
/// All are counted from the moment the transport begins, not from the moment it was asked: waiting for a free connection
/// is not the server's fault. A deadline that passes ends the exchange with ``NetworkError/Code/timedOut``.
public struct TransportDeadlines: Hashable, Sendable {
    /// Until there is a connection: the look-up of the name, the connection and its TLS. nil, the default, means no
    /// limit. ``URLSessionTransport`` does not hear when there is one and passes over this deadline; set ``firstByte`` too.
    public var connect: TimeInterval?
    /// Until the answer begins, the time for sending included; nil, the default, means no limit.
    public var firstByte: TimeInterval?
    /// The longest silence, with no byte going out or coming in; nil means no limit. Default 60.
    public var idle: TimeInterval?
    /// From start to last byte; nil, the default, means no limit.
    public var total: TimeInterval?

    public init(
        connect: TimeInterval? = nil,
        firstByte: TimeInterval? = nil,
        idle: TimeInterval? = 60,
        total: TimeInterval? = nil
    ) {
        self.connect = connect
        self.firstByte = firstByte
        self.idle = idle
        self.total = total
    }
}
