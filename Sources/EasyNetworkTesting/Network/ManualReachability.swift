import EasyNetwork

/// A network whose reachability a test sets.
///
/// ```swift
/// let network = ManualReachability(.unreachable)
/// operation.addCondition(ReachabilityCondition(network, waits: true))
/// queue.addOperation(operation)
/// network.status = .reachable
/// ```
public final class ManualReachability: NetworkReachability {
    private let broadcast: ReachabilityBroadcast

    /// A network with this status; default reachable.
    public init(_ status: ReachabilityStatus = .reachable) {
        broadcast = ReachabilityBroadcast(status)
    }

    /// The status; setting it informs the observers.
    public var status: ReachabilityStatus {
        get { broadcast.status }
        set { broadcast.send(newValue) }
    }

    public func observe(_ observer: @escaping @Sendable (ReachabilityStatus) -> Void) -> ReachabilityObservation {
        broadcast.observe(observer)
    }
}
