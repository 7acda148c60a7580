import Dispatch
import Foundation

/// Runs jobs: with dependencies, priorities, limits, suspension and cancellation.
///
/// ```swift
/// let signIn = RequestOperation(SignInRequest(name: "ada"))
/// let profile = signIn.then { ProfileRequest(token: $0.token) }
/// profile.success = { print($0.name) }
/// NetworkQueue.shared.addOperations([signIn, profile])
/// ```
///
/// The queue holds waiting jobs itself, and starts only those that may run. So a waiting job that is cancelled ends
/// promptly though every slot is taken or the queue is suspended, and a job costs the same however many others wait.
///
/// Within a priority jobs start in the order in which they became ready. A dependency on this queue goes as early as
/// the jobs that wait for it. Any `Operation` may be added, and may depend on any other, here, on another queue, or on
/// none. A job that would wait for itself ends with ``NetworkError/Code/cycle``; only a cycle through a plain
/// `OperationQueue`, a category or the limit of a batch is not seen. A queue stays alive while it has jobs. All members
/// may be used from any thread.
public final class NetworkQueue: Sendable {
    /// The default limit of running jobs: as many as a browser opens connections to a host.
    public static let defaultMaxConcurrentOperationCount = 6

    private static let sharedQueue = Locked(NetworkQueue(name: "EasyNetwork.shared"))

    /// The queue of the program. May be replaced; the jobs of the one before go on.
    public static var shared: NetworkQueue {
        get { sharedQueue.withLock { $0 } }
        set { sharedQueue.exchange(newValue) }
    }

    /// This queue under Foundation's type, for code that takes an `OperationQueue`.
    ///
    /// Adding, cancelling and waiting there do so here, as does setting `isSuspended` and
    /// `maxConcurrentOperationCount`. Its `underlyingQueue` and `qualityOfService` count only for operations that are
    /// not of this package. Those of the package, blocks included, run on the package's own threads, where
    /// `OperationQueue.current` is nil: capture the queue. Its `progress` counts only operations that are not of this
    /// package. Its `operations`, `operationCount`, `maxConcurrentOperationCount` and `isSuspended` may be observed by
    /// KVO, which Linux has not. There, where a subclass cannot override them, its `operations` and `operationCount`
    /// have only the running jobs that are not of this package; ``operations`` and ``operationCount`` of this queue
    /// have all.
    public var queue: OperationQueue { executor }

    let executor: ExecutorQueue

    /// The callback queue of operations that have none of their own; nil, the default, means the host's.
    public let callbackQueue: DispatchQueue?

    /// The clock for rates and deadlines.
    let clock: any NetworkClock

    struct State {
        var graph: JobGraph<NetworkOperation>
        /// The places of operations that jobs wait for and that are not jobs here. The graph keeps them alive.
        var outside: [ObjectIdentifier: Job] = [:]
        /// The foreign operations to look at.
        var foreignWatch = ForeignJobWatch()
        /// Called when the queue becomes empty.
        /// By the numbers of their waits.
        var emptyWaiters: [Int: @Sendable () -> Void] = [:]
        var lastEmptyWait = 0
        var deadlines = JobDeadlines<Job>()
        /// Where it was shut down, so that no more jobs are accepted.
        var shutDownPlace: String?
        var bandwidth: BandwidthLimit?
        var reachability: NetworkReachability?
        /// The jobs that wait for each network, in the order of their turns, and the task that waits to release them.
        var offline: [ObjectIdentifier: (jobs: [Job], release: Task<Void, Never>)] = [:]
    }

    let state: Locked<State>
    /// For the next deadline of a job, and for the next one that a rate holds back.
    let deadlineAlarm = Alarm()
    let rateAlarm = Alarm()

    package let broadcast = EventBroadcast()

    /// The jobs that repeat each other, and the answers that are shared.
    let repeats = Locked((registry: RepeatRegistry<NetworkOperation>(), carriers: [SharingKey: RequestCarrier]()))

