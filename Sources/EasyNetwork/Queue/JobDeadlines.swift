import Foundation

/// The deadlines of a queue's jobs, earliest first.
struct JobDeadlines<Job: AnyObject> {
    private var heap = TimerHeap<(job: Job, deadline: TimeInterval)>()
    /// The jobs in the heap that have not ended.
    private var waiting: Set<ObjectIdentifier> = []

    var isEmpty: Bool { waiting.isEmpty }
    /// The earliest deadline, possibly of a job that has ended; `nil` without deadlines.
    var next: TimeInterval? { isEmpty ? nil : heap.earliest }

    /// - Parameter deadline: the time in seconds from now.
    mutating func add(_ job: Job, _ deadline: TimeInterval, now: TimeInterval) {
        waiting.insert(ObjectIdentifier(job))
        heap.add((job, deadline), at: now + deadline)
    }

    /// Forgets a job that has ended, at a constant average cost.
    mutating func remove(_ job: Job) {
        guard waiting.remove(ObjectIdentifier(job)) != nil, heap.count > 64, heap.count > 2 * waiting.count else {
            return
        }
        heap.sweep { waiting.contains(ObjectIdentifier($0.job)) }
    }

    /// Returns the jobs whose deadlines have passed, and forgets them.
    mutating func takeDue(now: TimeInterval) -> [(job: Job, deadline: TimeInterval)] {
        var due: [(job: Job, deadline: TimeInterval)] = []
        while let next = heap.takeDue(now: now) {
            if waiting.remove(ObjectIdentifier(next.job)) != nil { due.append(next) }
        }
        return due
    }
}
