/// Knows whether there is a network.
public protocol NetworkReachability: Sendable {
    /// What is known at this moment.
    var status: ReachabilityStatus { get }

    /// Tells `observer` the status as it is now, and then every change, in order, on a background queue.
    ///
    /// - Returns: what ends it when it is cancelled or dropped.
    func observe(_ observer: @escaping @Sendable (ReachabilityStatus) -> Void) -> ReachabilityObservation
}

/// Whether there is a network, as far as anybody knows.
public enum ReachabilityStatus: Hashable, Sendable {
    /// Not known yet, or never: counts as reachable.
    case unknown
    case unreachable
    case reachable
}

extension NetworkReachability {
    /// The status as it is now, and then every change; to a slow reader only the latest. Ends with the reader's task.
    public var statuses: AsyncStream<ReachabilityStatus> {
        AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            let observation = observe { continuation.yield($0) }
            continuation.onTermination = { _ in observation.cancel() }
        }
    }
}

/// A running observation of a ``NetworkReachability``; ends when it is cancelled or dropped.
public final class ReachabilityObservation: Sendable {
    private let action: Locked<(@Sendable () -> Void)?>

    /// - Parameter onCancel: called once.
    public init(onCancel: @escaping @Sendable () -> Void) {
        action = Locked(onCancel)
    }

    deinit {
        cancel()
    }

    /// Nothing is told after this, but what is being told at this moment.
    public func cancel() {
        action.withLock { $0.take() }?()
    }
}
