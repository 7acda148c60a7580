import EasyNetwork

/// A network that comes and goes when a test says so.
///
/// ```swift
/// let network = ManualReachability(.unreachable)
/// operation.addCondition(ReachabilityCondition(network, waits: true))
/// queue.addOperation(operation)
/// network.status = .reachable
/// ```
public final class ManualReachability: NetworkReachability {
    private let broadcast: ReachabilityBroadcast

    public init(_ status: ReachabilityStatus = .reachable) {
        broadcast = ReachabilityBroadcast(status)
    }

    public var status: ReachabilityStatus {
        get { broadcast.status }
        set { broadcast.send(newValue) }
    }

    public func observe(_ observer: @escaping @Sendable (ReachabilityStatus) -> Void) -> ReachabilityObservation {
        broadcast.observe(observer)
    }
}
