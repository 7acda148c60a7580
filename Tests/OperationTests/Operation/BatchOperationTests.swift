import Dispatch
import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("BatchOperation", .timeLimit(.minutes(10)))
struct BatchOperationTests {
    /// A queue with a single slot, because a batch must not occupy one; or a plain queue.
    enum Host: CaseIterable, Sendable {
        case networkQueue, plainQueue
    }

    private let networkQueue = NetworkQueue(maxConcurrentOperationCount: 1)
    private let plainQueue: OperationQueue

    init() {
        plainQueue = OperationQueue()
        plainQueue.maxConcurrentOperationCount = 1
    }

    private func run(_ operation: Operation, on host: Host) async {
        switch host {
        case .networkQueue: networkQueue.addOperation(operation)
        case .plainQueue: plainQueue.addOperation(operation)
        }
        await operation.ended()
    }

    private final class Listener: GroupOperationDelegate {
        let events = Locked<[String]>([])
        let occupancy = Occupancy()

        func note(_ event: String) { events.withLock { $0.append(event) } }

        func groupOperation(_ group: GroupOperation, didFinish operation: NetworkOperation, at index: Int) {
            occupancy.enter()
            note("child \(index)")
            // Gives a concurrent call the chance to interleave.
            for _ in 0..<100 { sched_yield() }
            occupancy.leave()
        }
        func groupOperationDidSucceed(_ group: GroupOperation) { note("succeeded") }
        func groupOperation(_ group: GroupOperation, didFailWith error: NetworkError) { note("failed \(error.code)") }
    }

    @Test("OPQ-4: an empty batch completes", arguments: Host.allCases)
    func empty(host: Host) async {
        let batch = BatchOperation()
        let succeeded = Locked(0)
        batch.success = { _ in succeeded.withLock { $0 += 1 } }
        await run(batch, on: host)
        expect(batch.error == nil && succeeded.withLock { $0 } == 1)
        expect(batch.progress.fractionCompleted, equals: 1)
    }

    @Test(
        "OPQ-4: one delegate, closure pair and progress; the children's callbacks before the batch's",
        arguments: Host.allCases
    )
    func order(host: Host) async {
        let listener = Listener()
        let key = DispatchSpecificKey<Bool>()
        let callbackQueue = DispatchQueue(label: "callbacks", attributes: .concurrent)
        callbackQueue.setSpecific(key: key, value: true)
        let batch = BatchOperation((0..<20).map { _ in TestJob() })
        batch.callbackQueue = callbackQueue
        batch.delegate = listener
        batch.success = { batch in
            listener.note("closure \(DispatchQueue.getSpecific(key: key) == true) \(batch.operations.count)")
        }
        batch.failure = { _, _ in listener.note("failure") }
        await run(batch, on: host)
        let events = listener.events.withLock { $0 }
        expect(Set(events.prefix(20)), equals: Set((0..<20).map { "child \($0)" }))
        expect(Array(events.dropFirst(20)), equals: ["succeeded", "closure true 20"])
        expect(listener.occupancy.most, equals: 1)
        expect(batch.progress.totalUnitCount == 20 && batch.progress.completedUnitCount == 20)
        expect(batch.success == nil && batch.failure == nil)
    }

