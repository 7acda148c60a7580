import Dispatch
import Foundation

/// Runs jobs, with dependencies, priorities, limits, suspension and cancellation.
///
/// ```swift
/// let signIn = RequestOperation(SignInRequest(name: "ada"))
/// let profile = signIn.then { ProfileRequest(token: $0.token) }
/// profile.success = { print($0.name) }
/// NetworkQueue.shared.addOperations([signIn, profile])
/// ```
///
/// The queue itself holds waiting jobs, and starts only those that can run. A waiting job that is cancelled therefore
/// ends promptly, even if every slot is taken or the queue is suspended. The cost of a job doesn't depend on the number
/// of other waiting jobs.
///
/// Jobs of one priority start in the order in which they became ready. A dependency on this queue has at least the
/// priority of the jobs that wait for it. Any `Operation` can be added, and can depend on any other operation, on this
/// queue, on another queue, or on none. A job that would wait for itself ends with ``NetworkError/Code/cycle``. The
/// queue does not detect a cycle through a plain `OperationQueue`, a category or the limit of a batch. A queue stays
/// alive while it has jobs. All members can be used from any thread.
public final class NetworkQueue: Sendable {
    /// The default limit of running jobs, 6: as many as a browser opens connections to a host.
    public static let defaultMaxConcurrentOperationCount = 6

    private static let sharedQueue = Locked(NetworkQueue(name: "EasyNetwork.shared"))

    /// The shared queue of the app. You can replace it; the jobs of the previous queue continue.
    public static var shared: NetworkQueue {
        get { sharedQueue.withLock { $0 } }
        set { sharedQueue.exchange(newValue) }
    }

    /// This queue as an `OperationQueue`, for code that requires Foundation's type.
    ///
    /// Its methods for adding, cancelling and waiting call this queue's, and setting `isSuspended` and
    /// `maxConcurrentOperationCount` sets this queue's. Its `underlyingQueue`, `qualityOfService` and `progress` apply
    /// only to operations that are not of this package. Operations of this package, including blocks, run on the
    /// package's own threads, where `OperationQueue.current` is `nil`; capture the queue instead. Its `operations`,
    /// `operationCount`, `maxConcurrentOperationCount` and `isSuspended` can be observed by KVO.
    ///
    /// Linux has no KVO. A subclass cannot override `operations` and `operationCount` there, so they contain only the
    /// running jobs that are not of this package. This queue's ``operations`` and ``operationCount`` contain all jobs.
    public var queue: OperationQueue { executor }

    let executor: ExecutorQueue

    /// The callback queue of operations that have no callback queue of their own. Defaults to `nil`: the host's.
    public let callbackQueue: DispatchQueue?

    /// The clock for rates and deadlines.
    let clock: any NetworkClock

    struct State {
        var graph: JobGraph<NetworkOperation>
        /// The nodes of operations that jobs wait for and that are not jobs of this queue. The graph keeps them alive.
        var externalJobs: [ObjectIdentifier: Job] = [:]
        /// The foreign operations to check.
        var foreignWatch = ForeignJobWatch()
        /// The closures to call when the queue becomes empty, by the numbers of their waits.
        var emptyWaiters: [Int: @Sendable () -> Void] = [:]
        var lastEmptyWait = 0
        var deadlines = JobDeadlines<Job>()
        /// The place of the call that shut the queue down, so that it accepts no more jobs.
        var shutDownPlace: String?
        var bandwidth: BandwidthLimit?
        var reachability: NetworkReachability?
        /// The jobs that wait for each network, in the order of their turns, and the task that waits to release them.
        var offline: [ObjectIdentifier: (jobs: [Job], release: Task<Void, Never>)] = [:]
    }

    let state: Locked<State>
    /// The alarms for the next deadline of a job, and for the next time at which jobs can start or yield.
    let deadlineAlarm = Alarm()
    let admissionAlarm = Alarm()

    package let broadcast = EventBroadcast()

    /// The jobs that repeat each other, and the jobs that send shared messages.
    let repeats = Locked((registry: RepeatRegistry<NetworkOperation>(), carriers: [SharingKey: RequestCarrier]()))

    /// Creates a queue.
    ///
    /// - Parameters:
    ///   - name: the name for debugging.
    ///   - maxConcurrentOperationCount: the number of jobs that run at once. A negative number means no limit; with 0,
    ///     no job starts. Defaults to ``defaultMaxConcurrentOperationCount``.
    ///   - maxConcurrentOperationCountPerHost: the number of jobs that run at once for each host. Defaults to `-1`: no
    ///     limit.
    ///   - rateLimit: the rate at which jobs start. Defaults to `nil`: no limit.
    ///   - callbackQueue: the queue of callbacks. Defaults to `nil`: the queue of each operation's host.
    ///   - clock: the clock for rates and deadlines. Defaults to the system's clock.
    public init(
        name: String = "EasyNetwork.NetworkQueue",
        maxConcurrentOperationCount: Int = NetworkQueue.defaultMaxConcurrentOperationCount,
        maxConcurrentOperationCountPerHost: Int = -1,
        rateLimit: RateLimit? = nil,
        callbackQueue: DispatchQueue? = nil,
        clock: any NetworkClock = SystemClock()
    ) {
        let executor = ExecutorQueue()
        executor.name = name
        // Foundation's default would leave the number to the system on Apple's platforms.
        executor.maxConcurrentOperationCount = .max
        self.executor = executor
        self.callbackQueue = callbackQueue
        self.clock = clock
        var graph = JobGraph<NetworkOperation>(limit: Self.limit(maxConcurrentOperationCount))
        graph.hostLimit = Self.limit(maxConcurrentOperationCountPerHost)
        graph.setRate(rateLimit, for: .queueLane)
        graph.overtakingLimit = 100
        state = Locked(State(graph: graph))
        executor.owner = self
    }

