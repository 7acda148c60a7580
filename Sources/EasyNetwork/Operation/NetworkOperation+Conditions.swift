import Foundation

extension NetworkOperation {
    /// Runs `work` when every condition holds and the operation has a slot again, and ends the operation when one does
    /// not hold.
    ///
    /// Called when the operation has been started.
    final func hold(until conditions: [any OperationCondition], then work: @escaping @Sendable () -> Void) {
        releaseSlot()
        let task = Task {
            do {
                for condition in conditions { try await self.wait(for: condition) }
                self.pendingCondition = nil
                self.reclaimSlot(work)
            } catch {
                let name = self.pendingCondition ?? ""
                self.pendingCondition = nil
                self.finish(.thrown(error, otherwise: .refused, prefix: "the condition '\(name)' does not hold: "))
            }
        }
        // Cancelled, or finished by hand.
        whenFinished { task.cancel() }
    }

    /// The name of the condition that the operation is being held by; nil when it is none.
    final var pendingCondition: String? {
        get { option(\.pendingCondition) }
        set { setOption(\.pendingCondition, newValue) }
    }

    private func wait(for condition: any OperationCondition) async throws {
        try Task.checkCancellation()
        pendingCondition = condition.name
        try await ConditionContext.$operation.withValue(ObjectIdentifier(self)) {
            try await condition.satisfy(for: self)
        }
    }
}

extension NetworkOperation {
    /// Whether the current task evaluates a condition of the operation. What that sends does not wait for the conditions.
    final var isEvaluatingCondition: Bool { ConditionContext.operation == ObjectIdentifier(self) }
}

/// The operation whose condition the current task evaluates.
private enum ConditionContext {
    @TaskLocal static var operation: ObjectIdentifier?
}

extension OperationCondition {
    /// Has the prerequisite run, then evaluates the condition.
    func satisfy(for operation: NetworkOperation) async throws {
        if let prerequisite = prerequisite(for: operation) {
            try await finish(of: prerequisite, for: operation)
            try Task.checkCancellation()
        }
        try await evaluate(for: operation)
    }

    /// Adds the prerequisite and returns when it has finished, or when the task is cancelled.
    private func finish(of prerequisite: Operation, for operation: NetworkOperation) async throws {
        let own = operation.scheduling?.queue
        let scheduler: NetworkQueue = own ?? .shared
        own?.noteComposite(1)
        // Before it is looked for a circle: two that wait for each other note it both, and the second one sees it.
        operation.setOption(\.pendingPrerequisite, prerequisite)
        defer {
            operation.setOption(\.pendingPrerequisite, nil)
            own?.noteComposite(-1)
        }
        // If it is a job already.
        own?.passBarriers(prerequisite)
        if let circle = WaitWalk(scheduler: scheduler, seesIdle: true).circle(from: prerequisite, backTo: operation) {
            throw NetworkError.cycle(circle)
        }
        (prerequisite as? NetworkOperation)?.noteAwaited(by: scheduler)
        let over = OneShot()
        FinishWatcher.watch(prerequisite) { over.end() }
        scheduler.addPrerequisite(prerequisite)
        await over.wait()
    }
}
