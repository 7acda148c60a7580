import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("OperationCondition", .timeLimit(.minutes(10)))
struct OperationConditionTests {
    enum QueueKind: CaseIterable, Sendable { case networkQueue, plain }

    private struct NoRoom: Error, LocalizedError {
        var errorDescription: String? { "the disk is full." }
    }

    private func add(_ operations: [Operation], to kind: QueueKind) {
        switch kind {
        case .networkQueue: NetworkQueue().addOperations(operations, waitUntilFinished: false)
        case .plain: OperationQueue().addOperations(operations, waitUntilFinished: false)
        }
    }

    @Test(
        "BEY-7: conditions are looked at in order, after the dependencies, before the work",
        arguments: QueueKind.allCases
    )
    func order(kind: QueueKind) async {
        let order = Locked<[String]>([])
        let gate = Gate()
        let dependency = TestJob { job in
            gate.whenOpen {
                order.withLock { $0.append("dependency") }
                job.finish()
            }
        }
        let job = TestJob { job in
            order.withLock { $0.append("work") }
            job.finish()
        }
        job.addDependency(dependency)
        for name in ["first", "second"] {
            job.addCondition(
                OperationCondition(name) { operation in
                    order.withLock { $0.append(name) }
                    return operation === job && job.pendingCondition == name && job.isExecuting
                }
            )
        }
        expect(job.conditions.map(\.name), equals: ["first", "second"])
        add([job, dependency], to: kind)
        gate.open()
        await job.ended()
        expect(order.withLock { $0 }, equals: ["dependency", "first", "second", "work"])
        expect(job.error == nil && job.pendingCondition == nil && job.executionCount == 1)
    }

    @Test(
        "BEY-7: a condition that does not hold is the operation's error, and ends its dependents",
        arguments: QueueKind.allCases
    )
    func failures(kind: QueueKind) async {
        let fates: [(error: any Error, code: NetworkError.Code, message: String?)] = [
            (NetworkError(code: .unauthorized, message: "sign in"), .unauthorized, "sign in"),
            (CancellationError(), .cancelled, nil),
            (NoRoom(), .refused, "the condition 'room' does not hold: the disk is full"),
        ]
        let asked = Locked(false)
        for fate in fates {
            let job = TestJob()
            let dependent = TestJob()
            dependent.addDependency(job)
            job.addCondition(OperationCondition("room") { _ in throw fate.error })
            job.addCondition(OperationCondition("never asked") { _ in asked.exchange(true) })
            add([job, dependent], to: kind)
            await dependent.ended()
            expect(job.error?.code == fate.code && job.error?.message == fate.message)
            expect(job.executionCount == 0 && job.pendingCondition == nil)
            expect(dependent.error?.rootCause.code, equals: fate.code)
        }
        expect(!asked.withLock { $0 })
        let job = TestJob()
        job.addCondition(OperationCondition("a false one") { _ in false })
        add([job], to: kind)
        await job.ended()
        expect(job.error?.code == .refused && job.error?.message == "the condition 'a false one' does not hold")
    }

    /// A condition that opens `held` when it is evaluated, and holds once `goOn` opens.
    private func gate(_ name: String, held: Gate, goOn: Gate) -> OperationCondition {
        OperationCondition(name) { _ in
            held.open()
            await goOn.opened()
            return true
        }
    }

    @Test("BEY-7: an operation that is held by a condition takes no slot, and asks for one afterwards")
    func takesNoSlot() async {
        let queue = NetworkQueue(maxConcurrentOperationCount: 1)
        let held = Gate()
        let goOn = Gate()
        let occupancy = Occupancy()
        let job = TestJob(occupancy)
        job.addCondition(gate("gate", held: held, goOn: goOn))
        queue.addOperation(job)
        await held.opened()
        let others = (0..<20).map { _ in TestJob(occupancy) }
        for other in others { queue.addOperation(other) }
        await others[0].ended()
        expect(job.pendingCondition == "gate" && !job.isFinished)
        goOn.open()
        await job.ended()
        for other in others { await other.ended() }
        expect(occupancy.most == 1 && job.executionCount == 1 && queue.operationCount == 0)
    }

    @Test(
        "BEY-7: cancelled while a condition is evaluated: ends at once, the task is cancelled",
        arguments: QueueKind.allCases
    )
    func cancelWhileEvaluating(kind: QueueKind) async {
        weak var released: TestJob?
        do {
            let began = Gate()
            let jobEnded = Gate()
            let ended = Gate()
            let job = TestJob()
            released = job
            job.addCondition(
                OperationCondition("endless") { _ in
                    let cancelled = Gate()
                    await withTaskCancellationHandler {
                        began.open()
                        await cancelled.opened()
                    } onCancel: {
                        cancelled.open()
                    }
                    await jobEnded.opened()
                    ended.open()
                    return true
                }
            )
            add([job], to: kind)
            await began.opened()
            job.cancel()
            // The queue's call of start() may not have returned; the condition has not.
            await job.ended()
            expect(job.error?.code, equals: .cancelled)
            jobEnded.open()
            await ended.opened()
            expect(job.executionCount, equals: 0)
        }
        await expect(eventually { released == nil })
    }

    @Test("BEY-7: an operation that is cancelled while it asks for its slot again does no work, and is freed")
    func cancelWhileReclaiming() async {
        let queue = NetworkQueue(maxConcurrentOperationCount: 1)
        let running = Gate()
        let holds = Gate()
        let end = Gate()
        weak var released: TestJob?
        do {
            let job = TestJob()
            released = job
            job.addCondition(
                OperationCondition("another runs") { _ in
                    await running.opened()
                    holds.open()
                    return true
                }
            )
            queue.addOperation(job)
            let other = TestJob { other in
                end.whenOpen { other.finish() }
                running.open()
            }
            queue.addOperation(other)
            // Only the other condition still holds the job back.
            await holds.opened()
            await expect(eventually { job.pendingCondition == nil })
            job.cancel()
            await job.ended()
            expect(job.executionCount == 0 && !other.isFinished)
            end.open()
            await other.ended()
        }
        await expect(eventually { released == nil && queue.operationCount == 0 })
    }

    @Test("BEY-7: on a suspended queue an operation whose conditions hold waits like the others")
    func suspended() async {
        let queue = NetworkQueue(maxConcurrentOperationCount: 1)
        let held = Gate()
        let goOn = Gate()
        let job = TestJob()
        job.addCondition(gate("gate", held: held, goOn: goOn))
        queue.addOperation(job)
        await held.opened()
        queue.isSuspended = true
        goOn.open()
        await expect(eventually { job.pendingCondition == nil })
        expect(job.executionCount, equals: 0)
        queue.isSuspended = false
        await job.ended()
        expect(job.executionCount, equals: 1)
    }

    @Test("BEY-7: a condition that holds its operation keeps it no longer than it runs", arguments: [true, false])
    func released(holds: Bool) async {
        weak var released: TestJob?
        do {
            let job = TestJob()
            released = job
            job.addCondition(OperationCondition("holds its operation") { operation in operation === job && holds })
            NetworkQueue().addOperation(job)
            await job.ended()
            expect((job.error == nil) == holds && job.conditions.isEmpty)
        }
        await expect(eventually { released == nil })
    }
}
