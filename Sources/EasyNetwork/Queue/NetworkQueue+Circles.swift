import Foundation

/// Circles of which the graph sees only a part, and what is looked at to find them.
extension NetworkQueue {
    /// The circle that the job waits in, if it goes through another queue, a group or a prerequisite.
    ///
    /// Nothing is looked at while the queue has nothing of that kind: a job costs the same however many others wait.
    ///
    /// - Parameter isNew: whether the job has just been added; one that nobody waited for before is in no circle.
    func circle(of operation: Operation, _ job: JobID, isNew: Bool) -> [Operation]? {
        let isPossible = state.withLock { state in
            (state.compositeCount > 0 || (!state.outside.isEmpty && SchedulerCrossing.isPossible))
                && state.graph.hasObstacles(job)
        }
        guard isPossible else { return nil }
        if isNew, let operation = operation as? NetworkOperation, !(operation is GroupOperation),
            !operation.mayBeInCircle
        {
            return nil
        }
        guard let circle = WaitWalk(scheduler: self).circle(of: operation) else { return nil }
        guard let operation = operation as? NetworkOperation, operation.core.withLock({ $0.group != nil }) else {
            return circle
        }
        // A child that its user has added behind a barrier, which waits for the group: as a part of that it passes.
        passBarriers(operation)
        return WaitWalk(scheduler: self).circle(of: operation)
    }

    func noteComposite(_ change: Int) {
        state.withLock { $0.compositeCount += change }
    }

    func passBarriers(_ operation: Operation) {
        step { state, actions in
            let job = (operation as? NetworkOperation)?.job(in: self) ?? state.plainJobs[ObjectIdentifier(operation)]
            if let job { state.graph.passBarriers(job, &actions) }
        }
    }

    func obstacles(of job: JobID) -> [Operation] {
        state.withLock { $0.graph.obstacles(of: job) }
    }

    func obstacles(ofPlain operation: Operation) -> [Operation] {
        state.withLock { state in
            state.plainJobs[ObjectIdentifier(operation)].map { state.graph.obstacles(of: $0) } ?? []
        }
    }

    func hasDependents(_ job: JobID) -> Bool {
        state.withLock { $0.graph.hasDependents(job) }
    }
}
