import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

/// An operation in the older style, with its work in `start()`.
private final class Calls: ServiceOperation, @unchecked Sendable {
    let notes = Locked<[String]>([])
    private let work: @Sendable (Calls) -> Void

    init(_ service: EasyNetworkService, _ work: @escaping @Sendable (Calls) -> Void) {
        self.work = work
        super.init(service: service)
    }

    /// Makes one call, notes how it ended, and finishes without an error in both closures.
    convenience init(_ api: String, _ service: EasyNetworkService) {
        self.init(service) { operation in operation.call(api) { operation.finish() } }
    }

    override func start() {
        super.start()
        work(self)
    }

    func note(_ text: String) { notes.withLock { $0.append(text) } }

    func call(_ api: String, then next: @escaping @Sendable () -> Void) {
        service.request(
            Get(api: api),
            success: { [self] _ in
                note("\(api) success")
                next()
            },
            failure: { [self] error in
                note("\(api) \(error.code)")
                next()
            }
        )
    }
}

@Suite("Calls of a ServiceOperation", .timeLimit(.minutes(10)))
struct OperationCallTests: ServiceSuite {
    private let clock = ManualClock()
    let transport: InMemoryTransport

    init() {
        transport = InMemoryTransport(clock: clock)
        transport.route("GET", "/ok") { _ in .json(["id": 1]) }
        transport.route("GET", "/missing") { _ in .json(["error": "no such user"], status: 404) }
        transport.route("GET", "/stall") { _ in .fault(.stall) }
        transport.route("GET", "/late") { _ in
            var answer = MockResponse.json(["id": 3])
            answer.delay = 2
            return answer
        }
        for path in ["/busy", "/busy2"] {
            let isFirst = Locked(true)
            transport.route("GET", path) { _ in
                isFirst.exchange(false) ? .status(503, headers: ["Retry-After": "5"]) : .json(["id": 2])
            }
        }
    }

    func prepare(_ host: inout HostSettings) {
        host.clock = clock
        host.random = { 0.5 }
        host.retry = RetryPolicy()
    }

    // MARK: - The slot

    @Test("BEY-16, BEY-6: an operation gives its slot back while its call waits for a retry, and takes its turn again")
    func retry() async throws {
        let service = service()
        let queue = NetworkQueue(maxConcurrentOperationCount: 1)
        let waiting = Calls("busy", service)
        queue.addOperation(waiting)
        await clock.waitForTimers(1)
        let other = Calls("ok", service)
        queue.addOperation(other)
        await expect(eventually { other.isFinished })
        expect(!waiting.isFinished)
        queue.isSuspended = true
        clock.advance(by: 5)
        expect(transport.requests.count, equals: 2)
        queue.isSuspended = false
        await waiting.ended()
        expect(waiting.error == nil && waiting.notes.withLock { $0 } == ["busy success"])
    }

    /// Refreshes with a job of the queue that makes its call in the older style.
    private struct Tokens: Authenticator {
        let queue: NetworkQueue
        let count = Locked(0)

        func apply(_ credential: String, to request: inout TransportRequest) {
            request.headers["Authorization"] = "Bearer \(credential)"
        }

        func refresh(_ credential: String?, over service: EasyNetworkService) async throws -> String {
            count.withLock { $0 += 1 }
            let operation = Calls("token", service)
            queue.addOperation(operation)
            await operation.ended()
            if let error = operation.error { throw error }
            return "token-2"
        }
    }

    @Test("BEY-16, CBK-7: as many operations as slots wait for a refresh that is a job of the same queue")
    func refresh() async throws {
        transport.route("GET", "/items") { request in
            request.headers["Authorization"] == "Bearer token-2" ? .json([]) : .status(401)
        }
        transport.route("GET", "/token") { request in
            request.headers["Authorization"] == nil ? .json([]) : .status(400)
        }
        let queue = NetworkQueue(maxConcurrentOperationCount: 3)
        let tokens = Tokens(queue: queue)
        let service = service { $0.authentication = AuthenticationSession(tokens, credential: "token-1") }
        let jobs = (0..<3).map { _ in Calls("items", service) }
        queue.addOperations(jobs, waitUntilFinished: false)
        await expect(eventually { jobs.allSatisfy(\.isFinished) })
        expect(jobs.allSatisfy { $0.error == nil } && tokens.count.withLock { $0 } == 1)
        queue.cancelAllOperations()
    }

