import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import EasyNetworkResources
@testable import TestSupport

@Suite
struct ResourceLoaderTests {
    private struct NotDecodable: Error {}

    /// A loader of texts over answers in memory.
    private struct Fixture {
        let transport: InMemoryTransport
        let clock: ManualClock
        let queue = NetworkQueue(maxConcurrentOperationCount: 100)
        let decodeCount = Locked(0)
        let loader: ResourceLoader<String>

        init(
            startsNewestFirst: Bool = false,
            maximumLoadCount: Int = 6,
            memoryCostLimit: Int = 64_000_000,
            memoryCountLimit: Int = .max,
            failureLifetime: TimeInterval = 0,
            key: (@Sendable (URL) -> String)? = nil,
            request: (@Sendable (URL) -> any BaseAPIRequest)? = nil,
            host: (inout HostSettings) -> Void = { _ in }
        ) {
            let (transport, clock) = (InMemoryTransport(), ManualClock())
            (self.transport, self.clock) = (transport, clock)
            let service = EasyNetworkService(
                HostConfiguration(baseURL: URL(string: "https://api.example.com"), transport: transport) {
                    $0.clock = clock
                    $0.retry = .never
                    // On a slow machine, the default of a minute may pass.
                    $0.deadlines.idle = nil
                    host(&$0)
                }
            )
            loader = ResourceLoader(
                queue: queue,
                service: service,
                startsNewestFirst: startsNewestFirst,
                maximumLoadCount: maximumLoadCount,
                memoryCostLimit: memoryCostLimit,
                memoryCountLimit: memoryCountLimit,
                failureLifetime: failureLifetime,
                key: key,
                request: request
            ) { [decodeCount] response in
                decodeCount.withLock { $0 += 1 }
                guard response.body != Data("bad".utf8) else { throw NotDecodable() }
                return try response.text()
            }
            transport.route("GET", "/*") { .text($0.path) }
            transport.route("GET", "/bad") { _ in .text("bad") }
            transport.route("GET", "/lost") { _ in .fault(.close(at: .requestStart)) }
            transport.route("GET", "/stall") { _ in .fault(.stall) }
            transport.route("GET", "/secret") { _ in
                MockResponse(headers: ["Cache-Control": "no-store"], body: .data(Data("x".utf8)))
            }
        }

        func url(_ path: String) -> URL {
            URL(string: "https://api.example.com/\(path)") ?? URL(fileURLWithPath: path)
        }

        var paths: [String] { transport.requests.map(\.path) }
    }

    // MARK: - One load

    @Test("IMG-1: receipts for one resource end in the order in which they were requested")
    func orderOfReceipts() async {
        let callbacks = DispatchQueue(label: "callbacks")
        let fixture = Fixture(host: { $0.callbackQueue = callbacks })
        fixture.queue.isSuspended = true
        let order = Locked<[Int]>([])
        let receipts = (0..<20).map { number in
            fixture.loader.load(fixture.url("a")) { _ in order.withLock { $0.append(number) } }
        }
        fixture.queue.isSuspended = false
        await expect(eventually { order.withLock { $0.count } == receipts.count })
        expect(order.withLock { $0 }, equals: Array(0..<20))
    }

    @Test("IMG-1: many who want a resource share one message and one decoding, and later ones find it in memory")
    func coalesces() async throws {
        let fixture = Fixture()
        fixture.queue.isSuspended = true
        let receipts = (0..<100).map { _ in fixture.loader.load(fixture.url("a")) }
        expect(fixture.loader.cachedResource(for: fixture.url("a")) == nil)
        fixture.queue.isSuspended = false
        for receipt in receipts { try await expect(receipt.value, equals: "/a") }
        try await expect(fixture.loader.resource(at: fixture.url("a")), equals: "/a")
        expect(fixture.loader.cachedResource(for: fixture.url("a")), equals: "/a")
        expect(fixture.paths, equals: ["/a"])
        expect(fixture.decodeCount.withLock { $0 }, equals: 1)
    }

    @Test("IMG-1: a completion is called once, with the resource or the error, from memory too")
    func completions() async throws {
        let fixture = Fixture()
        for (path, expected) in [("a", "/a"), ("a", "/a"), ("bad", nil), ("lost", nil)] {
            let result = await withCheckedContinuation { continuation in
                _ = fixture.loader.load(fixture.url(path)) { continuation.resume(returning: $0) }
            }
            expect((try? result.get()), equals: expected)
        }
    }

