import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("Foundation's operations on NetworkQueue, and its OperationQueue", .timeLimit(.minutes(10)))
struct ForeignOperationTests {
    /// A plain `Operation` that decides itself when it is ready.
    private final class Gated: Operation, @unchecked Sendable {
        // Sendable because a lock guards its state.
        private let isOpen = Locked(false)
        private let startsWhenCancelled: Bool
        let work: @Sendable () -> Void

        init(startsWhenCancelled: Bool = true, _ work: @escaping @Sendable () -> Void = {}) {
            self.startsWhenCancelled = startsWhenCancelled
            self.work = work
        }

        override var isReady: Bool {
            super.isReady && (isOpen.withLock { $0 } || (startsWhenCancelled && isCancelled))
        }

        override func main() {
            if !isCancelled { work() }
        }

        func open() {
            willChangeValue(forKey: "isReady")
            isOpen.withLock { $0 = true }
            didChangeValue(forKey: "isReady")
        }
    }

    @Test("OPQ-1: an operation that is not ready takes no slot, so that the job that makes it ready runs")
    func notReady() async {
        let queue = NetworkQueue(maxConcurrentOperationCount: 1)
        let order = Locked<[String]>([])
        let gated = Gated { order.withLock { $0.append("gated") } }
        let opener = TestJob { job in
            order.withLock { $0.append("opener") }
            gated.open()
            job.finish()
        }
        queue.addOperation(gated)
        queue.addOperation(opener)
        await expect(eventually { gated.isFinished })
        expect(order.withLock { $0 }, equals: ["opener", "gated"])
        await expect(eventually { queue.operationCount == 0 })
    }

    @Test("OPQ-1: an operation that becomes ready while nothing else happens on the queue runs")
    func readyOnItsOwn() async {
        let queue = NetworkQueue(maxConcurrentOperationCount: 1)
        let (first, second) = (Gated(), Gated())
        second.addDependency(first)
        queue.addOperations([first, second], waitUntilFinished: false)
        let other = TestJob()
        queue.addOperation(other)
        await other.ended()
        expect(!first.isFinished && queue.operationCount == 2)
        first.open()
        await expect(eventually { first.isFinished })
        second.open()
        await expect(eventually { second.isFinished && queue.operationCount == 0 })
    }

    @Test(
        "OPQ-2: an operation that is not ready ends when it is cancelled, there or by the queue",
        arguments: [true, false]
    )
    func cancelledNotReady(byQueue: Bool) async {
        let queue = NetworkQueue(maxConcurrentOperationCount: 1)
        let gated = Gated { Issue.record("it was cancelled") }
        let dependent = TestJob()
        dependent.addDependency(gated)
        queue.addOperations([gated, dependent], waitUntilFinished: false)
        if byQueue { queue.cancelAllOperations() } else { gated.cancel() }
        await expect(eventually { gated.isFinished && dependent.isFinished })
        expect(dependent.error != nil)
        await expect(eventually { queue.operationCount == 0 })
    }

    @Test(
        "OPQ-2: an operation that is not ready even when cancelled keeps neither the queue nor its dependents waiting"
    )
    func neverReady() async {
        let queue = NetworkQueue(maxConcurrentOperationCount: 1)
        let gated = Gated(startsWhenCancelled: false)
        let dependent = TestJob()
        dependent.addDependency(gated, policy: .allowFailure)
        queue.addOperations([gated, dependent], waitUntilFinished: false)
        gated.cancel()
        await dependent.ended()
        expect(dependent.executionCount, equals: 1)
        await expect(eventually { queue.operationCount == 0 })
        // Foundation has it now, and finishes it when it is ready.
        gated.open()
        await expect(eventually { gated.isFinished })
    }

    /// An operation that is finished manually, and is never ready.
    private final class ByHand: Operation, @unchecked Sendable {
        // Sendable because a lock guards its state.
        private let isDone = Locked(false)

        override var isReady: Bool { false }
        override var isFinished: Bool { isDone.withLock { $0 } }

        func finish() {
            willChangeValue(forKey: "isFinished")
            isDone.withLock { $0 = true }
            didChangeValue(forKey: "isFinished")
        }
    }

