import Foundation

/// A number of jobs in a shape on a kind of queue.
struct Round {
    let shape: Shape
    let contender: Contender
    let size: Int

    /// Nanoseconds for each job.
    struct Cost {
        /// From adding the first to the end of the last.
        var running = Double.infinity
        /// The same in the processor's time.
        var processor = Double.infinity
        /// The same with the creation, linking and release of the jobs.
        var inAll = Double.infinity

        mutating func lower(to other: Cost) {
            running = min(running, other.running)
            processor = min(processor, other.processor)
            inAll = min(inAll, other.inAll)
        }
    }

    /// Runs new jobs on new queues until there are enough for a sample.
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

    /// The bytes of each waiting job; nil when the platform does not report memory.
    ///
    /// It uses several queues at once, so that the memory of a thread or a cache does not matter.
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
