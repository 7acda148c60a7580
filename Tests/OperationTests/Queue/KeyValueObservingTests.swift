#if canImport(Darwin)
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("Key-value observing", .timeLimit(.minutes(10)))
struct KeyValueObservingTests {
    @Test("OPQ-2: those who observe a queue under Foundation's type hear of each change once")
    func queue() async {
        let queue = NetworkQueue()
        let heard = Locked<[String]>([])
        @Sendable func note(_ text: String) { heard.withLock { $0.append(text) } }
        let observations = [
            queue.queue.observe(\.operationCount) { queue, _ in note("\(queue.operationCount) jobs") },
            queue.queue.observe(\.maxConcurrentOperationCount) { queue, _ in
                note("limit \(queue.maxConcurrentOperationCount)")
            },
            queue.queue.observe(\.isSuspended) { queue, _ in note("suspended \(queue.isSuspended)") },
        ]
        queue.maxConcurrentOperationCount = 2
        queue.queue.maxConcurrentOperationCount = 3
        queue.isSuspended = true
        let job = TestJob()
        queue.addOperation(job)
        queue.queue.isSuspended = false
        await job.ended()
        await expect(eventually { heard.withLock { $0.count >= 6 } })
        for observation in observations { observation.invalidate() }
        let expected = ["limit 2", "limit 3", "suspended true", "1 jobs", "suspended false", "0 jobs"]
        expect(heard.withLock { $0 }, equals: expected)
    }

    @Test("OPQ-2: those who observe an operation hear of its cancel once", arguments: [true, false])
    func cancel(isAdded: Bool) async {
        let heard = Locked<[[Bool?]]>([])
        let job = TestJob()
        let queue = OperationQueue()
        queue.isSuspended = true
        if isAdded { queue.addOperation(job) }
        let observation = (job as Operation).observe(\.isCancelled, options: [.old, .new]) { _, change in
            heard.withLock { $0.append([change.oldValue, change.newValue]) }
        }
        job.cancel()
        job.cancel()
        expect(job.isCancelled && heard.withLock { $0 } == [[false, true]])
        observation.invalidate()
        queue.isSuspended = false
        if isAdded { await job.ended() }
    }
}
#endif
