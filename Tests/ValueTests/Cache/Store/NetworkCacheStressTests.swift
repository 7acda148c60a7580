import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

/// All operations of a cache, from four threads at once.
@Suite("NetworkCache under stress")
struct NetworkCacheStressTests {
    private static let keys = (0..<12).map { "key \($0)" }

    @Test(
        "CCH-2, CCH-4: entries are never mixed or older than the last store, and limits hold",
        arguments: UInt64(1)...UInt64(TestLoad.count(10, part: 2))
    )
    func everything(seed: UInt64) async throws {
        let fixture = CacheFixture()
        let disk = fixture.disk(bytes: 12_000, count: 8, age: 5_000)
        let cache = fixture.cache(disk, memoryBytes: Worker.memoryBytes, memoryCount: Worker.memoryCount)
        await withTaskGroup(of: Void.self) { group in
            for worker in 0..<4 {
                group.addTask {
                    // Each thread has its own keys, so that it knows their last versions.
                    var worker = Worker(
                        cache: cache,
                        fixture: fixture,
                        keys: Self.keys.indices.filter { $0 % 4 == worker }.map { Self.keys[$0] },
                        generator: SeededGenerator(seed: seed &* 4 &+ UInt64(worker)),
                        seed: seed
                    )
                    for _ in 0..<150 { await worker.step() }
                }
            }
        }
        let usage = await cache.usage
        expect(usage.diskBytes <= 12_000 && usage.diskCount <= 8, "seed \(seed)")
        expect(fixture.paths().count, equals: usage.diskCount, "seed \(seed)")
        expect(cache.coordinator.withLock { $0.isIdle }, "seed \(seed)")
        try await cache.removeAll()
        expect(fixture.paths(), equals: [], "seed \(seed)")
    }
}

private struct Worker {
    static let memoryBytes = 6_000
    static let memoryCount = 5

    let cache: NetworkCache
    let fixture: CacheFixture
    let keys: [String]
    var generator: SeededGenerator
    let seed: UInt64
    /// The version that an entry must have; 0 for an absent entry.
    var versions: [String: Int] = [:]
    var lastVersion = 0

    mutating func step() async {
        let key = keys.randomElement(using: &generator) ?? ""
        let tiers = [CacheStorage.memory, .disk, .all].randomElement(using: &generator) ?? .all
        switch Int.random(in: 0..<20, using: &generator) {
        case 0..<6:
            lastVersion += 1
            versions[key] = lastVersion
            let count = Int.random(in: 0...2_000, using: &generator)
            cache.store(fixture.entry(key, version: lastVersion, count: count), in: tiers)
        case 6..<9:
            lastVersion += 1
            versions[key] = lastVersion
            await cache.stored(fixture.entry(key, version: lastVersion), in: tiers)
        case 9..<16:
            let isPromoting = Bool.random(using: &generator)
            guard let entry = await cache.loaded(key, from: tiers, isPromoting: isPromoting).value else { break }
            expect(entry.version(of: key), equals: versions[key], "seed \(seed)")
        case 16:
            cache.remove(key)
            versions[key] = 0
        case 17:
            let keys = keys
            try? await cache.remove { keys.contains($0.key) }
            for key in keys { versions[key] = 0 }
        case 18:
            fixture.clock.advance(by: .random(in: 0...300, using: &generator))
        default:
            let usage = await cache.usage
            expect(usage.memoryBytes <= Self.memoryBytes && usage.memoryCount <= Self.memoryCount, "seed \(seed)")
        }
    }
}
