import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("Cancelling, draining, events and explanations of NetworkQueue", .timeLimit(.minutes(10)))
struct QueueLifeTests {
    private func named(_ name: String, _ work: @escaping @Sendable (TestJob) -> Void = { $0.finish() }) -> TestJob {
        let job = TestJob(work)
        job.name = name
        return job
    }

    @Test("OPQ-3, BEY-5: by tag and by predicate matching jobs end at once, and only these")
    func cancelSome() async {
        let queue = NetworkQueue(maxConcurrentOperationCount: 1)
        let jobs = (0..<4).map { number in named("\(number)") { _ in } }
        let plain = BlockOperation {}
        for job in jobs[1...2] { job.tags = ["images", "\(job.name ?? "")"] }
        for job in jobs { queue.addOperation(job) }
        queue.addOperation(plain)
        queue.cancelOperations(tag: "images")
        for job in jobs[1...2] { await job.ended() }
        expect(jobs.map(\.isCancelled), equals: [false, true, true, false])
        queue.cancelOperations { $0 === plain || $0 === jobs[0] }
        await jobs[0].ended()
        await plain.ended()
        expect(plain.isCancelled && !jobs[3].isCancelled)
        queue.cancelOperations(tag: "nobody")
        queue.cancelOperations(host: "nobody")
        queue.cancelAllOperations()
        await jobs[3].ended()
        await expect(eventually { queue.operationCount == 0 })
    }

    @Test("BEY-7: dependencies with and without a queue, suspension, turn, nothing")
    func explain() async {
        let queue = NetworkQueue(maxConcurrentOperationCount: 1)
        let forgotten = named("sign-in")
        let job = named("profile")
        job.addDependency(forgotten)
        expect(queue.explain(job), equals: [.notHere])
        queue.addOperation(job)
        expect(queue.explain(job), equals: [.dependency(name: "'sign-in'", isQueued: false)])
        expect(queue.explain(job).map(\.description), equals: ["waits for 'sign-in', which is on no queue"])
        queue.isSuspended = true
        queue.addOperation(forgotten)
        expect(queue.explain(job), equals: [.dependency(name: "'sign-in'", isQueued: true)])
        expect(queue.explain(forgotten).map(\.description), equals: ["waits because the queue is suspended"])
        let running = named("running") { _ in }
        queue.maxConcurrentOperationCount = 0
        queue.isSuspended = false
        expect(queue.explain(forgotten), equals: [.limit(0)])
        queue.maxConcurrentOperationCount = 1
        await job.ended()
        expect(queue.explain(job), equals: [.finished])
        queue.addOperation(running)
        expect(queue.explain(running), equals: [.running])
        running.finish()
        await running.ended()
    }

    @Test("BEY-1: a failed dependency names the way to its root cause")
    func dependencyPath() async {
        let queue = NetworkQueue()
        queue.isSuspended = true
        let jobs = (0..<40).map { number in named("step \(number)") }
        for (job, other) in zip(jobs.dropFirst(), jobs) { job.addDependency(other) }
        for job in jobs { queue.addOperation(job) }
        jobs[0].finish(NetworkError(code: .refused))
        for job in jobs { await job.ended() }
        expect(jobs[0].error?.dependencyPath, equals: [])
        expect(jobs[2].error?.dependencyPath, equals: ["step 0", "step 1"])
        let last = jobs[39].error?.dependencyPath ?? []
        expect(last.count == 16 && last.prefix(2) == ["step 0", "…"] && last.suffix(2) == ["step 37", "step 38"])
        expect(jobs[39].error?.rootCause.code, equals: .refused)
    }

    @Test("OPQ-1: a dependency taken back while the job waits holds it no longer, here and elsewhere")
    func removedDependency() async {
        let queue = NetworkQueue()
        let dependency = named("never")
        let plain = BlockOperation {}
        let job = named("job")
        for operation in [dependency, plain, dependency] { job.addDependency(operation) }
        queue.addOperation(job)
        job.removeDependency(dependency)
        expect(job.dependencies, equals: [plain])
        expect(queue.explain(job).count, equals: 1)
        job.removeDependency(plain)
        await job.ended()
        expect(job.error == nil && queue.operationCount == 0)
        expect(queue.state.withLock { $0.externalJobs.isEmpty && $0.graph.submitted.isEmpty })
    }

    @Test("OPQ-1: a dependency taken back when its failure ends the job does not make it run without a slot")
    func removedAfterFailure() async {
        let queue = NetworkQueue()
        // The end of a call starts the next job on its own thread, behind what this test does there.
        let host = HostConfiguration(
            baseURL: URL(string: "http://example.com/"),
            transport: InMemoryTransport()
        )
        let dependency = RequestOperation(Get(api: "missing"), service: EasyNetworkService(host))
        let job = named("job")
        job.addDependency(dependency)
        dependency.whenFinished { job.removeDependency(dependency) }
        queue.addOperations([dependency, job])
        await job.ended()
        expect(job.executionCount == 0 && job.error?.code == .dependencyFailed)
    }

