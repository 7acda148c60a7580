import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

/// Calls what is deprecated without a warning: a requirement that is not may have a witness that is.
private protocol OldOrder<Request> {
    associatedtype Request: APIRequest

    static func inOldOrder(
        first: Request,
        service: EasyNetworkService,
        queue: NetworkQueue,
        next: @escaping @Sendable (Request, Request.Item) throws -> Request?
    ) -> PageCursor<Request>
}

extension PageCursor: OldOrder {
    @available(*, deprecated)
    fileprivate static func inOldOrder(
        first: Request,
        service: EasyNetworkService,
        queue: NetworkQueue,
        next: @escaping @Sendable (Request, Request.Item) throws -> Request?
    ) -> PageCursor<Request> {
        PageCursor(first: first, service: service, queue: queue, next: next)
    }
}

@Suite("PageCursor", .timeLimit(.minutes(10)))
struct PageCursorTests {
    private struct List: Codable, Sendable {
        var page: Int
        var hasMore: Bool
    }

    private struct GetList: APIRequest {
        typealias Item = List
        var page: Int
        var api: String { "list" }
        var params: [String: Any]? { ["page": page] }
    }

    private typealias Cursor = PageCursor<GetList>

    /// Calls back when it is released.
    private final class Talker: Sendable {
        let action: @Sendable () -> Void
        init(_ action: @escaping @Sendable () -> Void) { self.action = action }
        deinit { action() }
    }

    private struct GetTold: APIRequest {
        typealias Item = List
        var talker: Talker?
        var path = "list"
        var api: String { path }
    }

    @Test("OPQ-8: a request is released outside the lock, so its contents may use the cursor")
    func releaseWithoutLock() async {
        let holder = Locked<PageCursor<GetTold>?>(nil)
        let (isInside, isDone) = (Locked(false), Locked(false))
        let count = Locked(0)
        let cursor = PageCursor(
            first: GetTold(),
            queue: queue,
            service: EasyNetworkService(
                HostConfiguration(
                    baseURL: URL(string: "http://memory.test"),
                    deadlines: TransportDeadlines(idle: nil),
                    transport: transport
                )
            )
        ) { _, _ in
            let number = count.next()
            guard number == 1 else { return nil }
            let talker = Talker {
                isInside.withLock { $0 = true }
                _ = holder.withLock { $0 }?.isLoading
                isDone.withLock { $0 = true }
            }
            return GetTold(talker: talker)
        }
        holder.withLock { $0 = cursor }
        let first = Gate()
        cursor.loadFirst(success: { _ in first.open() })
        await first.opened()
        cursor.loadFirst()
        await expect(eventually { isInside.withLock { $0 } })
        await expect(eventually { isDone.withLock { $0 } })
        holder.exchange(nil)
    }

    private let transport = InMemoryTransport()
    private let queue = NetworkQueue()
    private let cursor: Cursor
    /// While this is set, the server answers 503.
    private let isBroken = Locked(false)
    private let outcomes = Locked<[String]>([])

    init() {
        let isBroken = isBroken
        transport.route("GET", "/list") { request in
            let page = Int(request.queryItems.first { $0.name == "page" }?.value ?? "") ?? 0
            if isBroken.withLock({ $0 }) { return .status(503) }
            return .json(["page": page, "hasMore": page < 3])
        }
        cursor = Self.cursor(transport, queue)
    }

    private static func cursor(
        _ transport: InMemoryTransport,
        _ queue: NetworkQueue,
        callbackQueue: DispatchQueue? = nil,
        next: @escaping @Sendable (GetList, List) throws -> GetList? = { request, list in
            list.hasMore ? GetList(page: request.page + 1) : nil
        }
    ) -> Cursor {
        let host = HostConfiguration(
            baseURL: URL(string: "http://memory.test"),
            deadlines: TransportDeadlines(idle: nil),
            transport: transport
        )
        return Cursor(
            first: GetList(page: 1),
            queue: queue,
            service: EasyNetworkService(host),
            callbackQueue: callbackQueue,
            next: next
        )
    }

