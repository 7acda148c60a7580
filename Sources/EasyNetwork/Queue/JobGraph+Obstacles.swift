/// What jobs wait for, barriers included.
extension JobGraph {
    /// What the job waits for. A barrier that was passed stands for what it goes on waiting for.
    func obstacles(of job: JobID) -> [Payload] {
        guard hasObstacles(job) else { return [] }
        var obstacles: [Payload] = []
        var seen: Set<JobID> = []
        var pending = places[Int(job.index)].dependencies
        while let other = pending.popLast() {
            guard isLive(other), seen.insert(other).inserted else { continue }
            if let payload = payload(of: other) {
                obstacles.append(payload)
            } else {
                pending += places[Int(other.index)].dependencies
            }
        }
        return obstacles
    }

    func hasObstacles(_ job: JobID) -> Bool {
        isLive(job) && places[Int(job.index)].phase == .blocked && !places[Int(job.index)].dependencies.isEmpty
    }

    func hasDependents(_ job: JobID) -> Bool {
        isLive(job) && !places[Int(job.index)].dependents.isEmpty
    }

    /// The job waits for no barrier any more.
    mutating func passBarriers(_ job: JobID, _ actions: inout Actions) {
        guard hasObstacles(job) else { return }
        for other in places[Int(job.index)].dependencies where isLive(other) && places[Int(other.index)].isBarrier {
            removeDependency(of: job, on: other, &actions)
        }
    }
}
