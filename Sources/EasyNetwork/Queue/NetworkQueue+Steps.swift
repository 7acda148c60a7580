import Foundation

/// Steps of the graph, and the work that they leave to the queue.
extension NetworkQueue {
    typealias Graph = JobGraph<NetworkOperation>
    typealias Job = Graph.Job
    typealias Actions = Graph.Actions

    /// The work that a step leaves to the queue. It is filled in place, because a copy would cost as much as the step.
    private struct Work {
        var actions: Actions
        var reachability: NetworkReachability?
        var hasListeners = false
    }

    /// Performs one step of the graph, and the work that the step leaves.
    ///
    /// - Parameter beforeActing: called with the result between the two, without the lock.
    @discardableResult
    func step<Result>(
        _ body: (inout State, inout Actions) -> Result,
        beforeActing: (Result) -> Void = { _ in }
    ) -> Result {
        var work = Work(actions: Actions(now: clock.now))
        let result = perform(body, &work)
        beforeActing(result)
        // Use a loop instead of recursion, because 100,000 jobs may turn out not to be ready.
        while true {
            let isSlotFree = act(on: work)
            if work.hasListeners { broadcast.deliver() }
            guard isSlotFree else { return result }
            work = Work(actions: Actions(now: clock.now))
            perform({ $0.graph.admit(&$1) }, &work)
        }
    }

    @discardableResult
    private func perform<Result>(_ body: (inout State, inout Actions) -> Result, _ work: inout Work) -> Result {
        state.withLock { state in
            state.graph.notesWaits = broadcast.hasListeners.isSet
            let result = body(&state, &work.actions)
            for operation in work.actions.forget { state.externalJobs[ObjectIdentifier(operation)] = nil }
            for operation in work.actions.end { operation.core.withLock { $0.isStartedToEnd = true } }
            work.reachability = state.reachability
            work.hasListeners = broadcast.hasListeners.isSet
            if work.hasListeners {
                for operation in work.actions.start { operation.job(in: self)?.isStartUnreported = true }
                for operation in work.actions.yield {
                    if let job = operation.job(in: self) { note(.slotYielded, job) }
                }
                for operation in work.actions.resume {
                    guard let job = operation.job(in: self) else { continue }
                    // A job that was prepared first has its first slot now.
                    guard job.isReturning else {
                        job.isStartUnreported = true
                        continue
                    }
                    note(.slotRegained, job)
                    job.wait = nil
                }
            }
            return result
        }
    }

    /// - Returns: whether a job has given up its slot, because it cannot run yet.
    private func act(on work: Work) -> Bool {
        var isSlotFree = false
        if let time = work.actions.wake {
            // The alarm tries again to start the jobs that a rate holds back.
            rateAlarm.set(time, clock) { [weak self] in self?.stepMakingRoom { $0.graph.admit(&$1) } }
        }
        for operation in work.actions.yield { operation.noteSlot(isThere: false) }
        for operation in work.actions.goOn { operation.noteSlot(isThere: true) }
        for operation in work.actions.end { WorkQueue.run { operation.startOnWorkQueue() } }
        for action in work.actions.granted { WorkQueue.shared.add(action) }
        for operation in work.actions.start {
            if cannotRunYet(operation, work.reachability) {
                isSlotFree = true
                continue
            }
            // A job that is prepared first has no slot yet.
            if work.hasListeners, !operation.traits.needsPreparing { postStart(of: operation) }
            WorkQueue.run { operation.startOnWorkQueue() }
        }
        return isSlotFree
    }

    private func postStart(of operation: NetworkOperation) {
        state.withLock { state in
            if let job = operation.job(in: self) { noteStart(of: job, in: state.graph) }
        }
        broadcast.deliver()
    }

    /// - Returns: whether the job cannot run yet, and therefore no longer has a slot.
    private func cannotRunYet(_ operation: NetworkOperation, _ reachability: NetworkReachability?) -> Bool {
        if let foreign = operation as? ForeignJob { return postpone(foreign) }
        return hold(operation, until: reachability) || hold(operation, until: operation.client?.reachability)
    }

    /// - Parameter error: the job's error; `nil` after success.
    func operationDidFinish(_ job: Job, _ error: NetworkError?) {
        var hasNoDeadlines = false
        let emptyWaiters = executor.announcing(.jobs) {
            stepMakingRoom { state, actions -> [Int: @Sendable () -> Void] in
                if broadcast.hasListeners.isSet { note(.finished(error), job) }
                state.graph.finish(job, succeeded: error == nil, &actions)
                if !state.deadlines.isEmpty {
                    state.deadlines.remove(job)
                    hasNoDeadlines = state.deadlines.isEmpty
                }
                guard state.graph.totalCount == 0 else { return [:] }
                state.foreignWatch.removeAll()
                return exchange(&state.emptyWaiters, with: [:])
            }
        }
        if hasNoDeadlines { awaitDeadlines() }
        for waiter in emptyWaiters.sorted(by: { $0.key < $1.key }) { waiter.value() }
    }

    // MARK: - Deadlines

    /// Sets the alarm to the next deadline.
    func awaitDeadlines() {
        deadlineAlarm.set(state.withLock { $0.deadlines.next }, clock) { [weak self] in
            guard let self else { return }
            WorkQueue.shared.add { self.endOverdue() }
        }
    }

    private func endOverdue() {
        let now = clock.now
        // The payload of a job is protected by the lock, too.
        let due = state.withLock { state in
            state.deadlines.takeDue(now: now).compactMap { job, deadline in job.payload.map { ($0, deadline) } }
        }
        awaitDeadlines()
        for (operation, deadline) in due { operation.endOverdue(deadline, explanation(of: operation)) }
    }
}

extension Operation {
    package var isHiddenJob: Bool {
        (self as? NetworkOperation)?.isHidden ?? false
    }
}
