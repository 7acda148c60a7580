#if canImport(Network)
import Dispatch
import Network
#endif

/// What the system says of the network: `NWPathMonitor` on Apple's platforms. On Linux nobody says, and the status is
/// always ``ReachabilityStatus/unknown``.
public final class SystemReachability: NetworkReachability, @unchecked Sendable {
    // Sendable because nothing here changes; not every SDK says so of the path monitor, which nobody touches later.

    /// Watches from its first use on, as long as the process lives.
    public static let shared = SystemReachability()

    private let broadcast = ReachabilityBroadcast(.unknown)

    #if canImport(Network)
    private let monitor = NWPathMonitor()

    private init() {
        monitor.pathUpdateHandler = { [broadcast] path in
            // A connection that is required, a VPN on demand for instance, is made by the first request.
            broadcast.send(path.status == .unsatisfied ? .unreachable : .reachable)
        }
        monitor.start(queue: DispatchQueue(label: "EasyNetwork.SystemReachability"))
    }
    #else
    private init() {}
    #endif

    public var status: ReachabilityStatus { broadcast.status }

    public func observe(_ observer: @escaping @Sendable (ReachabilityStatus) -> Void) -> ReachabilityObservation {
        broadcast.observe(observer)
    }
}
