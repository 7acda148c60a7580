import Dispatch
import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("Undoing steps", .timeLimit(.minutes(10)))
struct UndoTests {
    private let server = BookingServer()
    private let host: HostConfiguration
    private let queue = NetworkQueue(maxConcurrentOperationCount: 1)

    init() {
        host = server.host()
    }

    private func booking(_ name: String) -> RequestOperation<Book> { RequestOperation(undoable: name, host) }

    @Test("OPQ-14: when a step fails, the steps before it are undone, last first, and then the chain ends")
    func chain() async {
        server.answer("c", 422)
        let chain = ChainOperation([booking("a"), booking("b"), booking("c"), booking("d")])
        let cancelledAtEnd = Locked<[String]?>(nil)
        let server = server
        chain.failure = { _, _ in cancelledAtEnd.exchange(server.cancelled) }
        queue.addOperation(chain)
        await chain.ended()
        expect(chain.error?.statusCode == 422 && chain.error?.undoFailures.isEmpty == true)
        expect(server.cancelled, equals: ["b", "a"])
        expect(cancelledAtEnd.withLock { $0 }, equals: ["b", "a"])
        expect(Set(server.cancelKeys).count == 2 && !server.cancelKeys.contains(nil))
        expect(queue.operationCount, equals: 0)
    }

    @Test("OPQ-14: a whole chain undoes nothing")
    func whole() async {
        let chain = ChainOperation([booking("a"), booking("b")])
        queue.addOperation(chain)
        await chain.ended()
        expect(chain.error == nil && server.cancelled.isEmpty)
        expect(server.booked, equals: ["a", "b"])
    }

    @Test("OPQ-14: a batch undoes those that succeeded in the reverse order of their ends", arguments: [false, true])
    func batch(onPlainQueue: Bool) async {
        let (a, b) = (booking("a"), booking("b"))
        a.addDependency(b)
        let last = TestJob { $0.finish(NetworkError(code: .refused)) }
        last.addDependency(a)
        let batch = BatchOperation([a, b, last])
        let plainQueue = OperationQueue()
        if onPlainQueue { plainQueue.addOperation(batch) } else { queue.addOperation(batch) }
        await batch.ended()
        expect(server.cancelled, equals: ["a", "b"])
        expect(batch.error?.code, equals: .refused)
    }

    @Test("OPQ-14: a failure that collectAll lets pass undoes nothing; a cancellation undoes what succeeded")
    func collectAll() async {
        let failing = TestJob { $0.finish(NetworkError(code: .refused)) }
        let batch = BatchOperation([booking("a"), failing], policy: .collectAll)
        queue.addOperation(batch)
        await batch.ended()
        expect(batch.error == nil && server.cancelled.isEmpty)
        let gate = Gate()
        let stuck = TestJob { _ in gate.open() }
        let b = booking("b")
        stuck.addDependency(b)
        let other = BatchOperation([b, stuck], policy: .collectAll)
        queue.addOperation(other)
        await gate.opened()
        other.cancel()
        await other.ended()
        expect(server.cancelled, equals: ["b"])
    }

    @Test("OPQ-14: a request whose response was lost is undone by its key, a rejected one is not")
    func unknown() async {
        server.answer("b lost", 1)
        let (a, b) = (booking("a"), booking("b"))
        let outcomes = Locked<[String]>([])
        b.undo = { outcome in
            guard case .unknown(let key) = outcome else { return nil }
            outcomes.withLock { $0.append(key) }
            return CancelBooking(key: key)
        }
        let chain = ChainOperation([a, b])
        queue.addOperation(chain)
        await chain.ended()
        expect(server.booked, equals: ["a", "b"])
        expect(server.cancelled, equals: ["b", "a"])
        // The key of the undo permits no second POST.
        expect(chain.error?.attempts, equals: 1)
        expect(outcomes.withLock { $0.count }, equals: 1)
    }

    /// Fails before a message that follows another one.
    private struct Offline: RequestInterceptor {
        func adapt(_ message: TransportRequest, context: AttemptContext) async throws -> TransportRequest {
            guard !context.history.isEmpty else { return message }
            var error = NetworkError(code: .connectionLost)
            error.phase = .connect
            throw error
        }
    }

    @Test("OPQ-14: an interceptor's error before a retry does not hide that the first message was sent")
    func failingRetry() async {
        server.answer("a lost", 1)
        let options = RequestOptions(interceptors: [Offline()], idempotencyKey: "key")
        let chain = ChainOperation([RequestOperation(undoable: "a", host, options)])
        queue.addOperation(chain)
        await chain.ended()
        expect(chain.error?.phase == .connect && chain.error?.mayHaveReachedServer == true)
        expect(server.booked == ["a"] && server.cancelled == ["a"])
    }

