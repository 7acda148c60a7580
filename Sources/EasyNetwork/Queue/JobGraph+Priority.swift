/// What a job waits for goes as early as the job itself.
extension JobGraph {
    /// Changes the job's own priority. A job whose place in the rows changes by that goes to the end of its new row.
    mutating func setPriority(_ priority: JobPriority, of job: JobID, _ actions: inout Actions) {
        notePriority(priority, of: job, &actions)
        admit(&actions)
    }

    /// The same without starting any.
    mutating func notePriority(_ priority: JobPriority, of job: JobID, _ actions: inout Actions) {
        guard isLive(job), places[Int(job.index)].phase != .expected, places[Int(job.index)].ownPriority != priority
        else { return }
        places[Int(job.index)].ownPriority = priority
        refreshPriorities(of: [Int(job.index)], &actions)
    }

    /// One that waits for the job, with this priority, has come (`change` 1) or gone (-1).
    mutating func inherit(_ change: Int32, _ priority: JobPriority, by job: JobID, _ actions: inout Actions) {
        places[Int(job.index)].inherited.add(change, priority)
        refreshPriorities(of: [Int(job.index)], &actions)
    }

    /// Works out the priority of jobs anew, and of all that they wait for, as far as they change.
    ///
    /// Of those that stand in rows, all that move join their new rows in the order in which they stood before.
    mutating func refreshPriorities(of indices: [Int], _ actions: inout Actions) {
        var pending = indices
        var moved: [(turn: UInt64, index: Int)] = []
        while let index = pending.popLast() {
            let old = places[index].priority
            let new = max(places[index].ownPriority, places[index].inherited.highest ?? .veryLow)
            guard new != old else { continue }
            places[index].priority = new
            if let turn = admission.turn(of: Int32(index)) {
                admission.dequeue(Int32(index), at: actions.now)
                moved.append((turn, index))
            }
            for other in places[index].dependencies where isLive(other) {
                places[Int(other.index)].inherited.add(-1, old)
                places[Int(other.index)].inherited.add(1, new)
                pending.append(Int(other.index))
            }
        }
        for (_, index) in moved.sorted(by: { $0.turn < $1.turn }) {
            admission.enqueue(Int32(index), priority: places[index].priority)
        }
    }
}
