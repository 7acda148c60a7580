import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("Conditions at random", .timeLimit(.minutes(10)))
struct ConditionStressTests {
    @Test(
        "BEY-7, OPQ-2, OPQ-3: conditions, prerequisites, cancels and suspensions at random",
        arguments: 0..<UInt64(TestLoad.count(6, part: 1)),
        [true, false]
    )
    func stress(seed: UInt64, cancels: Bool) async {
        var random = SeededGenerator(seed: seed)
        let limit = Int.random(in: 1...4, using: &random)
        let queue = NetworkQueue(maxConcurrentOperationCount: limit)
        let occupancy = Occupancy()
        let unmet = Locked(0)
        let prerequisites: [Operation] = [
            TestJob(), BlockOperation {}, TestJob { $0.finish(NetworkError(code: .tls)) },
        ]
        var jobs: [TestJob] = []
        for _ in 0..<400 {
            let met = Locked(0)
            let conditionCount = Int.random(in: 0...3, using: &random)
            let job = TestJob { job in
                occupancy.enter()
                if met.withLock({ $0 }) != conditionCount { unmet.withLock { $0 += 1 } }
                DispatchQueue.global().async {
                    occupancy.leave()
                    job.finish()
                }
            }
            for _ in 0..<conditionCount {
                let fails = Int.random(in: 0..<12, using: &random) == 0
                let pauses = Int.random(in: 0..<4, using: &random)
                let prerequisite = pauses == 0 ? prerequisites.randomElement(using: &random) : nil
                let condition = OperationCondition("at random") { _ in
                    prerequisite
                } holds: { _ in
                    if let prerequisite, !prerequisite.isFinished { throw NetworkError(code: .invalidRequest) }
                    for _ in 0..<pauses { await Task.yield() }
                    met.withLock { $0 += 1 }
                    return !fails
                }
                job.addCondition(condition)
            }
            if Int.random(in: 0..<3, using: &random) == 0, let other = jobs.randomElement(using: &random) {
                job.addDependency(other, policy: .allowFailure)
            }
            jobs.append(job)
        }
        let victims = jobs.filter { _ in cancels && Int.random(in: 0..<6, using: &random) == 0 }
        let byHand = jobs.filter { _ in cancels && Int.random(in: 0..<20, using: &random) == 0 }
        async let disturbance: Void = Task.detached {
            for (index, victim) in victims.enumerated() {
                victim.cancel()
                if index % 6 == 0 { queue.isSuspended.toggle() }
                await Task.yield()
            }
            for job in byHand { job.finish(NetworkError(code: .refused)) }
            queue.isSuspended = false
        }.value
        for job in jobs { queue.addOperation(job) }
        await disturbance
        for job in jobs { await job.ended() }
        expect(unmet.withLock { $0 }, equals: 0, "seed \(seed)")
        expect(jobs.allSatisfy { $0.executionCount <= 1 }, "seed \(seed)")
        expect(jobs.allSatisfy { $0.executionCount == 1 || $0.error != nil }, "seed \(seed)")
        // A condition may still be running after its operation was cancelled.
        await expect(eventually { jobs.allSatisfy { $0.pendingCondition == nil } }, "seed \(seed)")
        await expect(eventually { queue.operationCount == 0 && occupancy.now == 0 }, "seed \(seed)")
        // A job that was finished by hand returns its slot before its work is done.
        expect(occupancy.most <= limit + victims.count + byHand.count, "seed \(seed)")
    }
}