    /// Loads a page, and returns when a closure has been called.
    private func loaded(
        _ begin: (@escaping @Sendable (List) -> Void, @escaping @Sendable (NetworkError) -> Void) -> Bool
    ) async -> Bool {
        let gate = Gate()
        let outcomes = outcomes
        let isBegun = begin(
            { list in
                outcomes.withLock { $0.append("\(list.page)") }
                gate.open()
            },
            { error in
                outcomes.withLock { $0.append("\(error.code)") }
                gate.open()
            }
        )
        if isBegun { await gate.opened() }
        return isBegun
    }

    private struct Stopping: RequestInterceptor {
        func didReceive(_ result: Result<NetworkResponse, NetworkError>, context: AttemptContext) async
            -> ResponseDecision
        {
            .stop
        }
    }

    @Test("OPQ-8: a page whose end calls no closure may be loaded again", arguments: [false, true])
    func silentEnd(isStopped: Bool) async {
        transport.route("GET", "/stall") { _ in .fault(.stall) }
        var settings = HostSettings(baseURL: URL(string: "http://memory.test"))
        settings.transport = transport
        settings.deadlines = TransportDeadlines(idle: nil)
        settings.silencesCancellation = true
        if isStopped { settings.interceptors = [Stopping()] }
        let request = GetTold(path: isStopped ? "list" : "stall")
        let service = EasyNetworkService(HostConfiguration(settings))
        let cursor = PageCursor(first: request, queue: queue, service: service) { _, _ in nil }
        cursor.loadFirst()
        if !isStopped {
            await transport.waitForRequests(1)
            queue.cancelAllOperations()
        }
        await expect(eventually { !cursor.isLoading })
        expect(cursor.loadNext())
        cursor.cancel()
    }

    private func next() async -> Bool {
        await loaded { cursor.loadNext(success: $0, failure: $1) }
    }

    @Test("OPQ-8: the labels in their old order, which is deprecated, make the same cursor")
    func oldOrder() async {
        let host = HostConfiguration(baseURL: URL(string: "http://memory.test"), transport: transport)
        let made: any OldOrder<GetList>.Type = Cursor.self
        let cursor = made.inOldOrder(first: GetList(page: 2), service: EasyNetworkService(host), queue: queue) { _, _ in
            GetList(page: 3)
        }
        queue.isSuspended = true
        cursor.loadFirst()
        expect(queue.operationCount, equals: 1)
        queue.isSuspended = false
        await expect(eventually { !cursor.isLoading })
        await expect(loaded { cursor.loadNext(success: $0, failure: $1) })
        expect(outcomes.withLock { $0 }, equals: ["3"])
        expect(transport.requests.count, equals: 2)
    }

    private func first() async -> Bool {
        await loaded {
            cursor.loadFirst(success: $0, failure: $1)
            return true
        }
    }

    @Test("OPQ-8: page after page to the last; after that nothing is begun")
    func pages() async {
        expect(!cursor.isFirstPage && !cursor.isLastPage)
        await expect(first())
        expect(cursor.isFirstPage && !cursor.isLastPage && cursor.pageCount == 1)
        await expect(next())
        await expect(next())
        expect(cursor.isLastPage && cursor.pageCount == 3 && !cursor.isLoading)
        await expect(!next())
        expect(outcomes.withLock { $0 }, equals: ["1", "2", "3"])
        await expect(first())
        expect(cursor.isFirstPage && transport.requests.count == 4)
    }

    @Test("OPQ-8: a second next while a page is loaded is ignored; in the closure the next may be loaded")
    func second() async {
        queue.isSuspended = true
        let (gate, cursor, outcomes) = (Gate(), cursor, outcomes)
        let isBegun = cursor.loadNext(success: { _ in
            outcomes.withLock { $0.append("loading: \(cursor.isLoading)") }
            let isBegun = cursor.loadNext(success: { _ in gate.open() })
            expect(isBegun)
        })
        expect(isBegun && cursor.isLoading)
        let isBegunAgain = cursor.loadNext(
            success: { _ in Issue.record("called") },
            failure: { _ in Issue.record("called") }
        )
        expect(!isBegunAgain && queue.operationCount == 1)
        queue.isSuspended = false
        await gate.opened()
        expect(outcomes.withLock { $0 }, equals: ["loading: false"])
        expect(cursor.pageCount == 2 && transport.requests.count == 2)
    }