    @Test("OPQ-1: an operation that is finished manually while it is not ready leaves the queue")
    func finishedByHand() async {
        let queue = NetworkQueue(maxConcurrentOperationCount: 1)
        let operation = ByHand()
        let dependent = TestJob()
        dependent.addDependency(operation)
        queue.addOperations([operation, dependent], waitUntilFinished: false)
        expect(queue.explain(operation), equals: [.notReady])
        operation.finish()
        await dependent.ended()
        expect(dependent.error == nil)
        await expect(eventually { queue.operationCount == 0 })
    }

    /// An operation that is cancelled when it is first asked whether it is ready, and is never ready.
    private final class CancelledWhenAsked: Operation, @unchecked Sendable {
        // Sendable because it has no state of its own.
        override var isReady: Bool {
            if !isCancelled { cancel() }
            return false
        }
    }

    @Test("OPQ-2: an operation that is cancelled just before its start, and is never ready, gives its slot back")
    func cancelledBeforeStart() async {
        let queue = NetworkQueue(maxConcurrentOperationCount: 1)
        let next = TestJob()
        queue.addOperations([CancelledWhenAsked(), next], waitUntilFinished: false)
        await expect(eventually { next.isFinished && queue.operationCount == 0 })
        expect(next.error == nil)
    }

    @Test("OPQ-1: users see their own operation, and nothing keeps it when it is done or was never used")
    func identity() async {
        let queue = NetworkQueue()
        queue.isSuspended = true
        weak var foreign: Operation?
        weak var unused: Operation?
        let dependent = TestJob()
        do {
            let (plain, idle) = (BlockOperation {}, BlockOperation {})
            (foreign, unused) = (plain, idle)
            TestJob().addDependency(idle)
            dependent.addDependency(plain)
            expect(dependent.dependencies, equals: [plain])
            queue.addOperations([plain, dependent], waitUntilFinished: false)
            expect(queue.operations, equals: [plain, dependent])
            queue.addOperation(plain)
            expect(queue.operationCount, equals: 2)
        }
        queue.isSuspended = false
        await dependent.ended()
        expect(dependent.error == nil)
        await expect(eventually { foreign == nil && unused == nil })
    }

    @Test("BEY-7: an operation that closes a cycle is cancelled, and its dependents learn the cause")
    func closesCycle() async {
        let queue = NetworkQueue()
        let (plain, dependent) = (BlockOperation { Issue.record("it was cancelled") }, TestJob())
        dependent.addDependency(plain)
        plain.addDependency(dependent)
        queue.addOperation(dependent)
        queue.addOperation(plain)
        await dependent.ended()
        await plain.ended()
        expect(plain.isCancelled && dependent.error?.rootCause.code == .cycle)
        await expect(eventually { queue.operationCount == 0 })
    }

    @Test("OPQ-2: an operation that is cancelled while it runs keeps its slot until it has finished")
    func cancelledWhileRunning() async {
        let queue = NetworkQueue(maxConcurrentOperationCount: 1)
        let (isRunning, mayEnd) = (Gate(), DispatchSemaphore(value: 0))
        let order = Locked<[String]>([])
        let plain = BlockOperation {
            isRunning.open()
            mayEnd.wait()
            order.withLock { $0.append("plain") }
        }
        queue.addOperation(plain)
        await isRunning.opened()
        let next = TestJob { job in
            order.withLock { $0.append("next") }
            job.finish()
        }
        let dependent = TestJob()
        dependent.addDependency(plain)
        queue.addOperations([next, dependent], waitUntilFinished: false)
        queue.cancelOperations { $0 === plain }
        expect(plain.isCancelled && queue.operations.first === plain)
        mayEnd.signal()
        await next.ended()
        await dependent.ended()
        expect(order.withLock { $0 }, equals: ["plain", "next"])
        expect(dependent.error?.rootCause.code, equals: .cancelled)
    }

    @Test("BEY-6: an operation that had to wait for its readiness has taken no token of a rate")
    func rateOfNotReady() async {
        let clock = ManualClock()
        let queue = NetworkQueue(rateLimit: RateLimit(1, per: 10), clock: clock)
        let gated = Gated()
        queue.addOperation(gated)
        let job = TestJob()
        queue.addOperation(job)
        await job.ended()
        gated.open()
        await expect(eventually { queue.explain(gated) == [.rate(seconds: 10)] })
        // The queue sets it after the reason: time that passes before would not count.
        await clock.waitForTimers(1)
        clock.advance(by: 10)
        await expect(eventually { gated.isFinished })
    }

