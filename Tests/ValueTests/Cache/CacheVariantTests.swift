import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

extension CachedCall {
    fileprivate init(
        _ language: String,
        method: NetworkService.Method = .get,
        also headers: [String: String] = [:]
    ) {
        self.init(method: method, headers: headers.merging(["Accept-Language": language]) { $1 })
    }
}

@Suite("Several responses of one URL in the cache", .timeLimit(.minutes(10)))
struct CacheVariantTests: CacheSuite {
    let fixture = CachedCallFixture()
    private let files: CacheFixture
    private let count = Locked(0)

    init() {
        files = CacheFixture(clock: fixture.clock)
        answers(["Cache-Control": "max-age=60"])
    }

    /// Where the responses are.
    enum Place: CaseIterable {
        case memory, disk, both
    }

    private func cache(_ place: Place) -> NetworkCache {
        switch place {
        case .memory: fixture.cache
        case .disk: files.cache(memoryBytes: 0)
        case .both: files.cache()
        }
    }

    /// Responds with the language and a count, and with 304 to the current validator of the language.
    private func answers(_ headers: HTTPHeaders, vary: String = "Accept-Language") {
        transport.route("GET", "/a") { [count] request in
            let language = request.headers["Accept-Language"] ?? ""
            let tag = "\"\(language)\""
            let fields = headers.merging(["Vary": vary, "ETag": tag])
            if request.headers["If-None-Match"] == tag { return .status(304, headers: fields) }
            let number = count.next()
            return .text("\(language) \(number)", headers: fields)
        }
    }

    /// Waits for the disk, so that the order of its changes is that of the calls.
    private func ask(_ call: CachedCall, _ cache: NetworkCache) async throws -> String {
        let text = try await ask(call, over: service(with: cache))
        await cache.flush()
        return text
    }

