import Dispatch
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("NetworkCache")
struct NetworkCacheTests {
    private let fixture = CacheFixture()

    private func version(
        _ key: String,
        _ cache: NetworkCache,
        from tiers: CacheStorage = .all,
        isPromoting: Bool = true
    ) async -> Int? {
        await cache.loaded(key, from: tiers, isPromoting: isPromoting).value?.version(of: key)
    }

    @Test("CCH-2: an entry is in memory, on disk or both, as requested")
    func tiers() async {
        let cache = fixture.cache()
        for (key, tiers) in [("m", CacheStorage.memory), ("d", .disk), ("b", .all), ("n", [])] {
            await cache.stored(fixture.entry(key), in: tiers)
        }
        var found: [String: [Bool]] = [:]
        for key in ["m", "d", "b", "n"] {
            let isOnDisk = FileManager.default.fileExists(atPath: fixture.path(of: key))
            found[key] = [cache.memoryEntry(for: key) != nil, isOnDisk]
        }
        expect(found, equals: ["m": [true, false], "d": [false, true], "b": [true, true], "n": [false, false]])
        await expect(version("m", cache, from: .disk) == nil)
        await expect(version("d", cache, from: .memory) == nil)
    }

    @Test("CCH-2: a hit on disk is promoted, unless the caller disables it")
    func promotion() async {
        await fixture.cache().stored(fixture.entry("a"))
        let cache = fixture.cache()
        await expect(version("a", cache, isPromoting: false), equals: 1)
        expect(cache.memoryEntry(for: "a") == nil)
        await expect(version("a", cache), equals: 1)
        expect(cache.memoryEntry(for: "a")?.version(of: "a"), equals: 1)
        let reads = fixture.files.count(.read)
        await expect(version("a", cache), equals: 1)
        expect(fixture.files.count(.read), equals: reads)
    }

    @Test("CCH-2: storing in one tier removes the old entry from the other")
    func onlyOne() async {
        let cache = fixture.cache()
        await cache.stored(fixture.entry("a"))
        await cache.stored(fixture.entry("a", version: 2), in: .memory)
        await expect(version("a", cache, from: .disk) == nil)
        await cache.stored(fixture.entry("a", version: 3), in: .disk)
        expect(cache.memoryEntry(for: "a") == nil)
        await expect(version("a", cache), equals: 3)
    }

    @Test("CCH-2: a pending write or removal is visible at once")
    func waiting() async {
        let cache = fixture.cache()
        for key in ["a", "b", "c"] { await cache.stored(fixture.entry(key), in: .disk) }
        let hold = Hold(fixture.files, [.create, .remove])
        cache.store(fixture.entry("a", version: 2), in: .disk)
        cache.store(fixture.entry("b", version: 2), in: .disk)
        cache.store(fixture.entry("b", version: 3), in: .disk)
        cache.remove("c")
        // Without a wait.
        let answers = Locked<[String: Result<CacheEntry, CacheMiss>]>([:])
        for key in ["a", "b", "c"] {
            cache.load(key, from: .disk, isPromoting: false) { answer in answers.withLock { $0[key] = answer } }
        }
        let found = answers.withLock { $0 }
        expect(found["a"]?.value?.version(of: "a"), equals: 2)
        expect(found["b"]?.value?.version(of: "b"), equals: 3)
        expect(found["c"]?.failure, equals: .absent)
        hold.end()
        await cache.flush()
        let later = fixture.cache()
        await expect(version("a", later), equals: 2)
        await expect(version("b", later), equals: 3)
        await expect(version("c", later) == nil)
    }

    @Test("CCH-2: a read does not wait for writes of other keys")
    func readingBesideWrites() async {
        let cache = fixture.cache()
        await cache.stored(fixture.entry("a"), in: .disk)
        let hold = Hold(fixture.files, [.create])
        for index in 0..<20 { cache.store(fixture.entry("key \(index)"), in: .disk) }
        let version = Locked<Int?>(nil)
        cache.load("a") { answer in version.exchange(answer.value?.version(of: "a")) }
        // Would never return if it waited for the writes.
        await expect(eventually { version.withLock { $0 } == 1 })
        hold.end()
        await cache.flush()
        expect(fixture.paths().count, equals: 21)
    }

