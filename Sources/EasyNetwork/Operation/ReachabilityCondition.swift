/// Holds while the network is reachable, or while nobody knows whether it is.
///
/// ```swift
/// operation.addCondition(ReachabilityCondition(waits: true))
/// ```
///
/// That a network is there does not mean that the server answers: this saves attempts that cannot succeed, and no more.
public struct ReachabilityCondition: OperationCondition {
    public let name = "network reachable"
    private let reachability: any NetworkReachability
    private let waits: Bool

    /// - Parameters:
    ///   - reachability: who knows. Default: the system, which does not know on Linux.
    ///   - waits: whether an operation waits for the network, without a slot; false, the default, ends it at once with
    ///     ``NetworkError/Code/refused``.
    public init(_ reachability: any NetworkReachability = SystemReachability.shared, waits: Bool = false) {
        self.reachability = reachability
        self.waits = waits
    }

    public func evaluate(for operation: NetworkOperation) async throws {
        if waits {
            for await status in reachability.statuses where status != .unreachable { return }
            throw CancellationError()
        } else if reachability.status == .unreachable {
            throw NetworkError(code: .refused, message: "the network is not reachable")
        }
    }
}