    @Test("OPQ-4: fail-fast cancels the others and names the child that failed", arguments: Host.allCases)
    func failFast(host: Host) async {
        let cause = NetworkError(code: .unacceptableStatus, statusCode: 503)
        let failing = TestJob {
            $0.finish(NetworkError(code: .timedOut, message: "too slow", statusCode: 408, underlying: cause))
        }
        failing.name = "load"
        let stuck = TestJob { _ in }
        stuck.queuePriority = .low
        let batch = BatchOperation([stuck, failing, TestJob { _ in }], maxConcurrentOperationCount: 3)
        let listener = Listener()
        batch.delegate = listener
        let queue = NetworkQueue()
        if host == .networkQueue {
            queue.addOperation(batch)
            await batch.ended()
        } else {
            await run(batch, on: host)
        }
        expect(batch.error?.code == .timedOut && batch.error?.statusCode == 408)
        expect(batch.error?.message, equals: "job 2, 'load': too slow")
        expect((batch.error?.underlying as? NetworkError)?.statusCode, equals: 503)
        expect(batch.decisiveFailure?.error.message, equals: "too slow")
        expect(batch.decisiveFailure?.index == 1 && batch.decisiveFailure?.operation === failing)
        expect(stuck.error?.code == .cancelled && stuck.isFinished)
        expect(batch.failures.map(\.index), equals: [0, 1, 2])
        expect(listener.events.withLock { $0.last }, equals: "failed timedOut")
        expect(Set(listener.events.withLock { $0 }).count, equals: 4)
        expect(batch.progress.fractionCompleted, equals: 1)
    }

    /// Counts how often it is cancelled.
    private final class Counted: NetworkOperation, @unchecked Sendable {
        let cancelCount = Locked(0)

        override func execute() { finish() }

        override func cancel() {
            cancelCount.withLock { $0 += 1 }
            super.cancel()
        }
    }

    @Test("OPQ-4: a child that has ended is not cancelled with the others")
    func failFastAfterSuccess() async {
        let done = Counted()
        let failing = TestJob { $0.finish(NetworkError(code: .refused)) }
        failing.addDependency(done)
        let batch = BatchOperation([done, failing])
        await run(batch, on: .networkQueue)
        expect(batch.error?.code == .refused && done.cancelCount.withLock { $0 } == 0)
    }

    @Test("OPQ-4: fail-fast names the child at the root, also when a child that depends on it is reported first")
    func failFastRoot() async {
        let queue = NetworkQueue()
        let callbackQueue = DispatchQueue(label: "callbacks")
        callbackQueue.suspend()
        // It has failed, but is not reported before its closure has run.
        let root = BatchOperation([TestJob { $0.finish(NetworkError(code: .refused)) }])
        root.callbackQueue = callbackQueue
        root.failure = { _, _ in }
        let mayFail = Gate()
        let dependent = TestJob { job in
            mayFail.whenOpen { job.finish(NetworkError(code: .dependencyFailed)) }
        }
        let batch = BatchOperation([dependent, root])
        queue.addOperation(batch)
        await expect(eventually { root.error != nil })
        mayFail.open()
        await expect(eventually { batch.error != nil })
        callbackQueue.resume()
        await batch.ended()
        expect(batch.error?.code == .refused && batch.decisiveFailure?.operation === root)
    }

    @Test("OPQ-4: collect-all runs all, succeeds, and tells which failed", arguments: Host.allCases)
    func collectAll(host: Host) async {
        let jobs = (0..<10).map { index in
            TestJob { $0.finish(index % 3 == 0 ? NetworkError(code: .timedOut) : nil) }
        }
        let batch = BatchOperation(jobs, policy: .collectAll)
        await run(batch, on: host)
        expect(batch.error == nil && batch.decisiveFailure == nil)
        expect(batch.failures.map(\.index), equals: [0, 3, 6, 9])
        expect(batch.failures.allSatisfy { $0.error.code == .timedOut && $0.operation === jobs[$0.index] })
        expect(jobs.allSatisfy { $0.executionCount == 1 })
    }

    @Test("OPQ-4: cancelling a child is its failure: collect-all goes on, fail-fast ends", arguments: Host.allCases)
    func cancelChild(host: Host) async {
        for policy in [BatchOperation.Policy.collectAll, .failFast] {
            let victim = TestJob()
            let other = TestJob()
            let batch = BatchOperation([victim, other], policy: policy)
            victim.cancel()
            await run(batch, on: host)
            expect(victim.executionCount == 0 && victim.isFinished && !batch.isCancelled)
            expect(batch.error?.code, equals: (policy == .failFast ? .cancelled : nil))
            expect(other.isFinished)
        }
    }

