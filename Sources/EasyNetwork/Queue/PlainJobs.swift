import Foundation

/// The plain operations whose jobs have not started, as a value: which of them to look at, since they do not tell that
/// they are ready, cancelled, or have another priority.
struct PlainJobWatch {
    typealias Job = NetworkQueue.Job

    /// Seconds between two looks at operations that are not ready: the first pause, and the longest.
    private static let pauses = (first: 0.001, longest: 0.1)

    /// The waiting jobs, and some that do not wait any more.
    private var jobs: [Job] = []
    private var next = 0
    /// Limits the looks, so a job costs the same however many others wait: when slots become free rarely all jobs are
    /// looked at, in a burst some at a time.
    private var gate = RateGate(RateLimit(20_000, per: 1, burst: 1_024))
    /// The jobs that are held because they are not ready.
    private(set) var unready: [ObjectIdentifier: Job] = [:]
    private var pause = Self.pauses.first
    /// Whether a look at the jobs that are not ready is scheduled.
    var isLookDue = false

    var isEmpty: Bool { jobs.isEmpty && unready.isEmpty }

    mutating func add(_ job: Job, isUnready: Bool = false) {
        jobs.append(job)
        guard isUnready else { return }
        unready[ObjectIdentifier(job)] = job
        pause = Self.pauses.first
    }

    /// - Returns: whether it was held.
    mutating func removeUnready(_ job: Job) -> Bool {
        unready.removeValue(forKey: ObjectIdentifier(job)) != nil
    }

    /// - Returns: the seconds until the next look at jobs that are not ready; nil when there are none, or it is
    ///   scheduled.
    mutating func nextLook() -> TimeInterval? {
        guard !unready.isEmpty, !isLookDue else { return nil }
        isLookDue = true
        defer { pause = min(2 * pause, Self.pauses.longest) }
        return pause
    }

    /// Forgets all jobs, because no plain operation is left.
    mutating func removeAll() {
        jobs = []
        unready = [:]
    }

    /// The jobs to look at now that a slot becomes free. Jobs that do not wait any more are removed on the way.
    ///
    /// - Parameter now: on the machine's clock.
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

    /// The queue whose job the operation is.
    static func queue(of operation: Operation) -> NetworkQueue? {
        if let operation = operation as? NetworkOperation { return operation.scheduling?.queue }
        return plainOperations.withLock { $0[ObjectIdentifier(operation)]?.queue }
    }

    static func waiters(of operation: Operation) -> Waiters {
        if let operation = operation as? NetworkOperation { return operation.core.withLock { $0.waiters } }
        return plainOperations.withLock { $0[ObjectIdentifier(operation)]?.waiters } ?? Waiters()
    }

    /// Forgets an operation that has finished.
    static func forgetPlain(_ operation: Operation) {
        plainOperations.withLock { _ = $0.removeValue(forKey: ObjectIdentifier(operation)) }
    }

    /// Notes what waits for the end of an operation.
    static func changeWaiters(of operation: Operation, _ change: (inout Waiters) -> Void) {
        if let operation = operation as? NetworkOperation { return operation.core.withLock { change(&$0.waiters) } }
        plainOperations.withLock { change(&$0[ObjectIdentifier(operation), default: PlainOperation()].waiters) }
    }

    /// - Returns: the job that is to be released; nil when there is none.
    @discardableResult
    func add(plain operation: Operation, passesBarriers: Bool = false, isHeld: Bool = false) -> Job? {
        guard !operation.isExecuting, !operation.isFinished else { return nil }
        let isAwaited = Self.plainOperations.withLock { operations -> Bool? in
            let before = operations[ObjectIdentifier(operation)] ?? PlainOperation()
            guard !before.isTaken else { return nil }
            let record = PlainOperation(isTaken: true, queue: self, waiters: before.waiters)
            operations[ObjectIdentifier(operation)] = record
            return !before.waiters.isEmpty
        }
        guard let isAwaited else { return nil }
        let dependencies = operation.dependencies.map { OperationDependency(operation: $0, policy: .allowFailure) }
        let traits = JobGraph<Operation>.Traits(passesBarriers: passesBarriers)
        let isCancelled = operation.isCancelled
        let job = submit(operation, JobPriority(operation.queuePriority), [], traits, isHeld: isHeld) { job, state in
            state.plainJobs[ObjectIdentifier(operation)] = job
            state.watch.add(job)
            state.keptAlive = self
            return (dependencies, isAwaited, isCancelled)
        }
        // Cancelled since the first look.
        if let job, !isCancelled, operation.isCancelled { step { $0.graph.end(job, &$1) } }
        return isHeld ? job : nil
    }

