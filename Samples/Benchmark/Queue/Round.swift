import Foundation

/// One number of jobs in one shape on one kind of queue.
struct Round {
    let shape: Shape
    let contender: Contender
    let size: Int

    /// Nanoseconds for each job.
    struct Cost {
        /// From adding the first to the end of the last.
        var running = Double.infinity
        /// The same in processor time.
        var processor = Double.infinity
        /// With making, linking and letting go of the jobs.
        var inAll = Double.infinity

        mutating func lower(to other: Cost) {
            running = min(running, other.running)
            processor = min(processor, other.processor)
            inAll = min(inAll, other.inAll)
        }
    }

    /// Runs fresh jobs on a fresh queue, as often as a sample needs.
    func sample() -> Cost {
        let rounds = isQuadratic ? 1 : max(1, Measurement.jobsInSample / size)
        var sum = Cost(running: 0, processor: 0, inAll: 0)
        for _ in 0..<rounds {
            sum.inAll += Measurement.seconds {
                let cost = run()
                sum.running += cost.running
                sum.processor += cost.processor
            }
        }
        let scale = 1_000_000_000 / Double(rounds * size)
        return Cost(running: sum.running * scale, processor: sum.processor * scale, inAll: sum.inAll * scale)
    }

    private var isQuadratic: Bool {
        contender == .operationQueue && shape.largestForOperationQueue < 100_000
    }

    private func run() -> (running: Double, processor: Double) {
        let jobs = makeJobs()
        let queue = contender.makeQueue()
        queue.isSuspended = shape != .live
        let processor = Measurement.processorTime
        let running = Measurement.seconds {
            for job in jobs { queue.addOperation(job) }
            shape.disturb(jobs)
            // Cancelled jobs of a NetworkQueue end although it is suspended.
            if shape != .cancelled || contender == .operationQueue { queue.isSuspended = false }
            queue.waitUntilAllOperationsAreFinished()
        }
        return (running, Measurement.processorTime - processor)
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
