import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("Deadlines of jobs", .timeLimit(.minutes(10)))
struct DeadlineTests {
    private let clock = ManualClock()
    private let queue: NetworkQueue

    init() {
        queue = NetworkQueue(maxConcurrentOperationCount: 1, clock: clock)
    }

    private func job(_ name: String, deadline: TimeInterval?, _ work: @escaping @Sendable (TestJob) -> Void = { _ in })
        -> TestJob
    {
        let job = TestJob(work)
        job.name = name
        job.deadline = deadline
        return job
    }

    @Test(
        "OPQ-10: a job that runs, one that waits for it and one that waits for its slot end, and say what they waited for"
    )
    func waits() async {
        let running = job("running", deadline: 10)
        let dependent = job("dependent", deadline: 5)
        let waiting = job("waiting", deadline: 7)
        dependent.addDependency(running)
        for job in [running, dependent, waiting] { queue.addOperation(job) }
        expect(clock.pendingCount, equals: 1)
        clock.advance(by: 4.9)
        expect(!dependent.hasOutcome)
        clock.advance(by: 0.1)
        await dependent.ended()
        expect(dependent.error?.code == .timedOut && dependent.executionCount == 0 && !dependent.isCancelled)
        expect(dependent.error?.message, equals: "the deadline of 5 s has passed: the operation waits for 'running'")
        clock.advance(by: 2)
        await waiting.ended()
        expect(waiting.error?.message, equals: "the deadline of 7 s has passed: the operation waits for one of 1 slots")
        clock.advance(by: 3)
        await running.ended()
        expect(running.error?.message, equals: "the deadline of 10 s has passed: the operation runs")
        expect(running.executionCount, equals: 1)
        await expect(eventually { clock.pendingCount == 0 && queue.operationCount == 0 })
    }

    @Test("OPQ-10: a suspended queue keeps deadlines, and the message has the one that counted")
    func suspended() async {
        queue.isSuspended = true
        let later = job("later", deadline: 3)
        queue.addOperation(later)
        later.deadline = 50
        clock.advance(by: 3)
        await later.ended()
        expect(later.executionCount == 0 && later.error?.code == .timedOut && clock.pendingCount == 0)
        expect(
            later.error?.localizedDescription,
            equals: "The request timed out: the deadline of 3 s has passed: "
                + "the operation waits because the queue is suspended."
        )
    }

    @Test(
        "OPQ-10: a job with a deadline of no time ends when it is added, before anything is sent; NaN is an invalid request",
        arguments: [0, -1, -Double.infinity, .nan]
    )
    func noTime(deadline: TimeInterval) async {
        let transport = InMemoryTransport(clock: clock)
        transport.route("GET", "*") { _ in .text("a") }
        let service = EasyNetworkService(
            HostConfiguration(baseURL: URL(string: "https://api.example.com"), transport: transport)
        )
        let queue = NetworkQueue(clock: clock)
        let request = RequestOperation(Request<Data>("a"), service: service)
        let job = job("job", deadline: nil)
        let child = TestJob()
        let batch = BatchOperation([child])
        let jobs = [request, job, batch]
        let dependent = TestJob()
        for job in jobs {
            job.deadline = deadline
            dependent.addDependency(job, policy: .allowFailure)
        }
        queue.addOperations(jobs + [dependent])
        // Without an advance of the clock.
        await expect(eventually { dependent.isFinished })
        clock.advance(by: 0)
        await dependent.ended()
        let code = deadline.isNaN ? NetworkError.Code.invalidRequest : .timedOut
        expect(jobs.map { $0.error?.code }, equals: [code, code, code])
        expect(transport.requests.isEmpty && job.executionCount == 0 && child.executionCount == 0)
        await queue.waitUntilIdle()
        expect(clock.pendingCount, equals: 0)
    }