    @Test("CCH-2: an entry that was read before a change is not promoted after it")
    func overtaken() async throws {
        let cache = fixture.cache()
        for change in 0..<4 {
            await cache.stored(fixture.entry("a"), in: .disk)
            let hold = Hold(fixture.files, [.read])
            let isLoaded = Gate()
            cache.load("a") { answer in
                // The load is before the change and its answer after it: both versions are right.
                expect(answer.value.map { [1, 2].contains($0.version(of: "a")) } ?? true)
                isLoaded.open()
            }
            await hold.begun()
            switch change {
            case 0: cache.store(fixture.entry("a", version: 2), in: .memory)
            case 1: cache.store(fixture.entry("a", version: 2), in: .disk)
            case 2: cache.remove("a")
            default: try await cache.removeAll()
            }
            hold.end()
            await isLoaded.opened()
            await cache.flush()
            expect(cache.memoryEntry(for: "a")?.version(of: "a"), equals: (change == 0 ? 2 : nil), "change \(change)")
        }
    }

    @Test("CCH-2: loads of a key share one read")
    func joined() async {
        await fixture.cache().stored(fixture.entry("a"))
        let cache = fixture.cache()
        let hold = Hold(fixture.files, [.read])
        let versions = Locked<[Int?]>([])
        for _ in 0..<10 {
            cache.load("a") { answer in versions.withLock { $0.append(answer.value?.version(of: "a")) } }
        }
        hold.end()
        await expect(eventually { versions.withLock { $0.count } == 10 })
        expect(versions.withLock { $0 }, equals: Array(repeating: 1, count: 10))
        expect(fixture.files.count(.read), equals: 1)
    }

    @Test("CCH-4: a removed entry is not used, although its file still exists")
    func removal() async throws {
        let cache = fixture.cache()
        for key in ["a", "b", "c"] { await cache.stored(fixture.entry(key), in: key == "c" ? .all : .disk) }
        let hold = Hold(fixture.files, [.create, .remove])
        cache.store(fixture.entry("d"), in: .disk)
        let removal = Task { try await cache.remove { $0.key != "b" } }
        await expect(eventually { cache.coordinator.withLock { !$0.removals.isEmpty } })
        await expect(eventually { cache.memoryEntry(for: "c") == nil })
        await expect(version("a", cache) == nil)
        await expect(version("b", cache), equals: 1)
        await expect(version("c", cache) == nil)
        // Neither read from the old file nor removed with it.
        cache.store(fixture.entry("a", version: 2), in: .disk)
        await expect(version("a", cache, isPromoting: false), equals: 2)
        hold.end()
        try await removal.value
        await cache.flush()
        let later = fixture.cache()
        await expect(version("a", later), equals: 2)
        await expect(version("b", later), equals: 1)
        await expect(version("c", later) == nil)
        await expect(version("d", later) == nil)
    }