    @Test("BEY-16, BEY-6: the slot is given back when all calls of an operation wait, and each of them goes on")
    func severalCalls() async throws {
        let service = service()
        let queue = NetworkQueue(maxConcurrentOperationCount: 1)
        let waiting = Calls(service) { operation in
            let open = Locked(3)
            for api in ["busy", "busy2", "late"] {
                operation.call(api) {
                    let isLast = open.withLock { open in
                        open -= 1
                        return open == 0
                    }
                    if isLast { operation.finish() }
                }
            }
        }
        queue.addOperation(waiting)
        await clock.waitForTimers(3)
        let other = Calls("ok", service)
        queue.addOperation(other)
        expect(queue.explain(waiting), equals: [.running])
        clock.advance(by: 2)
        await expect(eventually { other.isFinished })
        // The other job may be done before the callback, which takes no slot.
        await expect(eventually { waiting.notes.withLock { $0 } == ["late success"] })
        clock.advance(by: 3)
        await expect(eventually { waiting.isFinished })
        expect(Set(waiting.notes.withLock { $0 }), equals: ["late success", "busy success", "busy2 success"])
    }

    @Test("BEY-16, BEY-6: a call that is made after the slot was given back waits for it")
    func nextCall() async throws {
        let service = service()
        let queue = NetworkQueue(maxConcurrentOperationCount: 1)
        let hasSlot = Gate()
        let operation = Calls(service) { operation in
            let task = Task { try await operation.service.send(Get(api: "busy")) }
            hasSlot.whenOpen {
                task.cancel()
                operation.call("ok") { operation.finish(ignoringFailures: true) }
            }
        }
        queue.addOperation(operation)
        await clock.waitForTimers(1)
        let other = TestJob { _ in }
        queue.addOperation(other)
        await expect(eventually { other.executionCount == 1 })
        hasSlot.open()
        await expect(eventually { clock.pendingCount == 0 })
        expect(transport.requests(to: "/ok").isEmpty)
        other.finish()
        await expect(eventually { operation.isFinished })
        expect(operation.notes.withLock { $0 }, equals: ["ok success"])
    }

    @Test("BEY-16, CBK-7: a call that outlives its operation ends, too")
    func leftover() async throws {
        let service = service()
        let queue = NetworkQueue(maxConcurrentOperationCount: 1)
        let operation = Calls(service) { operation in operation.call("busy") {} }
        queue.addOperation(operation)
        await clock.waitForTimers(1)
        operation.finish()
        await operation.ended()
        clock.advance(by: 5)
        await expect(eventually { operation.notes.withLock { $0 } == ["busy success"] })
    }

    // MARK: - Limits, events, callbacks

    @Test("BEY-16, BEY-6: operations of one host count in the limit by host")
    func hostLimit() async throws {
        let service = service()
        let queue = NetworkQueue(maxConcurrentOperationCountPerHost: 1)
        let operations = ["stall", "ok"].map { Calls($0, service) }
        queue.addOperations(operations, waitUntilFinished: false)
        await transport.waitForRequests(1)
        expect(queue.explain(operations[1]), equals: [.hostLimit(host: "one.example", 1)])
        operations[0].cancel()
        await operations[1].ended()
        expect(operations[1].error == nil)
    }

    @Test("BEY-16, CCH-1: why the cache did not answer a call is among the queue's events")
    func cacheEvent() async throws {
        let service = service {
            $0.cache = NetworkCache(diskBytes: 0)
            $0.cachePolicy = CachePolicy(.cacheElseNetwork, storesOnDisk: false)
        }
        let queue = NetworkQueue()
        let events = queue.events
        let operation = Calls("ok", service)
        queue.addOperation(operation)
        var story: [String] = []
        for await event in events {
            switch event.kind {
            case .added: story.append("added")
            case .started: story.append("started")
            case .missedCache(let miss):
                expect(event.operation === operation)
                story.append("missed: \(miss)")
            case .finished: story.append("finished")
            case .attemptStarted, .attemptEnded: expect(event.callNumber != nil && event.operation === operation)
            default: story.append("\(event)")
            }
            if story.last == "finished" { break }
        }
        expect(story, equals: ["added", "started", "missed: absent", "finished"])
    }

