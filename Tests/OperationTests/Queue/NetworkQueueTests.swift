import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("NetworkQueue", .timeLimit(.minutes(10)))
struct NetworkQueueTests {
    @Test("OPQ-3: the limit holds, waiting jobs start in order, and afterwards every count is zero")
    func limit() async {
        let queue = NetworkQueue(maxConcurrentOperationCount: 3)
        let occupancy = Occupancy()
        let jobs = (0..<200).map { _ in TestJob(occupancy) }
        for job in jobs { queue.addOperation(job) }
        for job in jobs { await job.ended() }
        expect(occupancy.most <= 3 && occupancy.now == 0)
        expect(jobs.allSatisfy { $0.executionCount == 1 })
        expect(queue.operationCount == 0 && queue.operations.isEmpty)
        // The executor releases the operation after announcing its end.
        await expect(eventually { queue.queue.operationCount == 0 })
    }

    @Test("OPQ-3: priorities, a change of priority while waiting, and first in, first out")
    func priorities() async {
        let queue = NetworkQueue(maxConcurrentOperationCount: 1)
        let order = Locked<[String]>([])
        queue.isSuspended = true
        let jobs = ["a", "b", "c", "d"].map { name in
            TestJob { job in
                order.withLock { $0.append(name) }
                job.finish()
            }
        }
        jobs[1].queuePriority = .high
        for job in jobs { queue.addOperation(job) }
        jobs[3].queuePriority = .veryHigh
        expect(queue.operationCount, equals: 4)
        expect(queue.operations.first === jobs[0])
        queue.isSuspended = false
        for job in jobs { await job.ended() }
        expect(order.withLock { $0 }, equals: ["d", "b", "a", "c"])
    }

    @Test("BEY-5: a waiting job that is cancelled ends though every slot is taken and the queue is suspended")
    func promptCancel() async {
        let queue = NetworkQueue(maxConcurrentOperationCount: 1)
        let running = TestJob { _ in }
        let waiting = TestJob()
        let dependent = TestJob()
        dependent.addDependency(waiting)
        for job in [running, waiting, dependent] { queue.addOperation(job) }
        queue.isSuspended = true
        waiting.cancel()
        await waiting.ended()
        await dependent.ended()
        expect(dependent.error?.rootCause.code, equals: .cancelled)
        expect(waiting.executionCount == 0 && dependent.executionCount == 0)
        expect(queue.operationCount, equals: 1)
        running.cancel()
        await running.ended()
        expect(queue.operationCount, equals: 0)
    }

    @Test("OPQ-3: cancelAllOperations ends every job, on queue and executor alike", arguments: [true, false])
    func cancelAll(onExecutor: Bool) async {
        let queue = NetworkQueue(maxConcurrentOperationCount: 2)
        let jobs = (0..<100).map { _ in TestJob { _ in } }
        let plain = BlockOperation {}
        plain.addDependency(jobs[99])
        for job in jobs { queue.addOperation(job) }
        queue.addOperation(plain)
        if onExecutor { queue.queue.cancelAllOperations() } else { queue.cancelAllOperations() }
        for job in jobs { await job.ended() }
        await plain.ended()
        expect(jobs.allSatisfy { $0.error?.code == .cancelled })
        expect(jobs.count { $0.executionCount > 0 } <= 2)
        expect(plain.isCancelled)
        await Task.detached { queue.waitUntilAllOperationsAreFinished() }.value
        expect(queue.operationCount, equals: 0)
    }

    @Test("OPQ-1: plain operations as jobs, dependencies and dependents, across queues")
    func plainAcrossQueues() async {
        let first = NetworkQueue()
        let second = NetworkQueue()
        let plainQueue = OperationQueue()
        let order = Locked<[Int]>([])
        let gate = Gate()
        @Sendable func note(_ number: Int) { order.withLock { $0.append(number) } }
        let jobs: [Operation] = [
            TestJob { job in
                gate.whenOpen {
                    note(0)
                    job.finish()
                }
            },
            BlockOperation { note(1) },
            TestJob { job in
                note(2)
                job.finish()
            },
            BlockOperation { note(3) },
            TestJob { job in
                note(4)
                job.finish()
            },
        ]
        for (dependent, dependency) in zip(jobs.dropFirst(), jobs) { dependent.addDependency(dependency) }
        second.addOperation(jobs[4])
        first.addOperation(jobs[3])
        second.addOperation(jobs[2])
        plainQueue.addOperation(jobs[1])
        first.addOperation(jobs[0])
        gate.open()
        await jobs[4].ended()
        expect(order.withLock { $0 }, equals: [0, 1, 2, 3, 4])
        await expect(eventually { first.operationCount + second.operationCount == 0 })
    }