    @Test("OPQ-2: cancelling a batch, waiting or running, ends every child and it once", arguments: Host.allCases)
    func cancelBatch(host: Host) async {
        let waiting = BatchOperation((0..<5).map { _ in TestJob { _ in } })
        let endings = Locked(0)
        for child in waiting.operations { child.completionBlock = { endings.withLock { $0 += 1 } } }
        waiting.cancel()
        expect(waiting.operations.allSatisfy { $0.isCancelled })
        await run(waiting, on: host)
        expect(waiting.operations.allSatisfy { $0.isFinished })

        let started = Gate()
        let failures = Locked<[NetworkError.Code]>([])
        let running = BatchOperation([TestJob { _ in started.open() }, TestJob { _ in }, TestJob { _ in }])
        for child in running.operations { child.completionBlock = { endings.withLock { $0 += 1 } } }
        running.failure = { batch, error in
            failures.withLock { $0.append(error.code) }
            expect(batch.operations.allSatisfy { $0.isFinished })
        }
        async let finished: Void = run(running, on: host)
        await started.opened()
        running.progress.cancel()
        running.cancel()
        await finished
        expect(running.isCancelled && failures.withLock { $0 } == [.cancelled])
        await expect(eventually { endings.withLock { $0 } == 8 })
        await expect(eventually { networkQueue.operationCount == 0 })
    }

    @Test("BEY-5: a batch on a suspended queue is cancelled promptly, its children too")
    func cancelSuspended() async {
        networkQueue.isSuspended = true
        let batch = BatchOperation([TestJob(), BatchOperation([TestJob()])])
        networkQueue.addOperation(batch)
        batch.cancel()
        await batch.ended()
        expect(batch.operations.allSatisfy { $0.isFinished } && networkQueue.operationCount == 0)
    }

    @Test("OPQ-1: a failed dependency of the batch ends the children with its root cause", arguments: Host.allCases)
    func dependencyFailed(host: Host) async {
        let first = TestJob { $0.finish(NetworkError(code: .unauthorized)) }
        let child = TestJob()
        let batch = BatchOperation([child])
        batch.addDependency(first)
        networkQueue.addOperation(first)
        await run(batch, on: host)
        expect(batch.error?.code == .dependencyFailed && batch.error?.rootCause.code == .unauthorized)
        expect(child.error?.code == .dependencyFailed && child.error?.rootCause.code == .unauthorized)
        expect(child.executionCount == 0 && child.isFinished)
    }

    @Test("OPQ-4: a child may depend on a later one", arguments: Host.allCases)
    func dependencyAmongChildren(host: Host) async {
        let order = Locked<[Int]>([])
        let jobs = (0..<4).map { index in
            TestJob { job in
                order.withLock { $0.append(index) }
                job.finish()
            }
        }
        for index in 0..<3 { jobs[index].addDependency(jobs[index + 1]) }
        let batch = BatchOperation(jobs)
        await run(batch, on: host)
        expect(order.withLock { $0 } == [3, 2, 1, 0] && batch.error == nil)
    }

    @Test("BEY-7: a child that depends on its batch, or on an outer batch, ends with .cycle", arguments: Host.allCases)
    func cycle(host: Host) async {
        let child = TestJob()
        let inner = BatchOperation([child])
        let outer = BatchOperation([inner])
        child.addDependency(outer)
        await run(outer, on: host)
        expect(child.error?.code == .cycle && inner.error?.code == .cycle && outer.error?.code == .cycle)
        expect(child.error?.dependencyPath, equals: ["TestJob", "BatchOperation", "BatchOperation", "TestJob"])

        let first = BatchOperation()
        let second = BatchOperation([first])
        expect(!first.addOperation(second))
        await second.ended()
        expect(second.error?.code == .cycle && first.isFinished)
        expect(second.error?.dependencyPath.count, equals: 3)
    }

