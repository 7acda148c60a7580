import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("NetworkOperation on a plain OperationQueue", .timeLimit(.minutes(10)))
struct NetworkOperationTests {
    private let queue = OperationQueue()

    @Test("BEY-1: runs, ends once, and ignores a later ending")
    func endsOnce() async {
        let completions = Locked(0)
        let done = Gate()
        let job = TestJob { job in
            job.finish(NetworkError(code: .timedOut))
            job.finish()
            job.cancel()
        }
        job.completionBlock = {
            completions.withLock { $0 += 1 }
            done.open()
        }
        queue.addOperation(job)
        await job.ended()
        await done.opened()
        expect(job.error?.code, equals: .timedOut)
        expect(job.isFinished && !job.isExecuting && !job.isCancelled)
        expect(completions.withLock { $0 }, equals: 1)
    }

    @Test("OPQ-1: waits for its dependencies, plain ones too, and plain operations wait for it")
    func dependencies() async {
        let order = Locked<[String]>([])
        let gate = Gate()
        let first = TestJob { job in gate.whenOpen { job.finish() } }
        let plain = BlockOperation { order.withLock { $0.append("plain") } }
        let second = TestJob { job in
            order.withLock { $0.append("second") }
            job.finish()
        }
        let last = BlockOperation { order.withLock { $0.append("last") } }
        plain.addDependency(first)
        second.addDependency(plain)
        second.addDependency(first)
        last.addDependency(second)
        let leftAtItsEnd = Locked<Int?>(nil)
        second.asNetworkOperation.whenFinished { leftAtItsEnd.withLock { $0 = second.dependencies.count } }
        for operation in [last, second, plain, first] { queue.addOperation(operation) }
        expect(second.dependencies.count, equals: 2)
        gate.open()
        await last.ended()
        expect(order.withLock { $0 }, equals: ["plain", "second", "last"])
        expect(second.dependencies.isEmpty)
        await expect(eventually { leftAtItsEnd.withLock { $0 } != nil })
        expect(leftAtItsEnd.withLock { $0 }, equals: 0, "one that has finished has let go of them")
    }

    @Test("OPQ-2: cancelled before its start it never executes, finishes, and releases its dependents")
    func cancelledBeforeStart() async {
        queue.isSuspended = true
        let job = TestJob()
        let strict = TestJob()
        let lenient = TestJob()
        strict.addDependency(job)
        lenient.addDependency(job, policy: .allowFailure)
        for operation in [job, strict, lenient] { queue.addOperation(operation) }
        job.cancel()
        expect(job.error?.code == .cancelled && job.isCancelled)
        queue.isSuspended = false
        await strict.ended()
        await lenient.ended()
        expect(job.executionCount == 0 && strict.executionCount == 0 && lenient.executionCount == 1)
        expect(strict.error?.code, equals: .dependencyFailed)
        expect(strict.error?.rootCause.code, equals: .cancelled)
        expect(lenient.error == nil)
    }

    @Test("OPQ-2: cancelled while it executes, it ends at once, and a later finish is ignored")
    func cancelledInFlight() async {
        let started = Gate()
        let job = TestJob { _ in started.open() }
        queue.addOperation(job)
        await started.opened()
        job.cancel()
        // Its execute() may not have returned.
        await job.ended()
        expect(job.error?.code, equals: .cancelled)
        job.finish()
        expect(job.error?.code, equals: .cancelled)
    }

    @Test("OPQ-2: finished before the queue starts it, it ends at the start and does not execute")
    func finishedBeforeStart() async {
        queue.isSuspended = true
        let job = TestJob()
        queue.addOperation(job)
        job.finish(NetworkError(code: .refused))
        expect(!job.isFinished && job.error?.code == .refused)
        queue.isSuspended = false
        await job.ended()
        expect(job.executionCount, equals: 0)
    }