    @Test("IMG-1: an error of the decoder or of the network is that of every receipt")
    func failures() async {
        let fixture = Fixture()
        for (path, code) in [("bad", NetworkError.Code.cannotParseResponse), ("lost", .connectionLost)] {
            fixture.queue.isSuspended = true
            let receipts = (0..<3).map { _ in fixture.loader.load(fixture.url(path)) }
            fixture.queue.isSuspended = false
            for receipt in receipts {
                let error = await #expect(throws: NetworkError.self) { try await receipt.value }
                expect(error?.code, equals: code)
                expect(receipt.result != nil)
            }
        }
        expect(fixture.loader.cachedResource(for: fixture.url("bad")) == nil)
    }

    // MARK: - Cancelling

    @Test("IMG-1: the load goes on until its last receipt is cancelled; then its message is cancelled, too")
    func lastReceipt() async {
        let fixture = Fixture()
        let receipts = (0..<3).map { _ in fixture.loader.load(fixture.url("stall")) }
        await fixture.transport.waitForRequests(1)
        receipts[0].cancel()
        receipts[0].cancel()
        receipts[2].cancel()
        expect(receipts[0].result?.failure?.code, equals: .cancelled)
        expect(receipts[1].result == nil)
        expect(fixture.queue.operationCount, equals: 1)
        receipts[1].cancel()
        await expect(eventually { fixture.queue.operationCount == 0 })
        expect(fixture.decodeCount.withLock { $0 }, equals: 0)
        expect(fixture.loader.state.withLock { $0.isIdle })
    }

    @Test("IMG-1: a load that nobody wants any more sends nothing, and the same resource can be asked for again")
    func cancelledBeforeStart() async throws {
        let fixture = Fixture(maximumLoadCount: 1)
        fixture.queue.isSuspended = true
        let started = fixture.loader.load(fixture.url("a"))
        let waiting = fixture.loader.load(fixture.url("b"))
        started.cancel()
        waiting.cancel()
        let again = fixture.loader.load(fixture.url("b"))
        fixture.queue.isSuspended = false
        try await expect(again.value, equals: "/b")
        expect(fixture.paths, equals: ["/b"])
    }

    @Test("IMG-1: a cancelled task gives up its share alone")
    func cancelledTask() async throws {
        let fixture = Fixture()
        fixture.queue.isSuspended = true
        let task = Task { try await fixture.loader.resource(at: fixture.url("a")) }
        let other = fixture.loader.load(fixture.url("a"))
        task.cancel()
        let error = await #expect(throws: NetworkError.self) { try await task.value }
        expect(error?.code, equals: .cancelled)
        fixture.queue.isSuspended = false
        try await expect(other.value, equals: "/a")
    }

    @Test("IMG-1: nothing is decoded when the last receipt was cancelled after the answer had come")
    func cancelledBeforeDecoding() async throws {
        final class Canceller: RequestInterceptor {
            let receipt = Locked<ResourceReceipt<String>?>(nil)

            func didReceive(
                _ result: Result<NetworkResponse, NetworkError>,
                context: AttemptContext
            ) async -> ResponseDecision {
                receipt.exchange(nil)?.cancel()
                return .proceed
            }
        }
        /// Held by the closure that decodes, and so by the call that may use it.
        final class Decoder: Sendable {}
        let (transport, canceller, decodeCount) = (SteeredTransport(), Canceller(), Locked(0))
        weak var freed: Decoder?
        do {
            let decoder = Decoder()
            freed = decoder
            let service = EasyNetworkService(transport.host { $0.interceptors = [canceller] })
            let loader = ResourceLoader<String>(queue: NetworkQueue(), service: service) { [decoder] response in
                withExtendedLifetime(decoder) { decodeCount.withLock { $0 += 1 } }
                return try response.text()
            }
            let url = try #require(URL(string: "https://api.example.com/a"))
            let receipt = loader.load(url)
            canceller.receipt.exchange(receipt)
            let exchange = try #require(await transport.exchange(0))
            exchange.head()
            exchange.body("a")
            exchange.end()
            await #expect(throws: NetworkError.self) { _ = try await receipt.value }
        }
        await expect(eventually { freed == nil })
        expect(decodeCount.withLock { $0 }, equals: 0)
    }