    @Test("OPQ-3: of several that are added together the highest goes first")
    func addedTogether() async {
        let queue = NetworkQueue(maxConcurrentOperationCount: 1)
        let order = Locked<[Int]>([])
        let priorities: [Operation.QueuePriority] = [.normal, .low, .veryHigh, .veryLow]
        let operations = priorities.map { priority in
            let operation = BlockOperation { order.withLock { $0.append(priority.rawValue) } }
            operation.queuePriority = priority
            return operation
        }
        queue.addOperations(operations, waitUntilFinished: false)
        for operation in operations { await operation.ended() }
        expect(order.withLock { $0 }, equals: [8, 0, -4, -8])
    }

    @Test("OPQ-4: of the children of a batch the highest goes first")
    func childrenTogether() async {
        let queue = NetworkQueue(maxConcurrentOperationCount: 1)
        let order = Locked<[Int]>([])
        let priorities: [Operation.QueuePriority] = [.normal, .low, .veryHigh, .veryLow]
        let children = priorities.map { priority in
            let child = TestJob { job in
                order.withLock { $0.append(priority.rawValue) }
                job.finish()
            }
            child.queuePriority = priority
            return child
        }
        let batch = BatchOperation(children)
        queue.addOperation(batch)
        await batch.ended()
        expect(order.withLock { $0 }, equals: [8, 0, -4, -8])
    }

    @Test("OPQ-3: a plain operation's change of priority counts when a slot is free", arguments: [true, false])
    func changedPriority(suspended: Bool) async {
        let queue = NetworkQueue(maxConcurrentOperationCount: 1)
        let order = Locked<[Int]>([])
        let gate = Gate()
        let holder = TestJob { job in gate.whenOpen { job.finish() } }
        queue.isSuspended = suspended
        if !suspended { queue.addOperation(holder) }
        let operations = (0..<4).map { number in BlockOperation { order.withLock { $0.append(number) } } }
        queue.addOperations(operations, waitUntilFinished: false)
        operations[0].queuePriority = .veryLow
        operations[2].queuePriority = .veryHigh
        if suspended { queue.isSuspended = false } else { gate.open() }
        for operation in operations { await operation.ended() }
        expect(order.withLock { $0 }, equals: [2, 1, 3, 0])
    }

    // Synchronous, because Foundation's method is unavailable in asynchronous code.
    private static func add(_ operations: [Operation], to queue: OperationQueue) {
        queue.addOperations(operations, waitUntilFinished: false)
    }

    private static func wait(for queue: OperationQueue) {
        queue.waitUntilAllOperationsAreFinished()
    }

    @Test("OPQ-3: adding, setting, cancelling and waiting at the OperationQueue does so at the NetworkQueue")
    func operationQueue() async {
        let queue = NetworkQueue(maxConcurrentOperationCount: 2)
        let foundation = queue.queue
        expect(foundation.maxConcurrentOperationCount == 2 && !foundation.isSuspended)
        foundation.maxConcurrentOperationCount = 1
        foundation.isSuspended = true
        expect(queue.maxConcurrentOperationCount == 1 && queue.isSuspended)
        queue.isSuspended = false
        queue.maxConcurrentOperationCount = 3
        expect(foundation.maxConcurrentOperationCount == 3 && !foundation.isSuspended)

        queue.isSuspended = true
        queue.maxConcurrentOperationCount = 1
        let order = Locked<[String]>([])
        @Sendable func note(_ text: String) { order.withLock { $0.append(text) } }
        let occupancy = Occupancy()
        let job = TestJob(occupancy) { note("job") }
        foundation.addOperation(job)
        Self.add([TestJob(occupancy) { note("jobs") }], to: foundation)
        foundation.addOperation {
            occupancy.enter()
            note("block")
            occupancy.leave()
        }
        foundation.addBarrierBlock { note("barrier") }
        expect(queue.operations.count == 4 && queue.operations.first === job)
        #if canImport(Darwin)
        expect(foundation.operations == queue.operations && foundation.operationCount == 4)
        #endif
        expect(queue.explain(job), equals: [.suspended])
        foundation.isSuspended = false
        await Task.detached { Self.wait(for: foundation) }.value
        expect(queue.operationCount == 0 && occupancy.most == 1)
        expect(order.withLock { $0 }, equals: ["job", "jobs", "block", "barrier"])

        queue.isSuspended = true
        let waiting = TestJob()
        foundation.addOperation(waiting)
        foundation.cancelAllOperations()
        await waiting.ended()
        expect(waiting.isCancelled && waiting.executionCount == 0)
    }

