import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import EasyNetworkResources
@testable import TestSupport

/// Loads past the memory, ages, prefetches to disk, and variants.
@Suite
struct ResourceFormsTests {
    // MARK: - Anew

    @Test("IMG-1: a load that ignores the cache passes memory and the host's cache, and renews both")
    func ignoresCache() async throws {
        let fixture = ResourceFixture()
        let (loader, url) = (fixture.loader, fixture.url("a"))
        try await expect(loader.resource(at: url), equals: "/a 1")
        try await expect(loader.resource(at: url), equals: "/a 1")
        try await expect(loader.resource(at: url, ignoresCache: true), equals: "/a 2")
        expect(loader.cachedResource(for: url), equals: "/a 2")
        loader.removeAll()
        // Of the host's cache.
        try await expect(loader.resource(at: url), equals: "/a 2")
        expect(fixture.paths.count, equals: 2)
        for try await text in loader.partialResources(at: url, ignoresCache: true) { expect(text, equals: "/a 3") }
    }

    @Test("IMG-1: loads that ignore the cache share one message, and serve those who come later")
    func sharedReload() async throws {
        let fixture = ResourceFixture(isSteered: true)
        let (loader, url) = (fixture.loader, fixture.url("a"))
        let ordinary = loader.load(url)
        let first = try #require(await fixture.transport.exchange(0))
        let reloads = [loader.load(url, ignoresCache: true), loader.load(url, ignoresCache: true)]
        let second = try #require(await fixture.transport.exchange(1))
        let late = loader.load(url)
        second.head()
        second.body("new")
        second.end()
        for receipt in reloads + [late] { try await expect(receipt.value, equals: "new") }
        // The older message ends last, and does not replace the newer resource.
        first.head()
        first.body("old")
        first.end()
        try await expect(ordinary.value, equals: "old")
        expect(loader.cachedResource(for: url), equals: "new")
        expect(fixture.transport.exchanges.count, equals: 2)
        await expect(eventually { fixture.isIdle })
    }

    @Test("IMG-1: a load that ignores the cache asks again after a remembered failure; its failure keeps the older one")
    func failedReload() async throws {
        let fixture = ResourceFixture(isSteered: true, failureLifetime: 60)
        let (loader, url) = (fixture.loader, fixture.url("a"))
        for (number, text) in [(0, nil), (1, "good"), (2, nil)] {
            let receipt = loader.load(url, ignoresCache: true)
            let exchange = try #require(await fixture.transport.exchange(number))
            if let text {
                exchange.head()
                exchange.body(text)
            }
            exchange.end(text == nil ? .connectionLost : nil)
            if let text { try await expect(receipt.value, equals: text) } else { _ = try? await receipt.value }
        }
        expect(loader.cachedResource(for: url), equals: "good")
        try await expect(loader.resource(at: url), equals: "good")
        expect(fixture.transport.exchanges.count, equals: 3)
    }

    @Test("IMG-1: the last receipt of a load that ignores the cache cancels it, and not the ordinary one")
    func cancelledReload() async throws {
        let fixture = ResourceFixture(isSteered: true)
        let (loader, url) = (fixture.loader, fixture.url("a"))
        let ordinary = loader.load(url)
        let first = try #require(await fixture.transport.exchange(0))
        let reload = loader.load(url, ignoresCache: true)
        let second = try #require(await fixture.transport.exchange(1))
        reload.cancel()
        await expect(eventually { second.isCancelled })
        expect(!first.isCancelled)
        ordinary.cancel()
        await expect(eventually { first.isCancelled && fixture.isIdle })
    }

    // MARK: - Age

    @Test("IMG-1: a resource older than the maximum age is loaded anew; by default none is too old")
    func maximumAge() async throws {
        for (age, expected) in [(TimeInterval?.none, "/a 1"), (10, "/a 2")] {
            let fixture = ResourceFixture(memoryMaximumAge: age, policy: .never)
            let (loader, url) = (fixture.loader, fixture.url("a"))
            try await expect(loader.resource(at: url), equals: "/a 1")
            fixture.clock.advance(by: 9.5)
            // An older one is no younger for being used.
            expect(loader.cachedResource(for: url), equals: "/a 1")
            fixture.clock.advance(by: 0.5)
            expect(loader.cachedResource(for: url), equals: (age == nil ? "/a 1" : nil))
            try await expect(loader.resource(at: url), equals: expected)
            expect(loader.cachedResource(for: url), equals: expected)
            expect(loader.state.withLock { $0.memory.count }, equals: 1)
        }
    }

