import Foundation

/// How operations come into the graph, and what they tell of themselves afterwards.
extension NetworkQueue {
    /// The plain operations that some queue has, since they cannot tell themselves: adding one twice to the executors
    /// stops the process.
    private static let plainOperations = Locked<Set<ObjectIdentifier>>([])

    /// - Parameters:
    ///   - group: counts together with the others of this group.
    ///   - groupLimit: how many of the group may have a slot at once; nil means no limit of its own.
    ///   - isHeld: whether the job is not to start before it is released. Default false.
    /// - Returns: the job that is to be released; nil when none is.
    @discardableResult
    func add(
        _ operation: NetworkOperation,
        isBarrier: Bool = false,
        passesBarriers: Bool = false,
        group: ObjectIdentifier? = nil,
        groupLimit: Int? = nil,
        isHeld: Bool = false
    ) -> JobID? {
        let priority = JobPriority(operation.queuePriority)
        var traits = JobGraph<Operation>.Traits(
            keys: operation.limitKeys,
            isBarrier: isBarrier,
            // A part of a job must not wait for a barrier that waits for that job.
            passesBarriers: passesBarriers || operation.isHidden,
            occupiesSlot: operation.occupiesSlot,
            isPreparing: operation.isPreparedFirst,
            isHidden: operation.isHidden
        )
        if let group { traits.keys.append(.group(group)) }
        let (job, mustBeReleased) = submit(operation, priority, traits, isHeld: isHeld) { job, state, actions in
            // The operation's lock inside the queue's: an operation never calls its queue under its own.
            let dependencies = operation.adopt(Scheduling(queue: self, job: job))
            if dependencies != nil, let group {
                state.graph.admission.setLimit(groupLimit, for: .group(group), at: actions.now)
            }
            if dependencies != nil, operation.isComposite { state.compositeCount += 1 }
            return dependencies
        }
        guard let job else { return nil }
        // What changed between the first look and the adoption was told to nobody.
        if JobPriority(operation.queuePriority) != priority { operationDidChangePriority(operation, job: job) }
        if operation.hasOutcome { operationDidEndEarly(operation, job: job) }
        if let path = circle(of: operation, job, isNew: true) { operation.finish(.cycle(path)) }
        operation.wasAdded()
        return mustBeReleased ? job : nil
    }

    /// Adds jobs that another job of this queue is made of: the children of a batch, a step of a chain.
    func add(_ children: [NetworkOperation], in group: GroupOperation, limit: Int?) {
        let categories = group.mutualExclusionCategories.union(group.option(\.heldCategories))
        let held = children.compactMap { child in
            if !categories.isEmpty { child.setOption(\.heldCategories, categories) }
            return add(
                child,
                passesBarriers: true,
                group: ObjectIdentifier(group),
                groupLimit: limit,
                isHeld: children.count > 1
            )
        }
        if !held.isEmpty { step { $0.graph.release(held, &$1) } }
    }

    /// Adds what a job that has started waits for, unless some queue has it. A barrier behind that job must not hold it.
    func addPrerequisite(_ operation: Operation) {
        if let operation = operation as? NetworkOperation {
            add(operation, passesBarriers: true)
        } else {
            add(plain: operation, passesBarriers: true)
        }
    }

    /// - Returns: as for operations of this package.
    @discardableResult
    func add(plain operation: Operation, passesBarriers: Bool = false, isHeld: Bool = false) -> JobID? {
        guard Self.plainOperations.withLock({ $0.insert(ObjectIdentifier(operation)).inserted }) else { return nil }
        guard !operation.isExecuting, !operation.isFinished else {
            Self.plainOperations.withLock { _ = $0.remove(ObjectIdentifier(operation)) }
            return nil
        }
        let dependencies = operation.dependencies.map { OperationDependency(operation: $0, policy: .allowFailure) }
        let traits = JobGraph<Operation>.Traits(passesBarriers: passesBarriers)
        let isCancelled = operation.isCancelled
        let priority = JobPriority(operation.queuePriority)
        let (job, mustBeReleased) = submit(operation, priority, traits, isOver: isCancelled, isHeld: isHeld) {
            job,
            state,
            _ in
            state.plainJobs[ObjectIdentifier(operation)] = job
            state.watch.add(job)
            state.keptAlive = self
            return dependencies
        }
        // Cancelled meanwhile.
        if let job, !isCancelled, operation.isCancelled { step { $0.graph.end(job, &$1) } }
        if let job, let path = circle(of: operation, job, isNew: true) { end(operation, job, path) }
        return mustBeReleased ? job : nil
    }