    @Test("CCH-4: entries can be removed by URL, by a predicate, and in all")
    func removals() async throws {
        let cache = fixture.cache()
        for version in 1...6 {
            await cache.stored(fixture.entry("key \(version)", version: version), in: version % 2 == 0 ? .disk : .all)
            fixture.clock.advance(by: 100)
        }
        try await cache.remove(try #require(URL(string: "https://example.com/things?page=2")))
        await expect(Set(cache.entries.map(\.key)), equals: ["key 1", "key 3", "key 4", "key 5", "key 6"])
        let date = fixture.clock.date.addingTimeInterval(-250)
        try await cache.remove { $0.receivedAt < date }
        await expect(Set(cache.entries.map(\.key)), equals: ["key 5", "key 6"])
        await expect(version("key 1", cache) == nil)
        try await cache.removeAll()
        await expect(cache.entries, equals: [])
        await expect(cache.usage == (0, 0, 0, 0))
        expect(fixture.paths(), equals: [])
        await expect(version("key 6", cache) == nil)
    }

    @Test("CCH-4: any removal also removes unusable files")
    func useless() async throws {
        let cache = fixture.cache()
        await cache.stored(fixture.entry("a"), in: .disk)
        await cache.stored(fixture.entry("b"), in: .disk)
        try Data("cut".utf8).write(to: URL(fileURLWithPath: fixture.path(of: "a")))
        try await cache.remove { _ in false }
        await expect(cache.entries.map(\.key), equals: ["b"])
        expect(fixture.paths().count, equals: 1)
    }

    @Test("CCH-4: a removal that the system refuses is an error")
    func refused() async throws {
        let cache = fixture.cache()
        await cache.stored(fixture.entry("a"), in: .disk)
        fixture.files.fail([.remove], EACCES)
        let error = await #expect(throws: NetworkError.self) { try await cache.removeAll() }
        expect(error?.code, equals: .invalidRequest)
        expect(error?.message?.contains(fixture.directory.path), equals: true)
        fixture.files.fail(nil)
        try await cache.removeAll()
        expect(fixture.paths(), equals: [])
    }

    @Test("CCH-4: entries and the size of the cache can be listed")
    func tools() async {
        let cache = fixture.cache()
        await cache.stored(fixture.entry("m"), in: .memory)
        await cache.stored(fixture.entry("d", version: 2, count: 9_000), in: .disk)
        let entries = await cache.entries.sorted { $0.key > $1.key }
        expect(
            entries,
            equals: [
                fixture.entry("m").header,
                fixture.entry("d", version: 2, count: 9_000).header,
            ]
        )
        let usage = await cache.usage
        expect(usage.memoryCount, equals: 1)
        expect(usage.memoryBytes, equals: fixture.entry("m").cost)
        expect(usage.diskCount, equals: 1)
        expect(usage.diskBytes > 9_000)
    }

    @Test("CCH-2: damaged entries are misses, and are removed in the background")
    func damaged() async throws {
        let cache = fixture.cache()
        await cache.stored(fixture.entry("a"), in: .disk)
        let url = URL(fileURLWithPath: fixture.path(of: "a"))
        try Data(Data(contentsOf: url).dropLast()).write(to: url)
        await expect(cache.loaded("a").failure, equals: .damaged)
        await cache.flush()
        expect(fixture.paths(), equals: [])
        await expect(cache.usage.diskCount, equals: 0)
    }

    @Test("CCH-4: the disk is not used before the first use, nor by a cache in memory")
    func untouched() async throws {
        _ = fixture.cache().memoryEntry(for: "a")
        expect(fixture.files.isUntouched)
        let cache = fixture.cache(fixture.disk(bytes: 0))
        await cache.stored(fixture.entry("a"))
        await cache.stored(fixture.entry("b"), in: .disk)
        await expect(version("b", cache) == nil)
        await expect(version("a", cache), equals: 1)
        await expect(cache.loaded("b").failure, equals: .absent)
        await cache.flush()
        await expect(cache.usage.memoryCount, equals: 1)
        try await cache.remove { $0.key == "a" }
        await expect(cache.entries, equals: [])
        await cache.removed("a")
        expect(fixture.files.isUntouched)
        expect(fixture.paths(), equals: [])
    }

    @Test("CCH-4: an entry that fits no tier is refused")
    func tooLarge() async {
        let cache = fixture.cache(fixture.disk(bytes: 1_000), memoryBytes: 1_000)
        await cache.stored(fixture.entry("a", count: 10))
        let entry = fixture.entry("a", version: 2, count: 5_000)
        await cache.stored(entry, in: .memory)
        await expect(version("a", cache) == nil)
        await cache.stored(entry)
        await expect(version("a", cache) == nil)
    }

    @Test("CCH-4: entries are refused while too many bytes wait to be written")
    func busy() async {
        let cache = fixture.cache(memoryCount: 0)
        await cache.stored(fixture.entry("late"), in: .disk)
        let hold = Hold(fixture.files, [.create])
        let large = Data(count: CacheCoordinator.waitingLimit / 2)
        for index in 0..<2 {
            var entry = fixture.entry("key \(index)")
            entry.body = index == 0 ? large : large.dropLast(10_000)
            cache.store(entry, in: .disk)
        }
        cache.store(fixture.entry("late", version: 2, count: 20_000), in: .disk)
        // The old entry is out of date.
        await expect(version("late", cache) == nil)
        cache.remove("key 0")
        cache.remove("key 1")
        hold.end()
        await cache.flush()
        await expect(version("late", cache) == nil)
        await cache.stored(fixture.entry("late", version: 3), in: .disk)
        await expect(version("late", cache), equals: 3)
    }

    @Test(
        "CCH-2: two caches with one directory find each other's entries, and never a wrong one",
        arguments: UInt64(1)...UInt64(TestLoad.count(4, part: 1))
    )
    func together(seed: UInt64) async {
        let caches = [fixture.cache(fixture.disk(count: 8)), fixture.cache(fixture.disk(count: 8))]
        await withTaskGroup(of: Void.self) { group in
            for worker in 0..<4 {
                let cache = caches[worker % 2]
                group.addTask { [fixture] in
                    var generator = SeededGenerator(seed: seed &* 10 &+ UInt64(worker))
                    for step in 1...60 {
                        let key = "key \(Int.random(in: 0..<12, using: &generator))"
                        switch Int.random(in: 0..<8, using: &generator) {
                        case 0..<4:
                            let count = Int.random(in: 0...3_000, using: &generator)
                            await cache.stored(fixture.entry(key, version: step, count: count), in: .disk)
                        case 4..<7:
                            let entry = await cache.loaded(key, from: .disk).value
                            expect(entry.map { $0.version(of: key) != nil } ?? true, "seed \(seed)")
                        default: await cache.removed(key)
                        }
                    }
                }
            }
        }
        await caches[0].stored(fixture.entry("shared", version: 1_000), in: .disk)
        await expect(version("shared", caches[1]), equals: 1_000)
        expect(!fixture.hasTemporaries)
    }

    @Test("CCH-4: a released cache completes its pending writes")
    func letGo() async {
        let hold = Hold(fixture.files, [.create])
        for index in 0..<5 { fixture.cache().store(fixture.entry("key \(index)")) }
        hold.end()
        await expect(eventually { fixture.paths().filter { !$0.hasSuffix(".tmp") }.count == 5 })
    }

    @Test("CCH-4: the directory has to be a file URL")
    func noFile() throws {
        let url = try #require(URL(string: "https://example.com/cache"))
        let error = #expect(throws: NetworkError.self) { try NetworkCache(directory: url) }
        expect(error?.code, equals: .invalidRequest)
        expect(error?.message?.contains("https://example.com/cache"), equals: true)
        expect(NetworkCache.defaultDirectory.path.contains("/EasyNetwork/"))
        expect(NetworkCache().disk?.limits.directory, equals: NetworkCache.defaultDirectory)
    }
}

/// Blocks steps on files until ``end()``.
final class Hold: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)
    private let state = Locked((isOver: false, held: 0))
    private let hasBegun = Gate()

    init(_ files: FaultyCacheFiles, _ operations: Set<FaultyCacheFiles.Operation>) {
        files.fail { [self] operation, _ in
            if operations.contains(operation) { wait() }
            return nil
        }
    }

    /// Returns when a step is blocked.
    func begun() async {
        await hasBegun.opened()
    }

    func end() {
        let held = state.withLock { state in
            state.isOver = true
            return state.held
        }
        for _ in 0..<held { semaphore.signal() }
    }

    private func wait() {
        let isHeld = state.withLock { state in
            if !state.isOver { state.held += 1 }
            return !state.isOver
        }
        hasBegun.open()
        if isHeld { semaphore.wait() }
    }
}
