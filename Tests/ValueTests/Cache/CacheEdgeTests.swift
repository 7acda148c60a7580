import Dispatch
import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("The cache at its edges", .timeLimit(.minutes(10)))
struct CacheEdgeTests: CacheSuite {
    let fixture = CachedCallFixture()

    private struct Watcher: RequestInterceptor {
        let sources = Locked<[String]>([])
        func didReceive(_ result: Result<NetworkResponse, NetworkError>, context: AttemptContext) async
            -> ResponseDecision
        {
            if case .success(let response) = result { sources.withLock { $0.append(response.source.rawValue) } }
            return .proceed
        }
    }

    @Test("CCH-4: removals of a cache without a disk end")
    func removals() async throws {
        for _ in 0..<3 { try await cache.removeAll() }
        expect(cache.coordinator.withLock { $0.isIdle })
    }

    @Test("CCH-4: the predicate of a removal is released")
    func predicate() async throws {
        final class Object: Sendable {}
        weak var weakly: Object?
        do {
            let object = Object()
            weakly = object
            try await cache.remove { _ in
                withExtendedLifetime(object) {}
                return true
            }
        }
        await expect(eventually { weakly == nil }, equals: true)
    }

    @Test("CCH-3: the cached response passes through interceptors")
    func earlyIntercepted() async throws {
        transport.route("GET", "/a") { _ in .text("new") }
        let watcher = Watcher()
        let service = service { $0.interceptors = [watcher] }
        try service.store(NetworkResponse(body: Data("old".utf8)), for: CachedText())
        var texts: [String] = []
        for try await response in service.responses(to: CachedText()) { texts.append(try response.text()) }
        expect(texts, equals: ["old", "new"])
        expect(watcher.sources.withLock { $0 }, equals: ["cache", "network"])
    }

    @Test("BEY-10: a response from before a change is not stored after it")
    func readYourWrites() async throws {
        transport.route("GET", "/a") { _ in
            MockResponse(headers: ["Cache-Control": "max-age=60"], body: .data(Data("old".utf8)), delay: 5)
        }
        transport.route("POST", "/a") { _ in .status(200) }
        let service = service()
        let slow = Task { try await service.send(CachedCall()).text() }
        await expect(transport.waitForRequests(1))
        await clock.waitForTimers(1)
        _ = try await service.send(CachedCall(method: .post, cache: nil))
        clock.advance(by: 5)
        try await expect(slow.value, equals: "old")
        transport.route("GET", "/a") { _ in .text("new") }
        try await expect(service.send(CachedCall()).text(), equals: "new")
    }

    @Test("BEY-10: a pending response is stored after an invalidation of another URL (RFC 9111, section 4.4)")
    func changeElsewhere() async throws {
        let fields: HTTPHeaders = ["Cache-Control": "max-age=60", "ETag": "\"x\""]
        let isNew = Locked(false)
        transport.route("GET", "/a") { request in
            if request.headers["If-None-Match"] != nil, !isNew.withLock({ $0 }) {
                return MockResponse(statusCode: 304, headers: fields, delay: 5)
            }
            let body = Data((isNew.withLock { $0 } ? "new" : "old").utf8)
            return MockResponse(headers: fields, body: .data(body), delay: 5)
        }
        transport.route("POST", "/b") { _ in .status(200) }
        let service = service()
        func askSlowly(_ call: CachedCall = CachedCall()) async throws -> String {
            let count = transport.requests.count
            let slow = Task { try await service.send(call) }
            await expect(transport.waitForRequests(count + 1))
            await clock.waitForTimers(1)
            _ = try await service.send(CachedCall(api: "b", method: .post, cache: nil))
            clock.advance(by: 5)
            return try await "\(slow.value.text()) \(slow.value.source)"
        }
        func kept() async -> String? {
            try? await service.cachedResponse(for: CachedCall()).text()
        }
        try await expect(askSlowly(), equals: "old network")
        await expect(kept(), equals: "old")
        clock.advance(by: 60)
        await expect(kept() == nil)
        try await expect(askSlowly(), equals: "old revalidated")
        await expect(kept(), equals: "old", "the 304 was kept")
        isNew.withLock { $0 = true }
        try await expect(askSlowly(CachedCall(headers: ["Cache-Control": "no-cache"])), equals: "new network")
        await expect(kept(), equals: "new", "the reload was kept")
    }

