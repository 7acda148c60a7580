import Foundation

/// How operations become jobs, and what they report to the queue afterwards.
extension NetworkQueue {
    /// Adds an operation as a job.
    ///
    /// - Parameters:
    ///   - passesBarriers: whether no barrier holds the job, because a job that a barrier waits for waits for this one.
    ///     Defaults to `false`.
    ///   - group: the group that contains the operation as a child, and whose limit counts all its children together.
    ///   - isHeld: whether the job must not start before it is released. Defaults to `false`.
    /// - Returns: the job that the caller must release; `nil` if there is none.
    @discardableResult
    func add(
        _ operation: NetworkOperation,
        isBarrier: Bool = false,
        passesBarriers: Bool = false,
        group: GroupOperation? = nil,
        isHeld: Bool = false
    ) -> Job? {
        let foreign = operation as? ForeignJob
        if let foreign, !foreign.prepareForQueue() { return nil }
        if TraceContext.isUsed.isSet { operation.joinTrace(of: group) }
        let groupKey = group.map { LimitKey.group(ObjectIdentifier($0)) }
        let priority = JobPriority(operation.queuePriority)
        // Swift copies a whole tuple that contains a closure whenever a part of it is read.
        let (ownTraits, host, ownKeys, workWhenAdded) = operation.admission
        var (traits, keys) = (ownTraits, ownKeys)
        let hasWorkWhenAdded = workWhenAdded != nil
        traits.isBarrier = isBarrier
        // A part of a job must not wait for a barrier that waits for that job.
        traits.passesBarriers = passesBarriers || traits.isHidden
        if let groupKey { keys.append(groupKey) }
        var outside: [Job] = []
        var mayBeInCycle = false
        var refusal: NetworkError?
        var hasDeadline = false
        let added = step(changing: .jobs) { state, actions -> Job? in
            let id = ObjectIdentifier(operation)
            let job = (state.externalJobs.isEmpty ? nil : state.externalJobs.removeValue(forKey: id)) ?? Job(operation)
            // Take the operation's lock inside the queue's. An operation never calls its queue under its own lock.
            guard let adoption = operation.adopt((self, job)) else {
                // The operation belongs to another queue. Jobs of this queue that depend on it keep waiting.
                state.externalJobs[id] = job
                state.graph.forgetIfUnwanted(job, &actions)
                return nil
            }
            if let groupKey { state.graph.setLimit(group?.limit, for: groupKey) }
            if !traits.passesBarriers, let place = state.shutDownPlace { refusal = .shutDown(at: place) }
            state.graph.submit(job, priority: priority, host: host, keys: keys, traits)
            if foreign != nil { state.foreignWatch.add(job) }
            if !adoption.dependencies.isEmpty { outside = link(job, to: adoption.dependencies, &state) }
            if actions.isReported {
                let dependencies = adoption.dependencies.map(\.operation.original)
                note(.added(waitingFor: dependencies), job, state.graph.rules)
            }
            mayBeInCycle =
                !job.dependencies.isEmpty
                && (adoption.isAwaited || operation is GroupOperation || !job.dependents.isEmpty)
            if let deadline = adoption.deadline {
                if deadline > 0 {
                    hasDeadline = true
                    state.deadlines.add(job, deadline, now: actions.now)
                } else {
                    refusal = refusal ?? .passedDeadline(deadline)
                }
            }
            // The job waits for nothing, not even for a slot.
            if adoption.isOver || refusal != nil { state.graph.end(job, &actions) }
            if !isHeld, !hasWorkWhenAdded { state.graph.release(job, &actions) }
            return job
        } beforeActing: { _ in
            // Finish the operation only when it is a job, so that it ends and its dependents continue.
            if let refusal { operation.finish(refusal) }
        }
        if hasDeadline { awaitDeadlines() }
        for other in outside { watch(other) }
        if mayBeInCycle { endIfInCycle(operation) }
        guard let job = added else { return nil }
        // No queue was notified of changes between reading the priority and adopting the operation.
        if JobPriority(operation.queuePriority) != priority { operationDidChangePriority(operation, job: job) }
        if let foreign, foreign.foreign.isCancelled { foreign.cancel() }
        workWhenAdded?()
        if isHeld { return job }
        if hasWorkWhenAdded { step { $0.graph.release(job, &$1) } }
        return nil
    }

    /// Adds jobs that are parts of another job of this queue: the children of a batch, or a step of a chain.
    func add(_ children: [NetworkOperation], in group: GroupOperation) {
        let categories = group.mutualExclusionCategories.union(group.option { $0.heldCategories })
        let held = children.compactMap { child in
            if !categories.isEmpty { child.setOption(\.heldCategories, categories) }
            return add(child, passesBarriers: true, group: group, isHeld: children.count > 1)
        }
        if !held.isEmpty { step { $0.graph.release(held, &$1) } }
    }

    /// Declares dependencies to the graph.
    ///
    /// - Returns: the dependencies that are not jobs of this queue, which the caller must watch.
    func link(_ job: Job, to dependencies: [OperationDependency], _ state: inout State) -> [Job] {
        var outside: [Job] = []
        for dependency in dependencies {
            let other = node(of: dependency.operation, state) ?? Job(dependency.operation)
            if other.phase == .expected, other.dependents.isEmpty {
                state.externalJobs[ObjectIdentifier(dependency.operation)] = other
                outside.append(other)
            }
            state.graph.addDependency(of: job, on: other, dependency.policy)
        }
        return outside
    }

    /// Returns the node at which jobs wait for the operation: its own node, or the expected one.
    ///
    /// An operation that is just leaving still refers to its node, which is gone. Jobs may already wait for its end.
    func node(of operation: NetworkOperation, _ state: State) -> Job? {
        if let own = operation.job(in: self), own.phase != .gone { return own }
        return state.externalJobs[ObjectIdentifier(operation)]
    }

