import Dispatch
import EasyNetwork
import Foundation

/// The time from `cancel()` to the end of a waiting job while all slots are taken.
struct CancelLatency {
    let report: Report
    private let waiting = 10_000
    private let cancelled = 1_000

    func run() {
        let queue = NetworkQueue(maxConcurrentOperationCount: Contender.limit)
        for _ in 0..<Contender.limit { queue.addOperation(EndlessJob()) }
        let jobs = (0..<waiting).map { _ in TrivialJob() }
        for job in jobs { queue.addOperation(job) }
        // Spread over the whole queue.
        let victims = stride(from: 0, to: waiting, by: waiting / cancelled).map { jobs[$0] }
        let milliseconds = victims.map { 1_000 * cancelAndWait($0) }.sorted()
        queue.cancelAllOperations()
        queue.waitUntilAllOperationsAreFinished()

        func percentile(_ part: Double) -> Double { Measurement.percentile(part, of: milliseconds) }
        report.line("\nFrom cancel() to the completion block, a job among \(waiting) that wait, every slot taken")
        let figures = [("median", 0.5), ("99 %", 0.99), ("longest", 1)].map { name, part in
            "\(name) \(Report.number(percentile(part), digits: 3)) ms"
        }
        report.line("  " + figures.joined(separator: ", "))
        report.bar("cancel of a waiting job, 99th percentile", percentile(0.99), atMost: 5, unit: " ms")
    }

    private func cancelAndWait(_ job: Operation) -> Double {
        let done = DispatchSemaphore(value: 0)
        job.completionBlock = { done.signal() }
        return Measurement.seconds {
            job.cancel()
            done.wait()
        }
    }
}

/// A job that runs until it is cancelled.
private final class EndlessJob: NetworkOperation, @unchecked Sendable {
    // Sendable because it has no state.
    override func execute() {}
}
