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
/// Every request draws the same number of random values. With the same seed, the n-th request therefore has the same
/// delays and the same loss, over the server and in memory. The server counts requests in the order in which they
/// arrive completely, the transport in the order of `start`.
///
/// In the server, all bytes of requests and of the responses of routes use the bandwidth; in the transport, only the
/// bytes of bodies do. Opening a connection takes no extra time.
///
/// A fault takes precedence over a loss, whether it belongs to the next requests, a route or a response. A request that
/// is lost before the server has it never reaches the closure of its route, so a fault of its response has no effect.
public struct NetworkConditions: Hashable, Sendable {
    /// The seconds that a request takes to the server, and a response takes back. Defaults to 0. A value below 0 and
    /// NaN count as 0; a value above 3,600 counts as 3,600.
    public var latency: TimeInterval
    /// The bytes per second in each direction, which all connections share. Defaults to `nil`, for no limit. A value
    /// below 1 counts as 1.
    public var bandwidth: Int?
    /// The maximum number of seconds that are added to the latency, at random for each request and each response.
    /// Defaults to 0, with the bounds of ``latency``.
    public var jitter: TimeInterval
    /// The share of requests that lose their connection, from 0 to 1. Defaults to 0. A value outside this range counts
    /// as the nearest bound, and NaN as 0.
    ///
    /// The connection is reset at one of three places: before the server has the request, before the response, or
    /// within the response's body, of which at most the first MiB has arrived. In the server, a loss counts as a fault;
    /// see ``MockServer/waitForFaults(_:timeout:)``.
    public var lossOfConnections: Double
    /// The seed of all random values. Defaults to 0.
    public var seed: UInt64

    /// Creates conditions. By default, the network has no limits.
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

    /// A mobile network of the third generation: 100 to 150 ms each way and 780 kbit/s.
    public static let mobile3G = NetworkConditions(latency: 0.1, bandwidth: 97_500, jitter: 0.05)
    /// A telephone line: 10 to 15 ms each way and 2 Mbit/s.
    public static let dsl = NetworkConditions(latency: 0.01, bandwidth: 250_000, jitter: 0.005)
    /// A mobile network in a moving train: 0.2 to 1.2 seconds each way and 400 kbit/s. One request in ten loses its
    /// connection.
    public static let flakyTrain = NetworkConditions(
        latency: 0.2,
        bandwidth: 50_000,
        jitter: 1,
        lossOfConnections: 0.1
    )
}