    @Test(
        "OPQ-4: a batch grows while it waits, while it runs, and from its delegate; later it refuses",
        arguments: Host.allCases
    )
    func grows(host: Host) async {
        final class Adder: GroupOperationDelegate {
            let late = TestJob()
            let hasAdded = Locked(false)
            func groupOperation(_ group: GroupOperation, didFinish operation: NetworkOperation, at index: Int) {
                if !hasAdded.exchange(true) { expect((group as? BatchOperation)?.addOperation(late), equals: true) }
            }
        }
        let batch = BatchOperation()
        let adder = Adder()
        batch.delegate = adder
        expect(batch.addOperation(TestJob()))
        await run(batch, on: host)
        expect(adder.late.executionCount == 1 && batch.operations.count == 2)
        expect(batch.progress.totalUnitCount == 2 && batch.progress.completedUnitCount == 2)
        let refused = TestJob()
        expect(!batch.addOperation(refused))
        await refused.ended()
        expect(refused.error?.code == .refused && refused.executionCount == 0)
        expect(batch.progress.totalUnitCount, equals: 2)
    }

    @Test("OPQ-4: a child that is on a queue already is waited for there")
    func childrenElsewhere() async {
        let gate = Gate()
        let other = NetworkQueue()
        let onNetworkQueue = TestJob { job in gate.whenOpen { job.finish() } }
        let onPlainQueue = TestJob { job in gate.whenOpen { job.finish() } }
        plainQueue.isSuspended = true
        other.addOperation(onNetworkQueue)
        plainQueue.addOperation(onPlainQueue)
        let done = TestJob()
        networkQueue.addOperation(done)
        await done.ended()
        let batch = BatchOperation([onNetworkQueue, onPlainQueue, done, done])
        networkQueue.addOperation(batch)
        await expect(eventually { batch.progress.completedUnitCount == 2 })
        expect(!batch.isFinished && onPlainQueue.executionCount == 0)
        plainQueue.isSuspended = false
        gate.open()
        await batch.ended()
        expect(batch.error == nil && onPlainQueue.executionCount == 1 && onNetworkQueue.executionCount == 1)
    }

    @Test("OPQ-4: batches in batches on one slot; the progress is a tree", arguments: Host.allCases)
    func nested(host: Host) async {
        let inner = (0..<3).map { _ in BatchOperation((0..<4).map { _ in TestJob() }) }
        let outer = BatchOperation(inner + [TestJob(), BatchOperation()])
        let shared = inner[0]
        outer.addOperation(BatchOperation([shared]))
        await run(outer, on: host)
        expect(outer.error == nil && inner.allSatisfy { $0.progress.completedUnitCount == 4 })
        expect(outer.progress.fractionCompleted == 1 && outer.progress.totalUnitCount == 6)
        expect(outer.progress.completedUnitCount, equals: 6)
    }

    @Test("OPQ-4, BEY-5: the end of a cancelled batch's running child lets no other begin", arguments: Host.allCases)
    func cancelLetsNoneBegin(host: Host) async {
        for _ in 0..<50 {
            let started = Gate()
            let jobs = [TestJob { _ in started.open() }] + (0..<20).map { _ in TestJob() }
            let batch = BatchOperation(jobs, policy: .collectAll, maxConcurrentOperationCount: 1)
            switch host {
            case .networkQueue: networkQueue.addOperation(batch)
            case .plainQueue: plainQueue.addOperation(batch)
            }
            await started.opened()
            batch.cancel()
            await batch.ended()
            for job in jobs { await job.ended() }
            expect(jobs[1...].allSatisfy { $0.executionCount == 0 && $0.error?.code == .cancelled })
        }
    }

    /// Notes when it is cancelled whether a group was cancelled before.
    private final class Witness: NetworkOperation, @unchecked Sendable {
        // Sendable because the group does not change and the rest is behind locks.
        let group: GroupOperation
        let started = Gate()
        let sawGroupCancelled = Locked(false)

        init(of group: GroupOperation) { self.group = group }

        override func execute() { started.open() }

        override func cancel() {
            sawGroupCancelled.withLock { $0 = group.isCancelled }
            super.cancel()
        }
    }

