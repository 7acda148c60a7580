import Dispatch
import Foundation

/// The way of a child: taken in, handed on to the queue, finished, told of, settled.
extension GroupOperation {
    // MARK: - Taken in

    /// - Returns: false when the group has ended, or the child is a group that this one is in. The child ends then with
    ///   ``NetworkError/Code/refused`` or ``NetworkError/Code/cycle``.
    final func append(_ operation: NetworkOperation, then: (@Sendable () -> Void)? = nil) -> Bool {
        let group = operation as? GroupOperation
        if let circle = group.flatMap(way) {
            refuse(operation, .cycle(circle))
            return false
        }
        let child = Child(
            operation: operation,
            progress: operation.claimProgress(),
            weight: operation.progressWeight,
            then: then
        )
        group?.addParent(self)
        operation.join(self)
        let isAdded = state.withLock { state in
            guard state.ledger.add() else { return false }
            state.children.append(child)
            if let part = child.progress { orderedProgress.order.unite(with: part.order) }
            orderedProgress.order.add { [orderedProgress] in
                orderedProgress.count {
                    orderedProgress.totalUnitCount += child.weight
                    if let part = child.progress { orderedProgress.addChild(part, withPendingUnitCount: child.weight) }
                }
            }
            return true
        }
        guard isAdded else {
            refuse(operation, NetworkError(code: .refused, message: "\(nameForMessages) has ended already"))
            return false
        }
        orderedProgress.order.run()
        endIfItsTurnNeverComes(operation)
        handOn()
        return true
    }

    /// A child that is not taken ends all the same, as somebody may wait for it.
    private func refuse(_ child: NetworkOperation, _ error: NetworkError) {
        guard !child.isTaken else { return }
        child.finish(error)
        (scheduling?.queue ?? NetworkQueue.forGroup(limit: nil)).add([child], in: self, limit: limit)
    }

    private func addParent(_ parent: GroupOperation) {
        state.withLock { $0.parents.append(WeakGroup(group: parent)) }
    }

    /// The way from a group that this one is in down to this one, and back; nil when it is not in that group.
    private func way(from other: GroupOperation) -> [Operation]? {
        var inner: [ObjectIdentifier: GroupOperation?] = [ObjectIdentifier(self): nil]
        var groups = [self]
        while let group = groups.popLast() {
            if group === other {
                var way: [Operation] = [group]
                var next = group
                while let child = inner[ObjectIdentifier(next)] ?? nil {
                    way.append(child)
                    next = child
                }
                return way + [other]
            }
            for parent in group.state.withLock({ $0.parents.compactMap(\.group) })
            where inner[ObjectIdentifier(parent)] == nil {
                inner[ObjectIdentifier(parent)] = .some(group)
                groups.append(parent)
            }
        }
        return nil
    }

    /// One that is waited for by what this group waits for.
    private func endIfItsTurnNeverComes(_ child: NetworkOperation) {
        guard isTaken, !child.isTaken, child.mayBeInCircle,
            let circle = WaitWalk(scheduler: nil).circle(of: child)
        else { return }
        refuse(child, .cycle(circle))
    }

    // MARK: - Handed on

    /// Hands on what may be handed on.
    final func handOn() {
        // By one thread at a time, and in a loop: a child that has finished already asks for the next from in here.
        let isMine = state.withLock { state in
            defer { state.isHandingOn = true }
            return !state.isHandingOn
        }
        guard isMine else { return }
        while true {
            let children = takeNext()
            guard !children.isEmpty else { return }
            run(children)
        }
    }

    private func takeNext() -> [(index: Int, operation: NetworkOperation)] {
        state.withLock { state in
            var next: [(index: Int, operation: NetworkOperation)] = []
            while let index = state.ledger.takeNext() { next.append((index, state.children[index].operation)) }
            state.isHandingOn = !next.isEmpty
            return next
        }
    }

    /// Hands children on together, so that the one with the highest priority goes first.
    private func run(_ children: [(index: Int, operation: NetworkOperation)]) {
        let scheduler = scheduler
        var untaken: [NetworkOperation] = []
        for (_, child) in children where !child.isFinished {
            guard child.isTaken else {
                untaken.append(child)
                continue
            }
            // What comes behind a barrier that waits for this group would wait for the group, too.
            scheduler.passBarriers(child)
            if child.mayBeInCircle, let circle = WaitWalk(scheduler: scheduler).circle(of: child) {
                child.finish(.cycle(circle))
            }
        }
        scheduler.add(untaken, in: self, limit: limit)
        for (index, child) in children { child.whenFinished { self.childDidFinish(child, at: index) } }
    }

    /// Nil when the group has none of its own.
    private var limit: Int? {
        maxConcurrentOperationCount > 0 ? maxConcurrentOperationCount : nil
    }

