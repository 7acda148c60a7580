import Dispatch
import Foundation

/// The life of a child: it is added, handed on to the queue, finishes, is reported, and is settled.
extension GroupOperation {
    // MARK: - Adding

    /// Adds a child.
    ///
    /// - Returns: `false` if the group has ended, or the child is a group that contains this one. The child then ends
    ///   with ``NetworkError/Code/refused`` or ``NetworkError/Code/cycle``.
    final func append(_ operation: NetworkOperation, then: Then? = nil) -> Bool {
        if let cycle = (operation as? GroupOperation).flatMap({ DependencyCycleFinder.nesting(of: self, in: $0) }) {
            refuse(operation, .cycle(cycle))
            return false
        }
        let child = Child(
            operation: operation,
            progress: operation.claimProgress(),
            weight: operation.progressWeight,
            then: then
        )
        operation.noteWaiter { $0.add(self) }
        let isAdded = state.withLock { state in
            guard state.group.add() else { return false }
            state.children.append(child)
            // Send under the lock. Each sequence also begins under it, so no reader receives an older value later.
            state.updates?.send(state.update)
            if let part = child.progress { orderedProgress.order.unite(with: part.order) }
            changeProgress { progress in
                progress.totalUnitCount += child.weight
                if let part = child.progress { progress.addChild(part, withPendingUnitCount: child.weight) }
            }
            return true
        }
        guard isAdded else {
            refuse(operation, NetworkError(code: .refused, message: "\(nameForMessages) has already ended"))
            return false
        }
        orderedProgress.order.run()
        // The group may be waiting for an operation that waits for this child.
        if isTaken, !operation.isTaken, let cycle = DependencyCycleFinder.cycle(through: operation) {
            refuse(operation, .cycle(cycle))
        }
        handOn()
        return true
    }

    /// Ends a child that is not added, because other operations can wait for it.
    private func refuse(_ child: NetworkOperation, _ error: NetworkError) {
        guard !child.isTaken else { return }
        child.finish(error)
        queue.add([child], in: self)
    }

    // MARK: - Handing on

    /// Hands on the children that can currently be handed on.
    final func handOn() {
        // A child that has already finished requests the next one inside this call.
        state.drain(\.isHandingOn) { state in
            var next: [(index: Int, operation: NetworkOperation)] = []
            while let index = state.group.takeNext() { next.append((index, state.children[index].operation)) }
            return next.isEmpty ? nil : next
        } do: { children in
            let queue = queue
            var untaken: [NetworkOperation] = []
            for (_, child) in children where !child.isFinished {
                guard child.isTaken else {
                    untaken.append(child)
                    continue
                }
                // A child after a barrier that waits for this group would wait for the group.
                queue.passBarriers(child)
                if let cycle = DependencyCycleFinder.cycle(through: child) { child.finish(.cycle(cycle)) }
            }
            // Add the children together, so that the one with the highest priority starts first.
            queue.add(untaken, in: self)
            for (index, child) in children { child.whenFinished { self.childDidFinish(child, at: index) } }
        }
    }

    /// The limit of the group; `nil` for no limit.
    final var limit: Int? {
        maxConcurrentOperationCount > 0 ? maxConcurrentOperationCount : nil
    }

    final var queue: NetworkQueue {
        if let queue = scheduling?.queue { return queue }
        return state.withLock { state in
            let limit = limit ?? NetworkQueue.defaultMaxConcurrentOperationCount
            let queue =
                state.ownQueue ?? NetworkQueue(name: "EasyNetwork.GroupOperation", maxConcurrentOperationCount: limit)
            state.ownQueue = queue
            return queue
        }
    }

    // MARK: - Finishing

    private func childDidFinish(_ child: NetworkOperation, at index: Int) {
        guard let undo = child.option({ $0.undo }) else {
            let hasSteps = (child as? GroupOperation)?.hasStepsToUndo ?? false
            // A group that has failed has undone its steps.
            let end = child.error == nil ? UndoState.Input.ended(index) : .endedHalfUndone(index)
            return childDidEnd(child, at: index, hasSteps ? end : nil)
        }
        let outcome = child.stepOutcome
        let end = outcome.map { _ in UndoState.Input.ended(index) }
        guard undo.isJournaled else { return childDidEnd(child, at: index, end) }
        // The journal is a file, and its requests are made by the user's code.
        WorkQueue.shared.add {
            WorkQueue.userCode { undo.settle(outcome) }
            self.childDidEnd(child, at: index, end)
        }
    }