    @Test("OPQ-1: a plain operation that was cancelled is a failed dependency, also of a job on no queue")
    func cancelledDependency() async {
        let (job, plain) = (TestJob(), BlockOperation {})
        job.addDependency(plain)
        plain.cancel()
        job.start()
        await job.ended()
        expect(job.error?.code, equals: .dependencyFailed)
    }
}

@Suite("Jobs that wait for the network, and numbers of operations", .timeLimit(.minutes(10)))
struct QueueReachabilityTests {
    /// A job with a host.
    private final class HostJob: NetworkOperation, @unchecked Sendable {
        // Sendable because it has no state.
        override var host: String? { "a.example" }
        override func execute() { finish() }
    }

    @Test("OPQ-9: while the network is unreachable jobs that call a host wait without a slot, and others run")
    func waitsForNetwork() async {
        let network = NetworkReachability(.unreachable)
        let queue = NetworkQueue(maxConcurrentOperationCount: 1)
        queue.reachability = network
        let jobs = (0..<1_000).map { _ in HostJob() }
        let other = TestJob()
        queue.addOperations(jobs + [other], waitUntilFinished: false)
        await other.ended()
        expect(queue.operationCount, equals: jobs.count)
        expect(queue.explain(jobs[0]), equals: [.condition("network reachable")])
        jobs[1].cancel()
        await jobs[1].ended()
        network.status = .unknown
        for job in jobs { await job.ended() }
        expect(jobs.enumerated().allSatisfy { ($1.error == nil) == ($0 != 1) })
        expect(queue.operationCount, equals: 0)
    }

    @Test("OPQ-9: no job waits for the network any more when the queue's reachability is removed or replaced")
    func reachabilityIsReplaced() async {
        let queue = NetworkQueue()
        for next: NetworkReachability? in [nil, NetworkReachability(.reachable)] {
            queue.reachability = NetworkReachability(.unreachable)
            let job = HostJob()
            queue.addOperation(job)
            expect(queue.explain(job), equals: [.condition("network reachable")])
            queue.reachability = next
            await job.ended()
            expect(job.error == nil)
        }
    }

    @Test("OPQ-9: a rate is not used up by jobs that wait for the network, and the queue tells of a start once")
    func rateAndEvents() async {
        let clock = ManualClock()
        let network = NetworkReachability(.unreachable)
        let queue = NetworkQueue(rateLimit: RateLimit(1, per: 10), clock: clock)
        queue.reachability = network
        let (first, second) = (HostJob(), HostJob())
        let events = queue.events
        queue.addOperations([first, second], waitUntilFinished: false)
        network.status = .reachable
        await first.ended()
        expect(queue.explain(second), equals: [.rate(seconds: 10)])
        clock.advance(by: 10)
        await second.ended()
        var starts = 0
        for await event in events {
            if case .started = event.kind { starts += 1 }
            if case .finished = event.kind, event.operation === second { break }
        }
        expect(starts, equals: 2)
    }

    @Test("OPQ-3: a job is cancelled by its number, and no other one is")
    func cancelById() async {
        let queue = NetworkQueue()
        queue.isSuspended = true
        let jobs = (0..<3).map { _ in TestJob() }
        queue.addOperations(jobs + [BlockOperation {}], waitUntilFinished: false)
        expect(Set(jobs.map(\.operationID)).count == 3 && jobs[1].operationID == jobs[1].operationID)
        queue.cancelOperation(id: jobs[1].operationID)
        await jobs[1].ended()
        expect(jobs.map(\.isCancelled) == [false, true, false] && queue.operationCount == 3)
        queue.isSuspended = false
        for job in jobs { await job.ended() }
    }
}
