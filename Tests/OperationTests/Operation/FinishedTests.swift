import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("Tasks that wait for the end of a job", .timeLimit(.minutes(10)))
struct FinishedTests {
    enum Kind: CaseIterable {
        case failFast, collectAll, chain, service, block, request
    }

    private final class Save: ServiceOperation, @unchecked Sendable {
        // Sendable because nothing changes after `init`.
        private let gate: Gate

        init(_ gate: Gate, service: EasyNetworkService) {
            self.gate = gate
            super.init(service: service)
        }

        override func execute() {
            gate.whenOpen {
                self.service.request(
                    Get(api: "a"),
                    success: { _ in self.finish() },
                    failure: { (_: NetworkError) in self.finish() }
                )
            }
        }
    }

    private let queue = NetworkQueue()
    private let gate = Gate()
    private let transport = InMemoryTransport()
    private let service: EasyNetworkService

    init() throws {
        let base = try URLBuilder.base("https://example.com")
        service = EasyNetworkService(
            HostConfiguration(baseURL: base, deadlines: TransportDeadlines(idle: nil), transport: transport) { host in
                host.retry = .never
            }
        )
        let gate = gate
        transport.route("GET", "/a") { _ in .json(["a": 1]) }
        transport.route("GET", "/held") { _ in
            let isOpen = DispatchSemaphore(value: 0)
            gate.whenOpen { isOpen.signal() }
            isOpen.wait()
            return .text("ok")
        }
    }

    /// A job that goes on until the gate is open.
    private func job(_ kind: Kind) -> NetworkOperation {
        let gate = gate
        let held = TestJob { job in gate.whenOpen { job.finish() } }
        switch kind {
        case .failFast: return BatchOperation([held, TestJob()])
        case .collectAll:
            return BatchOperation([held, TestJob { $0.finish(NetworkError(code: .tls)) }], policy: .collectAll)
        case .chain: return ChainOperation([TestJob(), held])
        case .service: return Save(gate, service: service)
        case .block:
            return BlockNetworkOperation {
                let isOpen = DispatchSemaphore(value: 0)
                gate.whenOpen { isOpen.signal() }
                isOpen.wait()
            }
        case .request: return RequestOperation(Get(api: "held"), service: service)
        }
    }

    private func wait(for operation: NetworkOperation) -> Task<NetworkError?, Never> {
        Task {
            do throws(NetworkError) {
                try await operation.finished()
                return nil
            } catch {
                return error
            }
        }
    }

    @Test("CBK-1, BEY-3: it returns when the job has succeeded, and again later", arguments: Kind.allCases)
    func success(kind: Kind) async throws {
        let operation = job(kind)
        let tasks = (0..<3).map { _ in wait(for: operation) }
        await expect(eventually { operation.waiterCount == 3 })
        queue.addOperation(operation)
        gate.open()
        for task in tasks { await expect(task.value == nil) }
        expect(operation.isFinished)
        try await operation.finished()
        let late = wait(for: operation)
        late.cancel()
        await expect(late.value == nil && !operation.isCancelled)
    }

    @Test("BEY-3, OPQ-2: it throws the error of a cancellation of the job", arguments: Kind.allCases)
    func cancelledJob(kind: Kind) async {
        let operation = job(kind)
        queue.addOperation(operation)
        let task = wait(for: operation)
        await expect(eventually { operation.waiterCount == 1 })
        operation.cancel()
        // A block cannot be stopped.
        gate.open()
        await expect(task.value?.code, equals: .cancelled)
    }

    @Test("BEY-3: the last task that waits takes the job with it, the others do not", arguments: Kind.allCases)
    func lastWaiter(kind: Kind) async {
        let operation = job(kind)
        queue.addOperation(operation)
        let tasks = (0..<3).map { _ in wait(for: operation) }
        await expect(eventually { operation.waiterCount == 3 })
        for task in tasks.dropLast() {
            task.cancel()
            await expect(task.value?.code, equals: .cancelled)
            expect(!operation.isCancelled)
        }
        tasks[2].cancel()
        await expect(tasks[2].value?.code, equals: .cancelled)
        expect(operation.isCancelled)
        gate.open()
        let queue = queue
        await expect(eventually { queue.operationCount == 0 })
    }

    @Test("BEY-3, OPQ-2: a cancelled task ends at once when the job is on no queue", arguments: Kind.allCases)
    func noQueue(kind: Kind) async {
        let operation = job(kind)
        let task = wait(for: operation)
        await expect(eventually { operation.waiterCount == 1 })
        task.cancel()
        await expect(task.value?.code, equals: .cancelled)
        expect(operation.isCancelled && !operation.isFinished)
    }

    @Test("BEY-3: tasks that wait for the value and for the end count together")
    func valueToo() async throws {
        let operation = RequestOperation(Get(api: "held"), service: service)
        queue.addOperation(operation)
        let end = wait(for: operation)
        let value = Task { try await operation.value.text() }
        await expect(eventually { operation.waiterCount == 2 })
        end.cancel()
        await expect(end.value?.code, equals: .cancelled)
        expect(!operation.isCancelled)
        gate.open()
        try await expect(value.value, equals: "ok")
    }

    @Test("CBK-1, OPQ-4: a batch throws its child's error, or collects the failures, after its callbacks")
    func batch() async {
        let calls = Locked<[String]>([])
        for policy in [BatchOperation.Policy.failFast, .collectAll] {
            let child = RequestOperation(Get(api: "missing"), service: service)
            let batch = BatchOperation([RequestOperation(Get(api: "a"), service: service), child], policy: policy)
            child.failure = { _ in calls.withLock { $0.append("child") } }
            batch.success = { batch in calls.withLock { $0.append("\(batch.failures.count) missing") } }
            batch.failure = { _, error in calls.withLock { $0.append("\(error.statusCode ?? 0)") } }
            queue.addOperation(batch)
            let error = await wait(for: batch).value
            expect(error?.statusCode, equals: (policy == .failFast ? 404 : nil))
        }
        expect(calls.withLock { $0 }, equals: ["child", "404", "child", "1 missing"])
    }

    @Test("CBK-1, OPQ-5: a chain throws the error of the step that failed, after the steps that it was given meanwhile")
    func chain() async {
        let chain = ChainOperation()
        let service = service
        chain.addOperation(RequestOperation(Get(api: "a"), service: service)) { chain, _ in
            chain.addOperation(RequestOperation(Get(api: "missing"), service: service))
        }
        queue.addOperation(chain)
        await expect(wait(for: chain).value?.statusCode, equals: 404)
        expect(chain.operations.count == 2 && chain.decisiveFailure?.index == 1)
    }

    @Test("CBK-1, BEY-16: an operation in the older style throws the error of its call")
    func service() async {
        transport.route("GET", "/a") { _ in .status(404) }
        let operation = Save(gate, service: service)
        queue.addOperation(operation)
        gate.open()
        await expect(wait(for: operation).value?.statusCode, equals: 404)
    }
}
