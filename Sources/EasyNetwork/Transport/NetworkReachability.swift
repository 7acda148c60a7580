import Dispatch

#if canImport(Network)
import Network
#endif

/// Reports whether there is a network.
public protocol NetworkReachability: Sendable {
    /// The current status.
    var status: ReachabilityStatus { get }

    /// Calls `observer` with the current status and then with every change, in order, on a background queue.
    ///
    /// - Returns: the observation, which ends when it is cancelled or released.
    func observe(_ observer: @escaping @Sendable (ReachabilityStatus) -> Void) -> ReachabilityObservation
}

/// Whether there is a network, as far as known.
public enum ReachabilityStatus: Hashable, Sendable {
    /// Not known. Counts as reachable.
    case unknown
    case unreachable
    case reachable
}

extension NetworkReachability {
    /// The current status and then every change; a slow reader gets only the latest. Ends with the reader's task.
    public var statuses: AsyncStream<ReachabilityStatus> {
        AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            let observation = observe { continuation.yield($0) }
            continuation.onTermination = { _ in observation.cancel() }
        }
    }
}

/// A running observation of a ``NetworkReachability``; ends when it is cancelled or released.
public final class ReachabilityObservation: Sendable {
    private let action: Locked<(@Sendable () -> Void)?>

    /// - Parameter onCancel: Called once.
    public init(onCancel: @escaping @Sendable () -> Void) {
        action = Locked(onCancel)
    }

    deinit {
        cancel()
    }

    /// Ends the observation. A call to the observer that is under way is not stopped.
    public func cancel() {
        action.withLock { $0.take() }?()
    }
}

/// The network status of the system: that of `NWPathMonitor` on Apple's platforms, always ``ReachabilityStatus/unknown`` on
/// Linux.
public final class SystemReachability: NetworkReachability, @unchecked Sendable {
    // Sendable because nothing here changes; not every SDK declares the path monitor Sendable, which is not used later.

    /// Watches the network from its first use until the process ends.
    public static let shared = SystemReachability()

    private let broadcast = ReachabilityBroadcast(.unknown)

    #if canImport(Network)
    private let monitor = NWPathMonitor()

    private init() {
        monitor.pathUpdateHandler = { [broadcast] path in
            // A required connection, such as a VPN on demand, is made by the first request.
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

/// Keeps a status and reports its changes to observers, in order and without a lock held.
package final class ReachabilityBroadcast: Sendable {
    private struct State {
        var status: ReachabilityStatus
        var observers: [Int: @Sendable (ReachabilityStatus) -> Void] = [:]
        var observations = 0
    }

    private let state: Locked<State>
    private let queue = DispatchQueue(label: "EasyNetwork.ReachabilityBroadcast")

    package init(_ status: ReachabilityStatus) {
        state = Locked(State(status: status))
    }

    package var status: ReachabilityStatus {
        state.withLock { $0.status }
    }

    package func send(_ status: ReachabilityStatus) {
        state.withLock { state in
            guard state.status != status else { return }
            state.status = status
            // Enqueued under the lock, so that reports keep the order of the changes.
            for id in state.observers.keys { tell(id, status) }
        }
    }

    package func observe(_ observer: @escaping @Sendable (ReachabilityStatus) -> Void) -> ReachabilityObservation {
        let id = state.withLock { state in
            state.observations += 1
            state.observers[state.observations] = observer
            tell(state.observations, state.status)
            return state.observations
        }
        return ReachabilityObservation { [weak self] in
            let observer = self?.state.withLock { $0.observers.removeValue(forKey: id) }
            // Released outside the lock.
            withExtendedLifetime(observer) {}
        }
    }

    private func tell(_ id: Int, _ status: ReachabilityStatus) {
        queue.async {
            let observer = self.state.withLock { $0.observers[id] }
            observer?(status)
        }
    }
}
