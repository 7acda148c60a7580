import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import EasyNetworkResources
@testable import TestSupport

/// Decoding without a slot. One test at a time, as decoders that block keep threads.
@Suite(.serialized)
struct ResourceDecodingTests {
    @Test("IMG-1: while resources are decoded, their places and slots serve other transfers; so many decode at once")
    func decodesWithoutSlot() async throws {
        let barrier = Barrier()
        let queue = NetworkQueue(maxConcurrentOperationCount: 1)
        let fixture = ResourceFixture(maximumLoadCount: 1, maximumDecodeCount: 2, queue: queue) { _ in barrier.wait() }
        let receipts = (0..<5).map { fixture.loader.load(fixture.url("\($0)")) }
        // All have come, though none is decoded yet.
        await expect(fixture.answers.waitForRequests(5))
        await expect(eventually { barrier.waitingCount == 2 })
        await expect(eventually { fixture.loader.state.withLock { $0.running.isEmpty } })
        expect(barrier.waitingCount, equals: 2)
        expect(receipts.allSatisfy { $0.result == nil })
        expect(fixture.loader.state.withLock { $0.decodingCount }, equals: 2)
        barrier.letGo(5)
        for (number, receipt) in receipts.enumerated() { try await expect(receipt.value, equals: "/\(number) 1") }
        await expect(eventually { fixture.isIdle && queue.operationCount == 0 })
    }

    @Test("IMG-1: of the answers that wait to be decoded the most important is next; behind too many, transfers wait")
    func orderOfDecoding() async throws {
        let barrier = Barrier()
        let fixture = ResourceFixture(maximumLoadCount: 1, maximumDecodeCount: 1) { _ in barrier.wait() }
        let first = fixture.loader.load(fixture.url("first"))
        await expect(eventually { barrier.waitingCount == 1 })
        let receipts = (0..<9).map { fixture.loader.load(fixture.url("\($0)"), priority: .low) }
        // Eight wait; the ninth is not asked for.
        await expect(fixture.answers.waitForRequests(9))
        await expect(eventually { fixture.loader.state.withLock { $0.running.isEmpty } })
        expect(fixture.paths.count, equals: 9)
        receipts[5].priority = .high
        barrier.letGo(10)
        for receipt in [first] + receipts { _ = try await receipt.value }
        let decoded = fixture.decoded.withLock { $0 }
        expect(decoded.prefix(3), equals: ["/first 1", "/5 1", "/0 1"])
        expect(decoded.count, equals: 10)
    }

    @Test("IMG-1: a load that is cancelled while it waits to be decoded is not, and a queue that cancels ends it")
    func cancelledWhileWaiting() async throws {
        let barrier = Barrier()
        let fixture = ResourceFixture(maximumDecodeCount: 1) { _ in barrier.wait() }
        let first = fixture.loader.load(fixture.url("first"))
        await expect(eventually { barrier.waitingCount == 1 })
        let receipts = ["a", "b", "c"].map { fixture.loader.load(fixture.url($0)) }
        await expect(fixture.answers.waitForRequests(4))
        await expect(eventually { fixture.loader.state.withLock { $0.running.isEmpty } })
        receipts[0].cancel()
        let job = try #require(fixture.queue.operations.last)
        job.cancel()
        let error = await #expect(throws: NetworkError.self) { try await receipts[2].value }
        expect(error?.code, equals: .cancelled)
        barrier.letGo(2)
        try await expect(first.value, equals: "/first 1")
        try await expect(receipts[1].value, equals: "/b 1")
        expect(fixture.decoded.withLock { $0 }, equals: ["/first 1", "/b 1"])
        await expect(eventually { fixture.isIdle })
    }

    @Test("IMG-1: who cancels during the decoding ends at once, and the next caller loads anew")
    func cancelledWhileDecoding() async throws {
        let barrier = Barrier()
        let fixture = ResourceFixture(maximumDecodeCount: 1) { _ in barrier.wait() }
        let receipt = fixture.loader.load(fixture.url("a"))
        await expect(eventually { barrier.waitingCount == 1 })
        receipt.cancel()
        expect(receipt.result?.failure?.code, equals: .cancelled)
        let again = fixture.loader.load(fixture.url("a"), priority: .high)
        barrier.letGo(2)
        // Nothing was stored of the first.
        try await expect(again.value, equals: "/a 2")
        await expect(eventually { fixture.isIdle })
    }

