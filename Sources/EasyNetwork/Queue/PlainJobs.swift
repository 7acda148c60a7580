import Foundation

/// The plain operations whose jobs have not started, as a value: which of them to look at, since they do not tell that they
/// are ready, cancelled, or have another priority.
struct PlainJobWatch {
    /// Seconds between two looks at operations that are not ready: the first pause, and the longest.
    private static let pauses = (first: 0.001, longest: 0.1)

    /// The waiting jobs, and some that do not wait any more.
    private var jobs: [JobID] = []
    private var next = 0
    /// Limits the looks, so a job costs the same however many others wait: when slots become free rarely all jobs are
    /// looked at, in a burst some at a time.
    private var gate = RateGate(RateLimit(20_000, per: 1, burst: 1_024))
    /// The jobs that are held because they are not ready.
    private(set) var unready: Set<JobID> = []
    private var pause = Self.pauses.first
    /// Whether a look at the jobs that are not ready is scheduled.
    private var isLookDue = false

    var isEmpty: Bool { jobs.isEmpty && unready.isEmpty }

    mutating func add(_ job: JobID) {
        jobs.append(job)
    }

    mutating func addUnready(_ job: JobID) {
        jobs.append(job)
        unready.insert(job)
        pause = Self.pauses.first
    }

    /// - Returns: whether it was held.
    mutating func removeUnready(_ job: JobID) -> Bool {
        unready.remove(job) != nil
    }

    /// - Returns: the seconds until the next look at jobs that are not ready; nil when there are none, or it is scheduled.
    mutating func nextLook() -> TimeInterval? {
        guard !unready.isEmpty, !isLookDue else { return nil }
        isLookDue = true
        defer { pause = min(2 * pause, Self.pauses.longest) }
        return pause
    }

    mutating func lookIsDue() {
        isLookDue = false
    }

    /// Forgets a job that is not here any more.
    mutating func removeGone(_ job: JobID) {
        unready.remove(job)
    }

    /// Forgets all jobs, because no plain operation is left.
    mutating func removeAll() {
        jobs = []
        unready = []
    }