    @Test("BEY-16, CBK-4: the closures of a call come on the queue's callback queue")
    func callbackQueue() async throws {
        let key = DispatchSpecificKey<Bool>()
        let callbackQueue = DispatchQueue(label: "callbacks")
        callbackQueue.setSpecific(key: key, value: true)
        let queue = NetworkQueue(callbackQueue: callbackQueue)
        for api in ["ok", "missing"] {
            let operation = Calls(service()) { operation in
                operation.call(api) {
                    operation.note(DispatchQueue.getSpecific(key: key) == true ? "there" : "elsewhere")
                    operation.finish()
                }
            }
            queue.addOperation(operation)
            await operation.ended()
            expect(operation.notes.withLock { $0.last }, equals: "there")
        }
    }

    @Test("BEY-16, CBK-2: silent cancellation calls no closure of a call")
    func silent() async throws {
        let service = service { $0.silencesCancellation = true }
        let operation = Calls("stall", service)
        NetworkQueue().addOperation(operation)
        await transport.waitForRequests(1)
        let isFreed = Gate()
        operation.completionBlock = { isFreed.open() }
        operation.cancel()
        await isFreed.opened()
        let failing = Calls("missing", service)
        NetworkQueue().addOperation(failing)
        await failing.ended()
        expect(operation.isCancelled && operation.notes.withLock { $0 }.isEmpty)
        expect(failing.notes.withLock { $0 }, equals: ["missing unacceptableStatus"])
        // Cancels the calls through the operation itself.
        let stopped = Calls("stall", service)
        NetworkQueue().addOperation(stopped)
        await transport.waitForRequests(3)
        stopped.service.cancel()
        await expect(eventually { stopped.isFinished })
        expect(stopped.isCancelled && stopped.notes.withLock { $0 }.isEmpty)
        let unstarted = Calls("ok", service)
        unstarted.cancel()
        NetworkQueue().addOperation(unstarted)
        await unstarted.ended()
        let loud = Calls("ok", service)
        loud.silencesCancellation = false
        loud.cancel()
        NetworkQueue().addOperation(loud)
        await expect(eventually { loud.notes.withLock { $0 } == ["ok cancelled"] })
        expect(unstarted.notes.withLock { $0 }.isEmpty && transport.requests.count == 3)
    }

    private struct Stop: RequestInterceptor {
        func didReceive(
            _ result: Result<NetworkResponse, NetworkError>,
            context: AttemptContext
        ) async -> ResponseDecision { .stop }
    }

    @Test("BEY-16, CBK-2: an interceptor that stops a call ends its operation, without a word to the closures")
    func stopped() async throws {
        let operation = Calls("ok", service { $0.interceptors = [Stop()] })
        NetworkQueue().addOperation(operation)
        await expect(eventually { operation.isFinished })
        expect(operation.error?.code == .cancelled && operation.notes.withLock { $0 }.isEmpty)
    }

    // MARK: - Before the work

    @Test("BEY-16: a call in start() is sent when the conditions hold, not at all when one does not hold")
    func conditions() async throws {
        let service = service()
        let queue = NetworkQueue()
        let isOpen = Gate()
        let operation = Calls("ok", service)
        operation.addCondition(
            OperationCondition("open") { operation in
                await isOpen.opened()
                // A request that a condition sends does not wait for that condition.
                return try await (operation as? Calls)?.service.send(Get(api: "late")) != nil
            }
        )
        queue.addOperation(operation)
        let refused = Calls("ok", service)
        refused.addCondition(OperationCondition("never") { _ in false })
        queue.addOperation(refused)
        await refused.ended()
        await expect(eventually { refused.notes.withLock { $0 } == ["ok refused"] })
        expect(refused.error?.code == .refused && transport.requests.isEmpty)
        isOpen.open()
        await clock.waitForTimers(1)
        clock.advance(by: 2)
        await expect(eventually { operation.isFinished })
        expect(operation.error == nil && transport.requests.map(\.path) == ["/late", "/ok"])
    }

    private final class Spinner: Sendable {
        let isShown = Gate()
        let isAsked = Gate()

        func show() {
            isAsked.open()
            // Blocks the callback queue of this test.
            let group = DispatchGroup()
            group.enter()
            isShown.whenOpen { group.leave() }
            group.wait()
        }
    }