    @Test("OPQ-4: of its running children, a cancelled batch cancels groups first, whose children wait for a slot")
    func cancelsGroupsFirst() async {
        let innerStarted = Gate()
        let inner = BatchOperation([TestJob { _ in innerStarted.open() }, TestJob()])
        let witness = Witness(of: inner)
        let batch = BatchOperation([witness, inner])
        NetworkQueue(maxConcurrentOperationCount: 2).addOperation(batch)
        await witness.started.opened()
        await innerStarted.opened()
        batch.cancel()
        await batch.ended()
        expect(witness.sawGroupCancelled.withLock { $0 })
    }

    @Test("OPQ-4: a batch has its own limit, which a nested batch does not take up", arguments: [true, false])
    func limit(onPlainQueue: Bool) async {
        let occupancy = Occupancy()
        let jobs = (0..<40).map { _ in TestJob(occupancy) }
        let inner = BatchOperation([TestJob(), TestJob()], maxConcurrentOperationCount: 1)
        let batch = BatchOperation([inner] + jobs, maxConcurrentOperationCount: 2)
        if onPlainQueue {
            plainQueue.addOperation(batch)
        } else {
            NetworkQueue(maxConcurrentOperationCount: 8).addOperation(batch)
        }
        await batch.ended()
        expect(batch.error == nil && occupancy.most <= 2)
    }

    @Test("OPQ-4: a real batch of requests; each keeps its typed result")
    func requests() async throws {
        let server = try MockServer()
        server.route("GET", "/users/1") { _ in .json(["id": 1, "name": "Ada"]) }
        server.route("GET", "/users/2") { _ in .json(["id": 2, "name": "Grace"]) }
        server.route("GET", "/stall") { _ in .fault(.stall) }
        let service = EasyNetworkService(server.host())
        let order = Locked<[String]>([])
        let users = [1, 2].map { RequestOperation(GetAccount(id: $0), service: service) }
        for user in users { user.success = { account in order.withLock { $0.append(account.name) } } }
        let batch = BatchOperation(users)
        batch.success = { _ in order.withLock { $0.append("batch") } }
        let queue = NetworkQueue()
        queue.addOperation(batch)
        await batch.ended()
        try expect(users.compactMap { try $0.result?.get().id }, equals: [1, 2])
        expect(order.withLock { $0.sorted() } == ["Ada", "Grace", "batch"] && order.withLock { $0.last } == "batch")

        let stalled = RequestOperation(Get(api: "stall"), service: service)
        let missing = RequestOperation(Get(api: "missing"), service: service)
        let failing = BatchOperation([stalled])
        queue.addOperation(failing)
        await server.waitForRequests(3)
        failing.addOperation(missing)
        await failing.ended()
        expect(failing.error?.statusCode == 404 && failing.error?.message?.hasPrefix("job 2") == true)
        expect(stalled.error?.code, equals: .cancelled)
    }

    @Test("BEY-4: very many children")
    func many() async {
        let count = TestLoad.count(100_000)
        let queue = NetworkQueue(maxConcurrentOperationCount: 4)
        let batch = BatchOperation((0..<count).map { _ in TestJob { $0.finish() } })
        queue.addOperation(batch)
        await batch.ended()
        expect(batch.error == nil && batch.progress.completedUnitCount == Int64(count))
        let cancelled = BatchOperation((0..<count).map { _ in TestJob { $0.finish() } })
        queue.isSuspended = true
        queue.addOperation(cancelled)
        cancelled.cancel()
        await cancelled.ended()
        expect(queue.operationCount == 0 && cancelled.operations.allSatisfy { $0.isFinished })
    }

    // MARK: - Updates

    @Test("TRF-1: updates begin with the count, have each change, and end with the batch", arguments: Host.allCases)
    func updates(host: Host) async {
        let jobs = (0..<3).map { _ in TestJob { _ in } }
        let batch = BatchOperation(Array(jobs.prefix(2)), policy: .collectAll)
        var updates = batch.updates.makeAsyncIterator()
        await expect(updates.next() ?? (-1, -1) == (0, 2))
        batch.addOperation(jobs[2])
        await expect(updates.next() ?? (-1, -1) == (0, 3))
        let end = Task { await run(batch, on: host) }
        for (index, job) in jobs.enumerated() {
            // A failure counts too.
            job.finish(index == 1 ? NetworkError(code: .timedOut) : nil)
            await expect(updates.next() ?? (-1, -1) == (index + 1, 3), "\(index)")
        }
        await expect(updates.next() == nil)
        await end.value
        expect(batch.error == nil)
    }

