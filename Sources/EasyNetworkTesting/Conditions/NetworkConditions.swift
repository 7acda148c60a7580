import Foundation

/// A slow, distant or lossy network between a client and ``MockServer`` or ``InMemoryTransport``.
///
/// ```swift
/// let slow = try MockServer(conditions: NetworkConditions(latency: 0.2, bandwidth: 100_000))
/// var train = NetworkConditions.flakyTrain
/// train.seed = 7
/// let transport = InMemoryTransport(clock: ManualClock(), conditions: train)
/// ```
///
/// Every request draws the same number of random values, in the order of the requests: the same seed gives the n-th
/// request the same delays and the same loss, over the server and in memory. The server's order is the one in which
/// requests arrive completely; the transport's is the order of `start`.
///
/// The server counts all bytes of requests and of the responses of routes against the bandwidth, the transport only
/// those of bodies.
/// Opening a connection takes no extra time. A fault of a script, a route or an answer takes precedence over a loss; a
/// request that is lost never reaches the closure of its route.
public struct NetworkConditions: Hashable, Sendable {
    /// The seconds that a request takes to the server, and a response back. Default 0. A value below 0 and NaN count as
    /// 0, a value above 3,600 counts as 3,600.
    public var latency: TimeInterval
    /// The bytes per second in each direction, which all connections share. A value below 1 counts as 1. Default nil,
    /// no limit.
    public var bandwidth: Int?
    /// The most seconds that are added to the latency, at random for each request and each response. Default 0, with
    /// the bounds of ``latency``.
    public var jitter: TimeInterval
    /// The share of requests that lose their connection, from 0 to 1. Default 0. A value outside counts as the nearest
    /// one, NaN as 0.
    ///
    /// The connection is reset at one of three places: before the server has the request, before the response, or
    /// within the body, of which at most the first MiB has arrived. On the server a loss counts as a fault; see
    /// ``MockServer/waitForFaults(_:timeout:)``.
    public var lossOfConnections: Double
    /// The seed of everything random. Default 0.
    public var seed: UInt64

    /// Creates conditions. The defaults are those of the properties: a network without limits.
    public init(
        latency: TimeInterval = 0,
        bandwidth: Int? = nil,
        jitter: TimeInterval = 0,
        lossOfConnections: Double = 0,
        seed: UInt64 = 0
    ) {
        self.latency = latency
        self.bandwidth = bandwidth
        self.jitter = jitter
        self.lossOfConnections = lossOfConnections
        self.seed = seed
    }

    /// A mobile network of the third generation: 100 ms each way, up to 50 ms more, 780 kbit/s.
    public static let mobile3G = NetworkConditions(latency: 0.1, bandwidth: 97_500, jitter: 0.05)
    /// A telephone line: 10 ms each way, up to 5 ms more, 2 Mbit/s.
    public static let dsl = NetworkConditions(latency: 0.01, bandwidth: 250_000, jitter: 0.005)
    /// A mobile network in a moving train: 200 ms each way, up to a second more, 400 kbit/s, and one request in ten
    /// loses its connection.
    public static let flakyTrain = NetworkConditions(
        latency: 0.2,
        bandwidth: 50_000,
        jitter: 1,
        lossOfConnections: 0.1
    )
}