    /// - Parameters:
    ///   - isOver: whether the operation only has to end.
    ///   - isHeld: whether the job is not released.
    ///   - adopt: returns the dependencies of the job; nil when the operation is not to be taken after all.
    /// - Returns: the job, if the operation was taken, and whether it is still to be released.
    private func submit(
        _ operation: Operation,
        _ priority: JobPriority,
        _ traits: JobGraph<Operation>.Traits,
        isOver: Bool = false,
        isHeld: Bool,
        adopt: (JobID, inout State, Actions) -> [OperationDependency]?
    ) -> (job: JobID?, isHeld: Bool) {
        var outside: [Outside] = []
        var cycle: [Operation]?
        var isRefused = false
        let added = step { state, actions -> JobID? in
            let job = state.outside.removeValue(forKey: ObjectIdentifier(operation)) ?? state.graph.expect(operation)
            guard let dependencies = adopt(job, &state, actions) else {
                // It is a job elsewhere: those that wait for it here go on waiting.
                state.outside[ObjectIdentifier(operation)] = job
                state.graph.forgetIfUnwanted(job, &actions)
                return nil
            }
            isRefused = state.isClosed && !traits.passesBarriers
            cycle = state.graph.submit(job, priority: priority, traits, &actions)
            if !traits.isHidden { state.events.note(.added(operation)) }
            let linked = link(job, to: dependencies, &state, &actions)
            outside = linked.outside
            cycle = cycle ?? linked.cycle
            // It waits for nothing, not even for a slot.
            if isOver || isRefused || (operation as? NetworkOperation)?.hasOutcome == true {
                state.graph.end(job, &actions)
            }
            // One that waits for itself is not let go of, but ended.
            if cycle == nil, !isHeld { state.graph.release(job, &actions) }
            return job
        } beforeActing: { _ in
            if isRefused { refuse(operation) }
        }
        for other in outside { watch(other) }
        if let added, let cycle { end(operation, added, cycle) }
        return (added, isHeld && cycle == nil)
    }

    /// An operation that jobs of this queue wait for, and that is none itself.
    private struct Outside {
        var operation: Operation
        var job: JobID
    }

    /// Declares dependencies to the graph.
    ///
    /// - Returns: those that are not jobs of this queue, and are to be watched; and a circle that is closed by them.
    private func link(
        _ job: JobID,
        to dependencies: [OperationDependency],
        _ state: inout State,
        _ actions: inout Actions
    ) -> (outside: [Outside], cycle: [Operation]?) {
        var outside: [Outside] = []
        for dependency in dependencies {
            var linking = JobGraph<Operation>.Linking.gone
            if let other = place(of: dependency.operation, state) {
                linking = state.graph.addDependency(of: job, on: other, dependency.policy, &actions)
            }
            if case .gone = linking {
                let other = state.graph.expect(dependency.operation)
                state.outside[ObjectIdentifier(dependency.operation)] = other
                outside.append(Outside(operation: dependency.operation, job: other))
                linking = state.graph.addDependency(of: job, on: other, dependency.policy, &actions)
            }
            if case .cycle(let path) = linking { return (outside, path) }
        }
        return (outside, nil)
    }