    private func childDidEnd(_ child: NetworkOperation, at index: Int, _ end: UndoState.Input?) {
        // Note the end before the ends of the children that the failure of this one cancels.
        if let end { note(end) }
        let error = child.error
        if let error { childDidFail(child, at: index, error) }
        let then = state.withLock { state in
            let (part, weight) = (state.children[index].progress, state.children[index].weight)
            // Change the progress in the order in which the children end, and before the callback, which can read it.
            changeProgress { progress in
                if let part {
                    // A transfer that failed halfway counts as complete, too.
                    part.completedUnitCount = part.totalUnitCount
                } else {
                    progress.completedUnitCount += weight
                }
            }
            return state.children[index].then.take()
        }
        orderedProgress.order.run()
        let hasDelegate = delegate != nil
        let isThenCalled = error == nil && then != nil
        guard hasDelegate || isThenCalled else { return settle() }
        serialQueue.add {
            if hasDelegate { self.delegate?.groupOperation(self, didFinish: child, at: index) }
            // The group may have ended in the meantime.
            if isThenCalled, !self.hasOutcome, let then { then { self.settle() } } else { self.settle() }
        }
    }

    private func childDidFail(_ child: NetworkOperation, at index: Int, _ error: NetworkError) {
        var (index, child, error) = (index, child, error)
        guard state.withLock({ $0.group.endsAtFirstFailure && $0.group.isOpen }) else { return }
        // A child that failed because another one failed can be reported before that one.
        if error.code == .dependencyFailed,
            let origin = failures.first(where: { $0.error.code != .dependencyFailed })
        {
            (index, child, error) = (origin.index, origin.operation, origin.error)
        }
        guard state.withLock({ $0.group.fail(index) }) else { return }
        finish(error.ofChild(child, at: index))
        // Accessories can delay the delivery, which also ends the children.
        endChildren()
    }

    private func settle() {
        state.withLock { state in
            state.group.settle()
            state.updates?.send(state.update)
        }
        handOn()
        endIfComplete()
        noteIfDrained()
    }

    final func endIfComplete() {
        if state.withLock({ $0.group.succeed() }) { note(.completed) }
    }

    // MARK: - Ending

    /// Ends the children that have not finished, once.
    final func endChildren() {
        let (handedOnCount, children) = state.withLock { ($0.group.takeRest(), $0.children) }
        guard let handedOnCount else { return }
        let reason = reasonForRest
        // Running children come last, and among them groups first, since these have waiting children of their own: the
        // end of a running child would start the next one, which is to be cancelled too.
        let rank = children.map { $0.operation.isExecuting ? $0.operation is GroupOperation ? 1 : 2 : 0 }
        for index in (0...2).flatMap({ wanted in rank.indices.filter { rank[$0] == wanted } }) {
            let child = children[index].operation
            guard !child.isFinished else { continue }
            if let reason, index >= handedOnCount {
                child.finish(reason)
            } else {
                WorkQueue.userCode { child.cancel() }
            }
        }
        state.withLock { $0.group.restEnded() }
        handOn()
        noteIfDrained()
    }

    /// The error of the children that were not handed on; `nil` if they are cancelled.
    private var reasonForRest: NetworkError? {
        guard !isCancelled, let error else { return nil }
        let group = state.withLock { $0.group }
        guard let failedIndex = group.failedIndex else { return error.code == .dependencyFailed ? error : nil }
        guard group.inTurn else { return nil }
        let failed = state.withLock { $0.children[failedIndex].operation }
        return OperationDependency(failed, .requireSuccess).failure
    }

    final func noteIfDrained() {
        let (isDrained, updates) = state.withLock { state -> (Bool, Multicast<Update>?) in
            state.group.isDrained ? (true, state.updates.take()) : (false, nil)
        }
        guard isDrained else { return }
        updates?.finish()
        drained.set()
    }

    /// Runs `action` on a queue, after the last change of the progress.
    final func afterProgress(on queue: DispatchQueue, _ action: @escaping @Sendable () -> Void) {
        // Set the progress of an empty group, after its other changes.
        if state.withLock({ $0.group.count == 0 }) {
            changeProgress { progress in
                progress.totalUnitCount = 1
                progress.completedUnitCount = 1
            }
        }
        orderedProgress.order.add { queue.add(action) }
        orderedProgress.order.run()
    }

    /// Adds a change of the progress. Call `orderedProgress.order.run()` afterwards.
    private func changeProgress(_ change: @escaping @Sendable (Progress) -> Void) {
        orderedProgress.order.add { [orderedProgress] in orderedProgress.count { change(orderedProgress) } }
    }

    /// The queue that runs callbacks one after the other, even if the callback queue is concurrent.
    final var serialQueue: DispatchQueue {
        let target = deliveryQueue
        return state.withLock { state in
            let queue = state.serialQueue ?? DispatchQueue(label: "EasyNetwork.GroupOperation", target: target)
            state.serialQueue = queue
            return queue
        }
    }
}

extension NetworkError {
    /// Returns this error of a child as the group's error: the same, with the child's place in its message.
    func ofChild(_ child: NetworkOperation, at index: Int) -> NetworkError {
        var error = self
        let place = ["job \(index + 1)", child.quotedName].compactMap { $0 }.joined(separator: ", ")
        error.message = message.map { "\(place): \($0)" } ?? place
        return error
    }
}