    /// Creates a queue.
    ///
    /// - Parameters:
    ///   - name: for debugging.
    ///   - maxConcurrentOperationCount: the number of jobs that run at once; a negative number means no limit, 0 means
    ///     that no job starts. Default six.
    ///   - maxConcurrentOperationCountPerHost: the same for each host. Default no limit.
    ///   - rateLimit: the rate at which jobs start; nil means no limit.
    ///   - callbackQueue: the queue of callbacks; nil means that of each operation's host.
    ///   - clock: the clock for rates and deadlines.
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
        // The default would leave the number to the system on Apple's platforms.
        executor.maxConcurrentOperationCount = .max
        self.executor = executor
        self.callbackQueue = callbackQueue
        self.clock = clock
        var graph = JobGraph<NetworkOperation>(limit: Self.limit(maxConcurrentOperationCount))
        graph.hostLimit = Self.limit(maxConcurrentOperationCountPerHost)
        graph.setRate(rateLimit, for: .everything)
        graph.overtakingLimit = 100
        state = Locked(State(graph: graph))
        executor.owner = self
    }

    deinit {
        broadcast.finish()
        for (_, release) in state.withLock({ exchange(&$0.offline, with: [:]) }).values { release.cancel() }
    }

    // MARK: - Adding

    /// Adds a job. An operation that was added before, or has been started, is not changed.
    ///
    /// Its dependencies are not added with it. An operation that is also added to an `OperationQueue` stops the
    /// process, as it does when it is added to two of those.
    ///
    /// A plain `Operation` also waits until its `isReady` is true. No platform tells the queue of that, or of a change
    /// of its `queuePriority`: the queue looks when a slot becomes free, and for `isReady` also periodically, at most
    /// 100 ms late.
    public func addOperation(_ operation: Operation) {
        add(operation.asNetworkOperation)
    }

    /// Adds a job that runs `block` on a background thread of the package and ends when it returns. A block that waits
    /// keeps its thread: see ``NetworkOperation/execute()``.
    public func addOperation(_ block: @escaping @Sendable () -> Void) {
        addOperation(BlockNetworkOperation(block))
    }

    /// Adds several jobs in order. They start when all have been added, so the one with the highest priority goes
    /// first.
    ///
    /// - Parameters:
    ///   - operations: the jobs.
    ///   - wait: whether to block the calling thread until all of them have finished. Default false; see
    ///     ``waitUntilAllOperationsAreFinished()`` for the threads that must not.
    public func addOperations(_ operations: [Operation], waitUntilFinished wait: Bool = false) {
        // From the last one on, since that mostly waits for those before it: a graph is in one trace.
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

    /// Adds a job that runs alone: after everything added before it, and before everything added after it.
    ///
    /// A job before the barrier must not depend on one after it: that is a cycle, and the later one ends with
    /// ``NetworkError/Code/cycle``.
    public func addBarrierBlock(_ barrier: @escaping @Sendable () -> Void) {
        add(BlockNetworkOperation(barrier), isBarrier: true)
    }

    /// Runs a request as a job and returns its item.
    ///
    /// Cancelling the task cancels the job; in a task that is cancelled already nothing is sent.
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - service: gives the host; nil, the default, means ``HostConfiguration/shared``.
    /// - Throws: the error of the job.
    public func perform<Request: APIRequest>(
        _ request: Request,
        service: EasyNetworkService? = nil
    ) async throws(NetworkError) -> Request.Item {
        guard !Task.isCancelled else { throw NetworkError(code: .cancelled) }
        let operation = RequestOperation(request, of: service)
        addOperation(operation)
        return try await operation.value
    }

    /// Runs a request as a job and returns its item and its response, with its body.
    ///
    /// ```swift
    /// let (users, response) = try await queue.performWithResponse(GetUsers())
    /// if let next = response.headers["Link"] { print(users.count, "users, and more at", next) }
    /// ```
    ///
    /// Otherwise as ``perform(_:service:)-(Request,_)``.
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
    /// Never from a job, a callback, or the thread of a callback queue, nor from the main thread while a job has
    /// `onMain` closures or the main queue as its callback queue: each would wait for the other for ever. Otherwise
    /// better not from the main thread either: the wait lends no priority to the jobs. In a task use
    /// ``waitUntilIdle()``.
    public func waitUntilAllOperationsAreFinished() {
        let semaphore = DispatchSemaphore(value: 0)
        whenEmpty { semaphore.signal() }
        semaphore.wait()
    }

    /// Calls `action` when no job is left; at once, on this thread, if there is none.
    ///
    /// - Returns: the number of the wait.
    @discardableResult
    func whenEmpty(_ action: @escaping @Sendable () -> Void) -> Int {
        let (isEmpty, number) = state.withLock { state in
            state.lastEmptyWait += 1
            if !state.graph.isEmpty { state.emptyWaiters[state.lastEmptyWait] = action }
            return (state.graph.isEmpty, state.lastEmptyWait)
        }
        if isEmpty { action() }
        return number
    }
}