    private var scheduler: NetworkQueue {
        if let scheduler = scheduling?.queue { return scheduler }
        return state.withLock { state in
            let scheduler = state.scheduler ?? NetworkQueue.forGroup(limit: limit)
            // What waits for this group is elsewhere.
            SchedulerCrossing.note()
            state.scheduler = scheduler
            return scheduler
        }
    }

    // MARK: - Finished, told of, settled

    private func childDidFinish(_ child: NetworkOperation, at index: Int) {
        let error = child.error
        if let error { childDidFail(child, at: index, error) }
        let then = state.withLock { state in
            let (part, weight) = (state.children[index].progress, state.children[index].weight)
            // In the order in which they end, so that the last one is the last; before the callback, which may look.
            orderedProgress.order.add { [orderedProgress] in
                orderedProgress.count {
                    if let part {
                        // Also of a transfer that failed halfway.
                        part.completedUnitCount = part.totalUnitCount
                    } else {
                        orderedProgress.completedUnitCount += weight
                    }
                }
            }
            return state.children[index].then.take()
        }
        orderedProgress.order.run()
        let callback = callback(for: child, at: index)
        let isThenCalled = error == nil && then != nil
        guard callback != nil || isThenCalled else { return settle() }
        turns.async {
            callback?()
            // The end is final, also for what was on its way.
            if isThenCalled, !self.hasOutcome { then?() }
            self.settle()
        }
    }

    private func childDidFail(_ child: NetworkOperation, at index: Int, _ error: NetworkError) {
        var (index, child, error) = (index, child, error)
        guard state.withLock({ $0.ledger.endsAtFirstFailure && $0.ledger.isOpen }) else { return }
        // One that failed because another child did may be heard of before that one.
        if error.code == .dependencyFailed,
            let origin = failures.first(where: { $0.error.code != .dependencyFailed })
        {
            (index, child, error) = (origin.index, origin.operation, origin.error)
        }
        guard state.withLock({ $0.ledger.fail(index) }) else { return }
        finish(error.ofChild(child, at: index))
        // Accessories may delay the delivery, which does it too.
        endChildren()
    }

    private func settle() {
        state.withLock { $0.ledger.settle() }
        handOn()
        endIfComplete()
        deliverIfDrained()
    }

    final func endIfComplete() {
        if state.withLock({ $0.ledger.succeed() }) { finish() }
    }

    // MARK: - The end

    /// Ends the children that have not finished, once.
    final func endChildren() {
        let (handedOnCount, children) = state.withLock { ($0.ledger.takeRest(), $0.children) }
        guard let handedOnCount else { return }
        let reason = reasonForRest
        // Those that run come last: their end would let the next one begin, which is to be cancelled too.
        let order = children.indices.map { (index: $0, isRunning: children[$0].operation.isExecuting) }
        for (index, _) in order.filter({ !$0.isRunning }) + order.filter(\.isRunning) {
            let child = children[index].operation
            if let reason, index >= handedOnCount { child.finish(reason) } else { child.cancel() }
        }
        state.withLock { $0.ledger.restEnded() }
        handOn()
        deliverIfDrained()
    }

    /// How those end whose turn never came; nil when they are cancelled.
    private var reasonForRest: NetworkError? {
        guard !isCancelled, let error else { return nil }
        let ledger = state.withLock { $0.ledger }
        guard let failedIndex = ledger.failedIndex else { return error.code == .dependencyFailed ? error : nil }
        guard ledger.order == .inTurn else { return nil }
        let failed = state.withLock { $0.children[failedIndex].operation }
        return OperationDependency(operation: failed, policy: .requireSuccess).failure
    }

    final func deliverIfDrained() {
        let (done, isEmpty) = state.withLock { state in
            (state.ledger.isDrained ? state.done.take() : nil, state.ledger.count == 0)
        }
        guard let done else { return }
        let callback = takeEndCallback(error)
        let queue = callback == nil ? WorkQueue.shared : turns
        // Behind the last change of the progress.
        orderedProgress.order.add { [orderedProgress] in
            if isEmpty {
                orderedProgress.count {
                    orderedProgress.totalUnitCount = 1
                    orderedProgress.completedUnitCount = 1
                }
            }
            queue.async {
                callback?()
                done()
            }
        }
        orderedProgress.order.run()
    }

    /// Callbacks run one after the other also where the queue would run several at once.
    private var turns: DispatchQueue {
        let target = deliveryQueue
        return state.withLock { state in
            let turns = state.turns ?? DispatchQueue(label: "EasyNetwork.GroupOperation", target: target)
            state.turns = turns
            return turns
        }
    }
}

extension NetworkError {
    /// The error of a group that ended with this one of a child.
    fileprivate func ofChild(_ child: NetworkOperation, at index: Int) -> NetworkError {
        var error = self
        let place = "operations[\(index)], \(child.nameForMessages)"
        error.message = message.map { "\(place): \($0)" } ?? place
        error.underlying = self
        return error
    }
}
