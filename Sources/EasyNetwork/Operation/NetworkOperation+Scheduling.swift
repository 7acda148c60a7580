import Foundation

/// What the rest of the package asks of an operation.
extension NetworkOperation {
    /// Calls `action` once, when the operation has finished; at once, on this thread, if it already has.
    final func whenFinished(_ action: @escaping @Sendable () -> Void) {
        let isConcluded = core.withLock { state in
            if !state.isConcluded { state.finishActions.append(action) }
            return state.isConcluded
        }
        if isConcluded { action() }
    }

    final func tellOfCacheMiss(_ miss: CacheMiss) {
        scheduling?.queue.operation(self, didMissCache: miss)
    }

    /// Takes the operation in, once: an operation that has a scheduler, or has been started, is not taken again.
    ///
    /// - Returns: its dependencies; nil when it is not taken.
    final func adopt(_ scheduling: Scheduling) -> [OperationDependency]? {
        let (dependencies, isForeign) = core.withLock { state -> ([OperationDependency]?, Bool) in
            guard state.scheduling == nil, state.lifecycle.phase == .waiting else { return (nil, false) }
            state.scheduling = scheduling
            let isForeign = state.awaitedBy.map { $0 != ObjectIdentifier(scheduling.queue) } ?? false
            return (state.dependencies, isForeign)
        }
        if isForeign { SchedulerCrossing.note() }
        return dependencies
    }

    /// Whether some queue has the operation, or it has been started. A plain `OperationQueue` gives itself away by asking
    /// whether it is ready.
    final var isTaken: Bool {
        core.withLock { $0.scheduling != nil || $0.readiness.isWatching || $0.lifecycle.phase != .waiting }
    }

    /// The operation's place in `scheduler`; nil when it is not there, or not any more.
    final func job(in scheduler: NetworkQueue) -> JobID? {
        core.withLock { $0.scheduling?.queue === scheduler ? $0.scheduling?.job : nil }
    }

    /// A scheduler is about to wait for the operation, which is no job of its own.
    final func noteAwaited(by scheduler: NetworkQueue) {
        let isForeign = core.withLock { state in
            let first = state.awaitedBy ?? ObjectIdentifier(scheduler)
            state.awaitedBy = first
            let isElsewhere = state.scheduling.map { $0.queue !== scheduler } ?? false
            return isElsewhere || first != ObjectIdentifier(scheduler)
        }
        if isForeign { SchedulerCrossing.note() }
    }

    final var scheduling: Scheduling? {
        core.withLock { $0.scheduling }
    }

    /// Whether the outcome is known, and an error.
    final var hasFailed: Bool {
        core.withLock { $0.lifecycle.hasFailed }
    }

    /// All options at once; nil when none was ever set.
    final var optionsIfAny: OperationOptions? {
        core.withLock { $0.options?.options }
    }

    /// Whether the outcome is known; the callbacks may still be under way.
    final var hasOutcome: Bool {
        core.withLock { $0.lifecycle.outcome != nil }
    }
}
