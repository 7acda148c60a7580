@testable import EasyNetwork

/// The steps of a graph as tests write them, where nothing depends on time.
extension JobGraph {
    mutating func submit(
        _ payload: Payload,
        priority: JobPriority = .normal,
        isBarrier: Bool = false,
        keys: [LimitKey] = [],
        occupiesSlot: Bool = true
    ) -> JobID {
        var actions = Actions()
        let job = expect(payload)
        let traits = Traits(keys: keys, isBarrier: isBarrier, occupiesSlot: occupiesSlot)
        submit(job, priority: priority, traits, &actions)
        return job
    }

    /// - Returns: whether there is such an edge now.
    @discardableResult
    mutating func addDependency(of job: JobID, on other: JobID, policy: DependencyPolicy) -> Bool {
        var actions = Actions()
        return addDependency(of: job, on: other, policy, &actions)
    }

    mutating func setLimit(_ limit: Int?, _ actions: inout Actions) {
        admission.limit = limit
        admit(&actions)
    }

    mutating func setSuspended(_ isSuspended: Bool, _ actions: inout Actions) {
        admission.isSuspended = isSuspended
        admit(&actions)
    }

    mutating func setPriority(_ priority: JobPriority, of job: JobID) {
        var actions = Actions()
        setPriority(priority, of: job, &actions)
    }

    mutating func takeSlot(from job: JobID) -> Bool {
        var actions = Actions()
        return takeSlot(from: job, &actions)
    }

    @discardableResult
    mutating func hold(_ job: JobID) -> Bool {
        var actions = Actions()
        return hold(job, &actions)
    }
}
