import EasyNetwork
import Foundation

/// The memory that remains after a chain of a hundred thousand jobs.
struct LongChain {
    let report: Report
    private let size = 100_000

    func run() {
        report.line("\nMemory around a chain of \(size)")
        measure("run") {
            let queue = NetworkQueue()
            for job in makeChain() { queue.addOperation(job) }
            queue.waitUntilAllOperationsAreFinished()
        }
        measure("dropped, never added") { _ = makeChain() }
        measure("cancelled in a suspended queue") {
            let queue = NetworkQueue()
            queue.isSuspended = true
            for job in makeChain() { queue.addOperation(job) }
            queue.cancelAllOperations()
            queue.waitUntilAllOperationsAreFinished()
        }
    }

    private func makeChain() -> [Operation] {
        let jobs = (0..<size).map { _ in TrivialJob() }
        Shape.chain.link(jobs)
        return jobs
    }

    private func measure(_ name: String, _ work: () -> Void) {
        let before = settled()
        work()
        let after = settled()
        func text(_ bytes: Int?) -> String { bytes.map { Report.number(Double($0) / 1_048_576) } ?? "-" }
        report.line(
            "  " + name.filled(34) + "allocated \(text(before.allocated)) -> \(text(after.allocated)) MiB, "
                + "resident \(text(before.resident)) -> \(text(after.resident)) MiB"
        )
        if let before = before.allocated, let after = after.allocated {
            let left = Double(after - before) / 1_048_576
            report.bar("left allocated by a chain of \(size), \(name)", left, atMost: 1, unit: " MiB")
        }
        if let before = before.resident, let after = after.resident {
            let left = Double(after - before) / 1_048_576
            report.bar("left resident by a chain of \(size), \(name)", left, atMost: 8, unit: " MiB")
        }
    }

    private func settled() -> (allocated: Int?, resident: Int?) {
        let allocated = Memory.settledAllocated
        Memory.trim()
        return (allocated, Memory.resident)
    }
}