    @Test("OPQ-14: a POST with the user's own key is retried and undone by that key")
    func ownKey() async {
        server.answer("a lost", 1)
        let options = RequestOptions(idempotencyKey: "my-key")
        let a = RequestOperation(undoable: "a", host, options)
        server.answer("b", 500)
        let chain = ChainOperation([a, booking("b")])
        queue.addOperation(chain)
        await chain.ended()
        expect(server.booked, equals: ["a"])
        expect(a.error == nil && a.response?.history.count == 2)
        expect(server.transport.requests(to: "/cancellations/my-key").count, equals: 1)
        expect(server.cancelled, equals: ["unknown", "a"])
    }

    @Test("OPQ-14: a header of the request is its key, too, and the same request is not sent for two")
    func keyInHeaders() async {
        struct Own: APIRequest {
            typealias Item = Booked
            var api: String { "bookings/own" }
            var method: NetworkService.Method { .post }
            var headers: [String: String]? { ["idempotency-key": "mine"] }
            var options: RequestOptions { RequestOptions(repeatPolicy: .join) }
        }
        let jobs = (0..<2).map { _ in RequestOperation(Own(), service: EasyNetworkService(host)) }
        for job in jobs { job.undo = { _ in nil } }
        let batch = BatchOperation(jobs)
        queue.addOperation(batch)
        await batch.ended()
        let keys = server.transport.requests.map { $0.headers["Idempotency-Key"] }
        expect(keys, equals: ["mine", "mine"])
    }

    @Test("OPQ-14: an undo is retried with one key; one that fails is in the error, and the others follow")
    func undoFailures() async throws {
        server.answer("d", 422)
        server.answer("undo of c", 503)
        server.answer("undo of b", 409)
        let events = queue.events
        let chain = ChainOperation(["a", "b", "c", "d"].map(booking))
        queue.addOperation(chain)
        await chain.ended()
        expect(server.cancelled, equals: ["c", "a"])
        let failures = chain.error?.undoFailures ?? []
        expect(failures.map(\.statusCode), equals: [409])
        expect(failures.first?.message?.hasPrefix("job 2, 'b'") == true)
        expect(chain.error?.description.contains("Not undone: ") == true)
        // Two attempts for c with one key.
        expect(server.cancelKeys.count == 4 && server.cancelKeys[0] == server.cancelKeys[1])
        var ends: [String] = []
        for await event in events {
            if case .finished(let error) = event.kind, let name = event.operation?.name {
                ends.append(error == nil ? name : name + " failed")
            } else if case .finished(let error?) = event.kind {
                expect(error.undoFailures.count, equals: 1)
                break
            }
        }
        expect(ends, equals: ["a", "b", "c", "d failed", "undo of c", "undo of b failed", "undo of a"])
    }

    @Test("OPQ-14: what cancels the group does not cancel its undos", arguments: 0...3)
    func cancellation(way: Int) async {
        let gate = Gate()
        let stuck = TestJob { _ in gate.open() }
        let service = EasyNetworkService(host)
        let a = RequestOperation(Book(name: "a"), service: service)
        a.undo = { _ in CancelBooking(key: "a") }
        let chain = ChainOperation([a, stuck])
        let queue = NetworkQueue()
        queue.addOperation(chain)
        await gate.opened()
        switch way {
        case 0: chain.cancel()
        case 1: queue.cancelAllOperations()
        case 2:
            service.cancel()
            stuck.cancel()
        default: await queue.shutDown(deadline: 0)
        }
        await chain.ended()
        expect(chain.error?.code == .cancelled && chain.error?.undoFailures.isEmpty == true)
        expect(server.cancelKeys.count, equals: 1)
    }

