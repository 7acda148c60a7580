import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

/// Combines all kinds of jobs and all operations on them, from three threads at once.
@Suite("Everything at once", .timeLimit(.minutes(10)))
struct QueueStressTests {
    @Test(
        "OPQ-2, OPQ-3, BEY-1, BEY-6, BEY-13: whatever is done, every job ends, and nothing stays behind",
        arguments: 0..<UInt64(TestLoad.count(20, part: 1, huge: 80))
    )
    func everything(seed: UInt64) async {
        var generator = SeededGenerator(seed: seed)
        let queue = NetworkQueue(maxConcurrentOperationCount: Int.random(in: 0...3, using: &generator))
        queue.setMaxConcurrentOperationCount(1, forTag: "a")
        queue.setRateLimit(RateLimit(2_000, per: 1), forTag: "b")
        let all = Locked<[Operation]>([])
        let service = EasyNetworkService(
            HostConfiguration(
                baseURL: URL(string: "http://example.com/"),
                deadlines: TransportDeadlines(idle: nil),
                transport: Self.transport()
            )
        )
        await withTaskGroup(of: Void.self) { group in
            for worker in 0..<3 as Range<UInt64> {
                group.addTask {
                    var worker = Worker(seed: seed &* 3 &+ worker, queue: queue, service: service, all: all)
                    for _ in 0..<60 { worker.step() }
                }
            }
        }
        queue.isSuspended = false
        queue.maxConcurrentOperationCount = 2
        if seed % 3 == 0 { await queue.shutDown(deadline: seed % 2 == 0 ? 0 : 0.01) }
        for operation in all.withLock({ $0 }) { await operation.ended() }
        let isEmpty = await eventually {
            queue.state.withLock { state in
                state.graph.totalCount == 0 && state.externalJobs.isEmpty && state.graph.submitted.isEmpty
                    && state.graph.queueLane.runningCount == 0
            }
        }
        expect(isEmpty, "seed \(seed)")
    }

    private static func transport() -> InMemoryTransport {
        let transport = InMemoryTransport()
        transport.route("GET", "/x") { _ in .text("x") }
        transport.route("GET", "/y") { _ in .fault(.close) }
        return transport
    }
}

private struct Joining: APIRequest {
    typealias Item = NetworkResponse
    var api: String
    var options: RequestOptions { RequestOptions(repeatPolicy: .join) }
}

private struct Worker {
    private var random: SeededGenerator
    private let queue: NetworkQueue
    private let service: EasyNetworkService
    private let all: Locked<[Operation]>

    init(seed: UInt64, queue: NetworkQueue, service: EasyNetworkService, all: Locked<[Operation]>) {
        random = SeededGenerator(seed: seed)
        self.queue = queue
        self.service = service
        self.all = all
    }

    mutating func step() {
        switch Int.random(in: 0..<14, using: &random) {
        case 0: queue.isSuspended.toggle()
        case 1: queue.maxConcurrentOperationCount = Int.random(in: 0...3, using: &random)
        case 2: queue.addBarrierBlock {}
        case 3:
            var random = random
            queue.cancelOperations { _ in Int.random(in: 0..<5, using: &random) == 0 }
        case 4: queue.cancelOperations(tag: "a")
        case 5: anyone()?.cancel()
        case 6: queue.setRateLimit(Bool.random(using: &random) ? RateLimit(500, per: 1) : nil, forTag: "b")
        case 7:
            let plain = BlockOperation {}
            if let other = anyone() { plain.addDependency(other) }
            add(plain)
        case 8:
            let priorities: [Operation.QueuePriority] = [.veryLow, .normal, .veryHigh]
            anyone()?.queuePriority = priorities.randomElement(using: &random) ?? .normal
        default:
            let job = makeJob(depth: 0)
            if let other = anyone() { job.addDependency(other, policy: .allowFailure) }
            add(job)
        }
    }

    private mutating func anyone() -> Operation? {
        all.withLock { $0 }.randomElement(using: &random)
    }

    private func add(_ operation: Operation) {
        queue.addOperation(operation)
        all.withLock { $0.append(operation) }
    }

    private mutating func makeJob(depth: Int) -> NetworkOperation {
        let kind = Int.random(in: 0..<(depth > 2 ? 1 : 5), using: &random)
        guard kind == 1 || kind == 2 else { return makeSingle() }
        let children = (0..<Int.random(in: 0..<4, using: &random)).map { _ in makeJob(depth: depth + 1) }
        if kind == 2 { return ChainOperation(children) }
        return BatchOperation(
            children,
            policy: Bool.random(using: &random) ? .failFast : .collectAll,
            maxConcurrentOperationCount: Int.random(in: -1...2, using: &random)
        )
    }

    private mutating func makeSingle() -> NetworkOperation {
        switch Int.random(in: 0..<6, using: &random) {
        case 0: return RequestOperation(Joining(api: Bool.random(using: &random) ? "x" : "y"), service: service)
        case 1:
            return TestJob { job in
                job.releaseSlot()
                DispatchQueue.global().async { job.reclaimSlot { job.finish() } }
            }
        default: break
        }
        let job = TestJob()
        if Bool.random(using: &random) { job.tags = [Bool.random(using: &random) ? "a" : "b"] }
        if Int.random(in: 0..<4, using: &random) == 0 {
            job.addCondition(
                OperationCondition("soon") { _ in
                    await Task.yield()
                    return true
                }
            )
        }
        if Int.random(in: 0..<6, using: &random) == 0 { job.mutualExclusionCategories = ["m"] }
        return job
    }
}
