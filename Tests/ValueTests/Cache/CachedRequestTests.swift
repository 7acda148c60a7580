import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("Requests with a cache policy", .timeLimit(.minutes(10)))
struct CachedRequestTests: CacheSuite {
    let fixture = CachedCallFixture()
    private let queue = NetworkQueue(maxConcurrentOperationCount: 2)
    /// The number of the response.
    private let count = Locked(0)

    init() {
        let count = count
        for method in ["GET", "POST"] {
            transport.route(method, "/news") { _ in
                .text(String(count.next()))
            }
        }
        transport.route("GET", "/broken") { _ in .status(500) }
    }

    private struct News: APIRequest {
        var api = "news"
        var method = NetworkService.Method.get
        var values: [String: Int]?
        var cache: CachePolicy?
        var options: RequestOptions { RequestOptions(cache: cache) }
        var params: [String: Any]? { values }
        var query: NetworkService.QueryType { method == .get ? .path : .json }

        func item(from response: NetworkResponse) throws -> String {
            try response.text() + " " + response.source.description
        }
    }

    /// The result of a request with a policy.
    private func ask(
        _ policy: CachePolicy?,
        _ values: [String: Int]? = nil,
        method: NetworkService.Method = .get,
        over service: EasyNetworkService? = nil
    ) async throws -> String {
        let request = News(method: method, values: values, cache: policy)
        let operation = RequestOperation(request, service: service ?? self.service())
        queue.addOperation(operation)
        return try await operation.value
    }

    private final class Delegate: RequestOperationDelegate {
        let look: @Sendable () -> Void

        init(_ look: @escaping @Sendable () -> Void) {
            self.look = look
        }

        func requestOperationDidSucceed(_ operation: ServiceOperation) { look() }
        func requestOperation(_ operation: ServiceOperation, didFailWith error: NetworkError) { look() }
    }

    @Test(
        "CCH-2: a response is stored when the callbacks have returned, and before dependents start",
        arguments: [RepeatPolicy.allow, .join]
    )
    func storedAfterCallbacks(policy: RepeatPolicy) async throws {
        let counts = Locked<[Int]>([])
        let look = { @Sendable [cache] in
            let count = cache.coordinator.withLock { $0.memory.count }
            counts.withLock { $0.append(count) }
        }
        let request = News(cache: CachePolicy(.cacheElseNetwork))
        let operation = RequestOperation(request, service: service())
        let delegate = Delegate(look)
        operation.repeatPolicy = policy
        operation.delegate = delegate
        operation.preprocess = { _ in look() }
        operation.willDeliver = { _ in look() }
        operation.success = { _ in look() }
        let next = operation.then { _ in request }
        queue.addOperations([operation, next], waitUntilFinished: false)
        try await expect(operation.value, equals: "1 network")
        expect(cache.coordinator.withLock { $0.memory.count }, equals: 1)
        try await expect(next.value, equals: "1 cache")
        expect(counts.withLock { $0 }, equals: [0, 0, 0, 0])
        expect(transport.requests.count, equals: 1)
    }

    @Test("CCH-2: a response is stored when the closure of a service has returned, and before an awaited call returns")
    func storedAfterClosure() async throws {
        let cache = cache
        let request = News(cache: CachePolicy(.cacheElseNetwork))
        let count = await withCheckedContinuation { continuation in
            service().request(
                request,
                success: { _ in continuation.resume(returning: cache.coordinator.withLock { $0.memory.count }) }
            )
        }
        expect(count, equals: 0)
        await expect(eventually { cache.coordinator.withLock { $0.memory.count } == 1 })
        try await cache.removeAll()
        _ = try await service().send(request)
        expect(cache.coordinator.withLock { $0.memory.count }, equals: 1)
    }

