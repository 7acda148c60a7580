import Foundation

/// One number of jobs in one shape on one kind of queue.
struct Round {
    let shape: Shape
    let contender: Contender
    let size: Int

    /// Nanoseconds for each job, from adding the first to the end of the last; and in all, with making, linking and
    /// letting go of them.
    struct Cost {
        var running = Double.infinity
        var inAll = Double.infinity

        mutating func lower(to other: Cost) {
            running = min(running, other.running)
            inAll = min(inAll, other.inAll)
        }
    }

    /// Runs fresh jobs on a fresh queue, as often as a sample needs.
    func sample() -> Cost {
        var running = 0.0
        var inAll = 0.0
        let rounds = isQuadratic ? 1 : max(1, Measurement.jobsInSample / size)
        for _ in 0..<rounds {
            inAll += Measurement.seconds { running += run() }
        }
        let jobs = Double(rounds * size)
        return Cost(running: running * 1_000_000_000 / jobs, inAll: inAll * 1_000_000_000 / jobs)
    }

    private var isQuadratic: Bool {
        contender == .operationQueue && shape.largestForOperationQueue < 100_000
    }

    private func run() -> Double {
        let jobs = makeJobs()
        let queue = contender.makeQueue()
        queue.isSuspended = shape != .live
        return Measurement.seconds {
            for job in jobs { queue.addOperation(job) }
            shape.disturb(jobs)
            // Cancelled jobs of a NetworkQueue end although it is suspended.
            if shape != .cancelled || contender == .operationQueue { queue.isSuspended = false }
            queue.waitUntilAllOperationsAreFinished()
        }
    }

    private func makeJobs() -> [Operation] {
        let jobs = (0..<size).map { _ in contender.makeJob() }
        shape.link(jobs)
        return jobs
    }

    /// What each job occupies while it waits, in bytes; nil when the platform does not tell.
    ///
    /// Of as many queues at once as it takes for the odd thread or cache not to matter.
    func waitingBytes() -> Double? {
        guard let before = Memory.settledAllocated else { return nil }
        let queues = (0..<max(1, Measurement.jobsInSample / 2 / size)).map { _ in contender.makeQueue() }
        for queue in queues {
            queue.isSuspended = true
            for job in makeJobs() { queue.addOperation(job) }
        }
        let after = Memory.settledAllocated ?? before
        for queue in queues {
            queue.isSuspended = false
            queue.waitUntilAllOperationsAreFinished()
        }
        return Double(after - before) / Double(size * queues.count)
    }
}
