import Dispatch
import Foundation

/// Runs jobs: with dependencies, priorities, a limit, suspension and cancellation.
///
/// ```swift
/// let signIn = RequestOperation(SignInRequest(name: "ada"))
/// let profile = signIn.then { ProfileRequest(token: $0.token) }
/// profile.success = { print($0.name) }
/// NetworkQueue.shared.addOperations([signIn, profile], waitUntilFinished: false)
/// ```
///
/// Jobs that wait are held here and not by the `OperationQueue` underneath, which gets only what may run at once. So a
/// waiting job that is cancelled ends promptly though every slot is taken or the queue is suspended, and a job costs
/// the same however many others wait.
///
/// Within a priority jobs start in the order in which they were added. Any `Operation` may be added, and may depend on
/// any other, here, on another queue, or on none. A queue stays alive while it has jobs. All members may be used from
/// any thread.
public final class NetworkQueue: Sendable {
    /// How many jobs run at once unless the queue is told otherwise: as many as a browser opens connections to a host.
    public static let defaultMaxConcurrentOperationCount = 6

    private static let sharedQueue = Locked(NetworkQueue(name: "EasyNetwork.shared"))

    /// The queue of the program. May be replaced; the jobs of the one before go on.
    public static var shared: NetworkQueue {
        get { sharedQueue.withLock { $0 } }
        set { sharedQueue.exchange(\.self, newValue) }
    }

    /// The executor: the `OperationQueue` that starts what may run.
    ///
    /// Its `cancelAllOperations()` cancels everything here. It has no limit of its own. An operation added to it
    /// directly runs at once, past this queue's limit and order.
    public let queue: OperationQueue

    /// Where callbacks of operations go that have no queue of their own; nil, the default, leaves it to the host.
    public let callbackQueue: DispatchQueue?

    struct State {
        var graph: JobGraph<Operation>
        /// The places of operations that are not of this package and cannot remember them.
        var plainJobs: [ObjectIdentifier: JobID] = [:]
        /// The queue itself while it has plain jobs; the others hold it themselves.
        var keptAlive: NetworkQueue?
        /// Who waits for the queue to become empty.
        var emptyWaiters: [DispatchSemaphore] = []
    }

    let state: Locked<State>

    /// - Parameters:
    ///   - name: for debugging.
    ///   - maxConcurrentOperationCount: how many jobs run at once; a negative number means no limit, 0 means none.
    ///   - callbackQueue: where callbacks go; nil leaves it to the host of each operation.
    public init(
        name: String = "EasyNetwork.NetworkQueue",
        maxConcurrentOperationCount: Int = NetworkQueue.defaultMaxConcurrentOperationCount,
        callbackQueue: DispatchQueue? = nil
    ) {
        let executor = ExecutorQueue()
        executor.name = name
        // Not the default: on Apple's platforms that is what the system finds right.
        executor.maxConcurrentOperationCount = .max
        queue = executor
        self.callbackQueue = callbackQueue
        state = Locked(State(graph: JobGraph(limit: Self.limit(maxConcurrentOperationCount))))
        executor.owner = self
    }

    // MARK: - Adding

    /// Adds a job. One that was added before, or has been started, is left as it is.
    ///
    /// Its dependencies are not added with it. An operation that is also added to an `OperationQueue` by hand stops the
    /// process, as it does when it is added to two of those.
    public func addOperation(_ operation: Operation) {
        if let operation = operation as? NetworkOperation {
            add(operation)
        } else {
            add(plain: operation)
        }
    }

    /// Adds a job that runs `block`, on a thread of the executor, and is over when it returns.
    public func addOperation(_ block: @escaping @Sendable () -> Void) {
        addOperation(BlockNetworkOperation(block))
    }

    /// Adds several jobs in order.
    ///
    /// - Parameter wait: whether to block the calling thread until they have all finished. Never from a job, a
    ///   callback, or the thread of a callback queue: the thread that is blocked may be the one they need.
    public func addOperations(_ operations: [Operation], waitUntilFinished wait: Bool) {
        for operation in operations { addOperation(operation) }
        guard wait else { return }
        let group = DispatchGroup()
        for operation in operations {
            group.enter()
            FinishWatcher.watch(operation) { group.leave() }
        }
        group.wait()
    }

    /// Adds a job that runs alone: after everything added before it, and before everything added after it.
    ///
    /// A job before the barrier must not depend on one after it: each would wait for the other.
    public func addBarrierBlock(_ barrier: @escaping @Sendable () -> Void) {
        add(BlockNetworkOperation(barrier), isBarrier: true)
    }

    /// Runs a request as a job and returns its item.
    ///
    /// It goes to ``HostConfiguration/shared``, or to its own absolute URL. Cancelling the task cancels the job.
    ///
    /// - Throws: the error of the job.
    public func perform<Request: APIRequest>(_ request: Request) async throws(NetworkError) -> Request.Item {
        let operation = RequestOperation(request)
        addOperation(operation)
        return try await operation.value
    }

    // MARK: - Cancelling, waiting, limits

    /// Cancels every job: those that wait end at once, without having run; those that run are told to stop.
    public func cancelAllOperations() {
        var actions = JobGraph<Operation>.Actions()
        // Taken before, so that a job that a callback adds meanwhile is not cancelled with the rest.
        let executing = queue.operations
        // In one step, so that no slot that becomes free is given to a job that is about to be cancelled.
        let operations = state.withLock { state in
            state.graph.endAllWaiting(&actions)
            return state.graph.payloads
        }
        for operation in operations { operation.cancel() }
        for operation in executing { operation.cancel() }
        perform(actions)
    }

    /// The jobs that have not finished, in the order in which they were added. Linear in their number.
    public var operations: [Operation] {
        state.withLock { $0.graph.payloads }
    }

    /// How many jobs have not finished.
    public var operationCount: Int {
        state.withLock { $0.graph.count }
    }

    /// Whether no job is started; those that run go on. Default false.
    public var isSuspended: Bool {
        get { state.withLock { $0.graph.isSuspended } }
        set { change { $0.setSuspended(newValue, &$1) } }
    }

    /// How many jobs run at once; a negative number means no limit, 0 means none. Default
    /// ``defaultMaxConcurrentOperationCount``. A lower number stops none that already runs.
    public var maxConcurrentOperationCount: Int {
        get { state.withLock { $0.graph.limit ?? OperationQueue.defaultMaxConcurrentOperationCount } }
        set { change { $0.setLimit(Self.limit(newValue), &$1) } }
    }

    /// Blocks the calling thread until no job is left. Never from a job, a callback, or the thread of a callback queue.
    public func waitUntilAllOperationsAreFinished() {
        let semaphore = state.withLock { state -> DispatchSemaphore? in
            guard state.graph.count > 0 else { return nil }
            let semaphore = DispatchSemaphore(value: 0)
            state.emptyWaiters.append(semaphore)
            return semaphore
        }
        semaphore?.wait()
    }

    private static func limit(_ count: Int) -> Int? {
        count < 0 ? nil : count
    }
}
