import Foundation

/// How the jobs of a round hang together, and what happens to them.
enum Shape: String, CaseIterable {
    /// Independent jobs, added to a queue that runs them meanwhile.
    case live = "row, live"
    /// Independent jobs. Like all that follow they are added to a suspended queue, so that all wait at once.
    case row
    /// Each depends on the one before.
    case chain
    /// The last one depends on all others.
    case fanIn = "fan-in"
    /// All depend on the first.
    case fanOut = "fan-out"
    /// All are cancelled while they wait.
    case cancelled
    /// The priority of each is changed while it waits.
    case reprioritised

    static let sizes = [1_000, 10_000, 100_000]

    /// Up to which number of jobs an OperationQueue is bearable: beyond, it takes minutes.
    var largestForOperationQueue: Int {
        switch self {
        case .live, .row, .cancelled: 100_000
        case .fanIn, .fanOut: 10_000
        case .chain, .reprioritised: 1_000
        }
    }

    /// Whether the jobs are only added, run and finished, which is what the bar against an OperationQueue is about.
    var onlyRuns: Bool {
        switch self {
        case .live, .row, .chain, .fanIn, .fanOut: true
        case .cancelled, .reprioritised: false
        }
    }

    func link(_ jobs: [Operation]) {
        guard let first = jobs.first, let last = jobs.last else { return }
        switch self {
        case .chain: for (next, before) in zip(jobs.dropFirst(), jobs) { next.addDependency(before) }
        case .fanIn: for job in jobs.dropLast() { last.addDependency(job) }
        case .fanOut: for job in jobs.dropFirst() { job.addDependency(first) }
        case .live, .row, .cancelled, .reprioritised: break
        }
    }

    /// What happens to the jobs while they wait.
    func disturb(_ jobs: [Operation]) {
        switch self {
        case .cancelled: for job in jobs { job.cancel() }
        case .reprioritised: for job in jobs { job.queuePriority = .high }
        case .live, .row, .chain, .fanIn, .fanOut: break
        }
    }
}