    @Test("BEY-16, CBK-3: a call in start() waits until the accessories have been told of the start")
    func accessory() async throws {
        let spinner = Spinner()
        let operation = Calls("ok", service())
        operation.addAccessory(willStart: { _ in spinner.show() })
        NetworkQueue().addOperation(operation)
        await spinner.isAsked.opened()
        let bystander = Calls("missing", service())
        NetworkQueue().addOperation(bystander)
        await bystander.ended()
        expect(transport.requests.map(\.path), equals: ["/missing"])
        spinner.isShown.open()
        await operation.ended()
        expect(operation.error == nil)
    }

    // MARK: - How it ended

    @Test("BEY-16, BEY-1: finish() after a call that failed means that failure, and dependents do not run")
    func failure() async throws {
        let service = service()
        let requested = Calls("missing", service)
        let sent = Calls(service) { operation in
            Task {
                _ = try? await operation.service.send(Get(api: "missing"))
                operation.finish()
            }
        }
        let unparsable = Calls(service) { operation in operation.call("text") { operation.finish() } }
        transport.route("GET", "/text") { _ in .text("<html>") }
        for operation in [requested, sent, unparsable] {
            let dependent = TestJob()
            dependent.addDependency(operation)
            NetworkQueue().addOperations([operation, dependent], waitUntilFinished: false)
            await dependent.ended()
            let code: NetworkError.Code = operation === unparsable ? .cannotParseResponse : .unacceptableStatus
            expect(operation.error?.code == code && dependent.executionCount == 0)
            expect(dependent.error?.code == .dependencyFailed && dependent.error?.rootCause.code == code)
        }
    }

    @Test("BEY-16, BEY-1: of several calls the last one to end decides, and an error that is given counts in any case")
    func severalEnds() async throws {
        let service = service()
        for (apis, code) in [
            (["missing", "ok"], nil), (["ok", "missing"], .unacceptableStatus), (["ok", "ok"], nil),
        ] as [([String], NetworkError.Code?)] {
            let operation = Calls(service) { operation in
                operation.call(apis[0]) { operation.call(apis[1]) { operation.finish() } }
            }
            NetworkQueue().addOperation(operation)
            await operation.ended()
            expect(operation.error?.code, equals: code)
        }
        let named = Calls(service) { operation in
            operation.call("missing") { operation.finish(NetworkError(code: .refused)) }
        }
        NetworkQueue().addOperation(named)
        await named.ended()
        expect(named.error?.code, equals: .refused)
    }

    @Test("BEY-16, BEY-1: finish(ignoringFailures: true) ends an operation with success although its call failed")
    func recovered() async throws {
        for (ignoresFailures, code) in [(true, nil), (false, .unacceptableStatus)] as [(Bool, NetworkError.Code?)] {
            let operation = Calls(service()) { operation in
                operation.call("missing") { operation.finish(ignoringFailures: ignoresFailures) }
            }
            let dependent = TestJob()
            dependent.addDependency(operation)
            NetworkQueue().addOperations([operation, dependent], waitUntilFinished: false)
            await dependent.ended()
            expect(operation.error?.code == code && dependent.executionCount == (ignoresFailures ? 1 : 0))
        }
    }

    @Test("BEY-16: calls that the operation cancels itself do not undo the success of another one")
    func cancelledCalls() async throws {
        let operation = Calls(service()) { operation in
            let isStalled = Gate()
            operation.call("stall") { isStalled.open() }
            operation.call("ok") {
                operation.service.cancel()
                isStalled.whenOpen { operation.finish() }
            }
        }
        NetworkQueue().addOperation(operation)
        await operation.ended()
        expect(operation.error == nil && operation.notes.withLock { $0 } == ["ok success", "stall cancelled"])
    }

    @Test("BEY-16, OPQ-2: a call that was cancelled and the finish() after it cancel the operation")
    func cancelledCall() async throws {
        let operation = Calls("stall", service())
        NetworkQueue().addOperation(operation)
        await transport.waitForRequests(1)
        // The first half of the older `cancel()`: `service.cancel(); super.cancel()`.
        operation.service.cancel()
        await operation.ended()
        expect(operation.isCancelled && operation.error?.code == .cancelled)
    }
}
