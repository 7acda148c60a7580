import Foundation

/// Limits of the queue, by host and by tag, and rates. Each can be changed at any time. A lower limit stops no running
/// job.
extension NetworkQueue {
    /// Whether the queue starts no job. Running jobs continue. Defaults to `false`.
    public var isSuspended: Bool {
        get { state.withLock { $0.graph.isSuspended } }
        set {
            changeAdmission(.isSuspended) { graph in
                guard graph.isSuspended != newValue else { return }
                graph.isSuspended = newValue
                if broadcast.hasListeners.isSet {
                    broadcast.note(event(newValue ? .suspended : .resumed, rules: graph.rules))
                }
            }
        }
    }

    /// The number of jobs that run at once. A negative number means no limit; with 0, no job starts. Defaults to
    /// ``defaultMaxConcurrentOperationCount``.
    public var maxConcurrentOperationCount: Int {
        get { Self.count(state.withLock { $0.graph.limit }) }
        set { changeAdmission(.limit) { $0.limit = Self.limit(newValue) } }
    }

    /// The number of jobs that run at once for each host that has no limit of its own. A negative number means no
    /// limit. Defaults to `-1`.
    public var maxConcurrentOperationCountPerHost: Int {
        get { Self.count(state.withLock { $0.graph.hostLimit }) }
        set { changeAdmission { $0.hostLimit = Self.limit(newValue) } }
    }

    /// Limits the number of jobs of this host that run at once. A negative number removes the limit, and
    /// ``maxConcurrentOperationCountPerHost`` applies again.
    ///
    /// - Parameters:
    ///   - count: the number of jobs.
    ///   - host: the host, as in ``NetworkOperation/host``, in upper or lower case.
    public func setMaxConcurrentOperationCount(_ count: Int, forHost host: String) {
        changeAdmission { $0.setLimit(Self.limit(count), for: .host(host.lowercased())) }
    }

    /// Limits the number of jobs with this tag that run at once. A negative number removes the limit. By default, there
    /// is none.
    public func setMaxConcurrentOperationCount(_ count: Int, forTag tag: String) {
        changeAdmission { $0.setLimit(Self.limit(count), for: .tag(tag)) }
    }

    /// The highest priority at which a running download or resumable upload gives its slot to a waiting job of higher
    /// priority. The transfer resumes by itself, before other jobs of its priority, when a slot is free for it. Defaults
    /// to `.low`: transfers with a priority below normal yield. With `nil`, no transfer yields.
    ///
    /// ```swift
    /// let download = DownloadOperation(FileRequest(), to: file)
    /// download.queuePriority = .low   // the request behind a tap does not wait for it
    /// ```
    ///
    /// Only a download that can be resumed yields: a GET request whose server has sent a strong validator and either
    /// `Accept-Ranges: bytes` or a range. Any other download keeps its slot from its first message to its end, so that
    /// no request is sent twice.
    ///
    /// The connection is kept for half a minute, so that no byte is transferred twice. It is kept for two seconds if
    /// ``TransportConfiguration/maximumConnectionsPerHost`` is below its default, and not at all over
    /// ``URLSessionTransport``, which opens few connections. After that time, the rest is requested as after
    /// ``DownloadOperation/pause()``.
    ///
    /// A download that has yielded for four seconds gets the next slot, and then transfers for at least a second. Among
    /// urgent jobs that take up to five seconds each, it therefore transfers for at least one second in any ten. An
    /// urgent job that has started is not interrupted.
    ///
    /// A download with categories (``NetworkOperation/mutualExclusionCategories``) keeps its slot. A job lends its
    /// priority to its dependencies: a download that an urgent job waits for is itself urgent.
    public var yieldingPriority: Operation.QueuePriority? {
        get { state.withLock { $0.graph.yieldingPriority }?.operationPriority }
        set { changeAdmission { $0.yieldingPriority = newValue.map { JobPriority($0) } } }
    }

    /// The rate at which jobs start, for all hosts together. Defaults to `nil`: no limit.
    public var rateLimit: RateLimit? {
        get { state.withLock { $0.graph.rates[.queueLane] } }
        set { changeAdmission { $0.setRate(newValue, for: .queueLane) } }
    }

    /// Limits the rate at which jobs of this host start. `nil` removes the limit. By default, there is none.
    ///
    /// - Parameters:
    ///   - limit: the rate.
    ///   - host: the host, as in ``NetworkOperation/host``, in upper or lower case.
    public func setRateLimit(_ limit: RateLimit?, forHost host: String) {
        changeAdmission { $0.setRate(limit, for: .host(host.lowercased())) }
    }

