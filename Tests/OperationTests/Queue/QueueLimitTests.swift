import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("Limits, slots and rates of NetworkQueue", .timeLimit(.minutes(10)))
struct QueueLimitTests {
    /// A job for a host that runs until it is told to end.
    private final class HostJob: NetworkOperation, @unchecked Sendable {
        // Sendable because its properties are constant.
        private let ownHost: String
        let started = Gate()

        init(_ host: String) {
            ownHost = host
        }

        override var host: String? { ownHost }
        override func execute() { started.open() }
    }

    @Test("BEY-6: at most so many run for each host, whatever its case, and others are not kept waiting")
    func perHost() async {
        let queue = NetworkQueue(maxConcurrentOperationCount: -1, maxConcurrentOperationCountPerHost: 1)
        let jobs = ["a.example", "A.example", "b.example"].map(HostJob.init)
        for job in jobs { queue.addOperation(job) }
        await jobs[0].started.opened()
        await jobs[2].started.opened()
        expect(queue.explain(jobs[1]), equals: [.hostLimit(host: "a.example", 1)])
        queue.setMaxConcurrentOperationCount(2, forHost: "A.EXAMPLE")
        await jobs[1].started.opened()
        for job in jobs { job.finish() }
        for job in jobs { await job.ended() }
        expect(queue.maxConcurrentOperationCountPerHost == 1 && queue.operationCount == 0)
    }

    @Test("BEY-6: requests to one server are limited by its host and port, from any service")
    func hostOfRequests() async throws {
        let server = try MockServer()
        defer { server.stop() }
        server.route("GET", "/slow") { _ in .fault(.stall) }
        let queue = NetworkQueue(maxConcurrentOperationCountPerHost: 2)
        let service = EasyNetworkService(server.host())
        let operations: [NetworkOperation] =
            (0..<4).map { _ in RequestOperation(Get(api: "slow"), service: service) }
            + [RequestOperation(Get(api: server.baseURL.absoluteString + "/slow"), service: service)]
        for operation in operations { queue.addOperation(operation) }
        await server.waitForRequests(2)
        let port = server.baseURL.port ?? 0
        for operation in operations[2...] {
            expect(queue.explain(operation), equals: [.hostLimit(host: "127.0.0.1:\(port)", 2)])
        }
        queue.cancelOperations(host: "127.0.0.1:\(port)")
        for operation in operations { await operation.ended() }
        expect(operations.allSatisfy { $0.isCancelled } && server.requests.count == 2)
    }

    @Test("BEY-6, OPQ-3: limits by tag, exclusion by category, and their explanation")
    func tags() async {
        let queue = NetworkQueue(maxConcurrentOperationCount: -1)
        queue.setMaxConcurrentOperationCount(1, forTag: "images")
        let jobs = (0..<4).map { _ in TestJob { _ in } }
        for job in jobs[0...1] { job.tags = ["images"] }
        for job in jobs[2...3] { job.mutualExclusionCategories = ["sign-in"] }
        for job in jobs { queue.addOperation(job) }
        await expect(eventually { jobs[0].executionCount + jobs[2].executionCount == 2 })
        expect(queue.explain(jobs[1]), equals: [.tagLimit(tag: "images", 1)])
        expect(queue.explain(jobs[3]), equals: [.mutualExclusion(category: "sign-in")])
        expect(queue.explain(jobs[0]), equals: [.running])
        jobs[0].finish()
        jobs[2].finish()
        await expect(eventually { jobs[1].executionCount + jobs[3].executionCount == 2 })
        queue.cancelAllOperations()
        for job in jobs { await job.ended() }
    }

    @Test("BEY-6: jobs start as their rate allows, on the queue's clock")
    func rate() async {
        let clock = ManualClock()
        let queue = NetworkQueue(rateLimit: RateLimit(1, per: 10), clock: clock)
        let jobs = (0..<3).map { _ in TestJob() }
        for job in jobs { queue.addOperation(job) }
        await jobs[0].ended()
        expect(queue.explain(jobs[1]), equals: [.rate(seconds: 10)])
        await clock.waitForTimers(1)
        clock.advance(by: 9)
        expect(jobs[1].executionCount, equals: 0)
        clock.advance(by: 1)
        await jobs[1].ended()
        expect(jobs[2].executionCount, equals: 0)
        queue.rateLimit = nil
        await jobs[2].ended()
    }