    @Test("IMG-1: an answer that cannot be decoded is not stored, and a stored one is sent for again")
    func undecodable() async throws {
        let isBroken = Locked(true)
        let cache = NetworkCache(diskBytes: 0)
        let fixture = ResourceFixture(maximumLoadCount: 1, maximumDecodeCount: 1, cache: cache)
        let service = EasyNetworkService(
            HostConfiguration(baseURL: URL(string: "https://api.example.com"), transport: fixture.answers) {
                $0.retry = .never
                $0.cache = cache
            }
        )
        let loader = ResourceLoader(queue: fixture.queue, service: service, maximumLoadCount: 1) { response in
            if isBroken.withLock({ $0 }), try response.text().hasSuffix("1") { throw ResourceFixture.NotDecodable() }
            return try response.text()
        }
        let url = fixture.url("a")
        await #expect(throws: NetworkError.self) { try await loader.resource(at: url) }
        await expect(cache.usage.memoryCount, equals: 0)
        isBroken.exchange(false)
        try await expect(loader.resource(at: fixture.url("b")), equals: "/b 1")
        isBroken.exchange(true)
        loader.removeAll()
        try await expect(loader.resource(at: fixture.url("b")), equals: "/b 2")
        expect(fixture.paths, equals: ["/a", "/b", "/b"])
        await expect(eventually { loader.state.withLock { $0.isIdle } })
    }

    @Test("IMG-1: the time in which an answer waits to be decoded is not that of its request")
    func deadline() async throws {
        struct Get: BaseAPIRequest {
            let url: URL
            var api: String { url.absoluteString }
            var options: RequestOptions { RequestOptions(overallTimeout: 5) }
        }
        let (barrier, fixture) = (Barrier(), ResourceFixture())
        let service = EasyNetworkService(
            HostConfiguration(baseURL: URL(string: "https://api.example.com"), transport: fixture.answers) {
                $0.clock = fixture.clock
            }
        )
        let loader = ResourceLoader(queue: fixture.queue, service: service, request: { Get(url: $0) }) { response in
            barrier.wait()
            return try response.text()
        }
        let receipt = loader.load(fixture.url("a"))
        await expect(eventually { barrier.waitingCount == 1 })
        fixture.clock.advance(by: 10)
        barrier.letGo()
        try await expect(receipt.value, equals: "/a 1")
    }

    // MARK: - Under stress

    @Test(
        "IMG-1: whatever is asked for, cancelled and cancelled again, each receipt ends once, and nothing stays behind"
    )
    func stress() async throws {
        let seed = UInt64.random(in: 0...UInt64.max)
        print("ResourceDecodingTests: seed \(seed)")
        var random = SeededGenerator(seed: seed)
        for maximumLoadCount in [1, 4] {
            let fixture = ResourceFixture(
                maximumLoadCount: maximumLoadCount,
                maximumDecodeCount: 2,
                memoryMaximumAge: 1,
                policy: CachePolicy(.http)
            )
            let (loader, ends) = (fixture.loader, Locked((asked: 0, ended: 0)))
            var (cancels, texts): ([@Sendable () -> Void], [ResourceReceipt<String>]) = ([], [])
            var answers: [ResourceReceipt<Void>] = []
            for _ in 0..<600 {
                let url = fixture.url("\(Int.random(in: 0..<12, using: &random))")
                let variant = Bool.random(using: &random) ? fixture.first : nil
                switch Int.random(in: 0..<8, using: &random) {
                case 0: answers += loader.prefetchToDisk([url])
                case 1: texts += loader.prefetch([url], variant: variant)
                case 2: texts.append(loader.load(url, variant: variant, ignoresCache: true))
                case 3: cancels.randomElement(using: &random)?()
                case 4: texts.randomElement(using: &random)?.priority = .high
                case 5: _ = texts.randomElement(using: &random)?.updates
                case 6: fixture.clock.advance(by: 0.2)
                default:
                    ends.withLock { $0.asked += 1 }
                    texts.append(loader.load(url, variant: variant) { _ in ends.withLock { $0.ended += 1 } })
                }
                if let last = texts.last { cancels.append { last.cancel() } }
                if let last = answers.last { cancels.append { last.cancel() } }
            }
            for receipt in texts { _ = try? await receipt.value }
            for receipt in answers { _ = try? await receipt.value }
            await expect(eventually { fixture.isIdle }, "seed \(seed)")
            await expect(eventually { ends.withLock { $0.asked == $0.ended } }, "seed \(seed)")
            let failed = texts.filter { ![nil, .cancelled].contains($0.result?.failure?.code) }
            expect(failed.isEmpty, "seed \(seed)")
        }
    }
}
