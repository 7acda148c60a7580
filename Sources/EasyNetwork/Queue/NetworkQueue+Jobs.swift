import Dispatch
import Foundation

/// What happens around the graph: operations go in, and what comes out is handed on.
extension NetworkQueue {
    private typealias Actions = JobGraph<Operation>.Actions

    /// Starts the operations that only have to end. It has no limit, so nothing that runs can be in their way.
    private static let endings: OperationQueue = {
        let queue = OperationQueue()
        queue.name = "EasyNetwork.NetworkQueue.endings"
        return queue
    }()

    /// The plain operations that some queue has, since they cannot tell themselves: adding one twice to the executors
    /// stops the process.
    private static let plainOperations = Locked<Set<ObjectIdentifier>>([])

    func add(_ operation: NetworkOperation, isBarrier: Bool = false) {
        let priority = JobPriority(operation.queuePriority)
        let job = submit(operation, priority, isBarrier: isBarrier) { job, _ in
            // The operation's lock inside the queue's: an operation never calls its queue under its own.
            operation.adopt(Scheduling(scheduler: self, job: job))
        }
        guard let job else { return }
        // What changed between the first look and the adoption was told to nobody.
        if JobPriority(operation.queuePriority) != priority { operationDidChangePriority(operation, job: job) }
        if operation.hasOutcome { operationDidEndEarly(operation, job: job) }
    }

    /// Adds a job that another job of this queue is made of: a child of a batch, a step of a chain.
    ///
    /// - Parameters:
    ///   - group: counts together with the others of this group.
    ///   - limit: how many of the group may have a slot at once; nil means no limit of its own.
    func add(_ child: NetworkOperation, in group: ObjectIdentifier, limit: Int?) {
        add(child)
    }

    func add(plain operation: Operation) {
        guard Self.plainOperations.withLock({ $0.insert(ObjectIdentifier(operation)).inserted }) else { return }
        guard !operation.isExecuting, !operation.isFinished else {
            Self.plainOperations.withLock { _ = $0.remove(ObjectIdentifier(operation)) }
            return
        }
        let dependencies = operation.dependencies.map { OperationDependency(operation: $0, policy: .allowFailure) }
        _ = submit(operation, JobPriority(operation.queuePriority)) { job, state in
            state.plainJobs[ObjectIdentifier(operation)] = job
            state.keptAlive = self
            return dependencies
        }
    }

    /// - Parameter adopt: returns the dependencies of the job; nil when the operation is not to be taken after all.
    private func submit(
        _ operation: Operation,
        _ priority: JobPriority,
        isBarrier: Bool = false,
        adopt: (JobID, inout State) -> [OperationDependency]?
    ) -> JobID? {
        var actions = Actions()
        var outside: [OperationDependency] = []
        let added = state.withLock { state -> JobID? in
            let job = state.graph.submit(
                operation,
                priority: priority,
                isBarrier: isBarrier,
                occupiesSlot: (operation as? NetworkOperation)?.occupiesSlot ?? true
            )
            guard let dependencies = adopt(job, &state) else {
                state.graph.finish(job, succeeded: true, &actions)
                return nil
            }
            outside = link(job, to: dependencies, &state)
            state.graph.release(job, &actions)
            return job
        }
        perform(actions)
        if let added { for dependency in outside { watch(dependency, for: added) } }
        return added
    }

    /// Declares dependencies to the graph.
    ///
    /// - Returns: those that are not jobs of this queue; the job is held once for each, until ``watch(_:for:)`` sees
    ///   it finish.
    private func link(
        _ job: JobID,
        to dependencies: [OperationDependency],
        _ state: inout State
    ) -> [OperationDependency] {
        dependencies.filter { dependency in
            let other =
                if let operation = dependency.operation as? NetworkOperation {
                    operation.job(in: self)
                } else {
                    state.plainJobs[ObjectIdentifier(dependency.operation)]
                }
            if let other, state.graph.addDependency(of: job, on: other, policy: dependency.policy) { return false }
            return state.graph.hold(job)
        }
    }

    private func watch(_ dependency: OperationDependency, for job: JobID) {
        FinishWatcher.watch(dependency.operation) {
            // Asked before the lock is taken: it is the dependency's own code that answers.
            let hasFailed = dependency.failure != nil
            self.change { $0.release(job, failed: hasFailed, &$1) }
        }
    }

    func change(_ step: (inout JobGraph<Operation>, inout JobGraph<Operation>.Actions) -> Void) {
        var actions = Actions()
        state.withLock { step(&$0.graph, &actions) }
        perform(actions)
    }

    func perform(_ actions: JobGraph<Operation>.Actions) {
        for operation in actions.end { hand(operation, to: Self.endings) }
        for operation in actions.start {
            if let operation = operation as? NetworkOperation, operation.isExecuting {
                operation.slotGranted()
            } else if operation is NetworkOperation || !postpone(operation) {
                hand(operation, to: queue)
            }
        }
    }

