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
        /// Whether nothing of the package's is left to do but to call back.
        var isAtEnd = false
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
        if let turn, turn.next == nil, !turn.isInUserCode {
            turn.next = work
        } else {
            shared.async { take(work) }
        }
    }

    private static func take(_ first: @escaping @Sendable () -> Void) {
        let turn = Turn()
        withExtendedLifetime(turn) {
            pthread_setspecific(key, Unmanaged.passUnretained(turn).toOpaque())
            first()
            while let next = turn.next {
                turn.next = nil
                next()
            }
            pthread_setspecific(key, nil)
        }
    }

    /// Runs code that may block: work that waits for this thread, or that the code adds, goes to another thread.
    package static func userCode<Result, Failure: Error>(_ code: () throws(Failure) -> Result) throws(Failure) -> Result
    {
        guard let turn, !turn.isInUserCode else { return try code() }
        if let next = turn.next {
            turn.next = nil
            shared.async { take(next) }
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
    static func task<Success: Sendable>(
        _ body: @escaping @Sendable () async -> Success
    ) -> Task<Success, Never> {
        if #available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *) {
            Task(executorPreference: Executor.shared) { await body() }
        } else {
            Task { await body() }
        }
    }

    /// Runs the end of a task of ``task(_:)``. The first callback that it calls by ``call(on:_:)`` may run in place,
    /// and the first work that it adds runs on this thread afterwards.
    static func finish(_ end: @escaping @Sendable () -> Void) {
        if #available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *) {
            guard let turn else { return end() }
            (turn.isInUserCode, turn.isAtEnd) = (false, true)
            end()
            (turn.isInUserCode, turn.isAtEnd) = (true, false)
        } else {
            shared.async(execute: end)
        }
    }

    /// Calls the user back on a queue; in place if that is this one, and nothing waits for the call to return.
    static func call(on queue: DispatchQueue, _ code: @escaping @Sendable () -> Void) {
        guard queue === shared, let turn, turn.isAtEnd, !turn.isInUserCode else { return queue.async(execute: code) }
        turn.isAtEnd = false
        code()
    }

    /// Calls the user back on the main actor, in the order of these calls.
    ///
    /// - Parameter done: called afterwards, on the queue.
    static func callOnMain(_ code: @escaping @MainActor () -> Void, then done: @escaping @Sendable () -> Void) {
        // Detached, so that the code has no task-local values of the package's.
        Task.detached { @MainActor in
            code()
            shared.async(execute: done)
        }
    }

    @available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
    private final class Executor: TaskExecutor {
        static let shared = Executor()

        func enqueue(_ job: consuming ExecutorJob) {
            let job = UnownedJob(job)
            let executor = asUnownedTaskExecutor()
            run { userCode { job.runSynchronously(on: executor) } }
        }
    }
}
