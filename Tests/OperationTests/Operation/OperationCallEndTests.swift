import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

/// An operation in the older style, with its work in `start()`.
private final class Work: ServiceOperation, @unchecked Sendable {
    // Sendable because nothing changes.
    private let work: @Sendable (Work) -> Void

    init(_ service: EasyNetworkService, _ work: @escaping @Sendable (Work) -> Void) {
        self.work = work
        super.init(service: service)
    }

    override func start() {
        super.start()
        work(self)
    }
}

@Suite("How calls end their ServiceOperation", .timeLimit(.minutes(10)))
struct OperationCallEndTests: ServiceSuite {
    private let clock = ManualClock()
    let transport: InMemoryTransport
    private let notes = Locked<[String]>([])

    init() {
        transport = InMemoryTransport(clock: clock)
        transport.route("GET", "/ok") { _ in .json(["id": 1]) }
        transport.route("GET", "/missing") { _ in .status(404) }
        transport.route("GET", "/stall") { _ in .fault(.stall) }
        transport.route("GET", "/late") { _ in
            var answer = MockResponse.json(["id": 3])
            answer.delay = 2
            return answer
        }
        transport.route("GET", "/broken") { _ in
            var answer = MockResponse.text("one\ntwo\n")
            answer.fault = .truncate(after: 4)
            return answer
        }
    }

    func prepare(_ host: inout HostSettings) { host.clock = clock }

    /// A job that notes when it runs after `operation`, whatever became of that.
    private func dependent(on operation: NetworkOperation) -> TestJob {
        let job = TestJob { [notes] job in
            notes.withLock { $0.append("dependent") }
            job.finish()
        }
        job.addDependency(operation, policy: .allowFailure)
        return job
    }

    // MARK: - Failures that nobody hears of

    @Test("BEY-16: a call that fails and has no failure closure ends its operation with its error, and frees the slot")
    func unheardFailure() async throws {
        let queue = NetworkQueue(maxConcurrentOperationCount: 1)
        let unheard = Work(service()) { operation in
            operation.service.request(Get(api: "missing"), success: { _ in operation.finish() })
        }
        let next = TestJob()
        queue.addOperations([unheard, next], waitUntilFinished: false)
        await expect(eventually { next.isFinished })
        expect(unheard.error?.code == .unacceptableStatus && unheard.error?.statusCode == 404)
        let executed = TestExecution(service()) { $0.service.request(Get(api: "missing")) }
        queue.addOperation(executed)
        await expect(eventually { executed.isFinished })
        expect(executed.error?.statusCode, equals: 404)
        queue.cancelAllOperations()
    }

    private final class TestExecution: ServiceOperation, @unchecked Sendable {
        // Sendable because nothing changes.
        private let work: @Sendable (TestExecution) -> Void

        init(_ service: EasyNetworkService, _ work: @escaping @Sendable (TestExecution) -> Void) {
            self.work = work
            super.init(service: service)
        }

        override func execute() { work(self) }
    }

    @Test("BEY-16: a failure that nobody hears of counts also when another call, of which nobody hears, succeeds later")
    func unheardBoth() async throws {
        let hasFailed = Gate()
        let operation = Work(service { $0.interceptors = [Watch { hasFailed.open() }] }) { operation in
            operation.service.request(Get(api: "late"))
            operation.service.request(Get(api: "missing"))
        }
        NetworkQueue().addOperation(operation)
        await hasFailed.opened()
        await clock.waitForTimers(1)
        clock.advance(by: 2)
        await expect(eventually { operation.isFinished })
        expect(operation.error?.statusCode, equals: 404)
    }

    @Test("BEY-16: calls that are cancelled through the host's service, and heard by nobody, end their operation")
    func unheardCancel() async throws {
        let service = service()
        let operation = Work(service) { operation in operation.service.request(Get(api: "stall")) }
        NetworkQueue().addOperation(operation)
        await transport.waitForRequests(1)
        service.cancel()
        await expect(eventually { operation.isFinished })
        expect(operation.error?.code, equals: .cancelled)
    }

    @Test("BEY-16: while another call is under way, or its closures run, a failure that nobody hears of ends nothing")
    func otherCall() async throws {
        let hasFailed = Gate()
        let operation = Work(service { $0.interceptors = [Watch { hasFailed.open() }] }) { operation in
            operation.service.request(
                Get(api: "late"),
                success: { _ in operation.service.request(Get(api: "ok"), success: { _ in operation.finish() }) }
            )
            operation.service.request(Get(api: "missing"))
        }
        NetworkQueue().addOperation(operation)
        await transport.waitForRequests(2)
        await hasFailed.opened()
        // That of the late answer.
        await clock.waitForTimers(1)
        clock.advance(by: 2)
        await expect(eventually { operation.isFinished })
        expect(operation.error == nil && transport.requests.map(\.path).last == "/ok")
    }

    /// Tells of each answer that is refused.
    private struct Watch: RequestInterceptor {
        let refused: @Sendable () -> Void

        func didReceive(
            _ result: Result<NetworkResponse, NetworkError>,
            context: AttemptContext
        ) async -> ResponseDecision {
            if case .failure = result { refused() }
            return .proceed
        }
    }

    // MARK: - Refused calls

    enum Obstacle: CaseIterable, Sendable { case cancelled, dependency, condition }

