import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("The network of a host", .timeLimit(.minutes(10)))
struct HostReachabilityTests: ServiceSuite {
    let transport = InMemoryTransport()
    private let network = NetworkReachability(.unreachable)

    init() {
        transport.route("GET", "/a") { _ in .text("a", headers: ["Cache-Control": "max-age=60"]) }
    }

    /// The jobs, queues and calls that wait.
    private var readerCount: Int { network.readers.state.withLock { $0.readers.count } }

    func prepare(_ host: inout HostSettings) {
        host.reachability = network
        host.retry = RetryPolicy()
    }

    @Test("OPQ-9: without a network the jobs of the host wait without a slot, and those of others run")
    func jobs() async throws {
        let (service, queue) = (service(), NetworkQueue(maxConcurrentOperationCount: 1))
        let jobs = (0..<1_000).map { _ in RequestOperation(Get(api: "a"), service: service) }
        let other = RequestOperation(Get(api: "a"), service: self.service { $0.reachability = nil })
        queue.addOperations(jobs + [other], waitUntilFinished: false)
        _ = try await other.value
        expect(queue.explain(jobs[0]), equals: [.condition("network reachable")])
        expect(queue.operationCount == jobs.count && transport.requests.count == 1)
        jobs[1].cancel()
        await jobs[1].ended()
        network.status = .unknown
        for job in jobs { await job.ended() }
        expect(jobs.enumerated().allSatisfy { ($1.error == nil) == ($0 != 1) })
        expect(queue.operationCount == 0 && transport.requests.count == jobs.count)
    }

    @Test(
        "OPQ-9: a job waits for the network of its queue and for that of its host, in any order",
        arguments: [true, false]
    )
    func both(queueIsFirst: Bool) async throws {
        let (queue, whole) = (NetworkQueue(), NetworkReachability(.unreachable))
        queue.reachability = whole
        let job = RequestOperation(Get(api: "a"), service: service())
        queue.addOperation(job)
        expect(queue.explain(job), equals: [.condition("network reachable")])
        (queueIsFirst ? whole : network).status = .reachable
        let holder = ObjectIdentifier(queueIsFirst ? network : whole)
        await expect(eventually { queue.state.withLock { Array($0.offline.keys) } == [holder] })
        expect(queue.explain(job) == [.condition("network reachable")] && transport.requests.isEmpty)
        if queueIsFirst {
            network.status = .reachable
        } else {
            queue.reachability = nil
        }
        _ = try await job.value
    }

    @Test("OPQ-9: a network that comes and goes holds jobs and lets them go, and loses none")
    func flapping() async throws {
        let queue = NetworkQueue(maxConcurrentOperationCount: 2)
        let jobs = (0..<200).map { _ in RequestOperation(Get(api: "a"), service: service()) }
        for (number, job) in jobs.enumerated() {
            queue.addOperation(job)
            network.status = number % 3 == 0 ? .reachable : .unreachable
            if number % 7 == 0 { queue.reachability = number % 2 == 0 ? network : nil }
        }
        network.status = .reachable
        for job in jobs { _ = try await job.value }
        expect(queue.operationCount == 0 && queue.state.withLock { $0.offline.isEmpty })
    }

    @Test("OPQ-9: a call without a queue waits, also in a plain OperationQueue, and ends when it is cancelled")
    func calls() async throws {
        let service = service()
        let operation = RequestOperation(Get(api: "a"), service: service)
        OperationQueue().addOperation(operation)
        let task = Task { try await service.send(Get(api: "a")) }
        let cancelled = Task { try await service.send(Get(api: "a")) }
        await expect(eventually { readerCount == 3 })
        cancelled.cancel()
        let error = await #expect(throws: NetworkError.self) { try await cancelled.value }
        expect(error?.code, equals: .cancelled)
        expect(transport.requests.isEmpty)
        network.status = .reachable
        try await expect(task.value.text(), equals: "a")
        _ = try await operation.value
        expect(transport.requests.count, equals: 2)
    }

    @Test("OPQ-9: jobs and calls to this machine do not wait for the system's network, and those to others do")
    func loopback() async throws {
        let system = NetworkReachability(.unreachable)
        system.isSystem = true
        let queue = NetworkQueue()
        queue.reachability = system
        func service(_ host: String) -> EasyNetworkService {
            self.service { settings in
                settings.baseURL = URL(string: "http://\(host)")
                settings.reachability = system
            }
        }
        for host in ["localhost", "LOCALHOST:8080", "a.localhost", "127.0.0.1", "127.1.2.3:80", "[::1]", "[::1]:8080"] {
            let service = service(host)
            try await expect(service.send(Get(api: "a")).text(), equals: "a")
            let job = RequestOperation(Get(api: "a"), service: service)
            queue.addOperation(job)
            try await expect(job.value.text(), equals: "a")
        }
        for host in ["local", "localhost.com", "127.0.0.1.com", "127.0.0", "128.0.0.1", "127.a.0.1", "[::2]"] {
            let service = service(host)
            let job = RequestOperation(Get(api: "a"), service: service)
            queue.addOperation(job)
            expect(queue.explain(job), equals: [.condition("network reachable")])
            job.cancel()
            await job.ended()
            let call = Task { try await service.send(Get(api: "a")) }
            await expect(eventually { system.readers.state.withLock { !$0.readers.isEmpty } })
            call.cancel()
            _ = await call.result
        }
        // A network that the program has made counts for all hosts.
        let own = self.service { $0.baseURL = URL(string: "http://localhost") }
        let call = Task { try await own.send(Get(api: "a")) }
        await expect(eventually { readerCount == 1 })
        network.status = .reachable
        try await expect(call.value.text(), equals: "a")
    }

    @Test("OPQ-9, CCH-3: the cache answers without a network; a wait counts in the time of all attempts")
    func cacheAndTimeout() async throws {
        struct Hurried: BaseAPIRequest {
            let api = "a"
            var options: RequestOptions { RequestOptions(overallTimeout: 5) }
        }
        let clock = ManualClock()
        let service = service { host in
            host.cachePolicy = .http
            host.cache = NetworkCache(diskBytes: 0, clock: clock)
            host.clock = clock
        }
        network.status = .reachable
        _ = try await service.send(Get(api: "a"))
        network.status = .unreachable
        try await expect(service.send(Get(api: "a")).source, equals: .cache)
        let hurried = Task { try await service.send(Hurried(), ignoringCache: true) }
        await expect(eventually { readerCount == 1 })
        clock.advance(by: 5)
        let error = await #expect(throws: NetworkError.self) { try await hurried.value }
        expect(error?.code == .timedOut && transport.requests.count == 1)
    }

    @Test("OPQ-9, BEY-6: a started job whose network goes away waits with its retry, without a slot")
    func retry() async throws {
        let network = network
        let clock = ManualClock()
        let isFirst = Locked(true)
        transport.route("GET", "/flaky") { _ in
            guard isFirst.exchange(false) else { return .text("b") }
            network.status = .unreachable
            return .status(503)
        }
        network.status = .reachable
        let queue = NetworkQueue(maxConcurrentOperationCount: 1)
        let job = RequestOperation(Get(api: "flaky"), service: service { $0.clock = clock })
        queue.addOperation(job)
        let isOffline = await eventually {
            clock.advance(by: 1)
            return readerCount == 1
        }
        expect(isOffline && queue.explain(job) == [.condition("network reachable")])
        let other = TestJob()
        queue.addOperation(other)
        await other.ended()
        expect(transport.requests.count, equals: 1)
        network.status = .reachable
        try await expect(job.value.text(), equals: "b")
    }
}
