import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

/// Injects events between two steps, with a hook in place of another thread.
@Suite("Races of NetworkQueue", .timeLimit(.minutes(10)))
struct QueueRaceTests {
    @Test("BEY-13: adding a running job again, to its own queue or to a drained one, leaves it as it is")
    func addedAgain() async {
        let queue = NetworkQueue()
        let drained = NetworkQueue()
        await drained.shutDown(deadline: 0)
        let job = TestJob { _ in }
        let plain = BlockOperation {}
        plain.addDependency(job)
        queue.addOperation(job)
        queue.addOperation(plain)
        await expect(eventually { job.executionCount == 1 })
        let drain = Task { await queue.shutDown(deadline: 1_000).count }
        await expect(eventually { queue.state.withLock { $0.shutDownPlace != nil } })
        for queue in [queue, drained] {
            queue.addOperation(job)
            queue.addOperation(plain)
        }
        expect(job.error == nil && !plain.isCancelled)
        job.finish()
        await expect(drain.value, equals: 0)
    }

    private final class SlowToAnswer: NetworkOperation, @unchecked Sendable {
        // Sendable because its properties are constant or guarded by a lock.
        let asked = Gate()
        let answer = DispatchSemaphore(value: 0)
        let hasRun = Locked(false)

        override var host: String? {
            asked.open()
            answer.wait()
            return nil
        }

        override func execute() {
            hasRun.withLock { $0 = true }
            finish()
        }
    }

    @Test("BEY-13: a job that is being added while the queue is drained is refused")
    func addedWhileDraining() async {
        let queue = NetworkQueue()
        let job = SlowToAnswer()
        Thread { queue.addOperation(job) }.start()
        await job.asked.opened()
        await expect(queue.shutDown(deadline: 0).isEmpty)
        job.answer.signal()
        await job.ended()
        expect(job.error?.code == .refused && !job.hasRun.withLock { $0 })
    }

    @Test("BEY-13: the children of a job that is there still come in")
    func childrenWhileDraining() async {
        let queue = NetworkQueue()
        let gate = Gate()
        let chain = ChainOperation()
        chain.addOperation(TestJob { job in gate.whenOpen { job.finish() } })
        chain.addOperation(TestJob())
        queue.addOperation(chain)
        let drain = Task { await queue.shutDown(deadline: 1_000).count }
        await expect(eventually { queue.state.withLock { $0.shutDownPlace != nil } })
        gate.open()
        await expect(drain.value, equals: 0)
        expect(chain.error == nil)
    }

    private final class Odd: Operation, @unchecked Sendable {
        // Sendable because the hook is behind a lock.
        let hook = Locked<(@Sendable () -> Void)?>(nil)

        override var isCancelled: Bool {
            let isCancelled = super.isCancelled
            hook.exchange(nil)?()
            return isCancelled
        }
    }

    @Test("BEY-5: a plain operation that is cancelled while its slot is taken back ends")
    func cancelledWhilePostponed() async {
        let queue = NetworkQueue()
        queue.isSuspended = true
        let odd = Odd()
        queue.addOperation(odd)
        odd.addDependency(TestJob())
        odd.hook.withLock { $0 = { queue.cancelAllOperations() } }
        queue.isSuspended = false
        await odd.ended()
        expect(odd.isCancelled)
    }

    private final class SlowToCancel: Operation, @unchecked Sendable {
        // Sendable because the hook is behind a lock.
        let hook = Locked<(@Sendable () -> Void)?>(nil)
        let isCancelling = DispatchSemaphore(value: 0)
        let mayCancel = DispatchSemaphore(value: 0)

        override var dependencies: [Operation] {
            hook.exchange(nil)?()
            return super.dependencies
        }

        override func cancel() {
            isCancelling.signal()
            mayCancel.wait()
            mayCancel.signal()
            super.cancel()
        }
    }

    @Test("BEY-5: a plain operation whose slot is taken back between the queue's cancel and its own ends")
    func postponedWhileCancelled() async {
        let queue = NetworkQueue()
        queue.isSuspended = true
        let slow = SlowToCancel()
        queue.addOperation(slow)
        slow.addDependency(TestJob())
        slow.hook.withLock { hook in
            hook = {
                Thread { queue.cancelAllOperations() }.start()
                slow.isCancelling.wait()
            }
        }
        queue.isSuspended = false
        slow.mayCancel.signal()
        await expect(eventually { slow.isFinished })
        expect(slow.isCancelled)
    }