    private func key() throws -> String {
        CacheKey.http(try #require(URL(string: "http://one.example/a")), partition: nil)
    }

    @Test(
        "BEY-10: RFC 9111, section 4.1: responses that differ by Vary are kept beside each other",
        arguments: Place.allCases
    )
    func beside(place: Place) async throws {
        let cache = cache(place)
        try await expect(ask(CachedCall("en"), cache), equals: "en 1 network")
        try await expect(ask(CachedCall("de"), cache), equals: "de 2 network")
        try await expect(ask(CachedCall("it"), cache), equals: "it 3 network")
        for (language, expected) in [("en", "en 1 cache"), ("de", "de 2 cache"), ("it", "it 3 cache")] {
            try await expect(ask(CachedCall(language), cache), equals: expected)
            try await expect(
                service(with: cache).cachedResponse(for: CachedCall(language)).text() + " cache",
                equals: expected
            )
        }
        let miss = try await service(with: cache).send(CachedCall("fr")).history.first?.cacheMiss
        expect(miss, equals: .varies)
        await expect(cache.entries.count, equals: 4)
    }

    @Test(
        "BEY-10, CCH-2: after a relaunch the responses are found, and new ones join them",
        arguments: [0, 20_000_000]
    )
    func relaunch(memoryBytes: Int) async throws {
        for (index, language) in ["en", "de", "fr", "it"].enumerated() {
            try await expect(
                ask(CachedCall(language), files.cache(memoryBytes: memoryBytes)),
                equals: "\(language) \(index + 1) network"
            )
        }
        let cache = files.cache(memoryBytes: memoryBytes)
        for (index, language) in ["en", "de", "fr", "it"].enumerated() {
            try await expect(ask(CachedCall(language), cache), equals: "\(language) \(index + 1) cache")
        }
        expect(files.paths().count, equals: 4)
    }

    @Test("BEY-10, CCH-2: a reload after a relaunch keeps the other responses, in memory and on disk")
    func reloadAfterRelaunch() async throws {
        _ = try await ask(CachedCall("en"), files.cache())
        let cache = files.cache()
        let hold = Hold(files.files, [.create])
        // Neither reads nor promotes the entry on disk, which is merged when the new one is written.
        _ = try await service(with: cache).send(CachedCall("de"), ignoringCache: true)
        hold.end()
        try await expect(ask(CachedCall("de"), cache), equals: "de 2 cache")
        try await expect(ask(CachedCall("en"), cache), equals: "en 1 cache")
        try await expect(ask(CachedCall("fr"), cache), equals: "fr 3 network")
        for (language, number) in [("en", 1), ("de", 2), ("fr", 3)] {
            try await expect(ask(CachedCall(language), files.cache()), equals: "\(language) \(number) cache")
        }
    }

    @Test("BEY-10: RFC 9111, section 4.3.4: a 304 refreshes the response that it confirms", arguments: Place.allCases)
    func revalidation(place: Place) async throws {
        let cache = cache(place)
        for language in ["en", "de"] { _ = try await ask(CachedCall(language), cache) }
        clock.advance(by: 61)
        answers(["Cache-Control": "max-age=600", "X-New": "1"])
        try await expect(ask(CachedCall("en"), cache), equals: "en 1 revalidated")
        expect(transport.requests.last?.headers["If-None-Match"], equals: "\"en\"")
        let known = try await service(with: cache).send(CachedCall("en"))
        try expect(known.source == .cache && known.text() == "en 1" && known.headers["X-New"] == "1")
        // The other one is as stale as before.
        try await expect(ask(CachedCall("de"), cache), equals: "de 2 revalidated")
        expect(transport.requests.last?.headers["If-None-Match"], equals: "\"de\"")
        try await expect(ask(CachedCall("en"), cache), equals: "en 1 cache")
        await expect(cache.entries.count, equals: 2)
    }

    @Test("BEY-10: a newer response replaces the one for the same request only", arguments: Place.allCases)
    func newer(place: Place) async throws {
        let cache = cache(place)
        for language in ["en", "de"] { _ = try await ask(CachedCall(language), cache) }
        for language in ["en", "de"] {
            let reload = CachedCall(language, also: ["Cache-Control": "no-cache", "If-None-Match": "\"\""])
            _ = try await ask(reload, cache)
        }
        try await expect(ask(CachedCall("en"), cache), equals: "en 3 cache")
        try await expect(ask(CachedCall("de"), cache), equals: "de 4 cache")
        await expect(cache.entries.count, equals: 2)
    }

    @Test("BEY-10: eight responses of a URL are kept, without the oldest", arguments: Place.allCases)
    func limit(place: Place) async throws {
        let cache = cache(place)
        let languages = (1...8).map { "l\($0)" }
        for language in languages { _ = try await ask(CachedCall(language), cache) }
        _ = try await ask(CachedCall("l9"), cache)
        await expect(cache.entries.count, equals: 8)
        for language in languages.dropFirst() {
            try await expect(service(with: cache).cachedResponse(for: CachedCall(language)).text().hasPrefix(language))
        }
        await #expect(throws: NetworkError.self) {
            try await service(with: cache).cachedResponse(for: CachedCall("l1"))
        }
    }

    /// The ways to remove the responses of a URL.
    enum Removal: CaseIterable {
        case unsafeMethod, byRequest, byURL
    }