    @Test("IMG-1: a completion that blocks holds up neither other receipts nor the next load")
    func blockedCompletion() async throws {
        let fixture = Fixture(maximumLoadCount: 1)
        let (blocked, wasFreed) = (DispatchSemaphore(value: 0), Locked<Bool?>(nil))
        fixture.loader.load(fixture.url("a")) { _ in
            let isInTime = blocked.wait(timeout: .now() + 240) == .success
            wasFreed.exchange(isInTime)
        }
        let (other, next) = (fixture.loader.load(fixture.url("a")), fixture.loader.load(fixture.url("b")))
        _ = try await (other.value, next.value)
        blocked.signal()
        await expect(eventually { wasFreed.withLock { $0 } != nil })
        expect(wasFreed.withLock { $0 }, equals: true)
    }

    @Test("IMG-1: when the queue or the service cancels a load, its receipts end, and the next loads run")
    func cancelledByOthers() async throws {
        let fixture = Fixture(maximumLoadCount: 1)
        let stalled = fixture.loader.load(fixture.url("stall"))
        let next = fixture.loader.load(fixture.url("a"))
        await fixture.transport.waitForRequests(1)
        fixture.queue.cancelAllOperations()
        let error = await #expect(throws: NetworkError.self) { try await stalled.value }
        expect(error?.code, equals: .cancelled)
        try await expect(next.value, equals: "/a")
    }

    // MARK: - Order

    @Test("IMG-1: loads start by priority, then in the order said", arguments: [false, true])
    func order(isLIFO: Bool) async throws {
        let fixture = Fixture(startsNewestFirst: isLIFO, maximumLoadCount: 1)
        fixture.queue.isSuspended = true
        let first = fixture.loader.load(fixture.url("first"))
        let prefetched = fixture.loader.prefetch([fixture.url("p"), fixture.url("q"), fixture.url("r")])
        let receipts = ["a", "b", "c", "d"].map { fixture.loader.load(fixture.url($0)) }
        receipts[2].priority = .veryHigh
        expect(receipts[2].priority, equals: .veryHigh)
        let low = fixture.loader.load(fixture.url("l"), priority: .veryLow)
        // The highest priority of a load's receipts counts.
        _ = fixture.loader.load(fixture.url("d"), priority: .high)
        // No prefetch any more.
        let wanted = fixture.loader.load(fixture.url("q"), priority: .low)
        fixture.queue.isSuspended = false
        for receipt in [first, low, wanted] + receipts + prefetched { _ = try await receipt.value }
        let rest = isLIFO ? ["/b", "/a"] : ["/a", "/b"]
        expect(fixture.paths, equals: ["/first", "/c", "/d"] + rest + ["/q", "/l", "/p", "/r"])
    }

    @Test("IMG-1: prefetches take half of the places at most; receipts come in the order of their URLs")
    func prefetchGivesWay() async throws {
        let fixture = Fixture(maximumLoadCount: 4)
        fixture.queue.isSuspended = true
        let urls = (0..<6).map { fixture.url("p\($0)") }
        let prefetched = fixture.loader.prefetch(urls)
        expect(fixture.queue.operationCount, equals: 2)
        expect(prefetched.allSatisfy { $0.priority == .veryLow })
        // The place of a prefetch that has become an ordinary load is free for another one.
        let wanted = fixture.loader.load(urls[0])
        expect(fixture.queue.operationCount, equals: 3)
        let others = ["a", "b"].map { fixture.loader.load(fixture.url($0)) }
        expect(fixture.queue.operationCount, equals: 4)
        fixture.queue.isSuspended = false
        for (receipt, path) in zip(prefetched, ["/p0", "/p1", "/p2", "/p3", "/p4", "/p5"]) {
            try await expect(receipt.value, equals: path)
        }
        for receipt in others + [wanted] { _ = try await receipt.value }
        expect(Set(fixture.paths).count == 8 && fixture.paths.count == 8)
    }

