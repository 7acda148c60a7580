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

    func add(_ operation: NetworkOperation, isBarrier: Bool = false) {
        let priority = JobPriority(operation.queuePriority)
        var actions = Actions()
        var outside: [OperationDependency] = []
        let added = state.withLock { state -> JobID? in
            let job = state.graph.submit(operation, priority: priority, isBarrier: isBarrier)
            // The operation's lock inside this one: an operation never calls its host under its own.
            guard let dependencies = operation.adopt(Hosting(host: self, job: job)) else {
                state.graph.finish(job, succeeded: true, &actions)
                return nil
            }
            outside = link(job, to: dependencies, &state)
            state.graph.release(job, &actions)
            return job
        }
        perform(actions)
        guard let added else { return }
        for dependency in outside { watch(dependency, for: added) }
        // What changed between the first look and the adoption was told to nobody.
        if JobPriority(operation.queuePriority) != priority { operationDidChangePriority(operation, job: added) }
        if operation.hasOutcome { operationDidEndEarly(operation, job: added) }
    }

    func add(plain operation: Operation) {
        guard !operation.isExecuting, !operation.isFinished else { return }
        let priority = JobPriority(operation.queuePriority)
        let dependencies = operation.dependencies.map { OperationDependency(operation: $0, policy: .allowFailure) }
        var actions = Actions()
        var outside: [OperationDependency] = []
        let added = state.withLock { state -> JobID? in
            guard state.plainJobs[ObjectIdentifier(operation)] == nil else { return nil }
            let job = state.graph.submit(operation, priority: priority)
            state.plainJobs[ObjectIdentifier(operation)] = job
            outside = link(job, to: dependencies, &state)
            state.graph.release(job, &actions)
            return job
        }
        perform(actions)
        guard let added else { return }
        for dependency in outside { watch(dependency, for: added) }
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
            self.change { $0.release(job, failed: dependency.failure != nil, &$1) }
        }
    }

    func change(_ step: (inout JobGraph<Operation>, inout JobGraph<Operation>.Actions) -> Void) {
        var actions = Actions()
        state.withLock { step(&$0.graph, &actions) }
        perform(actions)
    }

    func perform(_ actions: JobGraph<Operation>.Actions) {
        for operation in actions.end { hand(operation, to: Self.endings) }
        for operation in actions.start { hand(operation, to: queue) }
    }

    private func hand(_ operation: Operation, to executor: OperationQueue) {
        if !(operation is NetworkOperation) {
            FinishWatcher.watch(operation) { self.plainOperationDidFinish(operation) }
        }
        // Somebody may have started it by hand meanwhile; an executor would stop the process.
        if !operation.isExecuting, !operation.isFinished { executor.addOperationReliably(operation) }
    }

    private func plainOperationDidFinish(_ operation: Operation) {
        #if !canImport(Darwin)
        // A dependency that goes on after its dependent has ended keeps a pointer to it that nothing else clears.
        for dependency in operation.dependencies where !dependency.isFinished {
            operation.removeDependency(dependency)
        }
        #endif
        if let job = state.withLock({ $0.plainJobs.removeValue(forKey: ObjectIdentifier(operation)) }) {
            finish(job, succeeded: !operation.isCancelled)
        }
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

extension NetworkQueue: OperationHost {
    func operationDidEndEarly(_ operation: NetworkOperation, job: JobID) {
        change { $0.end(job, &$1) }
    }

    func operationDidChangePriority(_ operation: NetworkOperation, job: JobID) {
        let priority = JobPriority(operation.queuePriority)
        change { graph, _ in graph.setPriority(priority, of: job) }
    }

    func operation(_ job: JobID, didAddDependency dependency: OperationDependency) {
        let outside = state.withLock { link(job, to: [dependency], &$0) }
        for dependency in outside { watch(dependency, for: job) }
    }

    func operationDidFinish(_ operation: NetworkOperation, job: JobID) {
        finish(job, succeeded: operation.error == nil)
    }
}

/// The executor of a ``NetworkQueue``: cancelling it cancels the queue.
final class ExecutorQueue: OperationQueue, @unchecked Sendable {
    // Sendable because `owner` is written once, before anybody else has the queue.
    weak var owner: NetworkQueue?

    override func cancelAllOperations() {
        if let owner { owner.cancelAllOperations() } else { cancelOwnOperations() }
    }

    /// Cancels what was handed to the executor or added to it directly, and nothing else.
    func cancelOwnOperations() {
        super.cancelAllOperations()
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