    @Test("IMG-1: a variant is as old as the resource that it is made of")
    func ageOfVariant() async throws {
        let fixture = ResourceFixture(memoryMaximumAge: 10)
        let (loader, url) = (fixture.loader, fixture.url("a"))
        _ = try await loader.resource(at: url)
        fixture.clock.advance(by: 6)
        _ = try await loader.resource(at: url, variant: fixture.first)
        fixture.clock.advance(by: 4)
        expect(loader.cachedResource(for: url, variant: fixture.first) == nil)
    }

    // MARK: - To disk

    private func withDisk(_ body: (NetworkCache) async throws -> Void) async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString, isDirectory: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        try await body(NetworkCache(directory: folder))
    }

    @Test("IMG-1: a prefetch to disk decodes nothing and fills no memory; the resource then needs no message")
    func prefetchToDisk() async throws {
        try await withDisk { cache in
            let fixture = ResourceFixture(cache: cache)
            let urls = ["a", "b"].map { fixture.url($0) }
            for receipt in fixture.loader.prefetchToDisk(urls) { try await receipt.value }
            expect(fixture.decoded.withLock { $0.isEmpty })
            expect(fixture.loader.cachedResource(for: urls[0]) == nil)
            await cache.flush()
            let usage = await cache.usage
            expect(usage.memoryCount, equals: 0)
            expect(usage.diskCount, equals: 2)
            // What the cache has is not fetched again.
            for receipt in fixture.loader.prefetchToDisk(urls) { try await receipt.value }
            await expect(cache.usage.memoryCount, equals: 0)
            try await expect(fixture.loader.resource(at: urls[0]), equals: "/a 1")
            expect(Set(fixture.paths) == ["/a", "/b"] && fixture.paths.count == 2)
        }
    }

    @Test("IMG-1: where nothing is stored on disk, a prefetch to disk sends nothing and says why")
    func prefetchWithoutDisk() async throws {
        let fixture = ResourceFixture(failureLifetime: 60, policy: CachePolicy(.http, storesOnDisk: false))
        let receipt = fixture.loader.prefetchToDisk([fixture.url("a")])[0]
        let error = await #expect(throws: NetworkError.self) { try await receipt.value }
        expect(error?.code, equals: .invalidRequest)
        expect(fixture.paths.isEmpty)
        // That is no failure of the resource.
        try await expect(fixture.loader.resource(at: fixture.url("a")), equals: "/a 1")
        await expect(eventually { fixture.isIdle })
    }

    @Test("IMG-1: who asks for a resource while it is fetched to disk gets it of the same message")
    func joinsPrefetchToDisk() async throws {
        let fixture = ResourceFixture(isSteered: true)
        let (loader, url) = (fixture.loader, fixture.url("a"))
        let answer = loader.prefetchToDisk([url])[0]
        let exchange = try #require(await fixture.transport.exchange(0))
        let job = try #require(fixture.queue.operations.first)
        expect(job.queuePriority, equals: .veryLow)
        let wanted = loader.load(url, priority: .high)
        expect(job.queuePriority, equals: .high)
        exchange.head()
        exchange.body("text")
        exchange.end()
        try await expect(wanted.value, equals: "text")
        try await answer.value
        expect(loader.cachedResource(for: url), equals: "text")
        expect(fixture.transport.exchanges.count, equals: 1)
        // And the other way round: it takes part in a load that runs.
        let reload = loader.load(url, ignoresCache: true)
        let second = try #require(await fixture.transport.exchange(1))
        let late = loader.prefetchToDisk([url])[0]
        reload.cancel()
        expect(!second.isCancelled)
        late.cancel()
        await expect(eventually { second.isCancelled && fixture.isIdle })
        await #expect(throws: NetworkError.self) { try await late.value }
    }

    // MARK: - Variants

    @Test("IMG-1: a resource and its variants share one message and one decoding, and are kept by their keys")
    func variants() async throws {
        let fixture = ResourceFixture()
        let (loader, url, first) = (fixture.loader, fixture.url("a"), fixture.first)
        let upper = ResourceVariant<String>("upper") { $0.uppercased() }
        fixture.queue.isSuspended = true
        let receipts = [
            loader.load(url), loader.load(url, variant: first), loader.load(url, variant: first),
            loader.load(url, variant: upper),
        ]
        expect(fixture.queue.operationCount, equals: 1)
        fixture.queue.isSuspended = false
        for (receipt, text) in zip(receipts, ["/a 1", "/a", "/a", "/A 1"]) {
            try await expect(receipt.value, equals: text)
        }
        expect(fixture.paths.count, equals: 1)
        expect(fixture.decoded.withLock { $0 }, equals: ["/a 1"])
        expect(fixture.shortened.withLock { $0 }, equals: ["/a 1"])
        expect(loader.cachedResource(for: url), equals: "/a 1")
        expect(loader.cachedResource(for: url, variant: first), equals: "/a")
        expect(loader.cachedResource(for: url, variant: upper), equals: "/A 1")
        loader.remove(url)
        expect(loader.state.withLock { $0.memory.count }, equals: 0)
        await expect(eventually { fixture.isIdle })
    }

    @Test(
        "IMG-1: a variant alone does not keep the whole resource, and is made of it without a message while it is kept"
    )
    func variantAlone() async throws {
        let fixture = ResourceFixture()
        let (loader, url, first) = (fixture.loader, fixture.url("a"), fixture.first)
        try await expect(loader.resource(at: url, variant: first), equals: "/a")
        expect(loader.cachedResource(for: url) == nil)
        expect(loader.cachedResource(for: url, variant: first), equals: "/a")
        try await expect(loader.resource(at: fixture.url("b")), equals: "/b 1")
        try await expect(loader.resource(at: fixture.url("b"), variant: first), equals: "/b")
        expect(fixture.paths, equals: ["/a", "/b"])
        expect(fixture.decoded.withLock { $0.count }, equals: 2)
        _ = try await loader.resource(at: fixture.url("secret"), variant: first)
        expect(loader.cachedResource(for: fixture.url("secret"), variant: first) == nil)
    }

    @Test("IMG-1: a resource that is loaded anew replaces the variants of the older one")
    func variantsOfReload() async throws {
        let fixture = ResourceFixture()
        let (loader, url) = (fixture.loader, fixture.url("a"))
        let last = ResourceVariant<String>("last") { String($0.suffix(1)) }
        try await expect(loader.resource(at: url, variant: last), equals: "1")
        try await expect(loader.resource(at: url), equals: "/a 1")
        try await expect(loader.resource(at: url, ignoresCache: true), equals: "/a 2")
        expect(loader.cachedResource(for: url, variant: last) == nil)
        try await expect(loader.resource(at: url, variant: last), equals: "2")
        try await expect(loader.resource(at: url, variant: last, ignoresCache: true), equals: "3")
        // Nobody asked for the whole, but the older one is not what the variant is of.
        expect(loader.cachedResource(for: url) == nil)
    }

    @Test("IMG-1: the error of a variant is its own, that of the load is everybody's, and both are remembered")
    func failingVariants() async throws {
        let fixture = ResourceFixture(failureLifetime: 60)
        let (loader, first) = (fixture.loader, fixture.first)
        for _ in 0..<2 {
            let error = await #expect(throws: NetworkError.self) {
                try await loader.resource(at: fixture.url("long"), variant: first)
            }
            expect(error?.code, equals: .cannotParseResponse)
        }
        expect(fixture.shortened.withLock { $0.count }, equals: 1)
        try await expect(loader.resource(at: fixture.url("long")).hasPrefix("/long"))
        loader.remove(fixture.url("long"))
        await #expect(throws: NetworkError.self) { try await loader.resource(at: fixture.url("long"), variant: first) }
        expect(fixture.shortened.withLock { $0.count }, equals: 2)
        for _ in 0..<2 {
            await #expect(throws: NetworkError.self) {
                try await loader.resource(at: fixture.url("lost"), variant: first)
            }
        }
        expect(fixture.paths.filter { $0 == "/lost" }.count, equals: 1)
        await expect(eventually { fixture.isIdle })
    }

    @Test("IMG-1: a variant gives its load its priority, and the last receipt of all cancels the load")
    func cancelledVariant() async throws {
        let fixture = ResourceFixture(isSteered: true)
        let (loader, url) = (fixture.loader, fixture.url("a"))
        let variants = [
            loader.load(url, variant: fixture.first, priority: .low), loader.load(url, variant: fixture.first),
        ]
        let exchange = try #require(await fixture.transport.exchange(0))
        let job = try #require(fixture.queue.operations.first)
        expect(job.queuePriority, equals: .normal)
        variants[0].priority = .veryHigh
        expect(job.queuePriority, equals: .veryHigh)
        variants[0].cancel()
        expect(job.queuePriority, equals: .normal)
        let whole = loader.load(url, priority: .low)
        variants[1].cancel()
        expect(job.queuePriority, equals: .low)
        expect(!exchange.isCancelled)
        whole.cancel()
        await expect(eventually { exchange.isCancelled && fixture.isIdle })
        expect(fixture.shortened.withLock { $0.isEmpty })
    }

    @Test("IMG-1: a variant of one resource never has the name of another resource")
    func keysOfVariants() {
        let names = ["a", "v1:a", "1=a", "=a", "!a"]
        var all: [String] = []
        for name in names {
            for version in [0, 1] {
                let key = ResourceKey(name, version: version)
                all += [key.load(ignoresCache: false), key.load(ignoresCache: true)]
                for variant in names + ["a=v1", "é"] { all.append(key.variant(variant).memory) }
                expect(ResourceKey(whole: key.variant("a")).memory, equals: key.memory)
            }
        }
        expect(Set(all).count, equals: all.count)
    }

    // MARK: - Progress

    private func all(_ updates: AsyncStream<(completedBytes: Int64, totalBytes: Int64?)>) async -> [Int64] {
        var all: [Int64] = []
        for await update in updates { all.append(update.completedBytes) }
        return all
    }

    @Test("IMG-1: each receipt of a shared load tells of its bytes, also a late one, a variant's, and one for the disk")
    func updates() async throws {
        let fixture = ResourceFixture(isSteered: true)
        let (loader, url) = (fixture.loader, fixture.url("a"))
        let receipts = [loader.load(url), loader.load(url, variant: fixture.first)]
        let answer = loader.prefetchToDisk([url])[0]
        let streams = receipts.map(\.updates) + [answer.updates]
        let exchange = try #require(await fixture.transport.exchange(0))
        exchange.head(200, ["Content-Length": "10"])
        exchange.body("12345")
        var first = streams[0].makeAsyncIterator()
        var count: (completedBytes: Int64, totalBytes: Int64?)?
        repeat {
            fixture.clock.advance(by: 0.1)
            count = await first.next()
        } while count.map { $0.completedBytes < 5 } ?? false
        expect(count?.completedBytes, equals: 5)
        expect(count?.totalBytes, equals: 10)
        let late = loader.load(url)
        var second = late.updates.makeAsyncIterator()
        await expect(second.next()?.completedBytes, equals: 5)
        late.cancel()
        await expect(second.next() == nil)
        exchange.body("67890")
        exchange.end()
        let rest = await [all(streams[1]), all(streams[2])]
        expect(rest.allSatisfy { $0.last == 10 })
        try await expect(receipts[1].value, equals: "12")
        // After the end there is the last value, and in memory there are no bytes.
        await expect(all(receipts[0].updates), equals: [10])
        await expect(all(loader.load(url).updates), equals: [])
    }

    @Test("IMG-1: updates end with their receipt, whoever reads them")
    func endOfUpdates() async {
        let fixture = ResourceFixture(isSteered: true)
        let receipt = fixture.loader.load(fixture.url("a"))
        let task = Task { [updates = receipt.updates] in for await _ in updates {} }
        let other = receipt.updates
        task.cancel()
        await task.value
        expect(receipt.result == nil)
        receipt.cancel()
        await expect(all(other), equals: [])
        await expect(all(receipt.updates), equals: [])
        await expect(eventually { fixture.isIdle })
    }
}
