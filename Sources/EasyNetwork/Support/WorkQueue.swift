import Dispatch
import Foundation

/// Runs the package's own work and the user's: calls, mapping, callbacks without a queue, and `execute()`.
///
/// It is a concurrent queue, so that work that blocks holds up no other. Work that is added from work of the package's
/// own runs on the same thread when that returns, as a trampoline: a request then changes threads twice, to the
/// transport and back. Added from ``userCode(_:)``, it goes to another thread.
package enum WorkQueue {
    package static let shared = DispatchQueue(
        label: "EasyNetwork.work",
        attributes: .concurrent,
        autoreleaseFrequency: .workItem
    )

    /// The current piece of work on one thread.
    private final class Turn {
        /// Runs next on this thread.
        var next: (@Sendable () -> Void)?
        var isInUserCode = false
        /// Nil but in a simulation.
        let loop: (any WorkLoop)?

        init(on loop: (any WorkLoop)?) {
            self.loop = loop
        }
    }

    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        // Without a destructor: a turn ends on the thread on which it began.
        pthread_key_create(&key, nil)
        return key
    }()

    private static var turn: Turn? {
        pthread_getspecific(key).map { Unmanaged<Turn>.fromOpaque($0).takeUnretainedValue() }
    }

    /// Runs work after the current one on this thread, or on another thread of the queue.
    static func run(_ work: @escaping @Sendable () -> Void) {
        if let turn, turn.next == nil, !turn.isInUserCode, turn.loop == nil {
            turn.next = work
        } else {
            shared.add { take(work) }
        }
    }

    private static func take(_ first: @escaping @Sendable () -> Void) {
        let outer = turn
        let turn = Turn(on: outer?.loop)
        within(turn, then: outer) {
            first()
            while let next = turn.next {
                turn.next = nil
                next()
            }
        }
    }

    private static func within(_ turn: Turn, then outer: Turn?, _ work: () -> Void) {
        withExtendedLifetime(turn) {
            pthread_setspecific(key, Unmanaged.passUnretained(turn).toOpaque())
            work()
            pthread_setspecific(key, outer.map { Unmanaged.passUnretained($0).toOpaque() })
        }
    }

    /// Runs a part of a simulation: what it adds to any queue goes to the loop.
    package static func simulate(on loop: any WorkLoop, _ work: () -> Void) {
        let turn = Turn(on: loop)
        turn.isInUserCode = true
        within(turn, then: self.turn, work)
    }

    /// The loop of the simulation that this thread runs; nil outside of one.
    package static var loop: (any WorkLoop)? { turn?.loop }

    /// Runs code that may block: work that waits for this thread, or that the code adds, goes to another thread.
    package static func userCode<Result, Failure: Error>(_ code: () throws(Failure) -> Result) throws(Failure) -> Result
    {
        guard let turn, !turn.isInUserCode else { return try code() }
        if let next = turn.next {
            turn.next = nil
            shared.add { take(next) }
        }
        turn.isInUserCode = true
        defer { turn.isInUserCode = false }
        return try code()
    }

    /// Starts a task on the queue. Before macOS 15 and its siblings it runs where Swift puts it.
    ///
    /// The task counts as user code, since interceptors, authenticators and requests run in it; only ``finish(_:)``
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

    /// Runs the end of a task of ``task(_:)``: it may call back in place, and the first work that it adds runs on this
    /// thread afterwards.
    static func finish(_ end: @escaping @Sendable () -> Void) {
        if #available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *) {
            guard let turn else { return end() }
            turn.isInUserCode = false
            end()
            turn.isInUserCode = true
        } else {
            shared.add(end)
        }
    }

    /// Calls the user back on a queue.
    ///
    /// - Parameter inPlace: whether this thread is one of ``shared`` and has nothing else to do, so that the code may
    ///   run on it, if that is its queue.
    static func call(on queue: DispatchQueue, inPlace: Bool, _ code: @escaping @Sendable () -> Void) {
        if inPlace, queue === shared { code() } else { queue.add(code) }
    }

    /// Calls the user back on the main actor, in the order of these calls.
    ///
    /// - Parameter done: called afterwards, on the queue.
    static func callOnMain(_ code: @escaping @MainActor () -> Void, then done: @escaping @Sendable () -> Void) {
        // Detached, so that the code has no task-local values of the package's.
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
            let executor = asUnownedTaskExecutor()
            let part = { @Sendable in userCode { job.runSynchronously(on: executor) } }
            if let loop { loop.add(job, to: WorkQueue.shared) { take(part) } } else { run(part) }
        }
    }
}

/// Runs all work of a simulation, in an order of its own, on one thread: see ``WorkQueue/simulate(on:_:)``.
package protocol WorkLoop: AnyObject, Sendable {
    /// In place of the machine's clock.
    var clock: any NetworkClock { get }

    /// Adds work to a queue, which is taken for a serial one unless it is the package's or global.
    func add(_ work: @escaping @Sendable () -> Void, to queue: DispatchQueue)

    /// Adds a part of a task to a queue.
    func add(_ job: UnownedJob, to queue: DispatchQueue, _ part: @escaping @Sendable () -> Void)

    /// Starts an operation that is not of this package when it is ready.
    func start(_ operation: Operation)

    /// In place of a random one.
    func makeUUID() -> UUID

    /// A file is about to be used: other work may run first, and the disk may fail.
    func willUseFile(_ path: String, toWrite: Bool) throws
}

extension UUID {
    /// A new one.
    package static func make() -> UUID { WorkQueue.loop?.makeUUID() ?? UUID() }
}

extension DispatchQueue {
    /// Runs work on the queue, or, in a simulation, on its loop. All work of the package is added here.
    package func add(_ work: @escaping @Sendable () -> Void) {
        if let loop = WorkQueue.loop { loop.add(work, to: self) } else { async(execute: work) }
    }
}
