import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("Cycles among dependencies", .timeLimit(.minutes(10)))
struct CycleTests {
    private func chain(_ names: String...) -> [TestJob] {
        names.map { name in
            let job = TestJob()
            job.name = name
            return job
        }
    }

    @Test("BEY-7: a cycle ends the job that closes it, and the error names its jobs", arguments: [false, true])
    func circle(backwards: Bool) async {
        let queue = NetworkQueue()
        let jobs = chain("a", "b", "c")
        jobs[0].addDependency(jobs[1])
        jobs[1].addDependency(jobs[2])
        jobs[2].addDependency(jobs[0])
        let order = backwards ? jobs.reversed() : jobs
        for job in order { queue.addOperation(job) }
        for job in jobs { await job.ended() }
        let closing = order[2]
        expect(closing.error?.code, equals: .cycle)
        let expected = backwards ? ["a", "b", "c", "a"] : ["c", "a", "b", "c"]
        expect(closing.error?.dependencyPath, equals: expected)
        expect(
            closing.error?.localizedDescription.contains(expected.map { "'\($0)'" }.joined(separator: " waits for ")),
            equals: true
        )
        for job in order.dropLast() { expect(job.error?.code, equals: .dependencyFailed) }
        expect(jobs.allSatisfy { $0.executionCount == 0 })
        expect(queue.operationCount, equals: 0)
    }

    @Test("BEY-7, RSP-6: jobs of a cycle are named by their requests, where they have no names")
    func words() async {
        let queue = NetworkQueue()
        let (one, two) = (RequestOperation(Get(api: "a")), RequestOperation(GetAccount(id: 1)))
        two.name = "account"
        one.addDependency(two)
        two.addDependency(one)
        queue.addOperation(one)
        queue.addOperation(two)
        await one.ended()
        await two.ended()
        expect(two.error?.localizedDescription.contains("Get waits for 'account'"), equals: true)
        expect(two.error?.rootCause.code, equals: .cycle)
    }

    @Test("BEY-7: a cycle closed by a dependency that is added while the jobs wait")
    func lateCircle() async {
        let queue = NetworkQueue()
        queue.isSuspended = true
        let jobs = chain("a", "b")
        jobs[0].addDependency(jobs[1])
        for job in jobs { queue.addOperation(job) }
        jobs[1].addDependency(jobs[0])
        for job in jobs { await job.ended() }
        expect(jobs[1].error?.code == .cycle && jobs[0].error?.rootCause.code == .cycle)
    }

    @Test("BEY-7: a cycle over two queues, whichever is closed last", arguments: [false, true])
    func acrossQueues(isLate: Bool) async {
        let queues = [NetworkQueue(), NetworkQueue()]
        for queue in queues { queue.isSuspended = true }
        let jobs = chain("a", "b", "c", "d")
        for (job, other) in zip(jobs, jobs.dropFirst()) { job.addDependency(other) }
        if !isLate { jobs[3].addDependency(jobs[0]) }
        for (index, job) in jobs.enumerated() { queues[index % 2].addOperation(job) }
        if isLate { jobs[3].addDependency(jobs[0]) }
        for job in jobs { await job.ended() }
        expect(jobs[3].error?.code, equals: .cycle)
        expect(Set(jobs[3].error?.dependencyPath ?? []), equals: ["a", "b", "c", "d"])
        expect(jobs[0].error?.rootCause.code, equals: .cycle)
    }

    @Test("BEY-7: a cycle through plain operations ends the operation that closes it")
    func plainCircle() async {
        let queue = NetworkQueue()
        let plain = [BlockOperation {}, BlockOperation {}]
        let job = TestJob()
        plain[0].addDependency(plain[1])
        plain[1].addDependency(job)
        job.addDependency(plain[0])
        queue.addOperations(plain + [job], waitUntilFinished: false)
        await job.ended()
        for operation in plain { await operation.ended() }
        expect(job.error?.code, equals: .cycle)
        expect(plain.allSatisfy { !$0.isCancelled })
    }

    @Test("BEY-7: a cycle through a child cancelled before its group began is found", arguments: [false, true])
    func cancelledChild(isNested: Bool) async {
        let queue = NetworkQueue()
        let (child, job) = (TestJob(), TestJob())
        let first = isNested ? ChainOperation([child]) : child
        let chain = ChainOperation([first])
        chain.addDependency(job)
        job.addDependency(child)
        queue.addOperation(chain)
        first.cancel()
        queue.addOperation(job)
        for operation in [job, child, chain] { await operation.ended() }
        expect(job.error?.code, equals: .cycle)
        await expect(eventually { queue.operationCount == 0 })
    }