    @Test("IMG-1: a prefetch in the only place begins again after what somebody waits for")
    func prefetchInOnlyPlace() async throws {
        let fixture = Fixture(maximumLoadCount: 1)
        let prefetched = fixture.loader.prefetch([fixture.url("stall")])
        await expect(eventually { fixture.paths == ["/stall"] })
        // Otherwise the first one may be there before the second is asked for, and the prefetch begins in between.
        fixture.queue.isSuspended = true
        let receipts = ["a", "b"].map { fixture.loader.load(fixture.url($0)) }
        fixture.queue.isSuspended = false
        for (receipt, path) in zip(receipts, ["/a", "/b"]) { try await expect(receipt.value, equals: path) }
        await expect(eventually { fixture.paths == ["/stall", "/a", "/b", "/stall"] }, "\(fixture.paths)")
        expect(prefetched[0].result == nil)
        prefetched[0].cancel()
        await expect(eventually { fixture.queue.operationCount == 0 })
    }

    @Test("IMG-1, BEY-3: a task that is cancelled already loads nothing", arguments: [false, true])
    func cancelledAlready(isPartial: Bool) async throws {
        let fixture = Fixture()
        let loader = fixture.loader
        let failures = await withTaskGroup(of: Bool.self) { group in
            for number in 0..<3_000 {
                let url = fixture.url("\(number)")
                group.addTask {
                    withUnsafeCurrentTask { $0?.cancel() }
                    do {
                        guard isPartial else {
                            _ = try await loader.resource(at: url)
                            return false
                        }
                        for try await _ in loader.partialResources(at: url) { return false }
                        return true
                    } catch {
                        return (error as? NetworkError)?.code == .cancelled
                    }
                }
            }
            return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
        }
        expect(failures, equals: 3_000)
        expect(fixture.paths.isEmpty && fixture.queue.operationCount == 0)
    }

    @Test("IMG-1: the priority of a load that has started is that of its job")
    func priorityOfJob() async throws {
        let fixture = Fixture()
        fixture.queue.isSuspended = true
        let receipt = fixture.loader.load(fixture.url("a"), priority: .low)
        let second = fixture.loader.load(fixture.url("a"), priority: .veryHigh)
        let job = try #require(fixture.queue.operations.first)
        expect(job.queuePriority, equals: .veryHigh)
        second.cancel()
        expect(job.queuePriority, equals: .low)
        receipt.priority = .high
        expect(job.queuePriority, equals: .high)
        receipt.cancel()
    }

    // MARK: - Memory

    @Test("IMG-1: the memory is bounded by cost and by count; the least recently used resource leaves first")
    func memory() async throws {
        let fixture = Fixture(memoryCountLimit: 2)
        for path in ["a", "b"] { _ = try await fixture.loader.resource(at: fixture.url(path)) }
        expect(fixture.loader.cachedResource(for: fixture.url("a")), equals: "/a")
        _ = try await fixture.loader.resource(at: fixture.url("c"))
        expect(fixture.loader.cachedResource(for: fixture.url("b")) == nil)
        expect(fixture.loader.cachedResource(for: fixture.url("a")), equals: "/a")
        let costly = Fixture(memoryCostLimit: 5)
        for path in ["a", "b", "c", "long"] { _ = try await costly.loader.resource(at: costly.url(path)) }
        let kept = ["a", "b", "c", "long"].filter { costly.loader.cachedResource(for: costly.url($0)) != nil }
        // Two bytes each; "/long" has five and replaces all.
        expect(kept, equals: ["long"])
    }

    @Test("IMG-1: costs of any size do not overflow")
    func largeCosts() async throws {
        let fixture = Fixture()
        let loader = ResourceLoader(
            queue: fixture.queue,
            service: EasyNetworkService(
                HostConfiguration(baseURL: URL(string: "https://api.example.com"), transport: fixture.transport)
            ),
            memoryCostLimit: .max,
            cost: { $0 == "/long" ? .max : 1 << 59 }
        ) { try $0.text() }
        for path in ["a", "b", "c", "long", "long"] { _ = try await loader.resource(at: fixture.url(path)) }
        expect(loader.state.withLock { $0.memory.cost }, equals: 1 << 60)
    }

    @Test("IMG-1: removed resources are loaded again, an answer with no-store is not kept, the user's cost counts")
    func removal() async throws {
        let fixture = Fixture()
        for path in ["a", "b", "secret"] { _ = try await fixture.loader.resource(at: fixture.url(path)) }
        expect(fixture.loader.cachedResource(for: fixture.url("secret")) == nil)
        fixture.loader.remove(fixture.url("a"))
        expect(fixture.loader.cachedResource(for: fixture.url("a")) == nil)
        expect(fixture.loader.cachedResource(for: fixture.url("b")), equals: "/b")
        fixture.loader.removeAll()
        expect(fixture.loader.cachedResource(for: fixture.url("b")) == nil)
        _ = try await fixture.loader.resource(at: fixture.url("b"))
        expect(fixture.paths, equals: ["/a", "/b", "/secret", "/b"])
    }