    @Test("OPQ-8: a page that failed may be asked for again, also when next threw")
    func failure() async {
        await expect(first())
        isBroken.withLock { $0 = true }
        await expect(next())
        expect(cursor.pageCount == 1 && !cursor.isLoading)
        isBroken.withLock { $0 = false }
        await expect(next())
        expect(outcomes.withLock { $0 }, equals: ["1", "unacceptableStatus", "2"])

        let isFirstCall = Locked(true)
        let other = Self.cursor(transport, queue) { _, _ in
            let throwsNow = isFirstCall.withLock { isFirst in
                defer { isFirst = false }
                return isFirst
            }
            if throwsNow { throw ResponseMapperError.invalid }
            return nil
        }
        await expect(loaded { other.loadNext(success: $0, failure: $1) })
        expect(other.pageCount, equals: 0)
        await expect(loaded { other.loadNext(success: $0, failure: $1) })
        expect(other.isLastPage)
        expect(outcomes.withLock { $0 }, equals: ["1", "unacceptableStatus", "2", "invalidRequest", "1"])
    }

    @Test("OPQ-8: a first page that fails does not move the cursor")
    func failedStart() async {
        await expect(first())
        isBroken.withLock { $0 = true }
        await expect(first())
        isBroken.withLock { $0 = false }
        await expect(next())
        expect(outcomes.withLock { $0 } == ["1", "unacceptableStatus", "2"] && cursor.pageCount == 2)
        expect(!cursor.isFirstPage)
    }

    @Test("OPQ-8: after a cancel the page may be loaded again at once; a new start cancels the page before")
    func cancel() async {
        await expect(first())
        queue.isSuspended = true
        let (outcomes, cursor) = (outcomes, cursor)
        let cancelled = Gate()
        cursor.loadNext(failure: { error in
            outcomes.withLock { $0.append("\(error.code)") }
            cancelled.open()
        })
        cursor.cancel()
        expect(!cursor.isLoading)
        await cancelled.opened()
        let replaced = Gate()
        let isBegun = cursor.loadNext(failure: { error in
            outcomes.withLock { $0.append("\(error.code)") }
            replaced.open()
        })
        expect(isBegun)
        let again = Gate()
        cursor.loadFirst(success: { _ in again.open() })
        await replaced.opened()
        expect(cursor.isLoading && cursor.pageCount == 1)
        queue.isSuspended = false
        await again.opened()
        expect(outcomes.withLock { $0 }, equals: ["1", "cancelled", "cancelled"])
        expect(cursor.isFirstPage && transport.requests.count == 2)
    }

    @Test("OPQ-8: a page whose closure has not run when it is cancelled does not count")
    func cancelBeforeClosure() async {
        let callbackQueue = DispatchQueue(label: "callbacks", attributes: .initiallyInactive)
        let cursor = Self.cursor(transport, queue, callbackQueue: callbackQueue)
        let (outcomes, gate) = (outcomes, Gate())
        cursor.loadFirst(
            success: { _ in gate.open() },
            failure: { error in
                outcomes.withLock { $0.append("\(error.code)") }
                gate.open()
            }
        )
        let operation = queue.operations.first as? RequestOperation<GetList>
        await expect(eventually { operation?.result != nil })
        cursor.cancel()
        callbackQueue.activate()
        await gate.opened()
        expect(outcomes.withLock { $0 } == ["cancelled"] && cursor.pageCount == 0)
    }

    @Test("OPQ-8: as a sequence: each page when it is asked for, an end after the last")
    func sequence() async throws {
        var pages: [Int] = []
        for try await list in cursor.pages {
            pages.append(list.page)
            expect(transport.requests.count == pages.count && !cursor.isLoading)
        }
        expect(pages == [1, 2, 3] && cursor.isLastPage && cursor.pageCount == 3)
        for try await list in cursor.pages {
            expect(list.page, equals: 1)
            break
        }
        expect(transport.requests.count == 4 && cursor.isFirstPage)
    }

