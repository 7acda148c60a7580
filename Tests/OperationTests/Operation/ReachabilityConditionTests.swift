import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("Reachability", .timeLimit(.minutes(10)))
struct ReachabilityConditionTests {
    @Test("OPQ-9: unknown counts as reachable, waiting or not", arguments: [true, false])
    func unknown(waits: Bool) async {
        let queue = NetworkQueue()
        for network in [NetworkReachability(.unknown), NetworkReachability(.reachable)] {
            let job = TestJob()
            job.addCondition(.reachable(network, waits: waits))
            queue.addOperation(job)
            await job.ended()
            expect(job.error == nil && job.executionCount == 1)
        }
    }

    @Test("OPQ-9: without a network the operation is refused at once")
    func refused() async {
        let job = TestJob()
        job.addCondition(.reachable(NetworkReachability(.unreachable)))
        NetworkQueue().addOperation(job)
        await job.ended()
        expect(job.error?.code == .refused && job.error?.message == "the network is not reachable")
        expect(job.executionCount, equals: 0)
    }

    @Test("OPQ-9: told to wait, it waits without a slot until the network is there")
    func waits() async {
        let queue = NetworkQueue(maxConcurrentOperationCount: 1)
        let network = NetworkReachability(.unreachable)
        let jobs = (0..<5).map { _ in TestJob() }
        for job in jobs {
            job.addCondition(.reachable(network, waits: true))
            queue.addOperation(job)
        }
        let other = TestJob()
        queue.addOperation(other)
        await other.ended()
        await expect(eventually { jobs.allSatisfy { $0.pendingCondition == "network reachable" } })
        jobs[0].cancel()
        await jobs[0].ended()
        network.status = .reachable
        for job in jobs { await job.ended() }
        expect(jobs.dropFirst().allSatisfy { $0.error == nil && $0.executionCount == 1 })
        expect(jobs[0].error?.code == .cancelled && jobs[0].executionCount == 0)
    }

    @Test("OPQ-9: an observer is told the status, then each change once and in order, until its task is cancelled")
    func observer() async {
        let network = NetworkReachability(.unknown)
        let seen = Locked<[NetworkReachability.Status]>([])
        let reader = Task { [statuses = network.statuses] in
            for await status in statuses { seen.withLock { $0.append(status) } }
        }
        let changes: [NetworkReachability.Status] = [.reachable, .reachable, .unreachable, .reachable]
        for change in changes { network.status = change }
        await expect(eventually { seen.withLock { $0.count } >= 4 })
        expect(seen.withLock { $0 }, equals: [.unknown, .reachable, .unreachable, .reachable])
        reader.cancel()
        await reader.value
        network.status = .unreachable
        var others = network.statuses.makeAsyncIterator()
        await expect(others.next(), equals: .unreachable)
        expect(seen.withLock { $0.count }, equals: 4)
    }

    @Test("OPQ-9: a reader whose task is cancelled while the status changes holds nobody up")
    func cancelledReaders() async {
        let network = NetworkReachability(.reachable)
        let isOver = Locked(false)
        let changes = Gate()
        DispatchQueue.global().async {
            while !isOver.withLock({ $0 }) { network.status = network.status == .reachable ? .unreachable : .reachable }
            changes.open()
        }
        for _ in 0..<2_000 {
            let reader = Task { for await _ in network.statuses {} }
            await Task.yield()
            reader.cancel()
            await reader.value
        }
        isOver.exchange(true)
        await changes.opened()
        await expect(eventually { network.state.withLock { $0.readers.isEmpty } })
    }

    @Test("OPQ-9: the stream of statuses begins with the current one, and ends its observation when it is not read")
    func stream() async {
        weak var released: NetworkReachability?
        do {
            let network = NetworkReachability(.unreachable)
            released = network
            var statuses = network.statuses.makeAsyncIterator()
            await expect(statuses.next(), equals: .unreachable)
            network.status = .reachable
            await expect(statuses.next(), equals: .reachable)
        }
        await expect(eventually { released == nil })
    }
}
