import Foundation

#if canImport(Network) && !os(watchOS)
import Network
#endif

/// Reports whether there is a network: the system's network, or one whose status the program or a test sets.
///
/// ```swift
/// let network = NetworkReachability(.unreachable)
/// operation.addCondition(.reachable(network, waits: true))
/// network.status = .reachable
/// ```
public final class NetworkReachability: @unchecked Sendable {
    // The class is Sendable because `isSystem` is set before anyone else has the network, and the monitor is not used
    // after its start. Not every SDK declares the monitor Sendable.

    /// The known state of a network.
    ///
    /// ```swift
    /// if NetworkReachability.system.status == .unreachable { print("offline") }
    /// ```
    public enum Status: Hashable, Sendable {
        /// The status is unknown. It counts as reachable.
        case unknown
        /// There is no network.
        case unreachable
        /// There is a network. This does not mean that a server responds.
        case reachable
    }

    /// The network of the system. It is observed from its first use until the process ends. The status is
    /// ``Status/unknown`` for a few milliseconds, until the system has reported one.
    ///
    /// - On Apple platforms, the status is that reported by `NWPathMonitor`.
    /// - On Linux, the kernel's links, addresses and routes (rtnetlink) determine the status. It is
    ///   ``Status/reachable`` if a route to destinations that are not link-local uses an interface that is up, running
    ///   and not the loopback, and there is an address of the route's family. A default route is not required, and a
    ///   container bridge counts. The status is ``Status/unknown`` where a process is not allowed to request it, as in
    ///   some containers.
    /// - In a simulator the status is never ``Status/unreachable``, because the simulator's monitor might not notice
    ///   that the network has returned. A request without a network then fails instead of waiting.
    /// - On watchOS the status is always ``Status/unknown``, because the monitor finds no network although `URLSession`
    ///   has one.
    ///
    /// A host on this machine needs no network. Jobs and calls to `localhost`, `127.0.0.1` or `::1` do not wait for
    /// this network in ``NetworkQueue/reachability`` and ``HostSettings/reachability``. They do wait for a network that
    /// the program has created.
    public static let system: NetworkReachability = {
        let network = NetworkReachability(.unknown)
        network.isSystem = true
        // On a watch the monitor stays unsatisfied except for audio streaming and calls (Apple's technote TN3135). Jobs
        // that wait for the network would never run.
        #if canImport(Network) && !os(watchOS)
        let monitor = NWPathMonitor()
        monitor.pathUpdateHandler = { path in
            // The first request establishes a required connection, such as a VPN on demand.
            #if targetEnvironment(simulator)
            let status = path.status == .unsatisfied ? Status.unknown : .reachable
            #else
            let status = path.status == .unsatisfied ? Status.unreachable : .reachable
            #endif
            network.change {
                $0 = State(status: status, isExpensive: path.isExpensive, isConstrained: path.isConstrained)
            }
        }
        monitor.start(queue: DispatchQueue(label: "EasyNetwork.NetworkReachability"))
        network.monitor = monitor
        #elseif os(Linux)
        network.monitor = KernelNetworkSocket { network.status = $0 }
        #endif
        return network
    }()

    private struct State: Equatable {
        var status: Status
        var isExpensive = false
        var isConstrained = false
    }

    private let state: Locked<State>
    let readers = Multicast<Status>()

    #if canImport(Network) && !os(watchOS)
    private var monitor: NWPathMonitor?
    #elseif os(Linux)
    private var monitor: KernelNetworkSocket?
    #endif

    /// Whether this is the system's network, which calls to this machine do not need.
    var isSystem = false

    /// Creates a network whose owner sets its status.
    ///
    /// - Parameter status: The initial status. Defaults to ``Status/reachable``.
    public init(_ status: Status = .reachable) {
        state = Locked(State(status: status))
    }

    /// The current status. Setting it notifies all readers of ``statuses`` of a change.
    public var status: Status {
        get { state.withLock { $0.status } }
        set { change { $0.status = newValue } }
    }

    /// Whether traffic is billed by volume, as on a phone's network. Defaults to `false`. The system's value is known
    /// on Apple platforms except watchOS. Elsewhere, set it if the program knows it.
    public var isExpensive: Bool {
        get { state.withLock { $0.isExpensive } }
        set { change { $0.isExpensive = newValue } }
    }

    /// Whether the user has requested low traffic ("Low Data Mode"). Defaults to `false`. The system's value is known
    /// on Apple platforms except watchOS. Elsewhere, set it if the program knows it.
    public var isConstrained: Bool {
        get { state.withLock { $0.isConstrained } }
        set { change { $0.isConstrained = newValue } }
    }

    private func change(_ body: (inout State) -> Void) {
        state.withLock { state in
            let old = state
            body(&state)
            // Send under the lock, so that the last status that a reader receives is the current one.
            if state != old { readers.send(state.status) }
        }
    }

    /// Returns whether a host must not be called now. A host on this machine does not need the system's network.
    ///
    /// - Parameter host: The host, with or without a port.
    func isMissing(for host: String?) -> Bool {
        status == .unreachable && !(isSystem && host.map(URLParts.isLoopback) ?? false)
    }

    /// Returns when the status is not ``Status/unreachable``, or when the task is cancelled.
    func wait() async {
        for await status in statuses where status != .unreachable { return }
    }

    /// The current status, then the status after each change. A change of ``isExpensive`` or ``isConstrained`` delivers
    /// the same status again. The sequence ends with the reader's task.
    ///
    /// Only the newest status is kept for a slow reader, so it can miss earlier ones and receive the same one twice.
    /// The newest status is enough to know whether there is a network.
    public var statuses: AsyncStream<Status> { state.withLock { readers.stream(first: $0.status) } }

    /// The ``statuses`` without the current one. The first element is the status after the next change, however late it
    /// is read.
    package var changes: AsyncStream<Status> { readers.stream() }
}