    @Test("OPQ-10: the message names a credential, a retry, a request, and the job that a batch waits for")
    func reasons() async throws {
        let transport = InMemoryTransport(clock: clock)
        transport.route("GET", "/flaky") { _ in .status(503) }
        transport.route("GET", "/slow") { _ in .fault(.stall) }
        transport.route("GET", "/step") { _ in .fault(.stall) }
        transport.route("GET", "/mine") { _ in .status(401) }
        let isRefreshing = Gate()
        let refreshed = Gate()
        defer { refreshed.open() }
        let tokens = TestTokens { _ in
            isRefreshing.open()
            await refreshed.opened()
            return "new"
        }
        let session = AuthenticationSession(tokens, credential: "old", clock: clock)
        let queue = NetworkQueue(maxConcurrentOperationCount: 6, clock: clock)
        /// Runs a job until its deadline.
        func message(
            _ api: String,
            in group: ((NetworkOperation) -> NetworkOperation)? = nil,
            when isThere: @escaping @Sendable (NetworkQueue, NetworkOperation) async -> Bool
        ) async -> String? {
            let host = HostConfiguration(baseURL: URL(string: "https://api.example.com"), transport: transport) {
                $0.clock = clock
                $0.random = { 1 }
                $0.retry = RetryPolicy(maximumRetryCount: 1, baseDelay: 60)
                $0.authentication = api == "mine" ? session : nil
            }
            let request = RequestOperation(Request<Data>(api), service: EasyNetworkService(host))
            request.name = api
            let job = group?(request) ?? request
            job.deadline = 2
            queue.addOperation(job)
            await expect(isThere(queue, request))
            clock.advance(by: 2)
            await job.ended()
            await queue.waitUntilIdle()
            return job.error?.message
        }
        let start = "the deadline of 2 s has passed: the operation "
        await expect(
            message(
                "mine",
                when: { queue, job in
                    await isRefreshing.opened()
                    return await eventually { queue.explain(job) == [.credential] }
                }
            ),
            equals: start + "waits for a credential"
        )
        await expect(
            message(
                "flaky",
                when: { queue, job in
                    await eventually { if case .retry? = queue.explain(job).first { true } else { false } }
                }
            )?.hasSuffix(" s before its request is sent again"),
            equals: true
        )
        let isSent: @Sendable (NetworkQueue, NetworkOperation) async -> Bool = { queue, job in
            let path = "/" + (job.name ?? "")
            return await eventually { queue.explain(job) == [.running] && transport.requests.last?.path == path }
        }
        await expect(message("slow", when: isSent), equals: start + "runs: GET https://api.example.com/slow")
        let inner = "'step', which runs: GET https://api.example.com/step"
        let chain = ChainOperation()
        await expect(
            message(
                "step",
                in: { job in
                    chain.addOperation(job)
                    chain.addOperation(TestJob())
                    chain.name = "chain"
                    return BatchOperation([TestJob(), chain, TestJob { _ in }])
                },
                when: { queue, job in
                    let isSent = await isSent(queue, job)
                    return await eventually { queue.operationCount == 4 } && isSent
                }
            ),
            equals: start + "waits for 'chain', which waits for \(inner), and for 1 more job"
        )
    }

    @Test("OPQ-10: what ends in time leaves no timer, and its end stays")
    func inTime() async {
        let jobs = (0..<200).map { number in job("\(number)", deadline: TimeInterval(number + 1)) { $0.finish() } }
        for job in jobs { queue.addOperation(job) }
        for job in jobs { await job.ended() }
        await expect(eventually { clock.pendingCount == 0 })
        clock.advance(by: 1_000)
        expect(jobs.allSatisfy { $0.error == nil && $0.executionCount == 1 })
    }

    @Test("OPQ-10: a batch ends at its deadline with its children, a chain with its step", arguments: [false, true])
    func groups(isChain: Bool) async {
        let (first, second) = (job("first", deadline: nil), job("second", deadline: nil))
        let group: GroupOperation
        if isChain {
            let chain = ChainOperation()
            chain.addOperation(first)
            chain.addOperation(second)
            group = chain
        } else {
            group = BatchOperation([first, second])
        }
        group.deadline = 10
        let failures = Locked(0)
        group.whenFinished { failures.withLock { $0 += 1 } }
        queue.addOperation(group)
        await expect(eventually { first.isExecuting })
        clock.advance(by: 10)
        await group.ended()
        expect(group.error?.code == .timedOut && first.error?.code == .cancelled)
        expect(second.executionCount == 0 && failures.withLock { $0 } == 1)
        await expect(eventually { queue.operationCount == 0 && clock.pendingCount == 0 })
    }

