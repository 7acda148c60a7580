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

    @Test("OPQ-9: a reader is told the status, then each change once and in order, and nothing when nothing changes")
    func observer() async {
        var network: NetworkReachability? = NetworkReachability(.unknown)
        var statuses = network?.statuses.makeAsyncIterator()
        var seen = [await statuses?.next()]
        for change in [NetworkReachability.Status.reachable, .unreachable, .reachable] {
            network?.status = change
            seen.append(await statuses?.next())
        }
        network?.isExpensive = true
        seen.append(await statuses?.next())
        network?.status = .reachable
        network?.isExpensive = true
        network = nil
        seen.append(await statuses?.next())
        expect(seen, equals: [.unknown, .reachable, .unreachable, .reachable, .reachable, nil])
    }

    @Test("OPQ-9: of many changes a slow reader gets the newest, in the memory of one")
    func slowReader() async {
        var network: NetworkReachability? = NetworkReachability(.unknown)
        let (statuses, changes) = (network?.statuses, network?.changes)
        for number in 0..<11 { network?.status = number.isMultiple(of: 2) ? .unreachable : .reachable }
        let late = network?.changes
        network = nil
        var seen: [[NetworkReachability.Status]] = []
        for stream in [statuses, changes, late] {
            seen.append([])
            guard let stream else { continue }
            for await status in stream { seen[seen.count - 1].append(status) }
        }
        expect(seen, equals: [[.unreachable], [.unreachable], []])
    }

    /// A change yields under the lock, and a reader that ends in that moment must not wait for it: the cancel of a task
    /// calls `onTermination` under a lock of Swift's, for which the yield to that task waits.
    @Test("OPQ-9: a reader whose task is cancelled while the status changes holds nobody up")
    func cancelledReader() async {
        let network = NetworkReachability(.reachable)
        let (isReading, isOver) = (Gate(), Gate())
        let hasEnded = DispatchSemaphore(value: 0)
        let reader = Task {
            for await _ in network.statuses { isReading.open() }
            hasEnded.signal()
        }
        await isReading.opened()
        let endedInside = Locked(false)
        // Not on the threads of tasks, which must not block.
        DispatchQueue.global().async {
            network.readers.state.withLock { _ in
                // In the middle of a change. Cancelled by another thread, as the cancel may wait for the lock as well.
                DispatchQueue.global().async { reader.cancel() }
                // The limit is for a reader that never ends.
                let isInTime = hasEnded.wait(timeout: .now() + 60) == .success
                endedInside.withLock { $0 = isInTime }
            }
            isOver.open()
        }
        await isOver.opened()
        expect(endedInside.withLock { $0 })
        network.status = .unreachable
        await expect(eventually { network.readers.state.withLock { $0.readers.isEmpty } })
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
