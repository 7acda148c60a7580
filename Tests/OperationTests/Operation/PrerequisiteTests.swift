import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

/// Holds once its sign-in job has succeeded.
private final class SignedIn: Sendable {
    let job: Operation
    let isSignedIn = Locked(false)
    let asked = Locked(0)

    init(_ makeJob: (_ signIn: @escaping @Sendable () -> Void) -> Operation) {
        job = makeJob { [isSignedIn] in isSignedIn.withLock { $0 = true } }
    }

    convenience init() {
        self.init { signIn in
            TestJob { job in
                signIn()
                job.finish()
            }
        }
    }

    var condition: OperationCondition {
        OperationCondition("signed in") { _ in
            self.asked.withLock { $0 += 1 }
            return self.job
        } holds: { _ in
            guard self.isSignedIn.withLock({ $0 }) else { throw NetworkError(code: .unauthorized) }
            return true
        }
    }
}

@Suite("Prerequisites of conditions", .timeLimit(.minutes(10)))
struct PrerequisiteTests {
    @Test("BEY-7: with a limit of one, a prerequisite runs in the same queue, before the condition is looked at")
    func limitOfOne() async {
        let queue = NetworkQueue(maxConcurrentOperationCount: 1)
        let conditions = [SignedIn(), SignedIn { signIn in BlockOperation(block: signIn) }]
        for condition in conditions {
            let occupancy = Occupancy()
            let jobs = (0..<20).map { _ in TestJob(occupancy) }
            for job in jobs {
                job.addCondition(condition.condition)
                queue.addOperation(job)
            }
            for job in jobs { await job.ended() }
            expect(jobs.allSatisfy { $0.error == nil && $0.executionCount == 1 })
            expect(condition.job.isFinished && condition.asked.withLock { $0 } == jobs.count)
            expect(occupancy.most, equals: 1)
            await expect(eventually { queue.operationCount == 0 })
        }
    }

    @Test("BEY-7: operations on several queues share one prerequisite, which runs once")
    func shared() async {
        let condition = SignedIn()
        let queues = [NetworkQueue(), NetworkQueue()]
        let plainQueue = OperationQueue()
        let jobs = (0..<60).map { _ in TestJob() }
        for (index, job) in jobs.enumerated() {
            job.addCondition(condition.condition)
            if index % 3 < 2 { queues[index % 3].addOperation(job) } else { plainQueue.addOperation(job) }
        }
        for job in jobs { await job.ended() }
        expect(jobs.allSatisfy { $0.error == nil })
        expect((condition.job as? TestJob)?.executionCount, equals: 1)
    }

    @Test("BEY-7: a failed prerequisite leaves it to the condition whether the operation runs")
    func failedPrerequisite() async {
        let queue = NetworkQueue()
        let job = TestJob()
        job.addCondition(SignedIn { _ in TestJob { $0.finish(NetworkError(code: .timedOut)) } }.condition)
        queue.addOperation(job)
        await job.ended()
        expect(job.error?.code == .unauthorized && job.executionCount == 0)
    }

    @Test("BEY-7: cancelled while its prerequisite runs, an operation ends at once; the prerequisite goes on")
    func cancelWhileWaiting() async {
        let queue = NetworkQueue(maxConcurrentOperationCount: 1)
        let began = Gate()
        let end = Gate()
        let condition = SignedIn { signIn in
            TestJob { job in
                began.open()
                end.whenOpen {
                    signIn()
                    job.finish()
                }
            }
        }
        let cancelled = TestJob()
        let patient = TestJob()
        for job in [cancelled, patient] {
            job.addCondition(condition.condition)
            queue.addOperation(job)
        }
        await began.opened()
        cancelled.cancel()
        // While the prerequisite runs.
        await cancelled.ended()
        expect(cancelled.error?.code, equals: .cancelled)
        expect(!condition.job.isFinished)
        end.open()
        await patient.ended()
        expect(patient.error == nil && cancelled.executionCount == 0)
    }

    @Test("BEY-7: a prerequisite that waits for the operation itself is a cycle, and not waited for")
    func cycle() async {
        let queue = NetworkQueue()
        let job = TestJob()
        let between = TestJob()
        let prerequisite = TestJob()
        between.addDependency(job)
        prerequisite.addDependency(between)
        job.addCondition(SignedIn { _ in prerequisite }.condition)
        queue.addOperation(job)
        await job.ended()
        expect(job.error?.code == .cycle && job.executionCount == 0)
        expect(job.error?.dependencyPath.count, equals: 4)
    }

    @Test("BEY-7: a prerequisite passes the barrier that the operation stands before", arguments: [true, false])
    func barrier(plain: Bool) async {
        let queue = NetworkQueue(maxConcurrentOperationCount: 1)
        let held = Gate()
        let goOn = Gate()
        let order = Locked<[String]>([])
        let job = TestJob { job in
            order.withLock { $0.append("job") }
            job.finish()
        }
        job.addCondition(
            OperationCondition("gate") { _ in
                held.open()
                await goOn.opened()
                return true
            }
        )
        let last = plain ? SignedIn { signIn in BlockOperation(block: signIn) } : SignedIn()
        job.addCondition(last.condition)
        queue.addOperation(job)
        await held.opened()
        queue.addBarrierBlock { order.withLock { $0.append("barrier") } }
        let after = TestJob { job in
            order.withLock { $0.append("after") }
            job.finish()
        }
        queue.addOperation(after)
        goOn.open()
        await after.ended()
        expect(order.withLock { $0 }, equals: ["job", "barrier", "after"])
    }
}