    private struct HookClock: NetworkClock {
        let hook = Locked<(@Sendable () -> Void)?>(nil)

        var now: TimeInterval {
            hook.exchange(nil)?()
            return 0
        }

        func schedule(after delay: TimeInterval, _ action: @escaping @Sendable () -> Void) -> any ClockTimer {
            SystemClock().schedule(after: delay, action)
        }
    }

    @Test("OPQ-1: a dependency that is taken back while it is being added holds nothing")
    func takenBackWhileAdded() async {
        let clock = HookClock()
        let queue = NetworkQueue(clock: clock)
        queue.isSuspended = true
        let (job, other) = (TestJob(), TestJob())
        queue.addOperation(job)
        clock.hook.withLock { $0 = { job.removeDependency(other) } }
        job.addDependency(other)
        expect(job.dependencies.isEmpty)
        queue.isSuspended = false
        await job.ended()
    }

    @Test("OPQ-1: jobs that are added while their dependency is leaving the queue run")
    func addedWhileLeaving() async {
        let queue = NetworkQueue()
        let gate = Gate()
        let leaving = TestJob { job in gate.whenOpen { job.finish() } }
        let dependents = (0..<3).map { _ in TestJob() }
        for dependent in dependents { dependent.addDependency(leaving) }
        queue.addOperation(leaving)
        // Runs after the job has left the graph, before the job learns of it.
        queue.whenEmpty { for dependent in dependents { queue.addOperation(dependent) } }
        gate.open()
        for dependent in dependents {
            await expect(eventually { dependent.isFinished }, "\(queue.explain(dependent))")
        }
        await expect(eventually { queue.state.withLock { $0.externalJobs.isEmpty && $0.graph.totalCount == 0 } })
    }

    @Test(
        "BEY-3: a plain operation that has to wait after all is told of as started once, and ends before its dependents start"
    )
    func plainEvents() async {
        let queue = NetworkQueue(maxConcurrentOperationCount: 1)
        queue.isSuspended = true
        let events = queue.events
        let gate = Gate()
        let dependency = TestJob { job in gate.whenOpen { job.finish() } }
        let plain = BlockOperation {}
        let dependent = TestJob()
        dependent.addDependency(plain)
        queue.addOperation(dependent)
        queue.addOperation(plain)
        plain.addDependency(dependency)
        queue.addOperation(dependency)
        queue.isSuspended = false
        gate.open()
        await dependent.ended()
        var seen: [String] = []
        for await event in events {
            let name = event.operation === plain ? "plain" : event.operation === dependent ? "dependent" : "other"
            switch event.kind {
            case .started: seen.append("\(name) started")
            case .finished: seen.append("\(name) finished")
            default: continue
            }
            if seen.last == "dependent finished" { break }
        }
        let expected = ["plain started", "plain finished", "dependent started", "dependent finished"]
        expect(seen.filter { !$0.hasPrefix("other") }, equals: expected)
    }

    @Test("BEY-6: a job with a condition takes one token, and the same rate set again gives none")
    func tokens() async {
        let clock = ManualClock()
        let rate = RateLimit(1, per: 10)
        let queue = NetworkQueue(rateLimit: rate, clock: clock)
        let job = TestJob()
        job.addCondition(OperationCondition("always") { _ in true })
        queue.addOperation(job)
        await job.ended()
        queue.rateLimit = rate
        let next = TestJob()
        queue.addOperation(next)
        expect(queue.explain(next), equals: [.rate(seconds: 10)])
        expect(queue.rateLimit, equals: rate)
        clock.advance(by: 10)
        await next.ended()
    }

    @Test("BEY-6: one timer is set, whatever rates there are")
    func timers() async {
        let clock = ManualClock()
        let queue = NetworkQueue(clock: clock)
        queue.setRateLimit(RateLimit(1, per: 1_000), forTag: "slow")
        queue.setRateLimit(RateLimit(1, per: 1), forTag: "fast")
        func jobs(_ count: Int, _ tag: String) -> [TestJob] {
            (0..<count).map { _ in
                let job = TestJob()
                job.tags = [tag]
                return job
            }
        }
        for job in jobs(3, "slow") { queue.addOperation(job) }
        for _ in 0..<20 {
            let pair = jobs(2, "fast")
            for job in pair { queue.addOperation(job) }
            await pair[0].ended()
            clock.advance(by: 1)
            await pair[1].ended()
            clock.advance(by: 1)
            expect(clock.pendingCount, equals: 1)
        }
        queue.cancelAllOperations()
    }

