import Foundation

/// The foreign operations whose jobs have not started, as a value. It determines which of them to check, because they
/// report no change of their readiness, cancellation or priority.
struct ForeignJobWatch {
    typealias Job = NetworkQueue.Job

    /// The first and the longest time in seconds between two checks of operations that are not ready.
    private static let pauses = (first: 0.001, longest: 0.1)

    /// The waiting jobs, and some jobs that no longer wait.
    private var jobs: [Job] = []
    private var next = 0
    /// Limits the number of checks, so that the cost of a job doesn't depend on the number of waiting jobs. If slots
    /// become free rarely, all jobs are checked; in a burst, some at a time.
    private var gate = RateGate(RateLimit(20_000, per: 1, burst: 1_024))
    /// The jobs that are held because they are not ready.
    private(set) var unready: [ObjectIdentifier: Job] = [:]
    private var pause = Self.pauses.first
    /// Whether a check of the jobs that are not ready is scheduled.
    var isLookDue = false

    var isEmpty: Bool { jobs.isEmpty && unready.isEmpty }

    mutating func add(_ job: Job, isUnready: Bool = false) {
        jobs.append(job)
        guard isUnready else { return }
        unready[ObjectIdentifier(job)] = job
        pause = Self.pauses.first
    }

    /// - Returns: whether the job was held.
    mutating func removeUnready(_ job: Job) -> Bool {
        unready.removeValue(forKey: ObjectIdentifier(job)) != nil
    }

    /// - Returns: the seconds until the next check of jobs that are not ready; `nil` if there are no such jobs, or the
    ///   check is already scheduled.
    mutating func nextLook() -> TimeInterval? {
        guard !unready.isEmpty, !isLookDue else { return nil }
        isLookDue = true
        defer { pause = min(2 * pause, Self.pauses.longest) }
        return pause
    }

    /// Forgets all jobs, because no job is left.
    mutating func removeAll() {
        jobs = []
        unready = [:]
    }

    /// Returns the jobs to check now that a slot becomes free. Removes jobs that no longer wait.
    ///
    /// - Parameter now: the time on the machine's clock.
    mutating func takeShare(at now: TimeInterval) -> [Job] {
        var share: [Job] = []
        var unseen = jobs.count
        while unseen > 0, gate.opens <= now {
            unseen -= 1
            if next >= jobs.count { next = 0 }
            if jobs[next].isWaiting {
                share.append(jobs[next])
                next += 1
                gate.take(at: now)
            } else {
                jobs[next] = jobs[jobs.count - 1]
                jobs.removeLast()
            }
        }
        return share
    }
}

/// Checking foreign operations, which report no changes.
extension NetworkQueue {
    /// The state of a foreign operation at the time of a check.
    private typealias Sight = (job: Job, priority: JobPriority, isReady: Bool)

    /// Performs a step after a check of foreign operations, because they can start after it.
    func stepAfterCheck<Result>(
        _ body: (inout State, inout Actions) -> Result,
        beforeActing: (Result) -> Void
    ) -> Result {
        let now = SystemClock().now
        let sights = lookAndEndCancelled { $0.foreignWatch.takeShare(at: now) }
        return step(
            { state, actions in
                note(sights, &state, &actions)
                return body(&state, &actions)
            },
            beforeActing: beforeActing
        )
    }

    /// Checks the jobs that are not ready, at increasing intervals.
    func watchUnready() {
        guard let delay = state.withLock({ $0.foreignWatch.nextLook() }) else { return }
        // Use the system's clock, because the time until an operation is ready doesn't depend on the queue's clock.
        _ = SystemClock().schedule(after: delay) { [weak self] in
            guard let self else { return }
            let sights = lookAndEndCancelled { state in
                state.foreignWatch.isLookDue = false
                return Array(state.foreignWatch.unready.values)
            }
            step { state, actions in
                note(sights, &state, &actions)
                state.graph.admit(&actions)
            }
            watchUnready()
        }
    }

    /// Reads the state of foreign operations, and ends the cancelled ones.
    ///
    /// - Parameter jobs: called under the lock. The operations are read without it, because they can run user code.
    private func lookAndEndCancelled(at jobs: (inout State) -> [Job]) -> [Sight] {
        let operations = state.withLock { state in
            jobs(&state).compactMap { job -> (Job, ForeignJob, isUnready: Bool)? in
                guard let operation = job.payload as? ForeignJob else {
                    _ = state.foreignWatch.removeUnready(job)
                    return nil
                }
                return (job, operation, state.foreignWatch.unready[ObjectIdentifier(job)] != nil)
            }
        }
        return operations.map { job, operation, isUnready in
            if operation.foreign.isCancelled { operation.cancel() }
            return (job, JobPriority(operation.queuePriority), isUnready && !operation.isHeldBack)
        }
    }

    private func note(_ sights: [Sight], _ state: inout State, _ actions: inout Actions) {
        for sight in sights {
            if sight.job.isWaiting {
                state.graph.setPriority(sight.priority, of: sight.job)
                guard sight.isReady else { continue }
            }
            guard state.foreignWatch.removeUnready(sight.job) else { continue }
            noteWaitBefore(.notReady, [sight.job])
            state.graph.settle(sight.job, &actions)
        }
    }

    /// Takes the slot from a foreign operation that is not ready. Either it was given a dependency after it was added,
    /// which it reports to no queue, or its `isReady` is `false`. The job that makes it ready may need the slot.
    func postpone(_ operation: ForeignJob) -> Bool {
        let unfinished = operation.unfinishedDependencies
        guard !unfinished.isEmpty || operation.isHeldBack, !operation.foreign.isCancelled else { return false }
        var outside: [Job] = []
        let isHeld = takeBackSlot(of: operation) { job, state, actions in
            state.foreignWatch.add(job, isUnready: unfinished.isEmpty)
            guard !unfinished.isEmpty else { return }
            outside = link(job, to: unfinished, &state)
            state.graph.settle(job, &actions)
        }
        guard isHeld else { return false }
        if unfinished.isEmpty { watchUnready() }
        for other in outside { watch(other) }
        endIfInCycle(operation)
        return true
    }
}