    private func hand(_ operation: Operation, to executor: OperationQueue) {
        if !(operation is NetworkOperation) {
            FinishWatcher.watch(operation) {
                // Not from in here: an operation that has already finished would go on with the next, and so deeper.
                WorkQueue.shared.async { self.plainOperationDidFinish(operation) }
            }
        }
        // Somebody may have started it by hand meanwhile; an executor would stop the process.
        if !operation.isExecuting, !operation.isFinished { executor.addOperationReliably(operation) }
    }

    /// Takes the slot back from a plain operation that was given a dependency after it had been added, of which it
    /// tells nobody: that dependency may need the slot.
    private func postpone(_ operation: Operation) -> Bool {
        let unfinished = operation.dependencies.filter { !$0.isFinished }
            .map { OperationDependency(operation: $0, policy: .allowFailure) }
        guard !unfinished.isEmpty, !operation.isCancelled else { return false }
        var actions = Actions()
        var outside: [OperationDependency] = []
        let job = state.withLock { state -> JobID? in
            guard let job = state.plainJobs[ObjectIdentifier(operation)], state.graph.takeSlot(from: job) else {
                return nil
            }
            outside = link(job, to: unfinished, &state)
            state.graph.release(job, &actions)
            return job
        }
        guard let job else { return false }
        perform(actions)
        for dependency in outside { watch(dependency, for: job) }
        return true
    }

    private func plainOperationDidFinish(_ operation: Operation) {
        #if !canImport(Darwin)
        // A dependency that goes on after its dependent has ended keeps a pointer to it that nothing else clears. And
        // the members of a long chain, which hold each other, would be released from the inside, too deep. To take
        // many away costs the square of their number, and chains are not made of such.
        let dependencies = operation.dependencies
        for dependency in dependencies where !dependency.isFinished || dependencies.count < 16 {
            operation.removeDependency(dependency)
        }
        #endif
        let (job, keptAlive) = state.withLock { state in
            let job = state.plainJobs.removeValue(forKey: ObjectIdentifier(operation))
            return (job, state.plainJobs.isEmpty ? state.keptAlive.take() : nil)
        }
        defer { withExtendedLifetime(keptAlive) {} }
        Self.plainOperations.withLock { _ = $0.remove(ObjectIdentifier(operation)) }
        if let job { finish(job, succeeded: !operation.isCancelled) }
    }

    private func finish(_ job: JobID, succeeded: Bool) {
        var actions = Actions()
        let emptyWaiters = state.withLock { state -> [DispatchSemaphore] in
            state.graph.finish(job, succeeded: succeeded, &actions)
            return state.graph.count == 0 ? state.emptyWaiters.take() : []
        }
        perform(actions)
        for waiter in emptyWaiters { waiter.signal() }
    }
}

extension NetworkQueue: OperationScheduler {
    func operationDidEndEarly(_ operation: NetworkOperation, job: JobID) {
        change { $0.end(job, &$1) }
    }

    func operationDidChangePriority(_ operation: NetworkOperation, job: JobID) {
        var priority: JobPriority
        repeat {
            priority = JobPriority(operation.queuePriority)
            change { graph, _ in graph.setPriority(priority, of: job) }
            // Of two that change it at the same time the later one counts.
        } while priority != JobPriority(operation.queuePriority)
    }

    func operation(_ job: JobID, didAddDependency dependency: OperationDependency) -> Bool {
        var outside: [OperationDependency] = []
        let isInTime = state.withLock { state in
            // Held once more while it is looked at, so that it can be seen whether it may still be made to wait.
            guard state.graph.hold(job) else { return false }
            outside = link(job, to: [dependency], &state)
            return true
        }
        guard isInTime else { return false }
        for dependency in outside { watch(dependency, for: job) }
        change { $0.release(job, &$1) }
        return true
    }

    func operationDidReleaseSlot(_ job: JobID) {
        change { $0.park(job, &$1) }
    }

    func operationDidReclaimSlot(_ job: JobID) -> Bool {
        var isWaiting = false
        change { isWaiting = $0.unpark(job, &$1) }
        return isWaiting
    }

    func operationDidFinish(_ operation: NetworkOperation, job: JobID) {
        finish(job, succeeded: operation.error == nil)
    }
}

extension JobPriority {
    init(_ priority: Operation.QueuePriority) {
        switch priority.rawValue {
        case ...Operation.QueuePriority.veryLow.rawValue: self = .veryLow
        case ...Operation.QueuePriority.low.rawValue: self = .low
        case Operation.QueuePriority.veryHigh.rawValue...: self = .veryHigh
        case Operation.QueuePriority.high.rawValue...: self = .high
        default: self = .normal
        }
    }
}