    @Test(
        "BEY-16, CBK-1: an operation that is over at its start has its closures on its queue, before its dependents",
        arguments: Obstacle.allCases,
        [true, false]
    )
    func refused(obstacle: Obstacle, ownQueue: Bool) async throws {
        let key = DispatchSpecificKey<Bool>()
        let callbacks = DispatchQueue(label: "callbacks")
        callbacks.setSpecific(key: key, value: true)
        let operation = Work(service()) { [notes] operation in
            operation.service.request(
                Get(api: "ok"),
                failure: { error in
                    let place = DispatchQueue.getSpecific(key: key) == true ? "there" : "elsewhere"
                    notes.withLock { $0.append("\(error.code) \(place)") }
                    operation.finish(error)
                }
            )
        }
        if ownQueue { operation.callbackQueue = callbacks }
        let queue = NetworkQueue(callbackQueue: ownQueue ? nil : callbacks)
        let failing = TestJob { $0.finish(NetworkError(code: .refused)) }
        switch obstacle {
        case .cancelled: operation.cancel()
        case .dependency: operation.addDependency(failing)
        case .condition: operation.addCondition(OperationCondition("never") { _ in false })
        }
        let dependent = dependent(on: operation)
        callbacks.suspend()
        queue.addOperations([failing, operation, dependent], waitUntilFinished: false)
        await failing.ended()
        await expect(staysFalse { dependent.isFinished })
        callbacks.resume()
        await expect(eventually { dependent.isFinished && notes.withLock { $0.count } == 2 })
        let code: NetworkError.Code = [.cancelled: .cancelled, .dependency: .dependencyFailed][obstacle] ?? .refused
        expect(notes.withLock { $0 }, equals: ["\(code) there", "dependent"])
        expect(operation.error?.code == code && transport.requests.isEmpty)
    }

    @Test("BEY-16, CBK-1: on a plain OperationQueue, too, the closures of refused calls come on the operation's queue")
    func refusedOnPlainQueue() async throws {
        let key = DispatchSpecificKey<Bool>()
        let callbacks = DispatchQueue(label: "callbacks")
        callbacks.setSpecific(key: key, value: true)
        let operation = Work(service()) { [notes] operation in
            operation.service.request(
                Get(api: "ok"),
                failure: { _ in
                    let place = DispatchQueue.getSpecific(key: key) == true ? "there" : "elsewhere"
                    notes.withLock { $0.append(place) }
                }
            )
        }
        operation.callbackQueue = callbacks
        operation.cancel()
        let queue = OperationQueue()
        queue.addOperation(operation)
        await expect(eventually { notes.withLock { $0 } == ["there"] })
    }

    @Test("BEY-16, CBK-1: cancelled while calls run, dependents start when the closures of all of them have returned")
    func cancelledInFlight() async throws {
        let callbacks = DispatchQueue(label: "callbacks")
        let operation = Work(service()) { [notes] operation in
            for number in 0..<2 {
                operation.service.request(
                    Get(api: "stall"),
                    failure: { error in
                        notes.withLock { $0.append("\(error.code) \(number)") }
                        operation.finish(error)
                    }
                )
            }
        }
        operation.callbackQueue = callbacks
        let dependent = dependent(on: operation)
        NetworkQueue().addOperations([operation, dependent], waitUntilFinished: false)
        await transport.waitForRequests(2)
        callbacks.suspend()
        operation.cancel()
        await expect(staysFalse { operation.isFinished })
        callbacks.resume()
        await expect(eventually { dependent.isFinished })
        expect(Set(notes.withLock { $0.prefix(2) }), equals: ["cancelled 0", "cancelled 1"])
        expect(notes.withLock { $0.last } == "dependent" && operation.isCancelled)
    }

    // MARK: - Calls that are iterated over

    @Test("BEY-16, BEY-1: finish() after a stream whose body broke off means that failure")
    func brokenStream() async throws {
        let operation = Work(service()) { [notes] operation in
            Task {
                do {
                    for try await line in try await operation.service.stream(Get(api: "broken")).lines() {
                        notes.withLock { $0.append(line) }
                    }
                } catch {
                    notes.withLock { $0.append("failure") }
                }
                operation.finish()
            }
        }
        NetworkQueue().addOperation(operation)
        await operation.ended()
        expect(notes.withLock { $0 }, equals: ["one", "failure"])
        expect(operation.error?.code, equals: .connectionLost)
    }

    @Test("BEY-16, BEY-1: finish() after a stream that was left, or read to its end, means success")
    func streams() async throws {
        for isLeft in [true, false] {
            let operation = Work(service()) { operation in
                Task {
                    _ = try? await operation.service.send(Get(api: "missing"))
                    for try await _ in try await operation.service.stream(Get(api: "ok")) where isLeft { break }
                    operation.finish()
                }
            }
            NetworkQueue().addOperation(operation)
            await operation.ended()
            expect(operation.error == nil)
        }
    }

    @Test("BEY-16, BEY-1: finish() after responses(to:) means the end of their call", arguments: ["ok", "missing"])
    func responses(api: String) async throws {
        let operation = Work(service()) { operation in
            Task {
                _ = try? await operation.service.send(Get(api: api == "ok" ? "missing" : "ok"))
                do { for try await _ in operation.service.responses(to: Get(api: api)) {} } catch {}
                operation.finish()
            }
        }
        NetworkQueue().addOperation(operation)
        await operation.ended()
        expect(operation.error?.statusCode, equals: (api == "ok" ? nil : 404))
    }
}
