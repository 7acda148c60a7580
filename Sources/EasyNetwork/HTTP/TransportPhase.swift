/// How far an exchange had come, in the order in which it comes there.
public enum TransportPhase: Int, Comparable, Hashable, Sendable, CaseIterable {
    /// It waited for a free connection.
    case waiting
    /// The host's name was being looked up.
    case resolve
    /// The connection was being made.
    case connect
    /// The connection was being made secure.
    case tls
    /// The request was going out.
    case send
    /// The request was out, and the head of the answer had not arrived.
    case firstByte
    /// The head of the answer had arrived.
    case body

    public static func < (one: TransportPhase, other: TransportPhase) -> Bool {
        one.rawValue < other.rawValue
    }
}
