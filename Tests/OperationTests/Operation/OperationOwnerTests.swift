import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("OperationOwner", .timeLimit(.minutes(10)))
struct OperationOwnerTests {
    private let transport = InMemoryTransport()
    private let service: EasyNetworkService
    private let queue = NetworkQueue()

    init() {
        transport.route("GET", "/a") { _ in .text("ok") }
        transport.route("GET", "/stall") { _ in .fault(.stall) }
        service = EasyNetworkService(
            HostConfiguration(
                baseURL: URL(string: "http://memory.test"),
                deadlines: TransportDeadlines(idle: nil),
                transport: transport
            )
        )
    }

    /// A token that shows whether the closure holding it has been released.
    private final class Held: Sendable {}

    @Test("OPQ-7: by default an operation is held until it is done, and its callbacks are called")
    func held() async throws {
        let gate = Gate()
        do {
            let operation = RequestOperation(Get(api: "a"), service: service)
            expect(operation.owner == nil)
            operation.success = { _ in gate.open() }
            queue.addOperation(operation)
        }
        await gate.opened()
    }

    @Test("OPQ-7: operations are cancelled with their owner: running, waiting, or on no queue")
    func cancelled() async throws {
        var owner: OperationOwner? = OperationOwner()
        weak var released: OperationOwner?
        released = owner
        let codes = Locked<[NetworkError.Code]>([])
        let operations = (0..<3).map { _ in
            let operation = RequestOperation(Get(api: "stall"), service: service)
            operation.owner = owner
            operation.failure = { error in codes.withLock { $0.append(error.code) } }
            return operation
        }
        queue.addOperation(operations[0])
        await transport.waitForRequests(1)
        queue.isSuspended = true
        queue.addOperation(operations[1])
        expect(owner?.operationCount == 3 && operations.allSatisfy { !$0.isCancelled })
        owner = nil
        expect(released == nil && operations.allSatisfy(\.isCancelled))
        expect(operations[2].owner == nil)
        await operations[0].ended()
        await operations[1].ended()
        expect(codes.withLock { $0 }, equals: [.cancelled, .cancelled])
    }

    @Test("OPQ-7: of jobs that wait for each other each is cancelled with the owner, and calls no closure if silent")
    func cancelledTogether() async throws {
        for number in 1...50 {
            var owner: OperationOwner? = OperationOwner()
            let first = RequestOperation(Get(api: "stall"), service: service)
            let second = first.then { _ in Get(api: "a") }
            let third = second.then { _ in Get(api: "a") }
            for operation in [first, second, third] {
                operation.owner = owner
                operation.silencesCancellation = true
                operation.failure = { Issue.record($0) }
            }
            queue.addOperations([first, second, third], waitUntilFinished: false)
            await transport.waitForRequests(number)
            owner = nil
            for operation in [first, second, third] {
                await operation.ended()
                expect(operation.error?.code, equals: .cancelled)
            }
        }
    }

    @Test("OPQ-7: a detached operation goes on without its owner, its closures are released and not called")
    func detached() async throws {
        var owner: OperationOwner? = OperationOwner(detaches: true)
        queue.isSuspended = true
        let operation = RequestOperation(Get(api: "a"), service: service)
        operation.owner = owner
        var holder: Held? = Held()
        weak var held: Held?
        held = holder
        let calls = Locked(0)
        operation.success = { [holder] _ in calls.withLock { $0 += holder == nil ? 2 : 1 } }
        operation.failure = { [holder] _ in calls.withLock { $0 += holder == nil ? 2 : 1 } }
        holder = nil
        queue.addOperation(operation)
        expect(held != nil)
        owner = nil
        expect(held == nil)
        // A closure set now would never be called, so it is not kept.
        operation.success = { _ in calls.withLock { $0 += 1 } }
        expect(operation.success == nil)
        queue.isSuspended = false
        try await expect(operation.value.text(), equals: "ok")
        expect(calls.withLock { $0 }, equals: 0)
    }

    @Test("OPQ-7: a callback that is on its way when the owner goes is not called any more")
    func detachedBeforeCallback() async throws {
        let callbackQueue = DispatchQueue(label: "callbacks", attributes: .initiallyInactive)
        var owner: OperationOwner? = OperationOwner(detaches: true)
        let operation = RequestOperation(Get(api: "a"), service: service)
        operation.callbackQueue = callbackQueue
        let calls = Locked(0)
        operation.success = { _ in calls.withLock { $0 += 1 } }
        operation.owner = owner
        queue.addOperation(operation)
        // No closure is kept once delivery has started.
        await expect(
            eventually {
                operation.failure = { _ in }
                defer { operation.failure = nil }
                return operation.failure == nil
            }
        )
        owner = nil
        callbackQueue.activate()
        await operation.ended()
        try await expect(operation.value.text(), equals: "ok")
        expect(calls.withLock { $0 }, equals: 0)
    }

    private final class Listener: GroupOperationDelegate {
        let calls = Locked(0)
        func groupOperationDidSucceed(_ group: GroupOperation) { calls.withLock { $0 += 1 } }
    }