    @Test("CCH-2: the answer of an operation that was cancelled meanwhile is stored, too")
    func storedAfterCancel() async throws {
        let operation = RequestOperation(News(cache: CachePolicy(.cacheElseNetwork)), service: service())
        operation.willDeliver = { _ in operation.cancel() }
        queue.addOperation(operation)
        try await expect(operation.value, equals: "1 network")
        expect(cache.coordinator.withLock { $0.memory.count }, equals: 1)
    }

    @Test("CCH-3: with cacheElseNetwork the second request is not sent")
    func elseNetwork() async throws {
        let policy = CachePolicy(.cacheElseNetwork)
        try await expect(ask(policy), equals: "1 network")
        try await expect(ask(policy), equals: "1 cache")
        expect(transport.requests.count, equals: 1)
    }

    @Test("CCH-2, CCH-3: a second perform of a cached request opens no connection, also after a relaunch")
    func noConnection() async throws {
        let server = try MockServer()
        server.route("GET", "/news") { _ in .text("1", headers: ["Connection": "close"]) }
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: folder) }
        let request = News(cache: CachePolicy(.cacheElseNetwork))
        for (index, source) in ["network", "cache", "cache"].enumerated() {
            let cache = try NetworkCache(directory: folder)
            let service = EasyNetworkService(server.host { $0.cache = cache })
            try await expect(queue.perform(request, service: service), equals: "1 \(source)", "\(index)")
            try await expect(queue.perform(request, service: service), equals: "1 cache")
            await cache.flush()
        }
        expect(server.requests.count, equals: 1)
        await server.waitForConnections(0)
        server.stop()
        let cache = try NetworkCache(directory: folder)
        let service = EasyNetworkService(server.host { $0.cache = cache })
        try await expect(queue.perform(request, service: service), equals: "1 cache")
    }

    @Test("CCH-3: without a policy the cache is not used; a policy that only stores does not read")
    func none() async throws {
        try await expect(ask(nil), equals: "1 network")
        let unstored = CachePolicy(.cacheElseNetwork, storesInMemory: false, storesOnDisk: false)
        try await expect(ask(unstored), equals: "2 network")
        await expect(cache.usage.memoryCount, equals: 0)
        try await expect(ask(CachePolicy(.network)), equals: "3 network")
        try await expect(ask(CachePolicy(.network)), equals: "4 network")
        try await expect(ask(CachePolicy(.cacheOnly)), equals: "4 cache")
        try await expect(ask(nil, over: service { $0.cachePolicy = CachePolicy(.cacheOnly) }), equals: "4 cache")
    }

    private func ask(_ policy: CachePolicy, ignoring isIgnoring: Bool) async throws -> String {
        let operation = RequestOperation(News(cache: policy), service: service())
        operation.ignoresCache = isIgnoring
        queue.addOperation(operation)
        return try await operation.value
    }

    @Test(
        "CCH-3: an operation or a call that ignores the cache stores its response",
        arguments: [.cacheElseNetwork, .cacheThenNetwork, .cacheOnly, .http] as [CachePolicy.Reading]
    )
    func ignored(reading: CachePolicy.Reading) async throws {
        transport.route("GET", "/news") { [count] request in
            let number = count.next()
            expect(request.headers["If-None-Match"] == nil)
            return .text(String(number), headers: ["Cache-Control": "max-age=60", "ETag": "\"\(number)\""])
        }
        let policy = CachePolicy(reading)
        try await expect(ask(policy, ignoring: true), equals: "1 network")
        try await expect(ask(policy, ignoring: true), equals: "2 network")
        if reading != .cacheThenNetwork { try await expect(ask(policy, ignoring: false), equals: "2 cache") }
        let request = News(cache: policy)
        let service = service()
        try await expect(service.perform(request, ignoringCache: true), equals: "3 network")
        let response = try await service.send(request, ignoringCache: true)
        try expect(response.text() == "4" && response.history.map(\.cacheMiss) == [.ignored])
        try await expect(service.cachedResponse(for: request).text(), equals: "4")
    }

    @Test("CCH-3: an operation that ignores the cache has no cached item")
    func ignoredEarly() async throws {
        let policy = CachePolicy(.cacheThenNetwork)
        _ = try await ask(policy)
        let operation = RequestOperation(News(cache: policy), service: service())
        operation.ignoresCache = true
        operation.cached = { Issue.record("\($0) came from the cache") }
        queue.addOperation(operation)
        try await expect(operation.value, equals: "2 network")
        expect(operation.cachedItem == nil)
    }

    @Test("CCH-3, BEY-9: operations that ignore the cache join each other only")
    func ignoredJoin() throws {
        let snapshot = try RequestSnapshot(News(), RequestOptions(), for: service().configuration)
        func key(_ ignoresCache: Bool) -> SharingKey {
            SharingKey(name: "n", snapshot, itemType: News.Item.self, ignoresCache: ignoresCache)
        }
        expect(key(true) == key(true) && key(true) != key(false))
    }

    @Test("CCH-3, BEY-9: a joined operation that ignores the cache sends")
    func ignoredJoined() async throws {
        struct Joining: APIRequest {
            var api = "news"
            var repeatPolicy = RepeatPolicy.join
            var cache: CachePolicy? = CachePolicy(.cacheElseNetwork)
            var options: RequestOptions { RequestOptions(cache: cache, repeatPolicy: repeatPolicy) }
            func item(from response: NetworkResponse) throws -> String { try response.text() }
        }
        let service = service()
        for expected in ["1", "2"] {
            let operation = RequestOperation(Joining(), service: service)
            operation.ignoresCache = true
            queue.addOperation(operation)
            try await expect(operation.value, equals: expected)
        }
    }

    @Test("CCH-1, CCH-3: with cacheOnly a missing entry is notCached, with the reason")
    func only() async throws {
        let error = await #expect(throws: NetworkError.self) { try await ask(CachePolicy(.cacheOnly)) }
        expect(error?.code == .notCached && error?.cacheMiss == .absent && error?.attempts == 0)
        expect(error?.localizedDescription.contains("absent"), equals: true)
        expect(transport.requests.isEmpty)
    }

    @Test("CCH-1: each invalidity has its reason: age, version, sensitive data, app version")
    func refusals() async throws {
        let stored = CachePolicy(.network, maximumAge: 10, version: 3, sensitiveData: "ada", appVersion: "1.0")
        _ = try await ask(stored)
        clock.advance(by: 10)
        var valid = stored
        valid.reading = .cacheOnly
        try await expect(ask(valid), equals: "1 cache")
        let cases: [(CacheMiss, (inout CachePolicy) -> Void)] = [
            (.expired, { $0.maximumAge = 9 }),
            (.version, { $0.version = 4 }),
            (.sensitiveData, { $0.sensitiveData = "eve" }),
            (.sensitiveData, { $0.sensitiveData = nil }),
            (.appVersion, { $0.appVersion = "1.1" }),
        ]
        for (miss, change) in cases {
            var policy = valid
            change(&policy)
            let error = await #expect(throws: NetworkError.self) { try await ask(policy) }
            expect(error?.cacheMiss, equals: miss)
        }
        valid.appVersion = nil
        try await expect(ask(valid), equals: "1 cache")
    }

    @Test("CCH-1: a response from the future has expired")
    func future() async throws {
        clock.advance(by: 100)
        _ = try await ask(CachePolicy(.network))
        let yesterday = ManualClock()
        let service = service { $0.clock = yesterday }
        let policy = CachePolicy(.cacheOnly, maximumAge: 1_000)
        let error = await #expect(throws: NetworkError.self) { try await ask(policy, over: service) }
        expect(error?.cacheMiss, equals: .expired)
        try await expect(ask(CachePolicy(.cacheOnly), over: service), equals: "1 cache")
    }

    @Test("CCH-1: of sensitive data only a digest is stored")
    func digest() async throws {
        _ = try await ask(CachePolicy(.network, sensitiveData: "a secret"))
        let entry = try #require(await cache.entries.first)
        let stored = try #require(cache.memoryEntry(for: entry.key))
        expect(!String(describing: stored).contains("a secret"))
        expect(stored.header.attributes.values.contains(SHA256.digest(of: Data("a secret".utf8)).hexadecimal))
    }

    @Test(
        "CCH-5: the key has method, URL, parameters in any order, body and type; users can add to it and take from it"
    )
    func keys() async throws {
        let policy = CachePolicy(.cacheElseNetwork)
        try await expect(ask(policy, ["a": 1, "b": 2]), equals: "1 network")
        try await expect(ask(policy, ["b": 2, "a": 1]), equals: "1 cache")
        try await expect(ask(policy, ["a": 1, "b": 3]), equals: "2 network")
        try await expect(ask(policy, ["a": 1, "b": 2], method: .post), equals: "3 network")
        try await expect(ask(policy, ["b": 2, "a": 1], method: .post), equals: "3 cache")
        try await expect(ask(policy, ["b": 2], method: .post), equals: "4 network")
        var own = policy
        own.extraKey = "dark"
        try await expect(ask(own, ["a": 1, "b": 2]), equals: "5 network")
        own = policy
        own.key = "news"
        try await expect(ask(own, ["a": 1]), equals: "6 network")
        try await expect(ask(own, ["a": 2]), equals: "6 cache")
        own = policy
        own.ignoredParameters = ["time"]
        try await expect(ask(own, ["q": 1, "time": 1]), equals: "7 network")
        try await expect(ask(own, ["q": 1, "time": 2]), equals: "7 cache")
    }

    @Test("CCH-5: with partitions, users of one host never see each other's responses")
    func partition() async throws {
        let (ada, eve) = (service { $0.cachePartition = "ada" }, service { $0.cachePartition = "eve" })
        for reading in [CachePolicy.Reading.cacheElseNetwork, .http] {
            let first = try await ask(CachePolicy(reading), over: ada)
            let second = try await ask(CachePolicy(reading), over: eve)
            expect(first.hasSuffix("network") && second.hasSuffix("network") && first != second)
        }
        try await expect(ask(CachePolicy(.cacheElseNetwork), over: ada), equals: "1 cache")
        try await expect(ask(CachePolicy(.cacheElseNetwork), over: eve), equals: "2 cache")
    }

    @Test("CCH-5: a file or stream as body has no key, unless the policy has one")
    func noKey() async throws {
        struct Upload: BaseAPIRequest {
            var api = "news"
            var method = NetworkService.Method.post
            var body: RequestBody? = .stream(TransportBodyStream(length: 1) { InputStream(data: Data("x".utf8)) })
            var cache: CachePolicy?
            var options: RequestOptions { RequestOptions(cache: cache) }
        }
        let service = service()
        let response = try await service.send(Upload(cache: CachePolicy(.cacheElseNetwork)))
        expect(response.history.first?.cacheMiss, equals: .noKey)
        await expect(cache.usage.memoryCount, equals: 0)
        _ = try await service.send(Upload(cache: CachePolicy(.cacheElseNetwork, key: "upload")))
        let cached = try await service.send(Upload(cache: CachePolicy(.cacheElseNetwork, key: "upload")))
        expect(cached.source == .cache && cached.history.isEmpty)
    }

    @Test("CCH-2, CCH-4: the predicate is called after mapping; a response that cannot be mapped is not stored")
    func predicate() async throws {
        struct Picky: APIRequest {
            var api = "news"
            var fails: Bool
            let asked: Locked<[String]>
            var cache: CachePolicy? {
                CachePolicy(.network) { [asked] response in
                    asked.withLock { $0.append("predicate") }
                    return response.body == Data("2".utf8)
                }
            }
            var options: RequestOptions { RequestOptions(cache: cache) }
            func item(from response: NetworkResponse) throws -> String {
                asked.withLock { $0.append("map") }
                if fails { throw NetworkError(code: .cannotParseResponse) }
                return try response.text()
            }
        }
        let asked = Locked<[String]>([])
        for fails in [false, false, true] {
            let operation = RequestOperation(Picky(fails: fails, asked: asked), service: service())
            queue.addOperation(operation)
            await operation.ended()
        }
        expect(asked.withLock { $0 }, equals: ["map", "predicate", "map", "predicate", "map"])
        try await expect(ask(CachePolicy(.cacheOnly)), equals: "2 cache")
    }

    @Test("CCH-3: an entry that can no longer be mapped is removed, and the request sent, or with cacheOnly notCached")
    func unreadable() async throws {
        struct Number: APIRequest {
            var api = "news"
            var cache: CachePolicy?
            var options: RequestOptions { RequestOptions(cache: cache) }
            func item(from response: NetworkResponse) throws -> String {
                guard response.source != .cache else { throw NetworkError(code: .cannotParseResponse) }
                return try response.text()
            }
        }
        _ = try await ask(CachePolicy(.network))
        let alone = RequestOperation(Number(cache: CachePolicy(.cacheOnly)), service: service())
        queue.addOperation(alone)
        let error = await #expect(throws: NetworkError.self) { try await alone.value }
        expect(error?.code == .notCached && error?.cacheMiss == .unreadable)
        await expect(cache.usage.memoryCount, equals: 0)
        _ = try await ask(CachePolicy(.network))
        let operation = RequestOperation(Number(cache: CachePolicy(.cacheElseNetwork)), service: service())
        queue.addOperation(operation)
        try await expect(operation.value, equals: "3")
        try await expect(ask(CachePolicy(.cacheOnly)), equals: "3 cache")
    }

    private struct Joined: APIRequest {
        let fails: Locked<Bool>
        var api = "news"
        var options: RequestOptions { RequestOptions(cache: CachePolicy(.cacheElseNetwork), repeatPolicy: .join) }

        func item(from response: NetworkResponse) throws -> String {
            if fails.withLock({ $0 }) { throw NetworkError(code: .cannotParseResponse) }
            return try response.text() + " " + response.source.description
        }
    }

    @Test("OPQ-6, CCH-2: a response of joined requests that cannot be mapped is not stored")
    func joined() async throws {
        let fails = Locked(true)
        let service = service()
        func join() async throws -> String {
            let operation = RequestOperation(Joined(fails: fails), service: service)
            queue.addOperation(operation)
            return try await operation.value
        }
        await #expect(throws: NetworkError.self) { try await join() }
        await expect(cache.usage.memoryCount, equals: 0)
        fails.withLock { $0 = false }
        try await expect(join(), equals: "2 network")
        try await expect(join(), equals: "2 cache")
        // As after an update that maps responses differently.
        fails.withLock { $0 = true }
        await #expect(throws: NetworkError.self) { try await join() }
        await expect(cache.usage.memoryCount, equals: 0)
    }

    @Test("CCH-3: the policy of a host is for GET and HEAD, that of a request for any method")
    func hostPolicy() async throws {
        let service = service { $0.cachePolicy = CachePolicy(.cacheElseNetwork) }
        try await expect(ask(nil, over: service), equals: "1 network")
        try await expect(ask(nil, over: service), equals: "1 cache")
        try await expect(ask(nil, method: .post, over: service), equals: "2 network")
        try await expect(ask(nil, method: .post, over: service), equals: "3 network")
        try await expect(ask(CachePolicy(.cacheElseNetwork), method: .post, over: service), equals: "4 network")
        try await expect(ask(CachePolicy(.cacheElseNetwork), method: .post, over: service), equals: "4 cache")
    }

    @Test("CCH-3, BEY-3: a cancelled task also cancels the request that follows an unreadable entry")
    func unreadableCancelled() async throws {
        _ = try await ask(CachePolicy(.network))
        transport.route("GET", "/news") { _ in .fault(.stall) }
        let service = service()
        let task = Task { try await service.perform(Joined(fails: Locked(true))) }
        await expect(transport.waitForRequests(2))
        task.cancel()
        let error = await #expect(throws: NetworkError.self) { try await task.value }
        expect(error?.code, equals: .cancelled)
    }

    @Test("CCH-3: an entry that is no longer accepted is not used")
    func notAccepted() async throws {
        _ = try await ask(CachePolicy(.network))
        let strict = service { $0.validation.maximumBodyCount = 0 }
        let error = await #expect(throws: NetworkError.self) { try await ask(CachePolicy(.cacheOnly), over: strict) }
        expect(error?.cacheMiss, equals: .unreadable)
    }

    @Test("CCH-4: entries can be loaded, stored and removed by hand")
    func byHand() async throws {
        let service = service()
        let request = News(cache: CachePolicy(.cacheElseNetwork, maximumAge: 5, version: 2))
        try service.store(NetworkResponse(body: Data("made".utf8)), for: request)
        try await expect(service.cachedResponse(for: request).text(), equals: "made")
        try await expect(ask(request.cache), equals: "made cache")
        clock.advance(by: 6)
        let expired = await #expect(throws: NetworkError.self) { try await service.cachedResponse(for: request) }
        expect(expired?.cacheMiss, equals: .expired)
        try service.store(NetworkResponse(body: Data("again".utf8)), for: request)
        try service.removeCachedResponse(for: request)
        let error = await #expect(throws: NetworkError.self) { try await service.cachedResponse(for: request) }
        expect(error?.cacheMiss, equals: .absent)
        #expect(throws: NetworkError.self) { try service.store(NetworkResponse(), for: News()) }
        expect(transport.requests.isEmpty)
    }

    @Test("CCH-1: the reason of a cache miss is in the history and the queue's events")
    func event() async throws {
        let events = queue.events
        let operation = RequestOperation(News(cache: CachePolicy(.cacheElseNetwork)), service: service())
        queue.addOperation(operation)
        _ = try await operation.value
        var story: [String] = []
        for await event in events {
            switch event.kind {
            case .added: story.append("added")
            case .started: story.append("started")
            case .missedCache(let miss):
                expect(event.operation === operation)
                story.append("missed: \(miss)")
            case .finished: story.append("finished")
            default: continue
            }
            if story.last == "finished" { break }
        }
        expect(story, equals: ["added", "started", "missed: absent", "finished"])
        let response = try await service().send(News(cache: CachePolicy(.cacheElseNetwork, version: 1)))
        expect(response.history.map(\.cacheMiss), equals: [.version])
    }

    @Test("CCH-3: interceptors see a stored response, and may have the request sent instead")
    func interceptors() async throws {
        struct Doubter: RequestInterceptor {
            func didReceive(
                _ result: Result<NetworkResponse, NetworkError>,
                context: AttemptContext
            ) async -> ResponseDecision {
                (try? result.get())?.source == .cache ? .sendAgain(after: 0) : .proceed
            }
        }
        let policy = CachePolicy(.cacheElseNetwork)
        _ = try await ask(policy)
        try await expect(ask(policy, over: service { $0.interceptors = [Doubter()] }), equals: "2 network")
    }

    @Test("CBK-3, CCH-3: accessories are called for a stored response")
    func accessories() async throws {
        _ = try await ask(CachePolicy(.network))
        let heard = Locked<[String]>([])
        let operation = RequestOperation(News(cache: CachePolicy(.cacheOnly)), service: service())
        operation.addAccessory(
            willStart: { _ in heard.withLock { $0.append("start") } },
            didStop: { _ in heard.withLock { $0.append("stop") } }
        )
        queue.addOperation(operation)
        try await expect(operation.value, equals: "1 cache")
        expect(heard.withLock { $0 }, equals: ["start", "stop"])
    }
}