    /// Where jobs wait for the operation: at its own place, or where it is expected.
    ///
    /// One that is just leaving knows its place still, which is gone; others may wait for its end already.
    private func place(of operation: Operation, _ state: State) -> JobID? {
        let own =
            if let operation = operation as? NetworkOperation {
                operation.job(in: self)
            } else {
                state.plainJobs[ObjectIdentifier(operation)]
            }
        if let own, state.graph.isLive(own) { return own }
        return state.outside[ObjectIdentifier(operation)]
    }

    private func watch(_ outside: Outside) {
        (outside.operation as? NetworkOperation)?.noteAwaited(by: self)
        FinishWatcher.watch(outside.operation) {
            // Asked before the lock is taken: it may be the dependency's own code that answers.
            let dependency = OperationDependency(operation: outside.operation, policy: .requireSuccess)
            let succeeded = dependency.failure == nil
            self.step { state, actions in
                // If it has become a job here, its end is seen here too.
                guard state.outside[ObjectIdentifier(outside.operation)] == outside.job else { return }
                state.graph.finish(outside.job, succeeded: succeeded, &actions)
            }
        }
    }

    private func end(_ operation: Operation, _ job: JobID, _ cycle: [Operation]) {
        if let operation = operation as? NetworkOperation {
            operation.finish(.cycle(cycle))
        } else {
            operation.cancel()
            step { $0.graph.end(job, &$1) }
        }
    }

    // MARK: - Plain operations

    /// Takes the slot back from a plain operation that is not ready: since it was given a dependency after it had been
    /// added, of which it tells nobody, or since it says so. What makes it ready may need the slot, which is free then.
    func postpone(_ operation: Operation) -> Bool {
        let unfinished = operation.dependencies.filter { !$0.isFinished }
            .map { OperationDependency(operation: $0, policy: .allowFailure) }
        guard !unfinished.isEmpty || operation.isHeldBack, !operation.isCancelled else { return false }
        var outside: [Outside] = []
        var cycle: [Operation]?
        let job = step { state, actions -> JobID? in
            guard let job = state.plainJobs[ObjectIdentifier(operation)],
                state.graph.takeSlot(from: job, &actions)
            else { return nil }
            if unfinished.isEmpty {
                state.watch.addUnready(job)
            } else {
                state.watch.add(job)
                (outside, cycle) = link(job, to: unfinished, &state, &actions)
                if cycle == nil { state.graph.settle([job], &actions) }
            }
            return job
        }
        guard let job else { return false }
        if unfinished.isEmpty { watchUnready() }
        for other in outside { watch(other) }
        if let cycle = cycle ?? circle(of: operation, job, isNew: false) { end(operation, job, cycle) }
        // Cancelled meanwhile, when it seemed to run.
        if operation.isCancelled { step { $0.graph.end(job, &$1) } }
        return true
    }

    /// The job of a plain operation is over: the operation has finished, or it has been cancelled and never will, as it
    /// does not become ready.
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
        Self.plainOperations.withLock { _ = $0.remove(ObjectIdentifier(operation)) }
        finish(plain: operation)
        #if !canImport(Darwin)
        // A dependency that goes on after its dependent has ended keeps a pointer to it that nothing else clears. And
        // the members of a long chain, which hold each other, would be released from the inside, too deep. To take
        // many away costs the square of their number, and chains are not made of such.
        let dependencies = operation.dependencies
        for dependency in dependencies where !dependency.isFinished || dependencies.count < 16 {
            operation.removeDependency(dependency)
        }
        #endif
    }
}

extension NetworkQueue {
    func operationDidEndEarly(_ operation: NetworkOperation, job: JobID) {
        step { $0.graph.end(job, &$1) }
    }

    func operationDidChangePriority(_ operation: NetworkOperation, job: JobID) {
        var priority: JobPriority
        repeat {
            priority = JobPriority(operation.queuePriority)
            step { $0.graph.setPriority(priority, of: job, &$1) }
            // Of two that change it at the same time the later one counts.
        } while priority != JobPriority(operation.queuePriority)
    }

