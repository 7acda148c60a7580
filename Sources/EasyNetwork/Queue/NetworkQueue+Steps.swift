import Foundation

/// Steps of the graph, and the work that they leave to the queue.
extension NetworkQueue {
    typealias Graph = JobGraph<NetworkOperation>
    typealias Job = Graph.Job
    typealias Actions = Graph.Actions

    /// Performs one step of the graph, and the work that the step leaves.
    ///
    /// - Parameters:
    ///   - value: the observable value that the step changes. Defaults to `nil`: none.
    ///   - makesRoom: whether the step can free a slot or change the rules, so that foreign operations are checked
    ///     before it. Defaults to `false`.
    ///   - beforeActing: called with the result between the two, without the lock.
    @discardableResult
    func step<Result>(
        changing value: ExecutorQueue.Observable? = nil,
        makesRoom: Bool = false,
        _ body: (inout State, inout Actions) -> Result,
        beforeActing: (Result) -> Void = { _ in }
    ) -> Result {
        #if canImport(Darwin)
        let isAnnounced = value.map { executor.willChange($0) } ?? false
        defer { if isAnnounced, let value { executor.didChange(value) } }
        #endif
        var actions = Actions(now: clock.now)
        var network: NetworkReachability?
        let result = state.withLock { state -> Result? in
            if makesRoom, !state.foreignWatch.isEmpty { return nil }
            network = state.reachability
            return decide(body, &state, &actions)
        }
        guard let result else { return stepAfterCheck(body, beforeActing: beforeActing) }
        beforeActing(result)
        // Use a loop instead of recursion, because 100,000 jobs may turn out not to be ready.
        while act(on: actions, network) {
            actions = Actions(now: clock.now)
            // Start other jobs than those that could not run yet.
            state.withLock { decide({ $0.graph.admit(&$1) }, &$0, &actions) }
        }
        return result
    }

    /// Performs a step, and notes what it has decided. Called under the lock.
    private func decide<Result>(
        _ body: (inout State, inout Actions) -> Result,
        _ state: inout State,
        _ actions: inout Actions
    ) -> Result {
        actions.isReported = broadcast.hasListeners.isSet
        state.graph.notesWaits = actions.isReported
        let result = body(&state, &actions)
        for operation in actions.forget { state.externalJobs[ObjectIdentifier(operation)] = nil }
        for operation in actions.end { operation.core.withLock { $0.isStartedToEnd = true } }
        guard actions.isReported else { return result }
        for operation in actions.start { operation.job(in: self)?.isStartUnreported = true }
        for operation in actions.yield {
            if let job = operation.job(in: self) { note(.slotYielded, job) }
        }
        for operation in actions.resume {
            guard let job = operation.job(in: self) else { continue }
            // A job that was prepared first has its first slot now.
            guard job.hasGivenUpSlot else {
                job.isStartUnreported = true
                continue
            }
            note(.slotRegained, job)
            job.wait = nil
        }
        return result
    }

    /// - Parameter network: the status of the queue's network.
    /// - Returns: whether a job has given up its slot, because it cannot run yet.
    private func act(on actions: Actions, _ network: NetworkReachability?) -> Bool {
        var isSlotFree = false
        if let time = actions.wake {
            // The alarm tries again to start the jobs that a rate holds back, or to let a job yield.
            admissionAlarm.set(time, clock) { [weak self] in self?.step(makesRoom: true) { $0.graph.admit(&$1) } }
        }
        for operation in actions.yield { operation.noteSlot(isThere: false) }
        for operation in actions.goOn { operation.noteSlot(isThere: true) }
        for operation in actions.end { WorkQueue.run { operation.startOnWorkQueue() } }
        for action in actions.granted { WorkQueue.shared.add(action) }
        for operation in actions.start {
            if cannotRunYet(operation, network) {
                isSlotFree = true
                continue
            }
            // A job that is prepared first has no slot yet.
            if actions.isReported, !operation.traits.needsPreparing {
                state.withLock { state in
                    if let job = operation.job(in: self) { noteStart(of: job, in: state.graph) }
                }
                broadcast.deliver()
            }
            WorkQueue.run { operation.startOnWorkQueue() }
        }
        if actions.isReported { broadcast.deliver() }
        return isSlotFree
    }

    /// - Returns: whether the job cannot run yet, and therefore no longer has a slot.
    private func cannotRunYet(_ operation: NetworkOperation, _ network: NetworkReachability?) -> Bool {
        if let foreign = operation as? ForeignJob { return postpone(foreign) }
        if let network, hold(operation, until: network) { return true }
        guard let network = operation.client?.reachability else { return false }
        return hold(operation, until: network)
    }

    /// - Parameter error: the job's error; `nil` after success.
    func operationDidFinish(_ job: Job, _ error: NetworkError?) {
        var hasNoDeadlines = false
        var emptyWaiters: [Int: @Sendable () -> Void] = [:]
        step(changing: .jobs, makesRoom: true) { state, actions in
            if actions.isReported { note(.finished(error), job) }
            state.graph.finish(job, succeeded: error == nil, &actions)
            if !state.deadlines.isEmpty {
                state.deadlines.remove(job)
                hasNoDeadlines = state.deadlines.isEmpty
            }
            guard state.graph.totalCount == 0 else { return }
            state.foreignWatch.removeAll()
            swap(&state.emptyWaiters, &emptyWaiters)
        }
        if hasNoDeadlines { awaitDeadlines() }
        if !emptyWaiters.isEmpty { for waiter in emptyWaiters.sorted(by: { $0.key < $1.key }) { waiter.value() } }
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
            let due = state.deadlines.takeDue(now: now)
            return due.compactMap { job, deadline in job.payload.map { ($0, deadline) } }
        }
        awaitDeadlines()
        for (operation, deadline) in due { operation.endOverdue(deadline, explanation(of: operation)) }
    }
}

extension Operation {
    package var isHiddenJob: Bool {
        (self as? NetworkOperation)?.traits.isHidden ?? false
    }
}
