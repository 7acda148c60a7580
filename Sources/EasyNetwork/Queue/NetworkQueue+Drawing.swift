import Foundation

/// The values that a drawing of the queue needs.
extension NetworkQueue {
    /// A job in its current state.
    package typealias DrawnJob = (
        operation: Operation, group: ObjectIdentifier?, isRunning: Bool, waitsFor: [(Operation, DependencyPolicy)]
    )

    /// The jobs at this moment, and whether the queue is suspended.
    package var drawnJobs: (jobs: [DrawnJob], isSuspended: Bool) {
        state.withLock { state in
            let jobs = state.graph.jobs.compactMap { job -> DrawnJob? in
                guard let operation = job.payload?.original else { return nil }
                var group: ObjectIdentifier?
                for lane in job.lanes { if case .group(let id) = lane.key { group = id } }
                let waitsFor = job.dependencies.compactMap { other, policy in
                    other.payload.map { ($0.original, policy) }
                }
                return (operation, group, job.phase == .running, waitsFor)
            }
            return (jobs, state.graph.isSuspended)
        }
    }
}
