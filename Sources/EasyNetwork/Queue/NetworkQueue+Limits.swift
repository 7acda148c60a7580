import Foundation

/// Limits in all, by host and by tag, and how fast jobs start.
///
/// Each may be changed at any time. A lower one stops no job that already runs.
extension NetworkQueue {
    /// Whether no job is started; those that run go on. Default false.
    public var isSuspended: Bool {
        get { state.withLock { $0.graph.admission.isSuspended } }
        set { changeAdmission { $0.isSuspended = newValue } }
    }

    /// How many jobs run at once; a negative number means no limit, 0 means none. Default
    /// ``defaultMaxConcurrentOperationCount``.
    public var maxConcurrentOperationCount: Int {
        get { Self.count(state.withLock { $0.graph.admission.limit }) }
        set { changeAdmission { $0.limit = Self.limit(newValue) } }
    }

    /// How many jobs run at once for each host that has no limit of its own; a negative number, the default, means no
    /// limit.
    public var maxConcurrentOperationCountPerHost: Int {
        get { Self.count(state.withLock { $0.graph.admission.hostLimit }) }
        set { changeAdmission { $0.setHostLimit(Self.limit(newValue)) } }
    }

    /// How many jobs of this host run at once. A negative number takes the limit away, and
    /// ``maxConcurrentOperationCountPerHost`` counts again.
    ///
    /// - Parameter host: as in ``NetworkOperation/host``, in upper or lower case.
    public func setMaxConcurrentOperationCount(_ count: Int, forHost host: String) {
        changeAdmission { $0.setLimit(Self.limit(count), for: .host(host.lowercased())) }
    }

    /// How many jobs with this tag run at once; a negative number, the default, means no limit.
    public func setMaxConcurrentOperationCount(_ count: Int, forTag tag: String) {
        changeAdmission { $0.setLimit(Self.limit(count), for: .tag(tag)) }
    }

    /// How fast jobs start, whatever their host. Default nil: as fast as they can.
    public var rateLimit: RateLimit? {
        get { state.withLock { $0.graph.admission.rate } }
        set { changeAdmission { $0.setRate(newValue, for: .everything) } }
    }

    /// How fast jobs of this host start; nil, the default, means as fast as they can.
    ///
    /// - Parameter host: as in ``NetworkOperation/host``, in upper or lower case.
    public func setRateLimit(_ limit: RateLimit?, forHost host: String) {
        changeAdmission { $0.setRate(limit, for: .host(host.lowercased())) }
    }

    /// How fast jobs with this tag start; nil, the default, means as fast as they can.
    public func setRateLimit(_ limit: RateLimit?, forTag tag: String) {
        changeAdmission { $0.setRate(limit, for: .tag(tag)) }
    }

    /// How fast the bodies of all uploads and downloads of this queue move together, those of batches and chains
    /// included; looked at whenever some of it moves. Default nil: as fast as they can.
    ///
    /// A limit may be shared with other queues. Other requests are not slowed down.
    public var bandwidthLimit: BandwidthLimit? {
        get { state.withLock { $0.bandwidthLimit } }
        set { _ = state.withLock { exchange(&$0.bandwidthLimit, with: newValue) } }
    }

    /// Knows whether there is a network. While it says that there is none, a job that has a ``NetworkOperation/host``
    /// and whose turn has come waits, without a slot and without failing; a status that is not known counts as reachable.
    /// Default nil: nothing waits for the network. Jobs that have been started go on.
    ///
    /// ```swift
    /// queue.reachability = SystemReachability.shared
    /// ```
    ///
    /// The same for a single job is a ``ReachabilityCondition``.
    public var reachability: (any NetworkReachability)? {
        get { state.withLock { $0.reachability } }
        set {
            let observation = newValue?.observe { [weak self] _ in self?.releaseIfReachable() }
            let old = state.withLock { state in
                defer { (state.reachability, state.reachabilityObservation) = (newValue, observation) }
                return (state.reachability, state.reachabilityObservation)
            }
            withExtendedLifetime(old) {}
            releaseIfReachable()
        }
    }

    /// How many jobs of higher priority may start one after the other while one of a lower priority is ready; then that
    /// one has its turn, so that it is not starved. 0 counts as 1; a negative number means any number. Default
    /// ``defaultOvertakingLimit``.
    public var overtakingLimit: Int {
        get { Self.count(state.withLock { $0.graph.admission.overtakingLimit }) }
        set { changeAdmission { $0.overtakingLimit = Self.limit(newValue).map { max(1, $0) } } }
    }

    private func changeAdmission(_ change: (inout JobAdmission) -> Void) {
        stepMakingRoom { state, actions in
            change(&state.graph.admission)
            state.graph.admit(&actions)
        }
    }

    /// Takes the slot back from a job that calls a host, since there is no network.
    ///
    /// - Returns: false when the job calls none.
    func holdOffline(_ operation: NetworkOperation) -> Bool {
        guard operation.host != nil, let job = operation.job(in: self) else { return false }
        let isHeld = step { state, actions in
            guard state.graph.takeSlot(from: job, &actions) else { return false }
            state.offline.append(job)
            return true
        }
        guard isHeld else { return false }
        // Ended meanwhile, when it seemed to run.
        if operation.hasOutcome { step { $0.graph.end(job, &$1) } }
        releaseIfReachable()
        return true
    }

    private func releaseIfReachable() {
        let reachability = state.withLock { $0.reachability }
        guard reachability?.status != .unreachable else { return }
        stepMakingRoom { state, actions in
            let offline = state.offline.take()
            if !offline.isEmpty { state.graph.release(offline, &actions) }
        }
    }

    static func limit(_ count: Int) -> Int? {
        count < 0 ? nil : count
    }

    private static func count(_ limit: Int?) -> Int {
        limit ?? OperationQueue.defaultMaxConcurrentOperationCount
    }
}