    @Test("OPQ-1: a dependency added while the job waits is respected")
    func lateDependency() async {
        let queue = NetworkQueue(maxConcurrentOperationCount: 5)
        queue.isSuspended = true
        let gate = Gate()
        let dependency = TestJob { job in gate.whenOpen { job.finish() } }
        let job = TestJob { job in job.finish(dependency.isFinished ? nil : NetworkError(code: .refused)) }
        queue.addOperation(job)
        queue.addOperation(dependency)
        job.addDependency(dependency)
        queue.isSuspended = false
        gate.open()
        await job.ended()
        expect(job.error == nil)
    }

    @Test("OPQ-3: blocks and barriers")
    func barriers() async {
        let queue = NetworkQueue(maxConcurrentOperationCount: 8)
        let order = Locked<[String]>([])
        for _ in 0..<10 { queue.addOperation { order.withLock { $0.append("before") } } }
        queue.addBarrierBlock { order.withLock { $0.append("barrier") } }
        for _ in 0..<10 { queue.addOperation { order.withLock { $0.append("after") } } }
        await Task.detached { queue.waitUntilAllOperationsAreFinished() }.value
        let expected = Array(repeating: "before", count: 10) + ["barrier"] + Array(repeating: "after", count: 10)
        expect(order.withLock { $0 }, equals: expected)
    }

    @Test("OPQ-3: a barrier cancelled while it runs is over when its block returns, and nothing runs beside it")
    func cancelledBarrier() async throws {
        let queue = NetworkQueue(maxConcurrentOperationCount: 4)
        let order = Locked<[String]>([])
        let began = Gate()
        let goOn = DispatchSemaphore(value: 0)
        queue.addBarrierBlock {
            began.open()
            goOn.wait()
            order.withLock { $0.append("barrier ends") }
        }
        await began.opened()
        queue.cancelAllOperations()
        let after = TestJob { job in
            order.withLock { $0.append("after") }
            job.finish()
        }
        queue.addOperation(after)
        expect(!after.isExecuting)
        goOn.signal()
        await after.ended()
        expect(order.withLock { $0 }, equals: ["barrier ends", "after"])
    }

    @Test("BEY-7, OPQ-3: behind barriers that were cancelled a job waits for the jobs before them, and says so")
    func explainsCancelledBarriers() async {
        let queue = NetworkQueue()
        let running = TestJob { _ in }
        running.name = "running"
        queue.addOperation(running)
        for _ in 0..<2 {
            queue.addBarrierBlock {}
            queue.operations.last?.cancel()
        }
        let behind = TestJob()
        queue.addOperation(behind)
        await expect(eventually { queue.operationCount == 2 })
        expect(queue.explain(behind), equals: [.dependency(name: "'running'", isQueued: true)])
        running.finish()
        await behind.ended()
    }

    @Test("OPQ-1: a plain job that is given a dependency while it waits gives its slot back for it")
    func latePlainDependency() async {
        let queue = NetworkQueue(maxConcurrentOperationCount: 1)
        queue.isSuspended = true
        let order = Locked<[String]>([])
        let plain = BlockOperation { order.withLock { $0.append("plain") } }
        let dependency = BlockOperation { order.withLock { $0.append("dependency") } }
        queue.addOperation(plain)
        queue.addOperation(dependency)
        plain.addDependency(dependency)
        queue.isSuspended = false
        await plain.ended()
        expect(order.withLock { $0 }, equals: ["dependency", "plain"])
    }

    @Test("BEY-4: plain jobs by the ten thousands, in a chain, and finished by hand while they wait")
    func manyPlain() async {
        let queue = NetworkQueue(maxConcurrentOperationCount: 4)
        var last = BlockOperation {}
        queue.addOperation(last)
        let count = TestLoad.count(20_000, part: 5_000)
        for _ in 0..<count {
            let next = BlockOperation {}
            next.addDependency(last)
            queue.addOperation(next)
            last = next
        }
        await last.ended()
        await expect(eventually { queue.operationCount == 0 })
        queue.isSuspended = true
        let byHand = (0..<count).map { _ in BlockOperation {} }
        for operation in byHand {
            queue.addOperation(operation)
            operation.start()
        }
        queue.isSuspended = false
        await expect(eventually { queue.operationCount == 0 })
    }

    @Test("OPQ-3: a suspended queue with plain jobs stays alive, and jobs that callbacks add survive a cancel of all")
    func keptAlive() async {
        weak var released: NetworkQueue?
        let plain = BlockOperation {}
        do {
            let queue = NetworkQueue()
            released = queue
            queue.isSuspended = true
            queue.addOperation(plain)
        }
        expect(released != nil)
        released?.isSuspended = false
        await plain.ended()
        await expect(eventually { released == nil })
    }

