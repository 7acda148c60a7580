@testable import EasyNetwork

/// Shorter forms of the graph's steps, for tests that do not depend on time.
extension JobGraph {
    mutating func submit(
        _ payload: Payload,
        priority: JobPriority = .normal,
        isBarrier: Bool = false,
        keys: [LimitKey] = [],
        occupiesSlot: Bool = true
    ) -> Job {
        let job = Job(payload)
        submit(job, priority: priority, keys: keys, JobTraits(occupiesSlot: occupiesSlot, isBarrier: isBarrier))
        return job
    }

    mutating func setLimit(_ limit: Int?, _ actions: inout Actions) {
        self.limit = limit
        admit(&actions)
    }

    mutating func setSuspended(_ isSuspended: Bool, _ actions: inout Actions) {
        self.isSuspended = isSuspended
        admit(&actions)
    }

    mutating func setPriority(_ priority: JobPriority, of job: Job, _ actions: inout Actions) {
        setPriority(priority, of: job)
        admit(&actions)
    }
}
