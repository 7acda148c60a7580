import Foundation

/// The priorities of jobs, the lowest first.
enum JobPriority: UInt8, CaseIterable, Comparable {
    case veryLow, low, normal, high, veryHigh

    init(_ priority: Operation.QueuePriority) {
        switch priority.rawValue {
        case ...Operation.QueuePriority.veryLow.rawValue: self = .veryLow
        case ...Operation.QueuePriority.low.rawValue: self = .low
        case Operation.QueuePriority.veryHigh.rawValue...: self = .veryHigh
        case Operation.QueuePriority.high.rawValue...: self = .high
        default: self = .normal
        }
    }

    static func < (one: JobPriority, other: JobPriority) -> Bool {
        one.rawValue < other.rawValue
    }
}

extension Operation.QueuePriority {
    init(_ priority: JobPriority) {
        switch priority {
        case .veryLow: self = .veryLow
        case .low: self = .low
        case .normal: self = .normal
        case .high: self = .high
        case .veryHigh: self = .veryHigh
        }
    }
}

/// The number of dependents of each priority, and the highest of these in constant time.
struct PriorityCounts {
    private var counts: (Int32, Int32, Int32, Int32, Int32) = (0, 0, 0, 0, 0)

    mutating func add(_ change: Int32, _ priority: JobPriority) {
        switch priority {
        case .veryLow: counts.0 += change
        case .low: counts.1 += change
        case .normal: counts.2 += change
        case .high: counts.3 += change
        case .veryHigh: counts.4 += change
        }
    }

    /// Nil when there are none.
    var highest: JobPriority? {
        if counts.4 > 0 { return .veryHigh }
        if counts.3 > 0 { return .high }
        if counts.2 > 0 { return .normal }
        if counts.1 > 0 { return .low }
        return counts.0 > 0 ? .veryLow : nil
    }
}

/// Inheritance of priority: a dependency goes as early as the jobs that wait for it.
extension JobGraph {
    /// Changes the job's own priority. A ready job whose effective priority changes goes to the end of its new bucket.
    mutating func setPriority(_ priority: JobPriority, of job: JobID, _ actions: inout Actions) {
        notePriority(priority, of: job, &actions)
        admit(&actions)
    }

    /// Changes the priority without starting any job.
    mutating func notePriority(_ priority: JobPriority, of job: JobID, _ actions: inout Actions) {
        guard isLive(job), places[Int(job.index)].phase != .expected, places[Int(job.index)].ownPriority != priority
        else { return }
        places[Int(job.index)].ownPriority = priority
        refreshPriorities(of: [Int(job.index)], &actions)
    }

    /// Counts a dependent with this priority that has come (`change` 1) or gone (-1).
    mutating func inherit(_ change: Int32, _ priority: JobPriority, by job: JobID, _ actions: inout Actions) {
        places[Int(job.index)].inherited.add(change, priority)
        refreshPriorities(of: [Int(job.index)], &actions)
    }

    /// Recomputes the priorities of jobs, and of their dependencies as far as they change.
    ///
    /// The ready jobs that move join their new buckets in the order in which they stood before.
    mutating func refreshPriorities(of indices: [Int], _ actions: inout Actions) {
        var pending = indices
        var moved: [(turn: UInt64, index: Int)] = []
        while let index = pending.popLast() {
            let old = places[index].priority
            let new = max(places[index].ownPriority, places[index].inherited.highest ?? .veryLow)
            guard new != old else { continue }
            places[index].priority = new
            if let turn = admission.turn(of: Int32(index)) {
                admission.dequeue(Int32(index))
                moved.append((turn, index))
            }
            for other in places[index].dependencies.map(\.job) where isLive(other) {
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
