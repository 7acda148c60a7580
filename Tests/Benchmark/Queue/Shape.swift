import Foundation

/// The dependencies of the jobs of a round, and the changes to them.
enum Shape: String, CaseIterable {
    /// Independent jobs, added to a running queue.
    case live = "row, live"
    /// Independent jobs, added like those below to a suspended queue, so that all wait at once.
    case row
    /// Each job depends on the one before.
    case chain
    /// The last job depends on all others.
    case fanIn = "fan-in"
    /// All jobs depend on the first.
    case fanOut = "fan-out"
    /// All jobs are cancelled while they wait.
    case cancelled
    /// The priority of each job is changed while it waits.
    case reprioritized

    static let sizes = [1_000, 10_000, 100_000]

    /// The largest number of jobs for an OperationQueue, which takes minutes beyond it.
    var largestForOperationQueue: Int {
        switch self {
        case .live, .row, .cancelled: 100_000
        case .fanIn, .fanOut: 10_000
        case .chain, .reprioritized: 1_000
        }
    }

    /// Whether the jobs are only added, run and finished, as the bar against an OperationQueue requires.
    var onlyRuns: Bool {
        switch self {
        case .live, .row, .chain, .fanIn, .fanOut: true
        case .cancelled, .reprioritized: false
        }
    }

    func link(_ jobs: [Operation]) {
        guard let first = jobs.first, let last = jobs.last else { return }
        switch self {
        case .chain: for (next, before) in zip(jobs.dropFirst(), jobs) { next.addDependency(before) }
        case .fanIn: for job in jobs.dropLast() { last.addDependency(job) }
        case .fanOut: for job in jobs.dropFirst() { job.addDependency(first) }
        case .live, .row, .cancelled, .reprioritized: break
        }
    }

    /// Changes the jobs while they wait.
    func disturb(_ jobs: [Operation]) {
        switch self {
        case .cancelled: for job in jobs { job.cancel() }
        case .reprioritized: for job in jobs { job.queuePriority = .high }
        case .live, .row, .chain, .fanIn, .fanOut: break
        }
    }
}
