import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

/// Cases that crash or hang `OperationQueue` on Linux, and must not affect `NetworkQueue`.
@Suite("Cases that crash Foundation", .timeLimit(.minutes(10)))
struct PlatformRegressionTests {
    enum JobKind: CaseIterable, Sendable {
        case networkOperation, plainOperation

        func job(_ work: @escaping @Sendable () -> Void = {}) -> Operation {
            switch self {
            case .networkOperation:
                TestJob { job in
                    work()
                    job.finish()
                }
            case .plainOperation:
                BlockOperation(block: work)
            }
        }
    }

    private final class WeakOperation {
        weak var operation: Operation?

        init(_ operation: Operation) {
            self.operation = operation
        }
    }

    /// In Foundation a dependency keeps unretained pointers to its dependents, and follows them when it finishes.
    @Test(
        "OPQ-2: cancelled dependents that are freed before their dependency finishes do no harm",
        arguments: JobKind.allCases,
        JobKind.allCases
    )
    func freedDependents(dependentKind: JobKind, dependencyKind: JobKind) async {
        let gate = Gate()
        let gatekeeper = TestJob { job in gate.whenOpen { job.finish() } }
        let dependency = dependencyKind.job()
        dependency.addDependency(gatekeeper)
        let queue = NetworkQueue()
        queue.addOperation(gatekeeper)
        queue.addOperation(dependency)
        let dependents = await freed(dependentKind, 200, after: dependency)
        await expect(eventually { dependents.allSatisfy { $0.operation == nil } })
        // Reuses the memory of the freed dependents.
        let others = (0..<400).map { _ in dependentKind.job() }
        expect(!dependency.isFinished)
        gate.open()
        await dependency.ended()
        await expect(eventually { queue.operationCount == 0 })
        withExtendedLifetime(others) {}
    }

    private func freed(_ kind: JobKind, _ count: Int, after dependency: Operation) async -> [WeakOperation] {
        let queue = NetworkQueue()
        let dependents = (0..<count).map { _ in kind.job() }
        for dependent in dependents {
            dependent.addDependency(dependency)
            queue.addOperation(dependent)
        }
        queue.cancelAllOperations()
        for dependent in dependents { await dependent.ended() }
        return dependents.map(WeakOperation.init)
    }

    /// Finishes a `NetworkOperation` with `finish()`, and a plain one with a manual start.
    @Test("OPQ-2: finished while it waits, before the queue has started it", arguments: JobKind.allCases)
    func finishedBeforeStarted(kind: JobKind) async {
        let queue = NetworkQueue(maxConcurrentOperationCount: 1)
        queue.isSuspended = true
        let runs = Locked(0)
        let completions = Locked(0)
        let jobs = (0..<100).map { _ in kind.job { runs.withLock { $0 += 1 } } }
        for job in jobs {
            job.completionBlock = { completions.withLock { $0 += 1 } }
            queue.addOperation(job)
            if let job = job as? NetworkOperation { job.finish() } else { job.start() }
        }
        queue.isSuspended = false
        for job in jobs { await job.ended() }
        await expect(eventually { queue.operationCount == 0 && completions.withLock { $0 } >= jobs.count })
        let last = kind.job()
        queue.addOperation(last)
        await last.ended()
        expect(completions.withLock { $0 }, equals: jobs.count)
        expect(runs.withLock { $0 }, equals: (kind == .networkOperation ? 0 : jobs.count))
    }

    @Test("OPQ-2: finished from outside while the queue is just starting it, here or on a plain queue: one completion")
    func finishedWhileStarted() async {
        let queue = NetworkQueue(maxConcurrentOperationCount: 4)
        let plainQueue = OperationQueue()
        let completions = Locked(0)
        let jobs = (0..<2_000).map { _ in TestJob() }
        for job in jobs { job.completionBlock = { completions.withLock { $0 += 1 } } }
        async let finishing: Void = Task.detached { for job in jobs { job.finish() } }.value
        for (index, job) in jobs.enumerated() {
            if index % 2 == 0 { queue.addOperation(job) } else { plainQueue.addOperation(job) }
        }
        await finishing
        for job in jobs { await job.ended() }
        await expect(eventually { completions.withLock { $0 } >= jobs.count })
        let last = TestJob()
        plainQueue.addOperation(last)
        await last.ended()
        expect(completions.withLock { $0 } == jobs.count && queue.operationCount == 0)
    }