    /// The jobs to look at now that a slot becomes free. Jobs that do not wait any more are removed on the way.
    ///
    /// - Parameter now: on the machine's clock.
    mutating func takeShare(of graph: JobGraph<Operation>, at now: TimeInterval) -> [JobID] {
        var share: [JobID] = []
        var unseen = jobs.count
        while unseen > 0, gate.opens <= now {
            unseen -= 1
            if next >= jobs.count { next = 0 }
            if graph.isWaiting(jobs[next]) {
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

extension Operation {
    /// Whether it is not ready, and has not been started manually.
    var isHeldBack: Bool { !isReady && !isExecuting && !isFinished }
}

/// Operations that are not of this package.
extension NetworkQueue {
    /// The facts about an operation that is not a ``NetworkOperation`` and cannot store them itself.
    private struct PlainOperation {
        /// Whether a queue has it: adding it twice to the executors stops the process.
        var isTaken = false
        weak var queue: NetworkQueue?
        var waiters = Waiters()
    }

    private static let plainOperations = Locked<[ObjectIdentifier: PlainOperation]>([:])

    static func queue(ofPlain operation: Operation) -> NetworkQueue? {
        plainOperations.withLock { $0[ObjectIdentifier(operation)]?.queue }
    }

    static func waiters(ofPlain operation: Operation) -> Waiters {
        plainOperations.withLock { $0[ObjectIdentifier(operation)]?.waiters } ?? Waiters()
    }

    /// Forgets an operation that has finished.
    static func forgetPlain(_ operation: Operation) {
        plainOperations.withLock { _ = $0.removeValue(forKey: ObjectIdentifier(operation)) }
    }

    /// Notes that jobs of this queue wait for an operation elsewhere.
    static func addWaiter(_ queue: NetworkQueue, for operation: Operation) {
        if let operation = operation as? NetworkOperation { return operation.addWaiter(queue) }
        plainOperations.withLock { $0[ObjectIdentifier(operation), default: PlainOperation()].waiters.add(queue) }
    }

    /// Notes that an operation waits for its prerequisite.
    static func addWaiter(_ waiter: NetworkOperation, for operation: Operation) {
        if let operation = operation as? NetworkOperation { return operation.addWaiter(waiter) }
        plainOperations.withLock { $0[ObjectIdentifier(operation), default: PlainOperation()].waiters.add(waiter) }
    }

    /// - Returns: the job that is to be released; nil when there is none.
    @discardableResult
    func add(plain operation: Operation, passesBarriers: Bool = false, isHeld: Bool = false) -> JobID? {
        let isAwaited = Self.plainOperations.withLock { operations -> Bool? in
            var record = operations[ObjectIdentifier(operation)] ?? PlainOperation()
            guard !record.isTaken else { return nil }
            record.isTaken = true
            record.queue = self
            operations[ObjectIdentifier(operation)] = record
            return !record.waiters.isEmpty
        }
        guard let isAwaited else { return nil }
        guard !operation.isExecuting, !operation.isFinished else {
            Self.plainOperations.withLock { operations in
                let waiters = operations[ObjectIdentifier(operation)]?.waiters ?? Waiters()
                operations[ObjectIdentifier(operation)] = waiters.isEmpty ? nil : PlainOperation(waiters: waiters)
            }
            return nil
        }
        let dependencies = operation.dependencies.map { OperationDependency(operation: $0, policy: .allowFailure) }
        let traits = JobGraph<Operation>.Traits(passesBarriers: passesBarriers)
        let isCancelled = operation.isCancelled
        let priority = JobPriority(operation.queuePriority)
        let job = submit(operation, priority, traits, isOver: isCancelled, isHeld: isHeld) { job, state, _ in
            state.plainJobs[ObjectIdentifier(operation)] = job
            state.watch.add(job)
            state.keptAlive = self
            return (dependencies, isAwaited)
        }
        // Cancelled since the first look.
        if let job, !isCancelled, operation.isCancelled { step { $0.graph.end(job, &$1) } }
        return isHeld ? job : nil
    }

    /// Takes the slot back from a plain operation that is not ready: because it was given a dependency after it had been
    /// added, which it tells no queue, or because its `isReady` is false. The job that makes it ready may need the slot.
    func postpone(_ operation: Operation) -> Bool {
        let unfinished = operation.dependencies.filter { !$0.isFinished }
            .map { OperationDependency(operation: $0, policy: .allowFailure) }
        guard !unfinished.isEmpty || operation.isHeldBack, !operation.isCancelled else { return false }
        var outside: [Outside] = []
        let job = step { state, actions -> JobID? in
            guard let job = state.plainJobs[ObjectIdentifier(operation)],
                state.graph.takeSlot(from: job, &actions)
            else { return nil }
            if unfinished.isEmpty {
                state.watch.addUnready(job)
            } else {
                state.watch.add(job)
                outside = link(job, to: unfinished, &state, &actions)
                state.graph.settle([job], &actions)
            }
            return job
        }
        guard let job else { return false }
        if unfinished.isEmpty { watchUnready() }
        for other in outside { watch(other) }
        endIfInCycle(operation)
        // Cancelled since then, when it seemed to run.
        if operation.isCancelled { step { $0.graph.end(job, &$1) } }
        return true
    }

    /// Removes the job of a plain operation that has finished, or was cancelled and does not become ready, so that it never
    /// will.
    func finish(plain operation: Operation) {
        let (job, keptAlive) = state.withLock { state in
            let job = state.plainJobs.removeValue(forKey: ObjectIdentifier(operation))
            if state.plainJobs.isEmpty { state.watch.removeAll() }
            return (job, state.plainJobs.isEmpty ? state.keptAlive.take() : nil)
        }
        defer { withExtendedLifetime(keptAlive) {} }
        if let job {
            let wasCancelled = operation.isCancelled
            finish(operation, job, succeeded: !wasCancelled) { wasCancelled ? NetworkError(code: .cancelled) : nil }
        }
    }

    func plainOperationDidFinish(_ operation: Operation) {
        finish(plain: operation)
        #if !canImport(Darwin)
        // A dependency that outlives its dependent keeps a pointer to it that nothing else clears. And the members of a
        // long chain, which hold each other, would be released recursively, too deep. Removing many dependencies costs
        // the square of their number, and a chain has few.
        let dependencies = operation.dependencies
        for dependency in dependencies where !dependency.isFinished || dependencies.count < 16 {
            operation.removeDependency(dependency)
        }
        #endif
    }
}

/// Looking at plain operations, which do not tell of changes.
extension NetworkQueue {
    /// The state of a plain operation when it was looked at.
    private typealias Sight = (job: JobID, priority: JobPriority, isReady: Bool, isCancelled: Bool)

    /// A step after which jobs may start. Plain operations are looked at before it.
    @discardableResult
    func stepMakingRoom<Result>(_ body: (inout State, inout Actions) -> Result) -> Result {
        let result = step { state, actions -> Result? in state.watch.isEmpty ? body(&state, &actions) : nil }
        if let result { return result }
        let now = SystemClock().now
        let sights = look { $0.watch.takeShare(of: $0.graph, at: now) }
        return step { state, actions in
            note(sights, &state, &actions)
            return body(&state, &actions)
        }
    }

    /// Looks at the jobs that are not ready, less and less often.
    func watchUnready() {
        guard let delay = state.withLock({ $0.watch.nextLook() }) else { return }
        // The time that an operation takes to become ready is the machine's, whatever the clock of the queue.
        _ = SystemClock().schedule(after: delay) { [weak self] in
            guard let self else { return }
            let sights = look { state in
                state.watch.lookIsDue()
                return Array(state.watch.unready)
            }
            step { state, actions in
                note(sights, &state, &actions)
                state.graph.admit(&actions)
            }
            watchUnready()
        }
    }

    /// - Parameter jobs: called under the lock; the operations are read without it, since they may run code of the user.
    private func look(at jobs: (inout State) -> [JobID]) -> [Sight] {
        let operations = state.withLock { state in
            jobs(&state).compactMap { job -> (JobID, Operation, Bool)? in
                guard let operation = state.graph.payload(of: job) else {
                    state.watch.removeGone(job)
                    return nil
                }
                return (job, operation, state.watch.unready.contains(job))
            }
        }
        return operations.map { job, operation, isUnready in
            (
                job, JobPriority(operation.queuePriority), isUnready && !operation.isHeldBack,
                operation.isCancelled
            )
        }
    }

    private func note(_ sights: [Sight], _ state: inout State, _ actions: inout Actions) {
        var ready: [JobID] = []
        for sight in sights {
            let isWaiting = state.graph.isWaiting(sight.job)
            if isWaiting, sight.isCancelled {
                state.graph.end(sight.job, &actions)
            } else if isWaiting {
                state.graph.notePriority(sight.priority, of: sight.job, &actions)
            }
            guard !isWaiting || sight.isReady || sight.isCancelled else { continue }
            if state.watch.removeUnready(sight.job), !sight.isCancelled { ready.append(sight.job) }
        }
        state.graph.settle(ready, &actions)
    }
}