    @Test("OPQ-14: an undo that waits or runs cannot be cancelled")
    func cancelledUndo() async throws {
        let transport = SteeredTransport()
        let queue = NetworkQueue()
        let service = EasyNetworkService(transport.host())
        let a = RequestOperation(Book(name: "a"), service: service)
        a.undo = { _ in CancelBooking(key: "a") }
        let chain = ChainOperation([a, TestJob { $0.finish(NetworkError(code: .refused)) }])
        queue.addOperation(chain)
        let booking = try #require(await transport.exchange(0))
        booking.head(200, ["Content-Type": "application/json"])
        booking.body(#"{"name": "a", "key": "k"}"#)
        booking.end()
        let undo = try #require(await transport.exchange(1))
        expect(queue.explain(chain), equals: [.running])
        queue.cancelAllOperations()
        for job in queue.operations { job.cancel() }
        chain.cancel()
        expect(!undo.isCancelled && !chain.isFinished)
        undo.head(204)
        undo.end()
        await chain.ended()
        expect(chain.error?.code == .refused && chain.error?.undoFailures.isEmpty == true)
    }

    @Test("OPQ-14: the deadline of a group undoes its steps; each undo has a deadline of its own")
    func deadlines() async throws {
        let (clock, transport) = (ManualClock(), SteeredTransport())
        let queue = NetworkQueue(clock: clock)
        let host = transport.host { $0.clock = clock }
        let chain = ChainOperation([RequestOperation(undoable: "a", host)])
        chain.deadline = 10
        chain.undoDeadline = 5
        queue.addOperation(chain)
        _ = try #require(await transport.exchange(0))
        clock.advance(by: 10)
        let undo = try #require(await transport.exchange(1))
        expect(chain.error?.code == .timedOut && !chain.isFinished)
        clock.advance(by: 4)
        expect(!undo.isCancelled)
        clock.advance(by: 1)
        await chain.ended()
        expect(undo.isCancelled)
        expect(chain.error?.undoFailures.map(\.code), equals: [.timedOut])
    }

    @Test("OPQ-14: an upload that resumes cannot be undone, and sends nothing")
    func resumingUpload() async throws {
        let server = BookingServer()
        let book = Book(name: "a", options: RequestOptions(resuming: .http))
        let upload = UploadOperation(book, from: .data(Data([1])), service: EasyNetworkService(server.host()))
        upload.undo = { _ in nil }
        NetworkQueue().addOperation(upload)
        await upload.ended()
        expect(upload.error?.code == .invalidRequest && server.booked.isEmpty)
    }

    @Test("OPQ-14: nothing is undone that was not sent")
    func notSent() async {
        let (a, b) = (booking("a"), booking("b"))
        a.addCondition(OperationCondition("never") { _ in false })
        let batch = BatchOperation([a, b])
        b.addDependency(a)
        queue.addOperation(batch)
        await batch.ended()
        expect(batch.error != nil && server.transport.requests.isEmpty)
    }

    @Test("OPQ-14: a chain in a batch undoes itself; one that succeeded is undone with the batch, in its order")
    func nested() async {
        let inner = ChainOperation([booking("a"), booking("b")])
        let failing = TestJob { $0.finish(NetworkError(code: .refused)) }
        failing.addDependency(inner)
        let c = booking("c")
        inner.addDependency(c)
        let outer = BatchOperation([inner, failing, c])
        server.answer("undo of a", 404)
        queue.addOperation(outer)
        await outer.ended()
        expect(server.cancelled, equals: ["b", "c"])
        expect(outer.error?.undoFailures.map(\.message) ?? [], equals: ["job 1: job 1, 'a'"])

        server.answer("f", 422)
        server.answer("undo of e", 404)
        let failed = ChainOperation([booking("e"), booking("f")])
        let chain = ChainOperation([booking("d"), failed])
        queue.addOperation(chain)
        await chain.ended()
        expect(server.cancelled, equals: ["b", "c", "d"])
        expect(failed.error?.undoFailures.count, equals: 1)
        expect(chain.error?.undoFailures.map(\.message) ?? [], equals: ["job 2: job 1, 'e'"])
    }

    // MARK: - undo()

    @Test("OPQ-14: undo() undoes a finished chain, once; undos that failed are tried again")
    func asked() async throws {
        let chain = ChainOperation([booking("a"), ChainOperation([booking("b")]), booking("c")])
        await #expect(throws: NetworkError.self) { try await chain.undo() }
        queue.addOperation(chain)
        await chain.ended()
        server.answer("undo of b", 409)
        do {
            try await chain.undo()
            Issue.record("an undo has failed")
        } catch {
            expect(error.statusCode == 409 && error.undoFailures.count == 1)
            expect(error.message, equals: "job 2: job 1, 'b'")
        }
        expect(server.cancelled, equals: ["c", "a"])
        try await chain.undo()
        try await chain.undo()
        expect(server.cancelled, equals: ["c", "a", "b"])
        expect(chain.error == nil && queue.operationCount == 0)
    }

    @Test("OPQ-14: undo() tries the failed undos of nested groups again, and no others")
    func askedNested() async throws {
        server.answer("c", 422)
        server.answer("undo of b", 404)
        let inner = ChainOperation([booking("a"), booking("b"), booking("c")])
        let chain = ChainOperation([booking("first"), ChainOperation([inner])])
        queue.addOperation(chain)
        await chain.ended()
        expect(server.cancelled, equals: ["a", "first"])
        server.answer("undo of b", 409)
        do {
            try await chain.undo()
            Issue.record("an undo has failed")
        } catch {
            expect(error.statusCode == 409 && error.undoFailures.count == 1)
            expect(error.message, equals: "job 2: job 1: job 2, 'b'")
        }
        try await chain.undo()
        try await chain.undo()
        expect(server.cancelled, equals: ["a", "first", "b"])
    }

    @Test("OPQ-14: undo() of a whole batch also tries the failed undos of a chain that failed in it")
    func askedCollectAll() async throws {
        server.answer("b", 422)
        server.answer("undo of a", 404)
        let inner = ChainOperation([booking("a"), booking("b")])
        let c = booking("c")
        c.addDependency(inner, policy: .allowFailure)
        let batch = BatchOperation([inner, c], policy: .collectAll)
        queue.addOperation(batch)
        await batch.ended()
        expect(batch.error == nil && server.cancelled.isEmpty)
        try await batch.undo()
        try await batch.undo()
        expect(server.cancelled, equals: ["c", "a"])
        expect(server.cancelKeys.count, equals: 3)
    }

    /// Books with a name through a transport that the test controls.
    private func book(_ exchange: SteeredTransport.Exchange?) throws {
        let exchange = try #require(exchange)
        exchange.head(200, ["Content-Type": "application/json"])
        exchange.body(#"{"name": "a", "key": "k"}"#)
        exchange.end()
    }

    private func end(_ exchange: SteeredTransport.Exchange?, _ status: Int) throws {
        let exchange = try #require(exchange)
        exchange.head(status)
        exchange.end()
    }

    /// Returns the statuses of the undos that have failed.
    private func undo(_ group: GroupOperation) async -> [Int?] {
        do throws(NetworkError) {
            try await group.undo()
            return []
        } catch {
            return error.undoFailures.map(\.statusCode)
        }
    }

    @Test("OPQ-14: a call of undo() during another one gets the errors of the same round, and a later one its own")
    func askedMeanwhile() async throws {
        let transport = SteeredTransport()
        let chain = ChainOperation([RequestOperation(undoable: "a", transport.host())])
        queue.addOperation(chain)
        try book(await transport.exchange(0))
        await chain.ended()
        let calls = (0..<2).map { _ in
            Task {
                let first = await undo(chain)
                return [first, first.isEmpty ? [] : await undo(chain)]
            }
        }
        let isJoined = await eventually { chain.state.withLock { $0.undoing.waiters.count } == 2 }
        expect(isJoined)
        try end(await transport.exchange(1), 409)
        // Both try again, together or one after the other, and it is undone once.
        try end(await transport.exchange(2), 204)
        for call in calls { expect(await call.value, equals: [[409], []]) }
        expect(await undo(chain), equals: [])
        expect(transport.exchanges.count, equals: 3)
    }

    // MARK: - Several groups

    @Test("OPQ-14: a job in several groups, or twice in one, is undone once")
    func severalGroups() async throws {
        let a = booking("a")
        let chain = ChainOperation([a])
        let failing = TestJob { $0.finish(NetworkError(code: .refused)) }
        failing.addDependency(chain)
        let batch = BatchOperation([a, a, failing])
        queue.addOperation(chain)
        queue.addOperation(batch)
        await batch.ended()
        expect(chain.error == nil && batch.error?.code == .refused)
        expect(server.cancelled, equals: ["a"])
        try await chain.undo()
        try await batch.undo()
        expect(server.cancelKeys.count, equals: 1)
    }

    @Test("OPQ-14: while one group undoes a job, another one waits for that; if it fails, either can try again")
    func severalGroupsAtOnce() async throws {
        let transport = SteeredTransport()
        let a = RequestOperation(undoable: "a", transport.host())
        let groups = [ChainOperation([a]), ChainOperation([a])]
        queue.addOperations(groups)
        try book(await transport.exchange(0))
        for group in groups { await group.ended() }
        let failing = Task { await undo(groups[0]) }
        try end(await transport.exchange(1), 409)
        expect(await failing.value, equals: [409])
        let first = Task { await undo(groups[1]) }
        let exchange = await transport.exchange(2)
        let hasEnded = Locked(false)
        let second = Task {
            let failures = await undo(groups[0])
            hasEnded.exchange(true)
            return failures
        }
        expect(await staysFalse { hasEnded.withLock { $0 } })
        try end(exchange, 204)
        expect(await first.value, equals: [])
        expect(await second.value, equals: [])
        expect(transport.exchanges.count, equals: 3)
    }

    @Test("OPQ-14: many calls of undo() at once undo each step once; a cancelled call goes away, its undos don't")
    func askedAtOnce() async throws {
        let chain = ChainOperation([booking("a"), booking("b")])
        queue.addOperation(chain)
        await chain.ended()
        queue.isSuspended = true
        let waiting = Task { try await chain.undo() }
        waiting.cancel()
        await #expect(throws: NetworkError.self) { try await waiting.value }
        let calls = (0..<8).map { _ in Task { try await chain.undo() } }
        queue.isSuspended = false
        for call in calls { try await call.value }
        expect(server.cancelled, equals: ["b", "a"])
    }

    @Test("OPQ-14: undo() of a group on a queue that was shut down fails, and of one without undos does nothing")
    func askedTooLate() async throws {
        let chain = ChainOperation([booking("a")])
        queue.addOperation(chain)
        await chain.ended()
        await queue.shutDown(deadline: 0)
        do {
            try await chain.undo()
            Issue.record("the queue accepts no jobs")
        } catch {
            expect(error.code, equals: .refused)
        }
        let batch = BatchOperation([TestJob()])
        NetworkQueue().addOperation(batch)
        await batch.ended()
        try await batch.undo()
    }

    @Test("OPQ-14: a group that is released releases its undo closures and jobs")
    func release() async {
        final class Object: Sendable {}
        weak var object: Object?
        weak var released: ChainOperation?
        do {
            let captured = Object()
            object = captured
            let a = booking("a")
            a.undo = { [captured] _ in
                withExtendedLifetime(captured) {}
                return CancelBooking(key: "a")
            }
            let chain = ChainOperation([a, TestJob { $0.finish(NetworkError(code: .refused)) }])
            released = chain
            queue.addOperation(chain)
            await chain.ended()
        }
        expect(await eventually { object == nil && released == nil })
    }

    // MARK: - The rule

    @Test("OPQ-14: a server has acted unless it cannot have received the request, or has rejected it")
    func mayHaveActed() {
        func attempt(
            _ status: Int?,
            _ code: NetworkError.Code? = nil,
            _ phase: TransportPhase? = nil
        ) -> NetworkAttempt {
            let request = NetworkError.Request(method: "POST", url: URL(fileURLWithPath: "/"))
            return NetworkAttempt(request: request, statusCode: status, errorCode: code, phase: phase)
        }
        let acted = [
            attempt(200), attempt(500), attempt(303), attempt(302), attempt(nil), attempt(nil, .connectionLost),
            attempt(nil, .timedOut), attempt(200, .connectionLost), attempt(nil, .timedOut, .send),
        ]
        for attempt in acted { expect(attempt.mayHaveActed, "\(attempt)") }
        let not = [
            attempt(400), attempt(409), attempt(429), attempt(307), attempt(nil, .cannotConnect),
            attempt(502, .cannotConnect), attempt(nil, .tls), attempt(nil, .notConnected),
            attempt(nil, .timedOut, .tls),
        ]
        for attempt in not { expect(!attempt.mayHaveActed, "\(attempt)") }
        // A retry is rejected or cannot connect, but the message before it may have been processed.
        var error = NetworkError(code: .cannotConnect)
        error.phase = .connect
        for (first, isSent) in [(attempt(nil, .connectionLost), true), (attempt(401), false)] {
            error.adopt([first, attempt(nil, .cannotConnect, .connect)])
            expect(error.mayHaveReachedServer, equals: isSent)
        }
    }

    @Test("OPQ-14: a nested group that has undone itself in part is undone again only if the user asks")
    func halfUndone() {
        var logic = UndoState()
        for input in [UndoState.Input.ended(0), .endedHalfUndone(1), .ended(2)] { _ = logic.handle(input) }
        expect(logic.handle(.failed), equals: [.undo(2)])
        expect(logic.handle(.undone(2, isDone: true)), equals: [.undo(0)])
        expect(logic.handle(.undone(0, isDone: false)), equals: [.end])
        expect(logic.handle(.asked), equals: [.undo(1)])
        expect(logic.handle(.undone(1, isDone: false)), equals: [.undo(0)])
        expect(logic.handle(.undone(0, isDone: true)), equals: [.end])
        expect(logic.handle(.asked), equals: [.undo(1)])
        expect(logic.handle(.undone(1, isDone: true)), equals: [.end])
        expect(!logic.hasSteps && logic.handle(.asked) == [.end])
    }
}