    @Test(
        "BEY-10: RFC 9111, section 4.4: an invalidation or removal concerns all responses of the URL",
        arguments: Place.allCases,
        Removal.allCases
    )
    func invalidation(place: Place, removal: Removal) async throws {
        var cache = cache(place)
        for language in ["en", "de", "fr"] { _ = try await ask(CachedCall(language), cache) }
        if place != .memory { cache = self.cache(place) }
        switch removal {
        case .unsafeMethod:
            transport.route("DELETE", "/a") { _ in .status(204) }
            _ = try await service(with: cache).send(CachedCall("it", method: .delete))
        case .byRequest: try service(with: cache).removeCachedResponse(for: CachedCall("en"))
        case .byURL: try await cache.remove(try #require(URL(string: "http://one.example/a")))
        }
        for language in ["en", "de", "fr"] {
            await #expect(throws: NetworkError.self) {
                try await service(with: cache).cachedResponse(for: CachedCall(language))
            }
        }
        await cache.flush()
        await expect(cache.entries, equals: [])
        expect(files.paths(), equals: [])
        // The responses before it do not return with the next one.
        try await expect(ask(CachedCall("en"), cache), equals: "en 4 network")
        try await expect(ask(CachedCall("de"), cache), equals: "de 5 network")
        try await expect(ask(CachedCall("en"), cache), equals: "en 4 cache")
    }

    @Test("BEY-10: an invalidation at once after several responses leaves no file")
    func invalidationWhileWriting() async throws {
        let cache = files.cache()
        let hold = Hold(files.files, [.create])
        for language in ["en", "de", "fr"] { _ = try await service(with: cache).send(CachedCall(language)) }
        try service(with: cache).removeCachedResponse(for: CachedCall("en"))
        hold.end()
        await cache.flush()
        expect(files.paths() == [] && cache.coordinator.withLock { $0.isIdle })
    }