    @Test("OPQ-3: addOperations waits when it is told to")
    func addAndWait() async {
        let jobs = (0..<20).map { _ in TestJob() }
        await Task.detached {
            NetworkQueue(maxConcurrentOperationCount: 2).addOperations(jobs, waitUntilFinished: true)
        }.value
        expect(jobs.allSatisfy { $0.isFinished })
    }

    @Test("OPQ-2: cancelling from inside a job and from a completion never deadlocks")
    func cancelFromInside() async {
        let queue = NetworkQueue(maxConcurrentOperationCount: 1)
        let jobs = (0..<10).map { _ in
            TestJob { job in
                queue.cancelAllOperations()
                job.finish()
            }
        }
        for job in jobs { queue.addOperation(job) }
        for job in jobs { await job.ended() }
        expect(jobs.allSatisfy { $0.error?.code == .cancelled })
    }

    @Test("BEY-1: after a queue has run, it and its jobs are freed")
    func freed() async {
        weak var queue: NetworkQueue?
        weak var job: TestJob?
        do {
            let strongQueue = NetworkQueue()
            let strongJob = TestJob()
            queue = strongQueue
            job = strongJob
            strongQueue.addOperation(strongJob)
            await strongJob.ended()
        }
        await expect(eventually { queue == nil && job == nil })
    }

    @Test(
        "OPQ-1, OPQ-2, OPQ-3: random graphs on three queues, with cancels and suspensions",
        arguments: 0..<UInt64(TestLoad.count(12, part: 3))
    )
    func stress(seed: UInt64) async {
        var random = SeededGenerator(seed: seed)
        let queues = [
            NetworkQueue(maxConcurrentOperationCount: 1), NetworkQueue(maxConcurrentOperationCount: 4),
        ]
        let plainQueue = OperationQueue()
        let occupancies = [Occupancy(), Occupancy()]
        let tooEarly = Locked(0)
        let completions = Locked(0)
        var operations: [(operation: Operation, queue: Int)] = []
        for index in 0..<600 {
            let place = Int.random(in: 0..<5, using: &random) % 3
            let operation: Operation
            if index % 8 == 0 {
                operation = BlockOperation {}
            } else {
                let occupancy = place < 2 ? occupancies[place] : Occupancy()
                let isInline = Bool.random(using: &random)
                let fails = Int.random(in: 0..<10, using: &random) == 0
                operation = TestJob { job in
                    occupancy.enter()
                    if !job.isCancelled, !job.dependencies.allSatisfy(\.isFinished) { tooEarly.withLock { $0 += 1 } }
                    let end: @Sendable () -> Void = {
                        occupancy.leave()
                        job.finish(fails ? NetworkError(code: .timedOut) : nil)
                        job.finish()
                    }
                    if isInline { end() } else { DispatchQueue.global().async(execute: end) }
                }
            }
            operation.completionBlock = { completions.withLock { $0 += 1 } }
            for _ in 0..<Int.random(in: 0...2, using: &random) {
                guard let other = operations.randomElement(using: &random)?.operation else { continue }
                if let job = operation as? TestJob, Bool.random(using: &random) {
                    job.addDependency(other, policy: .allowFailure)
                } else {
                    operation.addDependency(other)
                }
            }
            operations.append((operation, place))
        }
        let order = operations.shuffled(using: &random)
        let victims = operations.map(\.operation).filter { _ in Int.random(in: 0..<6, using: &random) == 0 }
        async let disturbance: Void = Task.detached {
            for (index, victim) in victims.enumerated() {
                victim.cancel()
                if index % 5 == 0 { queues[index % 2].isSuspended.toggle() }
                victim.queuePriority = index % 3 == 0 ? .high : .low
            }
            for queue in queues { queue.isSuspended = false }
        }.value
        for (operation, place) in order {
            if place < 2 { queues[place].addOperation(operation) } else { plainQueue.addOperation(operation) }
        }
        await disturbance
        for (operation, _) in operations { await operation.ended() }
        await expect(eventually { completions.withLock { $0 } >= operations.count }, "seed \(seed)")
        await expect(eventually { queues.allSatisfy { $0.operationCount == 0 } }, "seed \(seed)")
        expect(tooEarly.withLock { $0 }, equals: 0, "seed \(seed)")
        expect(completions.withLock { $0 }, equals: operations.count, "seed \(seed)")
        let jobs = operations.compactMap { $0.operation as? TestJob }
        expect(jobs.allSatisfy { $0.executionCount <= 1 }, "seed \(seed)")
        expect(jobs.allSatisfy { $0.executionCount == 1 || $0.error != nil }, "seed \(seed)")
        // A cancelled job ends before its work.
        await expect(eventually { occupancies.allSatisfy { $0.now == 0 } }, "seed \(seed)")
    }
}