    /// Limits the rate at which jobs with this tag start. `nil` removes the limit. By default, there is none.
    public func setRateLimit(_ limit: RateLimit?, forTag tag: String) {
        changeAdmission { $0.setRate(limit, for: .tag(tag)) }
    }

    /// The maximum rate in bytes per second of all uploads and downloads of this queue together, including those in
    /// batches and chains. A value below 1 counts as 1. Defaults to `nil`: no limit. The rate is an average over a
    /// tenth of a second or more. A change applies to running transfers too. The exception is an upload of data or of a
    /// file that began without any limit, until it is sent again; see ``UploadOperation/bandwidthLimit``. Other
    /// requests are not slowed down.
    public var bandwidthLimit: Int? {
        get { bandwidth?.bytesPerSecond }
        set {
            let bandwidth = newValue.map { BandwidthLimit(bytesPerSecond: $0, clock: clock) }
            state.discard { exchange(&$0.bandwidth, with: bandwidth) }
        }
    }

    /// The limit that the transfers of this queue share.
    var bandwidth: BandwidthLimit? { state.withLock { $0.bandwidth } }

    /// The source of the network's status. While there is no network, a job that has a ``NetworkOperation/host`` and
    /// whose turn has come waits, without a slot and without failing. An unknown status counts as reachable. Jobs that
    /// have been started continue. Defaults to `nil`: no job waits for the network.
    ///
    /// ```swift
    /// queue.reachability = NetworkReachability.system
    /// ```
    ///
    /// Jobs that call a host on this machine do not wait for ``NetworkReachability/system``.
    ///
    /// For the jobs of a single host, use ``HostSettings/reachability``, and for a single job
    /// ``OperationCondition/reachable(_:waits:)``.
    public var reachability: NetworkReachability? {
        get { state.withLock { $0.reachability } }
        set {
            state.discard { exchange(&$0.reachability, with: newValue) }
            // Jobs that still have no network are held again.
            for network in state.withLock({ $0.offline.keys.map { $0 } }) { releaseJobs(heldBy: network) }
        }
    }

    /// The limits, the rates and the suspension.
    package var rules: QueueRules { state.withLock { $0.graph.rules } }

    private func changeAdmission(_ value: ExecutorQueue.Observable? = nil, _ change: (inout Graph) -> Void) {
        step(changing: value, makesRoom: true) { state, actions in
            change(&state.graph)
            state.graph.admit(&actions)
        }
    }

    /// Takes the slot from a job that calls a host, while the network is unreachable.
    ///
    /// - Returns: `false` if the network may be reachable, or the job has no host.
    func hold(_ operation: NetworkOperation, until network: NetworkReachability) -> Bool {
        guard let host = operation.host, network.isMissing(for: host) else { return false }
        let id = ObjectIdentifier(network)
        return takeBackSlot(of: operation) { job, state, _ in
            if state.offline[id] == nil {
                let release = WorkQueue.task { [weak self] in
                    await network.wait()
                    if !Task.isCancelled { self?.releaseJobs(heldBy: id) }
                }
                state.offline[id] = ([], release)
            }
            state.offline[id]?.jobs.append(job)
        }
    }

    /// Takes the slot from a job that was about to start.
    ///
    /// - Parameter hold: notes what releases the job.
    /// - Returns: whether the job had a slot.
    func takeBackSlot(of operation: NetworkOperation, hold: (Job, inout State, inout Actions) -> Void) -> Bool {
        guard let job = operation.job(in: self) else { return false }
        let isHeld = step { state, actions in
            guard state.graph.takeSlot(from: job, &actions) else { return false }
            hold(job, &state, &actions)
            return true
        }
        // The operation may have ended since, while it seemed to run.
        if isHeld, operation.hasOutcome { step { $0.graph.end(job, &$1) } }
        return isHeld
    }

    /// Notes what the jobs waited for before they request a slot. Called under the lock.
    func noteWaitBefore(_ reason: WaitReason, _ jobs: [Job]) {
        guard broadcast.hasListeners.isSet else { return }
        for job in jobs { job.wait = WaitNote(since: 0, before: reason) }
    }

    private func releaseJobs(heldBy network: ObjectIdentifier) {
        let release = step(makesRoom: true) { state, actions -> Task<Void, Never>? in
            guard let (jobs, release) = state.offline.removeValue(forKey: network) else { return nil }
            noteWaitBefore(.network, jobs)
            state.graph.release(jobs, &actions)
            return release
        }
        release?.cancel()
    }

    static func limit(_ count: Int) -> Int? {
        count < 0 ? nil : count
    }

    private static func count(_ limit: Int?) -> Int {
        limit ?? OperationQueue.defaultMaxConcurrentOperationCount
    }
}