    @Test("OPQ-8: the sequence throws the error of a page, is over then, and the page may be asked for again")
    func sequenceFailure() async throws {
        var iterator = cursor.pages.makeAsyncIterator()
        try await expect(iterator.next()?.page, equals: 1)
        isBroken.withLock { $0 = true }
        do {
            _ = try await iterator.next()
            Issue.record("no error")
        } catch {
            expect((error as? NetworkError)?.statusCode, equals: 503)
        }
        isBroken.withLock { $0 = false }
        try await expect(iterator.next() == nil)
        await expect(next())
        expect(cursor.pageCount, equals: 2)
    }

    @Test("OPQ-8: another start, or another load, ends the sequence with an error of its own")
    func sequenceInterrupted() async throws {
        var iterator = cursor.pages.makeAsyncIterator()
        _ = try await iterator.next()
        var other = cursor.pages.makeAsyncIterator()
        _ = try await other.next()
        do {
            _ = try await iterator.next()
            Issue.record("no error")
        } catch {
            expect((error as? NetworkError)?.code, equals: .cancelled)
        }
        queue.isSuspended = true
        cursor.loadNext()
        do {
            _ = try await other.next()
            Issue.record("no error")
        } catch {
            expect((error as? NetworkError)?.code, equals: .refused)
        }
        cursor.cancel()
    }

    @Test("OPQ-8, BEY-3: cancelling the task that reads cancels the page, and the cursor may be used again")
    func sequenceCancelled() async throws {
        queue.isSuspended = true
        let cursor = cursor
        let task = Task {
            for try await _ in cursor.pages { Issue.record("a page") }
        }
        let queue = queue
        await expect(eventually { queue.operationCount == 1 })
        task.cancel()
        do {
            try await task.value
            Issue.record("no error")
        } catch {
            expect((error as? NetworkError)?.code, equals: .cancelled)
        }
        expect(!cursor.isLoading)
        await expect(eventually { queue.operationCount == 0 })
        queue.isSuspended = false
        await expect(next())
        expect(transport.requests.count, equals: 1)
    }

    @Test("OPQ-8, BEY-3: a task that is cancelled between two pages gets an error, and not the end")
    func cancelledBetween() async {
        let cursor = cursor
        let task = Task {
            for try await _ in cursor.pages { withUnsafeCurrentTask { $0?.cancel() } }
        }
        await #expect { try await task.value } throws: { ($0 as? NetworkError)?.code == .cancelled }
    }

    @Test("OPQ-8: a cursor that loads nothing is released")
    func release() async {
        weak var released: Cursor?
        do {
            let cursor = Self.cursor(transport, queue)
            released = cursor
            _ = await loaded { cursor.loadNext(success: $0, failure: $1) }
        }
        await expect(eventually { released == nil })
    }

    @Test(
        "OPQ-8: asked from many threads, each page is loaded once and every load that is begun calls back once",
        arguments: 1...5 as ClosedRange<UInt64>
    )
    func stress(seed: UInt64) async {
        var generator = SeededGenerator(seed: seed)
        let steps = (0..<300).map { _ in Int.random(in: 0..<8, using: &generator) }
        let (begun, ended) = (Locked(0), Locked(0))
        let cursor = cursor
        DispatchQueue.concurrentPerform(iterations: 300) { index in
            let success: @Sendable (List) -> Void = { _ in ended.withLock { $0 += 1 } }
            let failure: @Sendable (NetworkError) -> Void = { error in
                expect(error.code, equals: .cancelled, "seed \(seed)")
                ended.withLock { $0 += 1 }
            }
            var isBegun = false
            switch steps[index] {
            case 0:
                cursor.loadFirst(success: success, failure: failure)
                isBegun = true
            case 1: cursor.cancel()
            default: isBegun = cursor.loadNext(success: success, failure: failure)
            }
            if isBegun { begun.withLock { $0 += 1 } }
        }
        await expect(
            eventually { queue.operationCount == 0 && ended.withLock { $0 } == begun.withLock { $0 } },
            "seed \(seed)"
        )
        expect(!cursor.isLoading, "seed \(seed)")
        expect((0...3).contains(cursor.pageCount), "seed \(seed)")
    }
}