    @Test("OPQ-12: idle is a queue without jobs, also those that are added meanwhile, and it goes on")
    func idle() async {
        let queue = NetworkQueue(maxConcurrentOperationCount: 1)
        await queue.waitUntilIdle()
        let (first, second) = (named("first") { _ in }, named("second") { _ in })
        let isIdle = Locked(false)
        queue.addOperation(first)
        let wait = Task {
            await queue.waitUntilIdle()
            isIdle.exchange(true)
        }
        queue.addOperation(second)
        first.finish()
        await first.ended()
        expect(!isIdle.withLock { $0 })
        second.finish()
        await wait.value
        expect(queue.operationCount, equals: 0)
        let third = named("third") { _ in }
        queue.addOperation(third)
        let cancelled = Task { await queue.waitUntilIdle() }
        cancelled.cancel()
        await cancelled.value
        expect(queue.operationCount == 1 && third.error == nil)
        third.finish()
        await queue.waitUntilIdle()
        expect(third.error == nil && third.isFinished)
    }

    @Test("BEY-13, OPQ-12: shutDown lets present jobs finish, refuses new ones, and returns no unfinished ones")
    func drainInTime() async {
        let clock = ManualClock()
        let queue = NetworkQueue(maxConcurrentOperationCount: 1, clock: clock)
        let running = named("running") { _ in }
        let waiting = named("waiting")
        queue.addOperation(running)
        queue.addOperation(waiting)
        queue.isSuspended = true
        let drain = Task { await queue.shutDown(deadline: 60).count }
        await expect(eventually { queue.state.withLock { $0.shutDownPlace != nil } })
        let late = named("late")
        let plain = BlockOperation {}
        queue.addOperation(late)
        queue.addOperation(plain)
        await late.ended()
        await plain.ended()
        expect(late.error?.code == .refused && late.executionCount == 0 && plain.isCancelled)
        expect(late.error?.message?.contains("shut down at OperationTests/QueueLifeTests.swift:"), equals: true)
        running.finish()
        await expect(drain.value, equals: 0)
        expect(waiting.executionCount, equals: 1)
        await expect(eventually { clock.pendingCount == 0 })
        await expect(queue.shutDown(deadline: 0).isEmpty)
    }

    @Test(
        "BEY-13: at the deadline, or when its task is cancelled, shutDown cancels the rest and returns it",
        arguments: [true, false]
    )
    func drainLate(byDeadline: Bool) async {
        let clock = ManualClock()
        let queue = NetworkQueue(maxConcurrentOperationCount: 1, clock: clock)
        let jobs = (0..<3).map { number in named("\(number)") { _ in } }
        for job in jobs { queue.addOperation(job) }
        let drain = Task { await queue.shutDown(deadline: 60).map(\.name) }
        await clock.waitForTimers(1)
        jobs[0].finish()
        await jobs[0].ended()
        if byDeadline { clock.advance(by: 60) } else { drain.cancel() }
        await expect(drain.value, equals: ["1", "2"])
        for job in jobs { await job.ended() }
        expect(jobs.map { $0.error?.code }, equals: [nil, .cancelled, .cancelled])
    }

    @Test("BEY-13: a job that has its result, and whose closures run, is none of those that shutDown has cancelled")
    func drainWithResult() async {
        let transport = InMemoryTransport()
        transport.route("GET", "/a") { _ in .text("a") }
        let host = HostConfiguration(baseURL: URL(string: "http://one.example"), transport: transport)
        let job = RequestOperation(Request<Void>("a"), service: EasyNetworkService(host))
        let (isCalled, gate) = (Gate(), DispatchSemaphore(value: 0))
        job.success = { _ in
            isCalled.open()
            gate.wait()
        }
        let queue = NetworkQueue()
        queue.addOperation(job)
        await isCalled.opened()
        await expect(queue.shutDown(deadline: 0).isEmpty)
        gate.signal()
        await job.ended()
        expect(job.error == nil && !job.isCancelled)
    }

    @Test("BEY-3: every listener hears of each job in order: added, started, finished with its error")
    func events() async {
        let queue = NetworkQueue(maxConcurrentOperationCount: 1)
        let streams = [queue.events, queue.events]
        let jobs = [named("fine"), named("bad") { $0.finish(NetworkError(code: .refused)) }]
        for job in jobs { queue.addOperation(job) }
        let never = named("never")
        never.cancel()
        queue.addOperation(never)
        for job in jobs + [never] { await job.ended() }
        for stream in streams { await check(stream) }
    }

    private func check(_ stream: AsyncStream<NetworkEvent>) async {
        var heard: [String: [String]] = [:]
        for await event in stream {
            let word =
                switch event.kind {
                case .added: "added"
                case .started: "started"
                case .finished(let error): "finished \(error.map { "\($0.code)" } ?? "")"
                default: "\(event)"
                }
            heard[event.operation?.name ?? "", default: []].append(word)
            if heard.values.joined().count(where: { $0.hasPrefix("finished") }) == 3 { break }
        }
        expect(heard["fine"], equals: ["added", "started", "finished "])
        expect(heard["bad"], equals: ["added", "started", "finished refused"])
        expect(heard["never"], equals: ["added", "finished cancelled"])
    }

    @Test("BEY-3: events end with the queue")
    func eventsEnd() async {
        var queue: NetworkQueue? = NetworkQueue()
        let events = queue?.events
        queue = nil
        var count = 0
        if let events { for await _ in events { count += 1 } }
        expect(count, equals: 0)
    }
}