    /// Finishes in `cancel()`, started or not, like many operations that were written for Apple's platforms.
    private final class HastyOperation: Operation, @unchecked Sendable {
        private let isOver = Locked(false)

        override var isAsynchronous: Bool { true }
        override var isFinished: Bool { isOver.withLock { $0 } }

        override func cancel() {
            super.cancel()
            willChangeValue(forKey: "isFinished")
            isOver.withLock { $0 = true }
            didChangeValue(forKey: "isFinished")
        }
    }

    @Test("OPQ-2: a foreign operation that reports its end when it is cancelled, before it was started")
    func hasty() async {
        let queue = NetworkQueue(maxConcurrentOperationCount: 1)
        queue.isSuspended = true
        let jobs = (0..<100).map { _ in HastyOperation() }
        for job in jobs { queue.addOperation(job) }
        for job in jobs { job.cancel() }
        let last = TestJob()
        queue.addOperation(last)
        queue.isSuspended = false
        await last.ended()
        await expect(eventually { queue.operationCount == 0 })
    }

    private final class OlderJob: NetworkOperation, @unchecked Sendable {
        override func start() {
            super.start()
            DispatchQueue.global().async { self.finish() }
        }
    }

    @Test("OPQ-2: super.start() in an operation that overrides isFinished: one completion")
    func superStart() async {
        let queue = NetworkQueue(maxConcurrentOperationCount: 3)
        let completions = Locked(0)
        let jobs = (0..<200).map { _ in OlderJob() }
        for job in jobs {
            job.completionBlock = { completions.withLock { $0 += 1 } }
            queue.addOperation(job)
        }
        for job in jobs { await job.ended() }
        await expect(eventually { completions.withLock { $0 } >= jobs.count })
        let last = OlderJob()
        queue.addOperation(last)
        await last.ended()
        expect(completions.withLock { $0 } == jobs.count && queue.operationCount == 0)
    }

    /// Foundation's `start()` finishes it twice, which this package cannot prevent.
    private final class OlderPlainOperation: Operation, @unchecked Sendable {
        private let isOver = Locked(false)

        override var isAsynchronous: Bool { true }
        override var isFinished: Bool { isOver.withLock { $0 } }

        override func start() {
            super.start()
            DispatchQueue.global().async {
                self.willChangeValue(forKey: "isFinished")
                self.isOver.withLock { $0 = true }
                self.didChangeValue(forKey: "isFinished")
            }
        }
    }

    @Test("OPQ-3: a plain operation that calls super.start() gives its slot back once")
    func superStartOfPlain() async {
        let queue = NetworkQueue(maxConcurrentOperationCount: 1)
        let occupancy = Occupancy()
        for _ in 0..<50 {
            queue.addOperation(OlderPlainOperation())
            queue.addOperation(TestJob(occupancy))
        }
        await expect(eventually { queue.operationCount == 0 })
        expect(occupancy.most, equals: 1)
    }

    @Test("OPQ-1: a job whose unfinished dependency was taken back runs", arguments: JobKind.allCases)
    func removedDependency(dependencyKind: JobKind) async {
        let queue = NetworkQueue()
        let never = dependencyKind.job()
        let job = TestJob()
        job.addDependency(never)
        job.removeDependency(never)
        expect(job.dependencies.isEmpty)
        queue.addOperation(job)
        await job.ended()
        expect(job.executionCount, equals: 1)
    }

    @Test("OPQ-1: taken back while the job waits, a dependency holds it no longer", arguments: JobKind.allCases)
    func removedWhileWaiting(dependencyKind: JobKind) async {
        let queue = NetworkQueue()
        let (never, other) = (dependencyKind.job(), dependencyKind.job())
        let job = TestJob { job in job.finish(other.isFinished ? nil : NetworkError(code: .refused)) }
        job.addDependency(never)
        job.addDependency(other)
        queue.addOperation(job)
        job.removeDependency(never)
        expect(job.dependencies, equals: [other])
        queue.addOperation(other)
        await job.ended()
        expect(job.error == nil && queue.operationCount == 0)
    }