    @Test("BEY-7: a job before a barrier that depends on one after it is a cycle")
    func barrierCircle() async {
        let queue = NetworkQueue()
        queue.isSuspended = true
        let jobs = chain("before", "after")
        jobs[0].addDependency(jobs[1])
        queue.addOperation(jobs[0])
        let isReached = Locked(false)
        queue.addBarrierBlock { isReached.withLock { $0 = true } }
        queue.addOperation(jobs[1])
        queue.isSuspended = false
        for job in jobs { await job.ended() }
        expect(jobs[1].error?.code == .cycle && jobs[0].error?.rootCause.code == .cycle)
        await Task.detached { queue.waitUntilAllOperationsAreFinished() }.value
        expect(isReached.withLock { $0 })
    }

    @Test("BEY-7: a job before a cancelled barrier that depends on one after it is a cycle, at any moment of its end")
    func cancelledBarrier() async {
        for round in 0..<100 {
            let queue = NetworkQueue()
            let jobs = chain("before", "after")
            jobs[0].addDependency(jobs[1])
            queue.addOperation(jobs[0])
            queue.addBarrierBlock {}
            let barrier = queue.operations.last
            barrier?.cancel()
            queue.addOperation(jobs[1])
            await expect(eventually { jobs.allSatisfy(\.isFinished) }, "round \(round)")
            expect(jobs[1].error?.code == .cycle, "round \(round)")
        }
    }

    // Found by the simulation: seed 907919.
    @Test("BEY-7: a barrier that is being ended shows the jobs before it, for which the jobs after it still wait")
    func endingBarrier() {
        var graph = JobGraph<String>()
        var actions = JobGraph<String>.Actions()
        let jobs = [graph.submit("before"), graph.submit("barrier", isBarrier: true), graph.submit("after")]
        let barrier = jobs[1]
        expect(graph.payloads(at: barrier, .dependencies), equals: ["barrier"])
        graph.end(barrier, &actions)
        expect(actions.end, equals: ["barrier"])
        expect(graph.payloads(at: barrier, .dependencies), equals: ["barrier", "before"])
        expect(graph.payloads(at: barrier, .dependents), equals: ["barrier", "after"])
        graph.finish(barrier, succeeded: false, &actions)
        expect(barrier.phase == .passed && jobs[2].phase == .blocked)
        expect(graph.payloads(at: barrier, .dependencies), equals: ["before"])
    }

    @Test(
        "BEY-7: random graphs with random cycles: all end, and without a cycle none ends with .cycle",
        arguments: 0..<60 as Range<UInt64>
    )
    func random(seed: UInt64) async {
        var random = SeededGenerator(seed: seed)
        let queues = [NetworkQueue(), NetworkQueue()]
        let jobs = (0..<30).map { _ in TestJob() }
        let isAcyclic = Bool.random(using: &random)
        for index in jobs.indices {
            for _ in 0..<Int.random(in: 0...3, using: &random) {
                let other = Int.random(in: 0..<jobs.count, using: &random)
                if other != index, !isAcyclic || other < index { jobs[index].addDependency(jobs[other]) }
            }
        }
        for job in jobs.shuffled(using: &random) {
            queues[Int.random(in: 0...1, using: &random)].addOperation(job)
        }
        for job in jobs { await job.ended() }
        let codes = Set(jobs.compactMap { $0.error?.code })
        expect(codes.isSubset(of: isAcyclic ? [] : [.cycle, .dependencyFailed]), "seed \(seed)")
        await expect(eventually { queues.allSatisfy { $0.operationCount == 0 } })
    }

    @Test("BEY-4, BEY-7: a long chain is added in any order at a bearable cost", arguments: 0..<3)
    func orderOfAdding(order: Int) async {
        let queue = NetworkQueue()
        let jobs = (0..<TestLoad.count(20_000, part: 1_000)).map { _ in TestJob { $0.finish() } }
        for (job, other) in zip(jobs.dropFirst(), jobs) { job.addDependency(other) }
        var random = SeededGenerator(seed: 7)
        let added = [jobs, jobs.reversed(), jobs.shuffled(using: &random)][order]
        for job in added { queue.addOperation(job) }
        await jobs[jobs.count - 1].ended()
        expect(jobs.allSatisfy { $0.error == nil && $0.executionCount == 1 })
    }
}