    /// Waits for the end of an operation that jobs of this queue wait for, and that is not a job of this queue.
    func watch(_ outside: Job) {
        guard let operation = state.withLock({ _ in outside.payload }) else { return }
        operation.noteWaiter { $0.add(self) }
        operation.whenFinished {
            self.step { state, actions in
                // If the operation has become a job of this queue, `operationDidFinish` handles its end.
                guard state.externalJobs[ObjectIdentifier(operation)] === outside else { return }
                state.graph.finish(outside, succeeded: operation.error == nil, &actions)
            }
        }
    }

    // MARK: - Cycles

    /// Ends the operation, a job of this queue, if it waits for itself.
    func endIfInCycle(_ operation: NetworkOperation) {
        guard var cycle = DependencyCycleFinder.cycle(through: operation) else { return }
        if !operation.groups.isEmpty {
            // If the user added a child after a barrier that waits for the group, the child passes the barrier.
            passBarriers(operation)
            guard let other = DependencyCycleFinder.cycle(through: operation) else { return }
            cycle = other
        }
        operation.finish(.cycle(cycle))
    }

    /// Makes a job no longer wait for barriers.
    func passBarriers(_ operation: NetworkOperation) {
        step { state, actions in
            if let job = node(of: operation, state) { state.graph.passBarriers(job, &actions) }
        }
    }
}

extension NetworkQueue {
    func operationDidChangePriority(_ operation: NetworkOperation, job: Job) {
        var priority: JobPriority
        repeat {
            priority = JobPriority(operation.queuePriority)
            step { state, actions in
                state.graph.setPriority(priority, of: job)
                state.graph.admit(&actions)
            }
            // Of two concurrent changes, the later one counts.
        } while priority != JobPriority(operation.queuePriority)
    }

    func operation(_ operation: NetworkOperation, job: Job, didAdd dependency: OperationDependency) -> Bool {
        var outside: [Job] = []
        let isInTime = step { state, _ in
            // Hold the job once more. If that fails, the job can no longer be made to wait.
            guard state.graph.hold(job) else { return false }
            outside = link(job, to: [dependency], &state)
            return true
        }
        guard isInTime else { return false }
        for other in outside { watch(other) }
        endIfInCycle(operation)
        step { $0.graph.release(job, &$1) }
        return true
    }

    func operation(_ operation: NetworkOperation, job: Job, didRemove dependency: NetworkOperation) {
        step { state, actions in
            if let other = node(of: dependency, state) { state.graph.removeDependency(of: job, on: other, &actions) }
        }
    }

    func operation(_ operation: NetworkOperation, job: Job, isPreparedFor action: @escaping @Sendable () -> Void) {
        let priority = JobPriority(operation.queuePriority)
        let (traits, host, keys, _) = operation.admission
        let begin = { @Sendable in
            guard !operation.hasOutcome else { return }
            self.state.withLock { self.noteStart(of: job, in: $0.graph) }
            self.broadcast.deliver()
            action()
        }
        let dropped = step { state, actions -> [@Sendable () -> Void] in
            job.slotActions.append(begin)
            let occupiesSlot = traits.occupiesSlot
            let isQueued = state.graph.endPreparing(job, priority, host, keys, occupiesSlot: occupiesSlot, &actions)
            // If `endPreparing` returns `false`, the job has ended in the meantime.
            return isQueued ? [] : job.slotActions.take()
        }
        withExtendedLifetime(dropped) {}
        if JobPriority(operation.queuePriority) != priority { operationDidChangePriority(operation, job: job) }
    }

    /// Takes the job's slot. Called under the lock.
    func park(_ job: Job, evenIfReturning: Bool = false, _ state: inout State, _ actions: inout Actions) {
        let had = job.phase == .running
        state.graph.park(job, evenIfReturning: evenIfReturning, &actions)
        if had, job.phase == .parked, actions.isReported { note(.slotReleased, job) }
    }
}

extension NetworkError {
    fileprivate static func shutDown(at place: String) -> NetworkError {
        let message = "the queue was shut down at \(place); later jobs need another NetworkQueue"
        return NetworkError(code: .refused, message: message)
    }

    /// - Parameter deadline: zero or less, or NaN.
    fileprivate static func passedDeadline(_ deadline: TimeInterval) -> NetworkError {
        guard !deadline.isNaN else { return .invalidRequest("the deadline must be a number, but is NaN") }
        let message = "the deadline of \(String(format: "%.3g", deadline)) s had passed before the job was added"
        return NetworkError(code: .timedOut, message: message)
    }
}

extension NetworkOperation {
    /// What a queue must know of the operation before it adds it, and again when it has been prepared.
    fileprivate var admission: (traits: JobTraits, host: String?, keys: [LimitKey], workWhenAdded: (() -> Void)?) {
        var traits = traits
        let set = optionsIfSet { options in
            (
                repeats: RepeatSetting(options), tags: options.tags, held: options.heldCategories,
                categories: options.mutualExclusionCategories
            )
        }
        var role: RepeatRole = (false, nil)
        // A request that is made late can have options for repeats of its own.
        if set != nil || traits.needsPreparing { role = repeatRole(set?.repeats ?? RepeatSetting(nil)) }
        // The other job has the slot and the categories.
        if role.joinsAnother { traits.occupiesSlot = false }
        var keys: [LimitKey] = []
        if let set {
            for tag in set.tags { keys.append(.tag(tag)) }
            if !role.joinsAnother {
                for category in set.categories.subtracting(set.held) { keys.append(.exclusion(category)) }
            }
        }
        return (traits, host?.lowercased(), keys, role.workWhenAdded)
    }
}