    /// Takes the slot back from a plain operation that is not ready: because it was given a dependency after it had
    /// been added, which it tells no queue, or because its `isReady` is false. The job that makes it ready may need the
    /// slot.
    func postpone(_ operation: Operation) -> Bool {
        let unfinished = operation.dependencies.filter { !$0.isFinished }
            .map { OperationDependency(operation: $0, policy: .allowFailure) }
        guard !unfinished.isEmpty || operation.isHeldBack, !operation.isCancelled else { return false }
        var outside: [Outside] = []
        let job = step { state, actions -> Job? in
            guard let job = state.plainJobs[ObjectIdentifier(operation)],
                state.graph.takeSlot(from: job)
            else { return nil }
            state.watch.add(job, isUnready: unfinished.isEmpty)
            if !unfinished.isEmpty {
                outside = link(job, to: unfinished, &state)
                state.graph.settle(job, &actions)
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

    /// Removes the job of a plain operation that has finished, or was cancelled and does not become ready, so that it
    /// never will.
    func finish(plain operation: Operation) {
        let (job, keptAlive) = state.withLock { state in
            let job = state.plainJobs.removeValue(forKey: ObjectIdentifier(operation))
            if state.plainJobs.isEmpty { state.watch.removeAll() }
            return (job, state.plainJobs.isEmpty ? state.keptAlive.take() : nil)
        }
        defer { withExtendedLifetime(keptAlive) {} }
        if let job {
            finish(operation, job, operation.isCancelled ? NetworkError(code: .cancelled) : nil)
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
    private typealias Sight = (job: Job, priority: JobPriority, isReady: Bool, isCancelled: Bool)

    /// A step after which jobs may start. Plain operations are looked at before it.
    @discardableResult
    func stepMakingRoom<Result>(_ body: (inout State, inout Actions) -> Result) -> Result {
        let result = step { state, actions -> Result? in state.watch.isEmpty ? body(&state, &actions) : nil }
        if let result { return result }
        let now = SystemClock().now
        let sights = look { $0.watch.takeShare(at: now) }
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
                state.watch.isLookDue = false
                return Array(state.watch.unready.values)
            }
            step { state, actions in
                note(sights, &state, &actions)
                state.graph.admit(&actions)
            }
            watchUnready()
        }
    }

    /// - Parameter jobs: called under the lock; the operations are read without it, since they may run code of the
    ///   user.
    private func look(at jobs: (inout State) -> [Job]) -> [Sight] {
        let operations = state.withLock { state in
            jobs(&state).compactMap { job -> (Job, Operation, Bool)? in
                let isUnready = state.watch.unready[ObjectIdentifier(job)] != nil
                if job.payload == nil { _ = state.watch.removeUnready(job) }
                return job.payload.map { (job, $0, isUnready) }
            }
        }
        return operations.map { job, operation, isUnready in
            let (priority, isReady) = (JobPriority(operation.queuePriority), isUnready && !operation.isHeldBack)
            return (job, priority, isReady, operation.isCancelled)
        }
    }

    private func note(_ sights: [Sight], _ state: inout State, _ actions: inout Actions) {
        for sight in sights {
            let isWaiting = sight.job.isWaiting
            if isWaiting, sight.isCancelled {
                state.graph.end(sight.job, &actions)
            } else if isWaiting {
                state.graph.setPriority(sight.priority, of: sight.job)
            }
            guard !isWaiting || sight.isReady || sight.isCancelled else { continue }
            if state.watch.removeUnready(sight.job), !sight.isCancelled { state.graph.settle(sight.job, &actions) }
        }
    }
}