    @Test("TRF-1: updates that are read after the end have the last count, and end; those of an empty batch too")
    func lateUpdates() async {
        for count in [0, 2] {
            let batch = BatchOperation((0..<count).map { _ in TestJob() })
            await run(batch, on: .networkQueue)
            for _ in 0..<2 {
                var updates = batch.updates.makeAsyncIterator()
                await expect(updates.next() ?? (-1, -1) == (count, count))
                await expect(updates.next() == nil)
            }
        }
    }

    @Test("TRF-1: a slow reader gets the last count of a batch and not all between")
    func slowUpdates() async {
        let batch = BatchOperation((0..<100).map { _ in TestJob() })
        let updates = batch.updates
        await run(batch, on: .networkQueue)
        var all: [GroupOperation.Update] = []
        for await update in updates { all.append(update) }
        expect(all.count, equals: 1)
        expect(all.last ?? (-1, -1) == (100, 100))
    }

    @Test("TRF-1: updates end with a batch that fails, or is cancelled, also before its start", arguments: 0..<3)
    func endedUpdates(way: Int) async {
        let batch = BatchOperation([TestJob { _ in }, TestJob { _ in }], maxConcurrentOperationCount: 1)
        if way == 2 { batch.cancel() }
        let updates = batch.updates
        let last = Task {
            var last: GroupOperation.Update?
            for await update in updates { last = update }
            return last
        }
        networkQueue.addOperation(batch)
        if way == 1 { batch.cancel() }
        if way == 0 { (batch.operations[0] as? TestJob)?.finish(NetworkError(code: .timedOut)) }
        await expect(last.value ?? (-1, -1) == (2, 2))
        await batch.ended()
    }

    @Test("TRF-1: a reader of updates whose task is cancelled ends, and the batch goes on; a released batch ends them")
    func cancelledReader() async {
        let job = TestJob { _ in }
        var batch: BatchOperation? = BatchOperation([job])
        let (first, other) = (batch?.updates, batch?.updates)
        let reader = Task { [hasBegun = Gate()] in
            guard let first else { return 0 }
            var count = 0
            hasBegun.open()
            for await _ in first { count += 1 }
            return count
        }
        reader.cancel()
        await expect(reader.value <= 1)
        expect(batch?.isCancelled == false)
        batch = nil
        var count = 0
        if let other { for await _ in other { count += 1 } }
        expect(count, equals: 1)
    }

    @Test("TRF-1: a child that a chain's step adds is counted before that step's child has completed")
    func chainUpdates() async {
        struct GetNothing: APIRequest {
            typealias Item = Void
            var api: String { "nothing" }
        }
        let transport = InMemoryTransport()
        transport.route("GET", "/nothing") { _ in .status(204) }
        let host = HostConfiguration(baseURL: URL(string: "http://memory.test"), transport: transport)
        let service = EasyNetworkService(host)
        let chain = ChainOperation()
        let seen = Locked<[String]>([])
        let updates = chain.updates
        let mayGo = Gate()
        chain.addOperation(RequestOperation(GetNothing(), service: service)) { chain, _ in
            _ = chain.addOperation(RequestOperation(GetNothing(), service: service))
        }
        let reader = Task {
            for await (completed, total) in updates {
                seen.withLock { $0.append("\(completed) of \(total)") }
                mayGo.open()
            }
        }
        await mayGo.opened()
        networkQueue.addOperation(chain)
        await reader.value
        expect(!seen.withLock { $0 }.contains("1 of 1"))
        expect(seen.withLock { $0 }.last, equals: "2 of 2")
    }
}