    @Test("BEY-1: a failed dependency is told with its root cause, through any number of steps")
    func rootCause() async throws {
        let first = TestJob { $0.finish(NetworkError(code: .unauthorized)) }
        first.name = "sign in"
        var jobs = [first]
        for _ in 0..<5 {
            let next = TestJob()
            next.addDependency(try #require(jobs.last))
            jobs.append(next)
        }
        for job in jobs { queue.addOperation(job) }
        let last = try #require(jobs.last)
        await last.ended()
        expect(last.error?.code, equals: .dependencyFailed)
        expect(last.error?.rootCause.code, equals: .unauthorized)
        for job in jobs.dropFirst() {
            expect(job.error?.message, equals: "'sign in': The server requires other credentials")
        }
        expect(jobs.dropFirst().allSatisfy { $0.executionCount == 0 })
    }

    private final class Refusal: Error {}

    @Test("BEY-1, RSP-6: what an app shows of a failed dependency has no types, addresses and secrets")
    func wordsForUsers() async throws {
        let refused = TestJob { $0.finish(.thrown(Refusal(), otherwise: .refused)) }
        refused.name = "step token=abcdef"
        let cancelled = BlockOperation {}
        cancelled.cancel()
        let batch = BatchOperation([TestJob { $0.finish(NetworkError(code: .timedOut)) }])
        let request = RequestOperation(Get(api: "no base"))
        var texts: [String] = []
        for first in [refused, cancelled, batch, request] {
            let (second, third) = (TestJob(), TestJob())
            second.addDependency(first)
            third.addDependency(second)
            [first, second, third].forEach(queue.addOperation)
            await third.ended()
            texts.append(try #require(third.error).localizedDescription)
            expect(second.error?.localizedDescription, equals: texts.last)
        }
        let start = "A job that this one waits for did not succeed: "
        expect(texts[0].hasPrefix(start + "'step token="))
        expect(texts[0].hasSuffix("sent: OperationTests.NetworkOperationTests.Refusal."), "\(texts)")
        expect(!texts[0].contains("abcdef"))
        expect(texts[1], equals: start + "Cancelled.")
        expect(texts[2], equals: start + "The request timed out: job 1.")
        expect(texts[3].hasPrefix(start + "The request cannot be sent: "))
        expect(texts.allSatisfy { !$0.contains("0x") && !$0.contains("$") && !$0.contains("Operation<") }, "\(texts)")
    }

    @Test("BEY-7: an operation that depends on itself ends with .cycle")
    func selfDependency() async {
        let job = TestJob()
        job.addDependency(job)
        queue.addOperation(job)
        await job.ended()
        expect(job.error?.code == .cycle && job.executionCount == 0)
    }

    @Test("OPQ-2: an operation without work is an error that says so")
    func nothingToExecute() async {
        let job = NetworkOperation()
        let service = ServiceOperation()
        queue.addOperation(job)
        queue.addOperation(service)
        await job.ended()
        await service.ended()
        expect(job.error?.code == .invalidRequest && service.error?.code == .invalidRequest)
    }

    @Test("BEY-1: afterwards nothing keeps an operation alive, its completion block included")
    func released() async {
        weak var released: TestJob?
        do {
            let job = TestJob()
            let done = Gate()
            job.completionBlock = { [job] in
                _ = job
                done.open()
            }
            released = job
            queue.addOperation(job)
            await job.ended()
            await done.opened()
        }
        // The queue's own thread releases it a little later.
        await expect(eventually { released == nil })
    }

    @Test(
        "OPQ-1, OPQ-2: random dependencies, cancels and double endings",
        arguments: [1, 4, -1],
        0..<UInt64(TestLoad.count(4, part: 1))
    )
    func stress(limit: Int, seed: UInt64) async {
        var random = SeededGenerator(seed: seed)
        queue.maxConcurrentOperationCount = limit
        let tooEarly = Locked(0)
        let completions = Locked(0)
        var operations: [Operation] = []
        for index in 0..<600 {
            let operation: Operation
            if index % 10 == 0 {
                operation = BlockOperation {}
            } else {
                let endsTwice = Bool.random(using: &random)
                let endsInline = Bool.random(using: &random)
                operation = TestJob { job in
                    if !job.isCancelled, !job.dependencies.allSatisfy(\.isFinished) { tooEarly.withLock { $0 += 1 } }
                    if endsInline { job.finish() } else { DispatchQueue.global().async { job.finish() } }
                    if endsTwice { DispatchQueue.global().async { job.finish(NetworkError(code: .timedOut)) } }
                }
            }
            operation.completionBlock = { completions.withLock { $0 += 1 } }
            for _ in 0..<Int.random(in: 0...3, using: &random) {
                if let other = operations.randomElement(using: &random) { operation.addDependency(other) }
            }
            operations.append(operation)
        }
        let order = operations.shuffled(using: &random)
        let victims = operations.filter { _ in Int.random(in: 0..<5, using: &random) == 0 }
        async let cancelling: Void = Task.detached { for victim in victims { victim.cancel() } }.value
        for operation in order { queue.addOperation(operation) }
        await cancelling
        for operation in operations { await operation.ended() }
        await expect(eventually { completions.withLock { $0 } >= operations.count }, "seed \(seed)")
        expect(tooEarly.withLock { $0 }, equals: 0, "seed \(seed)")
        expect(completions.withLock { $0 }, equals: operations.count, "seed \(seed)")
        expect(operations.allSatisfy { ($0 as? TestJob)?.executionCount ?? 0 <= 1 }, "seed \(seed)")
    }
}