    @Test("BEY-6: a job that gives its slot back lets others run, counts in no limit, and comes again in its turn")
    func slots() async {
        let queue = NetworkQueue(maxConcurrentOperationCount: 1)
        let order = Locked<[String]>([])
        let isParked = Gate()
        let waiting = TestJob { job in
            order.withLock { $0.append("begins") }
            job.releaseSlot()
            isParked.open()
        }
        let others = ["one", "two"].map { name in
            TestJob { job in
                order.withLock { $0.append(name) }
                if name == "one" {
                    waiting.reclaimSlot {
                        order.withLock { $0.append("goes on") }
                        waiting.finish()
                    }
                }
                job.finish()
            }
        }
        queue.addOperation(waiting)
        await isParked.opened()
        expect(queue.explain(waiting), equals: [.slotReleased])
        queue.isSuspended = true
        for job in others { queue.addOperation(job) }
        queue.isSuspended = false
        for job in others + [waiting] { await job.ended() }
        expect(order.withLock { $0 }, equals: ["begins", "one", "two", "goes on"])
        expect(queue.operationCount, equals: 0)
    }

    @Test(
        "BEY-5, BEY-6: a job without its slot, or waiting to have it again, is cancelled at once",
        arguments: [false, true]
    )
    func cancelWithoutSlot(isReturning: Bool) async {
        let queue = NetworkQueue(maxConcurrentOperationCount: 1)
        let isParked = Gate()
        let job = TestJob { job in
            job.releaseSlot()
            isParked.open()
        }
        queue.addOperation(job)
        await isParked.opened()
        let other = TestJob { _ in }
        queue.addOperation(other)
        let hasGoneOn = Locked(false)
        if isReturning { job.reclaimSlot { hasGoneOn.withLock { $0 = true } } }
        job.cancel()
        await job.ended()
        expect(queue.operationCount, equals: 1)
        other.finish()
        await other.ended()
        expect(queue.operationCount == 0 && !hasGoneOn.withLock { $0 })
        let last = TestJob()
        queue.addOperation(last)
        await last.ended()
    }

    @Test("BEY-6: the action that waits for a slot is replaced by a later one, and dropped when the slot is forgone")
    func slotActions() async {
        let queue = NetworkQueue(maxConcurrentOperationCount: 1)
        let isParked = Gate()
        let job = TestJob { job in
            job.releaseSlot { false }
            expect(queue.explain(job), equals: [.running])
            job.releaseSlot()
            isParked.open()
        }
        queue.addOperation(job)
        await isParked.opened()
        let other = TestJob { _ in }
        queue.addOperation(other)
        await expect(eventually { other.executionCount == 1 })
        let order = Locked<[String]>([])
        job.reclaimSlot { order.withLock { $0.append("forgone") } }
        job.forgoSlot()
        expect(queue.explain(job), equals: [.slotReleased])
        job.reclaimSlot {
            order.withLock { $0.append("wanted") }
            job.finish()
        }
        job.reclaimSlot(if: { false }, { order.withLock { $0.append("stale") } })
        other.finish()
        await job.ended()
        expect(order.withLock { $0 }, equals: ["wanted"])
        await other.ended()
    }

    @Test("BEY-6: without a NetworkQueue giving a slot back does nothing, and asking for it goes on at once")
    func slotsElsewhere() async {
        let plainQueue = OperationQueue()
        let job = TestJob { job in
            job.releaseSlot()
            job.reclaimSlot { job.finish() }
        }
        plainQueue.addOperation(job)
        await job.ended()
        expect(job.error == nil)
    }

    @Test("OPQ-3: a dependency of a job of high priority goes before others")
    func inheritance() async {
        let queue = NetworkQueue(maxConcurrentOperationCount: 1)
        queue.isSuspended = true
        let order = Locked<[String]>([])
        let jobs = ["other", "base", "high"].map { name in
            let job = TestJob { job in
                order.withLock { $0.append(name) }
                job.finish()
            }
            job.name = name
            return job
        }
        jobs[1].queuePriority = .veryLow
        jobs[2].queuePriority = .veryHigh
        jobs[2].addDependency(jobs[1])
        for job in [jobs[0], jobs[2], jobs[1]] { queue.addOperation(job) }
        queue.isSuspended = false
        for job in jobs { await job.ended() }
        expect(order.withLock { $0 }, equals: ["base", "high", "other"])
        expect(jobs[1].queuePriority, equals: .veryLow)
    }
    @Test("OPQ-3: after 100 jobs of higher priority in a row, one of a lower priority starts, and again after 100")
    func overtaking() async {
        let queue = NetworkQueue(maxConcurrentOperationCount: 1)
        queue.isSuspended = true
        let order = Locked<[String]>([])
        let jobs = (["low", "low"] + Array(repeating: "high", count: 250)).map { name in
            let job = TestJob { job in
                order.withLock { $0.append(name) }
                job.finish()
            }
            job.queuePriority = name == "low" ? .low : .high
            return job
        }
        queue.addOperations(jobs, waitUntilFinished: false)
        queue.isSuspended = false
        for job in jobs { await job.ended() }
        let places = order.withLock { order in order.indices.filter { order[$0] == "low" } }
        expect(places, equals: [100, 201])
    }
}