    @Test("OPQ-7, OPQ-4: a detached batch or chain goes on, its closures and delegate are released and not called")
    func detachedGroups() async throws {
        var owner: OperationOwner? = OperationOwner(detaches: true)
        queue.isSuspended = true
        let children = [TestJob(), TestJob()]
        let steps = Locked(0)
        let chain = ChainOperation()
        chain.addOperation(children[1]) { _, _ in steps.withLock { $0 += 1 } }
        let batch = BatchOperation([children[0]])
        var holder: Held? = Held()
        weak var held: Held?
        held = holder
        let listener = Listener()
        let call: @Sendable () -> Void = { [holder] in listener.calls.withLock { $0 += holder == nil ? 2 : 1 } }
        func prepare(_ call: @escaping @Sendable () -> Void) {
            batch.success = { _ in call() }
            batch.failure = { _, _ in call() }
            chain.success = { _ in call() }
            chain.failure = { _, _ in call() }
            batch.delegate = listener
            chain.delegate = listener
        }
        prepare(call)
        do { _ = consume call }
        holder = nil
        for group in [batch, chain] as [GroupOperation] {
            group.owner = owner
            queue.addOperation(group)
        }
        expect(held != nil)
        owner = nil
        expect(held == nil && batch.delegate == nil && chain.delegate == nil)
        // Closures set now would never be called, so they are not kept.
        prepare { listener.calls.withLock { $0 += 1 } }
        expect(batch.success == nil && chain.failure == nil && batch.delegate == nil)
        queue.isSuspended = false
        await batch.ended()
        await chain.ended()
        expect(batch.error == nil && chain.error == nil && steps.withLock { $0 } == 1)
        expect(children.allSatisfy { $0.executionCount == 1 } && listener.calls.withLock { $0 } == 0)
    }

    @Test("OPQ-7, OPQ-4: a batch's callback that is on its way when the owner goes is not called any more")
    func detachedBeforeGroupCallback() async throws {
        let callbackQueue = DispatchQueue(label: "callbacks", attributes: .initiallyInactive)
        var owner: OperationOwner? = OperationOwner(detaches: true)
        let batch = BatchOperation([TestJob()])
        batch.callbackQueue = callbackQueue
        let calls = Locked(0)
        batch.success = { _ in calls.withLock { $0 += 1 } }
        if let owner { batch.owner = owner }
        queue.addOperation(batch)
        // No closure is kept once delivery has started.
        await expect(
            eventually {
                batch.failure = { _, _ in }
                defer { batch.failure = nil }
                return batch.failure == nil
            }
        )
        owner = nil
        callbackQueue.activate()
        await batch.ended()
        expect(batch.error == nil && calls.withLock { $0 } == 0)
    }

    @Test("OPQ-7: the latest owner counts")
    func change() async throws {
        let (first, second) = (OperationOwner(), OperationOwner(detaches: true))
        let operation = RequestOperation(Get(api: "a"), service: service)
        operation.owner = first
        operation.owner = second
        expect(first.operationCount == 0 && second.operationCount == 1)
        expect(operation.owner === second)
        operation.owner = nil
        expect(second.operationCount, equals: 0)
    }

    @Test("OPQ-7: an owner keeps nothing of operations that finished or were released, however many")
    func growth() async throws {
        let owner = OperationOwner()
        for _ in 0..<TestLoad.count(1_000) {
            let operations = (0..<100).map { _ in
                let operation = TestJob { $0.finish() }
                operation.owner = owner
                return operation
            }
            expect(owner.operationCount >= 100)
            let finished = operations.prefix(50)
            for operation in finished { queue.addOperation(operation) }
            for operation in finished { await operation.ended() }
            // Half of the operations never ran.
            expect(owner.operationCount, equals: 50)
        }
        expect(owner.operationCount, equals: 0)
    }

    @Test(
        "OPQ-7: an owner that goes while its operations finish, from any thread",
        arguments: UInt64(1)...UInt64(TestLoad.count(8, part: 2))
    )
    func stress(seed: UInt64) async throws {
        var generator = SeededGenerator(seed: seed)
        let calls = Locked<[Int: Int]>([:])
        let owners = Locked<[OperationOwner?]>((0..<20).map { OperationOwner(detaches: !$0.isMultiple(of: 2)) })
        let numbers = (0..<400).map { _ in Int.random(in: 0..<20, using: &generator) }
        let goesAt = (0..<20).map { _ in Int.random(in: 0..<400, using: &generator) }
        let operations = (0..<400).map { number in
            let operation = RequestOperation(Get(api: "a"), service: service)
            operation.success = { _ in calls.withLock { $0[number, default: 0] += 1 } }
            operation.failure = { _ in calls.withLock { $0[number, default: 0] += 1 } }
            return operation
        }
        let queue = queue
        DispatchQueue.concurrentPerform(iterations: 400) { index in
            operations[index].owner = owners.withLock { $0[numbers[index]] }
            queue.addOperation(operations[index])
            for (owner, moment) in goesAt.enumerated() where moment == index {
                let gone = owners.withLock { owners in
                    defer { owners[owner] = nil }
                    return owners[owner]
                }
                withExtendedLifetime(gone) {}
            }
        }
        for operation in operations { await operation.ended() }
        for (number, operation) in operations.enumerated() {
            let count = calls.withLock { $0[number] ?? 0 }
            let isDetached = !numbers[number].isMultiple(of: 2)
            expect(count == 1 || (isDetached && count == 0), "seed \(seed), operation \(number)")
            expect(operation.success == nil && operation.failure == nil, "seed \(seed), operation \(number)")
            if isDetached { expect(!operation.isCancelled, "seed \(seed), operation \(number)") }
        }
        expect(queue.operationCount, equals: 0)
    }
}

extension OperationOwner {
    /// The number of operations that are registered and have not finished.
    fileprivate var operationCount: Int { registrations.withLock { $0.count } }
}