    deinit {
        broadcast.finish()
        for (_, release) in state.withLock({ exchange(&$0.offline, with: [:]) }).values { release.cancel() }
    }

    // MARK: - Adding

    /// Adds a job. Has no effect if the operation was added before, or has been started.
    ///
    /// Its dependencies are not added with it. Adding an operation also to an `OperationQueue` crashes the process, as
    /// adding it to two of those does.
    ///
    /// A plain `Operation` also waits until its `isReady` is `true`. No platform notifies the queue of that, or of a
    /// change of its `queuePriority`. The queue checks both when a slot becomes free, and `isReady` also periodically,
    /// at most 100 ms late.
    public func addOperation(_ operation: Operation) {
        add(operation.asNetworkOperation)
    }

    /// Adds a job that runs `block` on a background thread of the package and ends when the block returns. A block that
    /// waits keeps its thread; see ``NetworkOperation/execute()``.
    public func addOperation(_ block: @escaping @Sendable () -> Void) {
        addOperation(BlockNetworkOperation(block))
    }

    /// Adds several jobs in order. They start when all have been added, so the one with the highest priority starts
    /// first.
    ///
    /// - Parameters:
    ///   - operations: the jobs.
    ///   - wait: whether to block the calling thread until all of them have finished. See
    ///     ``waitUntilAllOperationsAreFinished()`` for the threads that must not wait. Defaults to `false`.
    public func addOperations(_ operations: [Operation], waitUntilFinished wait: Bool = false) {
        // Start with the last one, because it usually waits for those before it. The whole graph is then in one trace.
        if TraceContext.isUsed.isSet {
            for operation in operations.reversed() { operation.asNetworkOperation.findTrace() }
        }
        let held = operations.compactMap { add($0.asNetworkOperation, isHeld: true) }
        step { $0.graph.release(held, &$1) }
        guard wait else { return }
        let group = DispatchGroup()
        for operation in operations {
            group.enter()
            operation.asNetworkOperation.whenFinished { group.leave() }
        }
        group.wait()
    }

    /// Adds a job that runs alone: after all jobs added before it, and before all jobs added after it.
    ///
    /// A job before the barrier must not depend on a job after it. That is a cycle, and the later job ends with
    /// ``NetworkError/Code/cycle``.
    public func addBarrierBlock(_ barrier: @escaping @Sendable () -> Void) {
        add(BlockNetworkOperation(barrier), isBarrier: true)
    }

    /// Runs a request as a job and returns its item.
    ///
    /// Cancelling the task cancels the job. If the task is already cancelled, nothing is sent.
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - service: the service, which determines the host. Defaults to `nil`: ``HostConfiguration/shared``.
    /// - Throws: the job's error.
    public func perform<Request: APIRequest>(
        _ request: Request,
        service: EasyNetworkService? = nil
    ) async throws(NetworkError) -> Request.Item {
        guard !Task.isCancelled else { throw NetworkError(code: .cancelled) }
        let operation = RequestOperation(request, of: service)
        addOperation(operation)
        return try await operation.value
    }

    /// Runs a request as a job and returns its item and its response, including the body.
    ///
    /// ```swift
    /// let (users, response) = try await queue.performWithResponse(GetUsers())
    /// if let next = response.headers["Link"] { print(users.count, "users, and more at", next) }
    /// ```
    ///
    /// Otherwise, it works as ``perform(_:service:)-(Request,_)``.
    public func performWithResponse<Request: APIRequest>(
        _ request: Request,
        service: EasyNetworkService? = nil
    ) async throws(NetworkError) -> (item: Request.Item, response: NetworkResponse) {
        guard !Task.isCancelled else { throw NetworkError(code: .cancelled) }
        let operation = RequestOperation(request, of: service)
        operation.keepsResponseBody = true
        addOperation(operation)
        return try await operation.valueWithResponse
    }

    // MARK: - Queries and waiting

    /// The jobs that have not finished, in the order in which they were added. Linear in their number.
    public var operations: [Operation] {
        state.withLock { $0.graph.jobs.compactMap(\.payload) }.map(\.original)
    }

    /// The number of jobs that have not finished.
    public var operationCount: Int {
        state.withLock { $0.graph.count }
    }

    /// Blocks the calling thread until no job is left.
    ///
    /// Never call it from a job, a callback, or the thread of a callback queue. Never call it from the main thread
    /// while a job has `onMain` closures or the main queue as its callback queue. In these cases, each would wait for
    /// the other forever. Avoid the main thread even otherwise, because the wait lends no priority to the jobs. In a
    /// task, use ``waitUntilIdle()``.
    public func waitUntilAllOperationsAreFinished() {
        let semaphore = DispatchSemaphore(value: 0)
        whenEmpty { semaphore.signal() }
        semaphore.wait()
    }

    /// Calls `action` when no job is left. If there is none now, calls `action` at once, on this thread.
    ///
    /// - Returns: the number of the wait.
    @discardableResult
    func whenEmpty(_ action: @escaping @Sendable () -> Void) -> Int {
        let (isEmpty, number) = state.withLock { state in
            state.lastEmptyWait += 1
            let isEmpty = state.graph.totalCount == 0
            if !isEmpty { state.emptyWaiters[state.lastEmptyWait] = action }
            return (isEmpty, state.lastEmptyWait)
        }
        if isEmpty { action() }
        return number
    }
}