    @Test("OPQ-10: a request that stalls ends at its deadline, its retries and dependents with it")
    func request() async throws {
        let transport = InMemoryTransport(clock: clock)
        transport.route("GET", "*") { _ in .fault(.stall) }
        let host = HostConfiguration(baseURL: URL(string: "https://api.example.com"), transport: transport) {
            $0.clock = clock
        }
        let request = RequestOperation(Request<Data>("slow"), service: EasyNetworkService(host))
        let next = request.then { _ in Request<Data>("next") }
        request.deadline = 2
        queue.addOperations([request, next], waitUntilFinished: false)
        await expect(eventually { transport.requests.count == 1 })
        clock.advance(by: 2)
        let error = await #expect(throws: NetworkError.self) { try await request.value }
        expect(error?.code == .timedOut && error?.message?.contains("deadline") == true)
        await next.ended()
        expect(next.error?.rootCause.code == .timedOut && transport.requests.count == 1)
    }

    private final class Stoppable: NetworkOperation, @unchecked Sendable {
        // Sendable because the count is behind its lock.
        let stops = Locked(0)
        override func execute() {}
        override func cancel() {
            stops.withLock { $0 += 1 }
            super.cancel()
        }
    }

    @Test("OPQ-10: a subclass stops its work by its own cancel()")
    func subclass() async {
        let operation = Stoppable()
        operation.deadline = 1
        queue.addOperation(operation)
        await expect(eventually { operation.isExecuting })
        clock.advance(by: 1)
        await operation.ended()
        expect(operation.error?.code == .timedOut && !operation.isCancelled && operation.stops.withLock { $0 } == 1)
    }

    @Test(
        "OPQ-10: deadlines that pass while jobs end, are cancelled and finish: each job ends once",
        arguments: 0..<UInt64(TestLoad.count(4, part: 1))
    )
    func stress(seed: UInt64) async {
        var random = SeededGenerator(seed: seed)
        let queue = NetworkQueue(maxConcurrentOperationCount: 8)
        let ends = Locked(0)
        let jobs = (0..<400).map { number -> TestJob in
            let job = job("\(number)", deadline: Double.random(in: 0...0.02, using: &random)) { job in
                DispatchQueue.global().async { job.finish() }
            }
            job.whenFinished { ends.withLock { $0 += 1 } }
            return job
        }
        for (number, job) in jobs.enumerated() {
            queue.addOperation(job)
            if number % 7 == 0 { jobs[Int.random(in: 0...number, using: &random)].cancel() }
        }
        await queue.waitUntilIdle()
        await expect(eventually { ends.withLock { $0 } == jobs.count })
        expect(queue.state.withLock { $0.deadlines.isEmpty })
        let codes = Set(jobs.map { $0.error?.code })
        expect(codes.isSubset(of: [nil, .timedOut, .cancelled]), "\(codes), seed \(seed)")
    }

    @Test("OPQ-10: a hundred thousand deadlines are kept in order, and forgotten at a constant cost")
    func heap() {
        final class Job {}
        var deadlines = JobDeadlines<Job>()
        let jobs = (0..<TestLoad.count(100_000)).map { _ in Job() }
        for (number, job) in jobs.enumerated() {
            deadlines.add(job, TimeInterval(number * 7_919 % jobs.count), now: 0)
        }
        for job in jobs.dropLast(10) { deadlines.remove(job) }
        expect(deadlines.next != nil)
        expect(deadlines.takeDue(now: .infinity).count == 10 && deadlines.next == nil && deadlines.isEmpty)
    }
}