    @Test("BEY-10, CCH-4: a response for memory only is not written when one for the disk joins it")
    func memoryOnly() async throws {
        let cache = files.cache()
        var secret = CachedCall("en")
        secret.cache?.storesOnDisk = false
        try await expect(ask(secret, cache), equals: "en 1 network")
        try await expect(ask(CachedCall("de"), cache), equals: "de 2 network")
        try await expect(ask(CachedCall("fr"), cache), equals: "fr 3 network")
        for (language, number) in [("en", 1), ("de", 2), ("fr", 3)] {
            try await expect(ask(CachedCall(language), cache), equals: "\(language) \(number) cache")
        }
        expect(files.paths().count, equals: 2)
        await #expect(throws: NetworkError.self) {
            try await service(with: files.cache()).cachedResponse(for: CachedCall("en"))
        }
    }

    @Test("BEY-10, CCH-2: a variant that stayed in memory after an invalidation is not used again")
    func leftInMemory() async throws {
        let cache = files.cache(memoryCount: 2)
        let key = try key()
        func store(_ language: String, _ version: Int, in tiers: CacheStorage) async {
            var entry = files.entry(key, version: version)
            entry.header.nominated = NominatedFields(vary: ["Vary": "X"], of: ["X": language])
            await cache.stored(entry, in: tiers)
        }
        func version(_ language: String) async -> String? {
            await cache.loaded(key, for: ["X": language]).value?.header.attributes["version"]
        }
        await store("en", 1, in: .all)
        await store("de", 2, in: .all)
        await expect(version("en"), equals: "1")
        // Evicts the entry that lists the variant.
        await cache.stored(files.entry("other"))
        expect(cache.memoryEntry(for: key) == nil)
        cache.invalidate(key)
        await store("en", 3, in: .disk)
        await store("de", 4, in: .disk)
        await expect(version("en"), equals: "3")
        await expect(version("de"), equals: "4")
    }

    @Test("BEY-10: concurrent requests get a response of their own kind", arguments: Place.allCases)
    func concurrent(place: Place) async throws {
        let cache = cache(place)
        let key = try key()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for worker in 0..<4 {
                group.addTask {
                    var generator = SeededGenerator(seed: UInt64(worker))
                    let service = service(with: cache)
                    for _ in 0..<TestLoad.count(100, part: 25) {
                        let language = "l\(Int.random(in: 0..<10, using: &generator))"
                        if Int.random(in: 0..<20, using: &generator) == 0 { cache.invalidate(key) }
                        let isForced = Bool.random(using: &generator)
                        let response = try await service.send(CachedCall(language), ignoringCache: isForced)
                        try expect(response.text().hasPrefix(language + " "))
                    }
                }
            }
            try await group.waitForAll()
        }
        await cache.flush()
        expect(cache.coordinator.withLock { $0.isIdle })
        await expect(cache.entries.count <= CacheEntry.variantLimit)
    }

    @Test(
        "BEY-10: of several responses for a request the newest is used, though Vary has changed",
        arguments: Place.allCases
    )
    func changedVary(place: Place) async throws {
        let cache = cache(place)
        _ = try await ask(CachedCall("en", also: ["X-Page": "1"]), cache)
        answers(["Cache-Control": "max-age=60"], vary: "X-Page")
        _ = try await ask(CachedCall("de", also: ["X-Page": "2"]), cache)
        try await expect(ask(CachedCall("en", also: ["X-Page": "2"]), cache), equals: "de 2 cache")
        try await expect(ask(CachedCall("en", also: ["X-Page": "1"]), cache), equals: "en 1 cache")
    }

    @Test("BEY-10, CCH-2: a variant under another one's name, or without its file, is not used")
    func exchanged() async throws {
        let cache = files.cache()
        for language in ["en", "de", "fr"] { _ = try await ask(CachedCall(language), cache) }
        let variants = try #require(cache.memoryEntry(for: key())?.header.variants)
        let paths = try variants.map { files.path(of: CacheKey.variant($0, of: try key())) }
        expect(variants.count, equals: 2)
        // The newest is first: de.
        try FileManager.default.removeItem(atPath: paths[0])
        try FileManager.default.copyItem(atPath: paths[1], toPath: paths[0])
        try await expect(ask(CachedCall("de"), files.cache()), equals: "de 4 network")
        try FileManager.default.removeItem(atPath: paths[1])
        try await expect(ask(CachedCall("en"), files.cache()), equals: "en 5 network")
        try await expect(ask(CachedCall("fr"), files.cache()), equals: "fr 3 cache")
    }

    @Test("BEY-10, CCH-2: a file without a list of variants, as older releases wrote, is used")
    func older() async throws {
        _ = try await ask(CachedCall("en"), files.cache())
        let file = try Data(contentsOf: URL(fileURLWithPath: files.path(of: try key())))
        expect(file.range(of: Data("variants".utf8)) == nil, "the file of a single response is as before")
        try await expect(ask(CachedCall("en"), files.cache()), equals: "en 1 cache")
    }

    @Test(
        "BEY-10: random requests get the response that was stored last for them, whatever fails",
        arguments: TestLoad.isFull ? Array(UInt64(1)...12) : [1, 7]
    )
    func random(seed: UInt64) async throws {
        var generator = SeededGenerator(seed: seed)
        let place = Place.allCases[Int(seed % 3)]
        var cache = cache(place)
        if seed > 6 {
            let failing = Locked(SeededGenerator(seed: seed &+ 1_000))
            files.files.fail { operation, _ in
                guard operation != .remove else { return nil }
                return failing.withLock { Int.random(in: 0..<5, using: &$0) == 0 ? EIO : nil }
            }
        }
        var last: [String: String] = [:]
        for step in 0..<150 {
            let language = "l\(Int.random(in: 0..<10, using: &generator))"
            switch Int.random(in: 0..<20, using: &generator) {
            case 0: cache.invalidate(try key())
            case 1: clock.advance(by: 61)
            case 2 where place != .memory: cache = self.cache(place)
            default:
                let isForced = Bool.random(using: &generator)
                let response = try await service(with: cache).send(CachedCall(language), ignoringCache: isForced)
                let text = try response.text()
                expect(text.hasPrefix(language + " "), "seed \(seed), step \(step)")
                if response.source != .network { expect(text, equals: last[language], "seed \(seed), step \(step)") }
                last[language] = text
            }
            await cache.flush()
        }
        expect(cache.coordinator.withLock { $0.isIdle })
        await expect(cache.usage.diskCount <= (place == .memory ? 0 : 8), "seed \(seed): no file is left unlisted")
    }
}
