import Foundation

#if canImport(Network) && !os(watchOS)
import Network
#endif

/// Reports whether there is a network: the system's, or one whose status the program or a test sets.
///
/// ```swift
/// let network = NetworkReachability(.unreachable)
/// operation.addCondition(.reachable(network, waits: true))
/// network.status = .reachable
/// ```
public final class NetworkReachability: @unchecked Sendable {
    // Sendable because the monitor is not used after its start; not every SDK declares it Sendable.

    /// Whether there is a network, as far as known.
    ///
    /// ```swift
    /// if NetworkReachability.system.status == .unreachable { print("offline") }
    /// ```
    public enum Status: Hashable, Sendable {
        /// Not known. Counts as reachable.
        case unknown
        /// There is no network.
        case unreachable
        /// There is a network. That does not mean that a server answers.
        case reachable
    }

    /// The network of the system. It is watched from the first use until the process ends; the status is
    /// ``Status/unknown`` for some milliseconds, until the system has answered.
    ///
    /// - On Apple's platforms, the status of `NWPathMonitor`.
    /// - On Linux, what the kernel says of its links, addresses and routes (rtnetlink). ``Status/reachable`` when a
    ///   route to other than link-local addresses leads over an interface that is up, running and not the loopback, and
    ///   there is an address of the route's family. A default route is not asked for, and a bridge of containers
    ///   counts. ``Status/unknown`` where a process may not ask, as in some containers.
    /// - In a simulator never ``Status/unreachable``: its monitor may not notice that the network has returned. A request
    ///   without a network then fails instead of waiting.
    /// - On watchOS always ``Status/unknown``, as the monitor finds no network though `URLSession` has one.
    ///
    /// A host on this machine needs no network: jobs and calls to `localhost`, `127.0.0.1` or `::1` do not wait for
    /// this one in ``NetworkQueue/reachability`` and ``HostSettings/reachability``. They do wait for a network that the
    /// program has made.
    public static let system: NetworkReachability = {
        let network = NetworkReachability(.unknown, isSystem: true)
        // On a watch the monitor stays unsatisfied but for audio streaming and calls (Apple's technote TN3135), and
        // jobs that wait would never go.
        #if canImport(Network) && !os(watchOS)
        let monitor = NWPathMonitor()
        monitor.pathUpdateHandler = { path in
            // A required connection, such as a VPN on demand, is made by the first request.
            #if targetEnvironment(simulator)
            let status = path.status == .unsatisfied ? Status.unknown : .reachable
            #else
            let status = path.status == .unsatisfied ? Status.unreachable : .reachable
            #endif
            network.change { $0 = State(status, isExpensive: path.isExpensive, isConstrained: path.isConstrained) }
        }
        monitor.start(queue: DispatchQueue(label: "EasyNetwork.NetworkReachability"))
        network.monitor = monitor
        #elseif os(Linux)
        network.monitor = KernelNetworkSocket { network.status = $0 }
        #endif
        return network
    }()

    struct State: Hashable {
        var status: Status
        var isExpensive = false
        var isConstrained = false

        init(_ status: Status, isExpensive: Bool = false, isConstrained: Bool = false) {
            (self.status, self.isExpensive, self.isConstrained) = (status, isExpensive, isConstrained)
        }
    }

    private let state: Locked<State>
    let readers = Multicast<Status>()

    #if canImport(Network) && !os(watchOS)
    private var monitor: NWPathMonitor?
    #elseif os(Linux)
    private var monitor: KernelNetworkSocket?
    #endif

    /// Whether it is that of the system, without which a host on this machine can be called.
    private let isSystem: Bool

    /// A network whose status is set by its owner. Default ``Status/reachable``.
    public init(_ status: Status = .reachable) {
        state = Locked(State(status))
        isSystem = false
    }

    init(_ status: Status, isSystem: Bool) {
        state = Locked(State(status))
        self.isSystem = isSystem
    }

    /// The current status. All readers of ``statuses`` are notified of a change.
    public var status: Status {
        get { state.withLock { $0.status } }
        set { change { $0.status = newValue } }
    }

    /// Whether the network costs by the byte, as that of a phone does. Default false. The system's is known on Apple's
    /// platforms but watchOS; elsewhere set it, if the program knows.
    public var isExpensive: Bool {
        get { state.withLock { $0.isExpensive } }
        set { change { $0.isExpensive = newValue } }
    }

    /// Whether the user has asked for little traffic ("Low Data Mode"). Default false. The system's is known on Apple's
    /// platforms but watchOS; elsewhere set it, if the program knows.
    public var isConstrained: Bool {
        get { state.withLock { $0.isConstrained } }
        set { change { $0.isConstrained = newValue } }
    }

    private func change(_ body: (inout State) -> Void) {
        state.withLock { state in
            let old = state
            body(&state)
            // Under the lock, so that the last status that a reader gets is the current one.
            if state != old { readers.send(state.status) }
        }
    }

    /// Whether a host is not to be called now. A host on this machine needs no network of the system.
    ///
    /// - Parameter host: with or without a port.
    func isMissing(for host: String?) -> Bool {
        status == .unreachable && !(isSystem && host.map(URLParts.isLoopback) ?? false)
    }

    /// Returns when the network is not unreachable, or the task is cancelled.
    func wait() async {
        for await status in statuses where status != .unreachable { return }
    }

    /// The current status and then the new one after each change: of the status, and the same status again when its
    /// cost has changed. Ends with the reader's task.
    ///
    /// Only the newest status is kept for a slow reader: it misses those before, and may get the same one twice. To
    /// know whether there is a network, the newest is enough.
    public var statuses: AsyncStream<Status> { state.withLock { readers.stream(first: $0.status) } }

    /// ``statuses`` without the current one: the first is the status after the next change, however late it is read.
    package var changes: AsyncStream<Status> { readers.stream() }
}