    @Test("CCH-4: a pending response is not stored after a removal of all entries, and leaves no older entry")
    func removedMeanwhile() async throws {
        transport.route("GET", "/a") { _ in
            MockResponse(headers: ["Cache-Control": "max-age=60"], body: .data(Data("old".utf8)), delay: 5)
        }
        let service = service()
        let slow = Task { try await service.send(CachedCall()).text() }
        await expect(transport.waitForRequests(1))
        await clock.waitForTimers(1)
        try await cache.remove { _ in false }
        let entry = CacheEntry.made("k", version: 1, count: 10, at: clock.date)
        let generation = cache.generation
        cache.store(entry)
        try await cache.removeAll()
        cache.store(entry, askedIn: generation)
        expect(cache.memoryEntry(for: "k") == nil)
        clock.advance(by: 5)
        try await expect(slow.value, equals: "old")
        await expect(cache.usage.memoryCount, equals: 0)
    }

    @Test("CCH-4: a pending response is not stored after a removal of its entry", arguments: [true, false])
    func removedByHand(byHTTP: Bool) async throws {
        transport.route("GET", "/a") { _ in
            MockResponse(headers: ["Cache-Control": "max-age=60"], body: .data(Data("old".utf8)), delay: 5)
        }
        let service = service()
        let call = CachedCall(cache: byHTTP ? .http : CachePolicy(.cacheElseNetwork))
        let slow = Task { try await service.send(call).text() }
        await expect(transport.waitForRequests(1))
        await clock.waitForTimers(1)
        try service.removeCachedResponse(for: call)
        clock.advance(by: 5)
        try await expect(slow.value, equals: "old")
        await expect(cache.usage.memoryCount, equals: 0)
    }

    @Test("BEY-10: any number of invalidations has effect with at most a thousand records")
    func manyInvalidations() {
        let (first, other) = (
            CacheEntry.made("k", version: 1, count: 10, at: clock.date),
            CacheEntry.made("o", version: 1, count: 10, at: clock.date)
        )
        let generation = cache.generation
        cache.invalidate("k")
        cache.store(first, askedIn: generation)
        expect(cache.memoryEntry(for: "k") == nil, "it was asked for before")
        cache.store(other, askedIn: generation)
        expect(cache.memoryEntry(for: "o") != nil, "it is another one")
        for number in 0..<(3 * CacheCoordinator.invalidationLimit) {
            cache.invalidate("\(number)")
            cache.store(first, askedIn: generation)
        }
        expect(cache.memoryEntry(for: "k") == nil)
        expect(cache.coordinator.withLock { $0.invalidations.count } <= CacheCoordinator.invalidationLimit)
        cache.store(first, askedIn: cache.generation)
        expect(cache.memoryEntry(for: "k") != nil)
    }

    @Test("BEY-10, CCH-4: a newer response that the predicate rejects removes the entry")
    func refusedByPredicate() async throws {
        transport.route("GET", "/a") { _ in .text("x", headers: ["Cache-Control": "max-age=60"]) }
        let service = service()
        _ = try await service.send(CachedCall())
        var refusing = CachePolicy.http
        refusing.isStorable = { _ in false }
        _ = try await service.send(CachedCall(headers: ["Cache-Control": "no-cache"], cache: refusing))
        await expect(cache.usage.memoryCount, equals: 0)
    }

