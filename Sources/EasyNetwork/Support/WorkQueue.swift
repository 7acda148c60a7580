import Dispatch
import Foundation

/// Runs the package's work and the user's code: calls, mapping, callbacks without a queue, and `execute()`.
///
/// The queue is concurrent, so work that blocks delays no other work. Work that the package's own work adds runs on the
/// same thread afterwards, as on a trampoline. A request therefore changes threads only twice: to the transport and
/// back. Work that code inside ``userCode(_:)`` adds runs on another thread.
package enum WorkQueue {
    package static let shared: DispatchQueue = {
        #if canImport(Darwin)
        DispatchQueue(label: "EasyNetwork.work", attributes: .concurrent, autoreleaseFrequency: .workItem)
        #else
        // A queue of the package would pass each piece of work on to this one.
        DispatchQueue.global()
        #endif
    }()

    /// A piece of work. A part of a task needs no closure.
    private enum Work: Sendable {
        case closure(@Sendable () -> Void)
        case part(UnownedJob)

        func run() {
            switch self {
            case .closure(let closure): closure()
            case .part(let job):
                guard #available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *) else { return }
                userCode { job.runSynchronously(on: Executor.shared.asUnownedTaskExecutor()) }
            }
        }
    }

    /// The current piece of work on a thread. It lies on the stack of that thread, where ``key`` has its address.
    private struct Turn {
        /// The work to run next on this thread.
        var next: Work?
        var isInUserCode = false
        /// The loop of a simulation; nil outside of one.
        let loop: (any WorkLoop)?
    }

    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        // The key needs no destructor: a turn ends on the thread on which it began.
        pthread_key_create(&key, nil)
        return key
    }()

    private static var turn: UnsafeMutablePointer<Turn>? {
        pthread_getspecific(key)?.assumingMemoryBound(to: Turn.self)
    }

    /// Runs work on this thread after the current work, or on another thread of the queue.
    static func run(_ work: @escaping @Sendable () -> Void) {
        run(.closure(work))
    }

    private static func run(_ work: Work) {
        if let turn, turn.pointee.next == nil, !turn.pointee.isInUserCode, turn.pointee.loop == nil {
            turn.pointee.next = work
        } else {
            shared.add { take(work) }
        }
    }

    private static func take(_ first: Work) {
        within(Turn(loop: loop)) { turn in
            first.run()
            while let next = turn.pointee.next.take() { next.run() }
        }
    }

    /// Runs work in a turn of its own.
    private static func within(_ turn: Turn, _ work: (UnsafeMutablePointer<Turn>) -> Void) {
        var turn = turn
        let outer = self.turn
        withUnsafeMutablePointer(to: &turn) { turn in
            pthread_setspecific(key, turn)
            work(turn)
            pthread_setspecific(key, outer)
        }
    }

    /// Runs a part of a simulation. Everything that it adds to a queue is added to the loop.
    package static func simulate(on loop: any WorkLoop, _ work: () -> Void) {
        within(Turn(isInUserCode: true, loop: loop)) { _ in work() }
    }

    /// The loop of the simulation that runs on this thread; nil outside of a simulation.
    package static var loop: (any WorkLoop)? { turn?.pointee.loop }

    /// Runs code that can block. Work that waits for this thread, or that the code adds, runs on another thread.
    package static func userCode<Result, Failure: Error>(_ code: () throws(Failure) -> Result) throws(Failure) -> Result
    {
        guard let turn, !turn.pointee.isInUserCode else { return try code() }
        if let next = turn.pointee.next.take() { shared.add { take(next) } }
        turn.pointee.isInUserCode = true
        defer { turn.pointee.isInUserCode = false }
        return try code()
    }

    /// Starts a task on the queue. Before macOS 15, iOS 18 and their siblings, the task runs on Swift's default
    /// executor.
    ///
    /// The task counts as user code, because interceptors, authenticators and requests run in it. Only ``finish(_:)``
    /// does not.
    @discardableResult
    package static func task<Success: Sendable>(
        _ body: @escaping @Sendable @isolated(any) () async -> Success
    ) -> Task<Success, Never> {
        if #available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *) {
            Task(executorPreference: Executor.shared, operation: body)
        } else {
            Task(operation: body)
        }
    }

    /// Runs the end of a task that ``task(_:)`` started. `end` can call back on this thread, and the first work that it
    /// adds runs on this thread afterwards.
    ///
    /// - Returns: False if the task does not run on the queue, so that `end` must be added to the queue.
    static func finish(_ end: () -> Void) -> Bool {
        guard #available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *) else { return false }
        let turn = turn
        turn?.pointee.isInUserCode = false
        end()
        turn?.pointee.isInUserCode = true
        return true
    }

    /// Runs a callback of the user on a queue.
    ///
    /// - Parameter inPlace: Whether this thread belongs to ``shared`` and has nothing else to do. If `queue` is
    ///   ``shared``, the callback then runs on this thread.
    static func call(on queue: DispatchQueue, inPlace: Bool, _ code: @escaping @Sendable () -> Void) {
        if inPlace, queue === shared { code() } else { queue.add(code) }
    }

    /// Runs callbacks of the user on the main actor, in the order of these calls.
    ///
    /// - Parameter done: A closure to call afterwards, on the queue.
    static func callOnMain(_ code: @escaping @MainActor () -> Void, then done: @escaping @Sendable () -> Void) {
        // The task is detached, so that the callback sees no task-local values of the package.
        Task.detached { @MainActor in
            code()
            shared.add(done)
        }
    }

    @available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
    private final class Executor: TaskExecutor {
        static let shared = Executor()

        func enqueue(_ job: consuming ExecutorJob) {
            let job = UnownedJob(job)
            if let loop { loop.add(job, to: WorkQueue.shared) { take(.part(job)) } } else { run(.part(job)) }
        }
    }
}

/// A loop that runs all work of a simulation on one thread, in its own order: see ``WorkQueue/simulate(on:_:)``.
package protocol WorkLoop: AnyObject, Sendable {
    /// The clock that replaces the machine's clock.
    var clock: any NetworkClock { get }

    /// Adds work to a queue. The loop treats the queue as serial, unless it is the package's queue or a global one.
    func add(_ work: @escaping @Sendable () -> Void, to queue: DispatchQueue)

    /// Adds a part of a task to a queue.
    func add(_ job: UnownedJob, to queue: DispatchQueue, _ part: @escaping @Sendable () -> Void)

    /// Starts an operation that is not defined by this package when it is ready.
    func start(_ operation: Operation)

    /// Returns an identifier that replaces a random one.
    func makeUUID() -> UUID

    /// Notes that a file is about to be used: other work can run first, and the disk can fail.
    func willUseFile(_ path: String, toWrite: Bool) throws
}

extension UUID {
    /// Returns a new identifier.
    package static func make() -> UUID { WorkQueue.loop?.makeUUID() ?? UUID() }
}

extension DispatchQueue {
    /// Runs work on the queue, or in a simulation on its loop. Work that can be part of a simulation is added only
    /// through this method.
    package func add(_ work: @escaping @Sendable () -> Void) {
        if let loop = WorkQueue.loop { loop.add(work, to: self) } else { async(execute: work) }
    }
}