    @Test("IMG-1: answers come from the host's cache by the rules of HTTP, without a message")
    func diskCache() async throws {
        let fixture = Fixture(memoryCountLimit: 0, host: { $0.cache = NetworkCache(diskBytes: 0) })
        fixture.transport.route("GET", "/fresh") { _ in
            MockResponse(headers: ["Cache-Control": "max-age=60"], body: .data(Data("fresh".utf8)))
        }
        for _ in 0..<3 { try await expect(fixture.loader.resource(at: fixture.url("fresh")), equals: "fresh") }
        expect(fixture.paths, equals: ["/fresh"])
    }

    // MARK: - Keys and failures

    @Test("IMG-1: keys may leave out parts of the URL; by default the fragment")
    func keys() async throws {
        let signed = Fixture(key: { $0.path })
        try await expect(signed.loader.resource(at: signed.url("a?signature=1")), equals: "/a")
        try await expect(signed.loader.resource(at: signed.url("a?signature=2")), equals: "/a")
        expect(signed.paths, equals: ["/a"])
        let plain = Fixture()
        for path in ["a#x", "a#y", "a?1"] { _ = try await plain.loader.resource(at: plain.url(path)) }
        expect(plain.paths.count, equals: 2)
    }

    @Test("IMG-1: a failure is remembered as long as wanted, a cancel is not")
    func rememberedFailures() async throws {
        let fixture = Fixture(failureLifetime: 10)
        for _ in 0..<3 {
            let error = await #expect(throws: NetworkError.self) {
                try await fixture.loader.resource(at: fixture.url("bad"))
            }
            expect(error?.code, equals: .cannotParseResponse)
        }
        expect(fixture.paths, equals: ["/bad"])
        fixture.clock.advance(by: 10)
        await #expect(throws: NetworkError.self) { try await fixture.loader.resource(at: fixture.url("bad")) }
        expect(fixture.paths.count, equals: 2)
        fixture.loader.remove(fixture.url("bad"))
        await #expect(throws: NetworkError.self) { try await fixture.loader.resource(at: fixture.url("bad")) }
        expect(fixture.paths.count, equals: 3)
        let stalled = fixture.loader.load(fixture.url("stall"))
        await fixture.transport.waitForRequests(4)
        stalled.cancel()
        let again = fixture.loader.load(fixture.url("stall"))
        expect(again.result == nil)
        again.cancel()
    }

    @Test("IMG-1: each load is the user's request, with its headers")
    func requests() async throws {
        struct Wanted: BaseAPIRequest {
            let url: URL
            var api: String { url.absoluteString }
            var headers: [String: String]? { ["Accept": "text/x-test"] }
        }
        let fixture = Fixture(request: { Wanted(url: $0) })
        _ = try await fixture.loader.resource(at: fixture.url("a"))
        expect(fixture.transport.requests.first?.headers["Accept"], equals: "text/x-test")
    }

    // MARK: - Under stress

    @Test(
        "IMG-1: 1,000 receipts for 50 resources end once each, with one message a resource at most",
        arguments: 0..<TestLoad.count(6, part: 1)
    )
    func stress(round: Int) async throws {
        let seed = UInt64.random(in: 0...UInt64.max)
        print("ResourceLoaderTests: seed \(seed)")
        var random = SeededGenerator(seed: seed)
        let fixture = Fixture(startsNewestFirst: !round.isMultiple(of: 2), memoryCountLimit: 20)
        // Later than that, a cancelled load may have sent its message, and another receipt may want the resource again.
        let firstSent = [1_000, 300, 0][round % 3]
        let endCounts = Locked([Int](repeating: 0, count: 1_000))
        let priorities: [Operation.QueuePriority] = [.veryLow, .low, .normal, .high, .veryHigh]
        var receipts: [ResourceReceipt<String>] = []
        fixture.queue.isSuspended = true
        for number in 0..<1_000 {
            if number == firstSent { fixture.queue.isSuspended = false }
            let url = fixture.url("\(Int.random(in: 0..<50, using: &random))")
            let priority = priorities[Int.random(in: 0..<5, using: &random)]
            receipts.append(
                fixture.loader.load(url, priority: priority) { _ in endCounts.withLock { $0[number] += 1 } }
            )
            let other = receipts[Int.random(in: 0...number, using: &random)]
            switch Int.random(in: 0..<6, using: &random) {
            case 0, 1: other.cancel()
            case 2: other.priority = priorities[Int.random(in: 0..<5, using: &random)]
            default: break
            }
        }
        fixture.queue.isSuspended = false
        for receipt in receipts {
            do throws(NetworkError) {
                _ = try await receipt.value
            } catch {
                expect(error.code, equals: .cancelled, "seed \(seed)")
            }
        }
        await expect(eventually { endCounts.withLock { $0.allSatisfy { $0 == 1 } } }, "seed \(seed)")
        await expect(eventually { fixture.loader.state.withLock { $0.isIdle } }, "seed \(seed)")
        await expect(eventually { fixture.queue.operationCount == 0 }, "seed \(seed)")
        expect(fixture.loader.state.withLock { $0.memory.count } <= 20, "seed \(seed)")
        if firstSent == 1_000 { expect(fixture.paths.count, equals: Set(fixture.paths).count, "seed \(seed)") }
    }

    // MARK: - While it comes

    /// Its events are sent by hand.
    private final class HandTransport: NetworkTransport {
        struct Exchange: TransportExchange {
            func cancel() {}
        }

        let send = Locked<(@Sendable (TransportEvent) -> Void)?>(nil)

        func start(
            _ request: TransportRequest,
            events: @escaping @Sendable (TransportEvent) -> Void
        ) -> any TransportExchange {
            send.withLock { $0 = events }
            return Exchange()
        }
    }

    @Test("IMG-1: what can be decoded of a beginning comes before the whole; other receipts get the whole alone")
    func partials() async throws {
        let (transport, clock) = (HandTransport(), ManualClock())
        let host = HostConfiguration(baseURL: URL(string: "https://api.example.com"), transport: transport) {
            $0.clock = clock
        }
        let partialCount = Locked(0)
        let loader = ResourceLoader<String>(
            queue: NetworkQueue(),
            service: EasyNetworkService(host),
            decodePartial: { response in
                guard response.body.count > 3 else { return nil }
                partialCount.withLock { $0 += 1 }
                return "part " + (try response.text())
            },
            decode: { "whole " + (try $0.text()) }
        )
        let url = try #require(URL(string: "https://api.example.com/a"))
        var elements = loader.partialResources(at: url).makeAsyncIterator()
        let other = loader.load(url)
        await expect(eventually { transport.send.withLock { $0 != nil } })
        let send = try #require(transport.send.withLock { $0 })
        send(.head(TransportHead(statusCode: 200, headers: HTTPHeaders())))
        send(.body(Data("12".utf8)))
        // Too little for a partial resource.
        await expect(
            eventually {
                clock.advance(by: 0.1)
                send(.body(Data("3".utf8)))
                return partialCount.withLock { $0 > 0 }
            }
        )
        let first = try #require(try await elements.next())
        expect(first.hasPrefix("part 123"))
        expect(other.result == nil)
        send(.end(TransportEnd()))
        let whole = try await other.value
        expect(whole.hasPrefix("whole 123"))
        var last: String?
        while let element = try await elements.next() { last = element }
        expect(last, equals: whole)
    }

    @Test("IMG-1: leaving the loop over partial resources cancels the load, an error ends it")
    func partialEnds() async throws {
        let fixture = Fixture()
        let task = Task { [loader = fixture.loader, url = fixture.url("stall")] in
            for try await _ in loader.partialResources(at: url) {}
        }
        await fixture.transport.waitForRequests(1)
        task.cancel()
        try? await task.value
        await expect(eventually { fixture.loader.state.withLock { $0.isIdle } })
        await #expect(throws: NetworkError.self) {
            for try await _ in fixture.loader.partialResources(at: fixture.url("bad")) {}
        }
        _ = try await fixture.loader.resource(at: fixture.url("a"))
        var fromMemory: [String] = []
        for try await element in fixture.loader.partialResources(at: fixture.url("a")) { fromMemory.append(element) }
        expect(fromMemory, equals: ["/a"])
    }
}