    @Test("BEY-10: odd dates and fields do not trap")
    func wild() async throws {
        let dates: [TimeInterval] = [0, 1e308, -1e308, .nan, .infinity, -.infinity, 1e17, -1e17]
        let fields = [
            "", "0", "-1", "99999999999999999999999", "Sun, 06 Nov 9999 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994", "Mon, 01 Jan 0001 00:00:00 GMT", "٣", "1e999", "\u{0}", "\"",
        ]
        let key = CacheKey.http(try #require(URL(string: "http://one.example/a")), partition: nil)
        transport.route("GET", "/a") { _ in .status(304, headers: ["Age": "99999999999999999999", "Date": "x"]) }
        let service = service()
        for date in dates {
            for other in dates {
                for field in fields {
                    var header = NetworkCache.Entry(
                        key: key,
                        requestedAt: Date(timeIntervalSinceReferenceDate: date),
                        receivedAt: Date(timeIntervalSinceReferenceDate: other)
                    )
                    header.url = URL(string: "http://one.example/a")
                    header.statusCode = field == "0" ? .max : 200
                    header.headers = [
                        "Date": field, "Expires": field, "Last-Modified": field, "Age": field, "ETag": "\"x\"",
                        "Cache-Control": "max-age=\(field), stale-while-revalidate=\(field), stale-if-error=\(field)",
                    ]
                    cache.store(CacheEntry(header: header, body: Data()), in: .all)
                    _ = try? await service.send(CachedCall(headers: ["Cache-Control": "max-stale=\(field)"]))
                    _ = try? await service.cachedResponse(for: CachedCall())
                    _ = try? await service.cachedResponse(
                        for: CachedCall(cache: CachePolicy(.cacheElseNetwork, maximumAge: date))
                    )
                }
            }
        }
    }

    @Test(
        "CCH-3: after a cancel during the mapping of an unreadable entry nothing is sent, and there is one end",
        arguments: [false, true]
    )
    func cancelledInMapping(joins: Bool) async throws {
        struct Bad: APIRequest {
            var api = "a"
            var repeatPolicy: RepeatPolicy
            var cache: CachePolicy? = CachePolicy(.cacheElseNetwork)
            var options: RequestOptions { RequestOptions(cache: cache, repeatPolicy: repeatPolicy) }
            let mapping: @Sendable () -> Void
            func item(from response: NetworkResponse) throws -> String {
                mapping()
                throw NetworkError(code: .cannotParseResponse)
            }
        }
        transport.route("GET", "/a") { _ in .text("new") }
        let service = service()
        try service.store(
            NetworkResponse(body: Data("old".utf8)),
            for: CachedCall(cache: CachePolicy(.cacheElseNetwork))
        )
        let current = Locked<RequestOperation<Bad>?>(nil)
        let ends = Locked<[String]>([])
        let bad = Bad(repeatPolicy: joins ? .join : .allow) { current.withLock { $0 }?.cancel() }
        let operation = RequestOperation(bad, service: service)
        current.withLock { $0 = operation }
        operation.failure = { error in ends.withLock { $0.append("\(error.code)") } }
        let queue = NetworkQueue(maxConcurrentOperationCount: 2)
        queue.addOperation(operation)
        await operation.ended()
        queue.waitUntilAllOperationsAreFinished()
        expect(ends.withLock { $0 }, equals: ["cancelled"])
        expect(transport.requests.isEmpty)
        current.withLock { $0 = nil }
    }

    @Test("BEY-10: a response stays intact after many validations with an interceptor that unwraps")
    func unwrappedAgain() async throws {
        struct Unwrap: RequestInterceptor {
            func didReceive(_ result: Result<NetworkResponse, NetworkError>, context: AttemptContext) async
                -> ResponseDecision
            {
                guard case .success(let old) = result, let text = try? old.text(), text.hasPrefix("(") else {
                    return .proceed
                }
                let body = Data(old.body.dropFirst().dropLast())
                return .succeed(
                    NetworkResponse(
                        statusCode: old.statusCode,
                        headers: old.headers,
                        body: body,
                        source: old.source,
                        url: old.url
                    )
                )
            }
        }
        transport.route("GET", "/a") { request in
            request.headers["If-None-Match"] != nil
                ? .status(304) : .text("((((x))))", headers: ["Cache-Control": "no-cache", "ETag": "\"1\""])
        }
        let service = service { $0.interceptors = [Unwrap()] }
        var texts: [String] = []
        for _ in 0..<4 { texts.append(try await service.send(CachedCall()).text()) }
        expect(texts, equals: Array(repeating: "(((x)))", count: 4))
    }

    @Test("BEY-10: the set of refreshes is empty after a failed refresh")
    func refreshSet() async throws {
        transport.route("GET", "/a") { _ in
            .text("x", headers: ["Cache-Control": "max-age=1, stale-while-revalidate=1000"])
        }
        let service = service()
        _ = try await service.send(CachedCall())
        clock.advance(by: 10)
        transport.route("GET", "/a") { _ in .fault(.reset) }
        for count in 2..<5 {
            _ = try await service.send(CachedCall())
            await expect(transport.waitForRequests(count))
            let key = CacheKey.http(try #require(URL(string: "http://one.example/a")), partition: nil)
            await expect(
                eventually {
                    let begun = cache.beginRefresh(key)
                    if begun { cache.endRefresh(key) }
                    return begun
                }
            )
        }
    }
}

@Suite("Files of others in the cache")
struct HostileFileTests {
    @Test("CCH-4: a sparse file of terabytes does not trap")
    func sparse() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString, isDirectory: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let key = "k"
        let name = DiskCache.name(of: key)
        let shard = folder.appendingPathComponent(String(name.prefix(2)), isDirectory: true)
        try FileManager.default.createDirectory(at: shard, withIntermediateDirectories: true)
        let path = shard.appendingPathComponent(name).path
        let size: off_t = 1 << 42
        var start = Data("ENCF".utf8)
        withUnsafeBytes(of: UInt32(3).littleEndian) { start.append(contentsOf: $0) }
        withUnsafeBytes(of: UInt64(size - 16 - 32).littleEndian) { start.append(contentsOf: $0) }
        try start.write(to: URL(fileURLWithPath: path))
        expect(truncate(path, size), equals: 0)
        let cache = try NetworkCache(directory: folder)
        let answer = await withCheckedContinuation { continuation in
            cache.load(key) { continuation.resume(returning: $0) }
        }
        #expect(throws: CacheMiss.self) { try answer.get() }
        await expect(cache.entries, equals: [])
    }
}