    @Test("BEY-6, OPQ-5: chains and batches exclude each other; their children may be of the same category")
    func exclusiveGroups() async {
        let queue = NetworkQueue()
        let occupancy = Occupancy()
        let groups: [NetworkOperation] = (0..<20).map { number in
            let children = [TestJob(occupancy), TestJob(occupancy)]
            for child in children { child.mutualExclusionCategories = ["one"] }
            return number % 2 == 0
                ? ChainOperation(children) : BatchOperation(children, maxConcurrentOperationCount: 1)
        }
        for group in groups {
            group.mutualExclusionCategories = ["one"]
            queue.addOperation(group)
        }
        for group in groups { await group.ended() }
        expect(occupancy.most == 1 && groups.allSatisfy { $0.error == nil })
    }

    @Test("OPQ-4: the limit of a batch holds for batches in it, and for requests that join")
    func limitOfGroups() async throws {
        let queue = NetworkQueue()
        let occupancy = Occupancy()
        let batch = BatchOperation(
            (0..<8).map { _ in BatchOperation([TestJob(occupancy)]) },
            maxConcurrentOperationCount: 1
        )
        queue.addOperation(batch)
        await batch.ended()
        expect(occupancy.most, equals: 1)

        let transport = InMemoryTransport()
        for number in 0..<5 { transport.route("GET", "/\(number)") { _ in .fault(.stall) } }
        let host = HostConfiguration(
            baseURL: URL(string: "http://example.com/"),
            deadlines: TransportDeadlines(idle: nil),
            transport: transport
        )
        let joins = (0..<5).map { number in
            let operation = RequestOperation(Get(api: "\(number)"), service: EasyNetworkService(host))
            operation.repeatPolicy = .join
            return operation
        }
        let joining = BatchOperation(joins, maxConcurrentOperationCount: 1)
        queue.addOperation(joining)
        await expect(eventually { transport.requests.count == 1 })
        // The first one runs before the last one is admitted.
        await expect(eventually { joins[1...].allSatisfy { queue.explain($0) == [.batchLimit(1)] } })
        joining.cancel()
        await joining.ended()
        expect(transport.requests.count, equals: 1)
    }

    @Test("BEY-6: a request is counted by the host that its own address names")
    func hostOfAddress() {
        let service = EasyNetworkService(HostConfiguration(baseURL: URL(string: "http://one.example/v1")))
        expect(RequestOperation(Get(api: "x"), service: service).host, equals: "one.example")
        let hosts = [
            "http://Two.example:81/x": "two.example:81", "https://user:secret@three.example?x@y": "three.example",
            "HTTPS://[::1]:8443#x": "[::1]:8443", "http://four.example:": "four.example",
            "x://five.example/": "five.example", "http://": "one.example", "http://a.example:70000/": "one.example",
            "/a.example/": "one.example", "http://six.example:080": "six.example:80",
        ]
        for (api, host) in hosts {
            expect(RequestOperation(Get(api: api), service: service).host, equals: host, "\(api)")
            guard host != "one.example", let url = URL(string: api) else { continue }
            let other = EasyNetworkService(HostConfiguration(baseURL: url))
            expect(RequestOperation(Get(api: "x"), service: other).host, equals: host, "\(api)")
        }
    }

    @Test("BEY-4: raising a limit for many jobs, and many unused rates, cost little")
    func costs() {
        var graph = JobGraph<Int>(limit: 0)
        var actions = JobGraph<Int>.Actions()
        graph.setLimit(1, for: .tag("x"))
        for number in 0..<10_000 { graph.setRate(RateLimit(1, per: 1), for: .tag("\(number)")) }
        let count = TestLoad.count(100_000)
        for number in 0..<count + 2 {
            graph.release(graph.submit(number, keys: number < count ? [.tag("x")] : []), &actions)
        }
        graph.setLimit(2, &actions)
        expect(actions.start, equals: [0, count])
        graph.setLimit(nil, for: .tag("x"))
        graph.setLimit(nil, &actions)
        expect(actions.start, equals: [0, count] + Array(1..<count) + [count + 1])
    }
}