    func operation(_ operation: NetworkOperation, job: JobID, didAdd dependency: OperationDependency) -> Bool {
        var outside: [Outside] = []
        var cycle: [Operation]?
        let isInTime = step { state, actions in
            // Held once more while it is looked at, so that it can be seen whether it may still be made to wait.
            guard state.graph.hold(job, &actions) else { return false }
            (outside, cycle) = link(job, to: [dependency], &state, &actions)
            return true
        }
        guard isInTime else { return false }
        for other in outside { watch(other) }
        if let cycle = cycle ?? circle(of: operation, job, isNew: false) { end(operation, job, cycle) }
        step { $0.graph.release(job, &$1) }
        return true
    }

    func operation(_ operation: NetworkOperation, job: JobID, didRemove dependency: Operation) {
        step { state, actions in
            if let other = place(of: dependency, state) { state.graph.removeDependency(of: job, on: other, &actions) }
        }
    }

    func operation(_ operation: NetworkOperation, didMissCache miss: CacheMiss) {
        publish(.missedCache(operation, miss))
    }

    func operationDidReleaseSlot(_ job: JobID, if isWanted: () -> Bool) {
        stepMakingRoom { state, actions in
            if isWanted() { state.graph.park(job, &actions) }
        }
    }

    func operation(
        _ operation: NetworkOperation,
        job: JobID,
        reclaimsSlotFor action: @escaping @Sendable () -> Void,
        if isWanted: () -> Bool
    ) {
        let granted = step { state, actions -> [@Sendable () -> Void] in
            guard isWanted() else { return [] }
            operation.core.withLock { $0.slotActions.append(action) }
            // If not, it has a slot, or needs none.
            return state.graph.unpark(job, &actions) ? [] : operation.core.withLock { $0.slotActions.take() }
        }
        for action in granted { WorkQueue.shared.async(execute: action) }
    }

    func operation(
        _ operation: NetworkOperation,
        job: JobID,
        isPreparedFor action: @escaping @Sendable () -> Void
    ) {
        let (priority, keys) = (JobPriority(operation.queuePriority), operation.limitKeys)
        let occupiesSlot = operation.occupiesSlot
        let begin = { @Sendable in
            guard !operation.hasOutcome else { return }
            self.publish(.started(operation))
            action()
        }
        let dropped = step { state, actions -> [@Sendable () -> Void] in
            operation.core.withLock { $0.slotActions.append(begin) }
            let isQueued = state.graph.endPreparing(
                job,
                priority: priority,
                keys: keys,
                occupiesSlot: occupiesSlot,
                &actions
            )
            // Else it has ended meanwhile.
            return isQueued ? [] : operation.core.withLock { $0.slotActions.take() }
        }
        withExtendedLifetime(dropped) {}
        if JobPriority(operation.queuePriority) != priority { operationDidChangePriority(operation, job: job) }
    }

    func operation(_ operation: NetworkOperation, didForgoSlot job: JobID) {
        let dropped = step { state, actions in
            state.graph.park(job, evenIfReturning: true, &actions)
            return operation.core.withLock { $0.slotActions.take() }
        }
        withExtendedLifetime(dropped) {}
    }

    func operationDidFinish(_ operation: NetworkOperation, job: JobID) {
        if operation.isComposite { noteComposite(-1) }
        finish(operation, job, succeeded: !operation.hasFailed) { operation.error }
    }
}

extension NetworkOperation {
    /// What the operation counts by in its queue.
    fileprivate var limitKeys: [LimitKey] {
        var keys: [LimitKey] = []
        if let host { keys.append(.host(host.lowercased())) }
        guard let options = optionsIfAny else { return keys }
        for tag in options.tags { keys.append(.tag(tag)) }
        guard takesCategories else { return keys }
        for category in options.mutualExclusionCategories.subtracting(options.heldCategories) {
            keys.append(.exclusion(category))
        }
        return keys
    }
}