    @Test("OPQ-3: a cancelled job added while a barrier waits, and one after it", arguments: JobKind.allCases)
    func cancelledBehindBarrier(kind: JobKind) async {
        let queue = NetworkQueue(maxConcurrentOperationCount: 2)
        let gate = Gate()
        let order = Locked<[String]>([])
        let running = TestJob { job in gate.whenOpen { job.finish() } }
        queue.addOperation(running)
        queue.addBarrierBlock { order.withLock { $0.append("barrier") } }
        let cancelled = kind.job { order.withLock { $0.append("cancelled") } }
        cancelled.cancel()
        queue.addOperation(cancelled)
        let after = kind.job { order.withLock { $0.append("after") } }
        queue.addOperation(after)
        gate.open()
        await cancelled.ended()
        await after.ended()
        expect(order.withLock { $0 }, equals: ["barrier", "after"])
        await expect(eventually { queue.operationCount == 0 })
    }

    /// On Linux `didChangeValue` calls the getter immediately, which deadlocks under the getters' lock.
    @Test("OPQ-2: everything may be read, by dependents too, while the state changes", arguments: JobKind.allCases)
    func readWhileChanging(dependentKind: JobKind) async {
        let queue = NetworkQueue(maxConcurrentOperationCount: 4)
        let elsewhere = OperationQueue()
        let jobs = (0..<300).map { _ in TestJob() }
        let contradictions = Locked(0)
        let dependents = jobs.map { job in
            let dependent = dependentKind.job {
                _ = (job.isFinished, job.isExecuting, job.error, job.dependencies)
                // Others are changing meanwhile.
                for other in jobs where other.isFinished {
                    if other.isExecuting || !other.isReady { contradictions.withLock { $0 += 1 } }
                }
            }
            dependent.addDependency(job)
            return dependent
        }
        for (index, job) in jobs.enumerated() {
            (index % 2 == 0 ? queue.addOperation(dependents[index]) : elsewhere.addOperation(dependents[index]))
            queue.addOperation(job)
            if index % 7 == 0 { job.cancel() }
        }
        for dependent in dependents { await dependent.ended() }
        expect(contradictions.withLock { $0 }, equals: 0)
    }

    @Test("BEY-7: a job that depends on itself ends with .cycle, told before it is added or after")
    func selfDependency() async {
        let queue = NetworkQueue()
        queue.isSuspended = true
        let before = TestJob()
        before.addDependency(before)
        queue.addOperation(before)
        let after = TestJob()
        queue.addOperation(after)
        after.addDependency(after)
        for job in [before, after] {
            await job.ended()
            expect(job.error?.code == .cycle && job.executionCount == 0)
        }
        expect(queue.operationCount, equals: 0)
    }

    @Test("OPQ-3: adding a job twice, to one queue or two, runs it once", arguments: JobKind.allCases)
    func addedTwice(kind: JobKind) async {
        let queue = NetworkQueue()
        let other = NetworkQueue()
        let runs = Locked(0)
        let job = kind.job { runs.withLock { $0 += 1 } }
        queue.isSuspended = true
        queue.addOperation(job)
        queue.addOperation(job)
        other.addOperation(job)
        expect(queue.operationCount == 1 && other.operationCount == 0)
        queue.isSuspended = false
        await job.ended()
        queue.addOperation(job)
        other.addOperation(job)
        expect(runs.withLock { $0 }, equals: 1)
        await expect(eventually { queue.operationCount + other.operationCount == 0 })
    }

    enum Fate: CaseIterable, Sendable { case run, cancelled }

    @Test("BEY-4: a very long chain is run or cancelled, and released", arguments: Fate.allCases)
    func longChain(fate: Fate) async {
        let queue = NetworkQueue()
        weak var first: TestJob?
        weak var last: TestJob?
        do {
            queue.isSuspended = true
            var job = TestJob { $0.finish() }
            first = job
            queue.addOperation(job)
            for _ in 1..<TestLoad.count(100_000) {
                let next = TestJob { $0.finish() }
                next.addDependency(job)
                queue.addOperation(next)
                job = next
            }
            last = job
            if fate == .cancelled { queue.cancelAllOperations() } else { queue.isSuspended = false }
            await job.ended()
            expect(job.executionCount, equals: (fate == .run ? 1 : 0))
        }
        await expect(eventually { queue.operationCount == 0 })
        await expect(eventually { first == nil && last == nil })
    }

    @Test("BEY-4: a chain of a hundred thousand that was never added is released without deep recursion")
    func longChainDropped() async {
        weak var first: TestJob?
        do {
            var last = TestJob()
            first = last
            for _ in 0..<100_000 {
                let next = TestJob()
                next.addDependency(last)
                last = next
            }
        }
        // The last release may happen on another thread.
        await expect(eventually { first == nil })
    }
}
