import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("NetworkCache on a failing disk")
struct CacheFaultTests {
    private let fixture = CacheFixture()

    @Test(
        "CCH-2: after a failure of any step entries are whole or absent, and the cache works again",
        arguments: [.list, .look, .read, .create, .write, .rename, .remove, .touch, .makeDirectory]
            as [FaultyCacheFiles.Operation],
        [ENOSPC, EIO, EACCES, ENOENT]
    )
    func everyStep(operation: FaultyCacheFiles.Operation, code: Int32) async {
        let keys = ["a", "b", "c", "d"]
        let limits = fixture.disk(count: 3)
        let cache = fixture.cache(limits)
        for key in keys.dropLast() { await cache.stored(fixture.entry(key), in: .disk) }
        fixture.files.fail([operation], code)
        // Requires a list and a touch.
        fixture.clock.advance(by: DiskCache.indexLifetime + 1)
        for key in keys { await answersOneOf([1], key, cache) }
        for key in keys { await cache.stored(fixture.entry(key, version: 2, count: 500), in: .disk) }
        // An entry that could not be replaced or removed may be the old one.
        for key in keys { await answersOneOf([1, 2], key, cache) }
        await cache.removed("a")
        try? await cache.removeAll()
        for key in keys { await answersOneOf([1, 2], key, cache) }
        fixture.files.fail(nil)
        for key in keys { await answersOneOf([1, 2], key, cache) }
        for key in keys {
            await cache.stored(fixture.entry(key, version: 3), in: .disk)
            await answersOneOf([3], key, cache)
        }
        fixture.clock.advance(by: DiskCache.temporaryAge + DiskCache.indexLifetime)
        let temporaries = fixture.paths().filter { $0.hasSuffix(".tmp") }
        for path in temporaries {
            // Temporary files have the machine's time.
            let date = [FileAttributeKey.modificationDate: Date(timeIntervalSince1970: 0)]
            try? FileManager.default.setAttributes(date, ofItemAtPath: "\(fixture.directory.path)/\(path)")
        }
        let usage = await cache.usage
        expect(usage.diskCount, equals: 3)
        expect(fixture.paths().count, equals: 3, "\(fixture.paths())")
        // Only a file that cannot be removed stays.
        expect(temporaries.isEmpty || operation == .remove)
    }

    @Test("CCH-2: on a full disk neither the new entry nor the outdated old one is kept")
    func full() async {
        for operation in [FaultyCacheFiles.Operation.create, .write, .rename] {
            let cache = fixture.cache()
            await cache.stored(fixture.entry("a"), in: .disk)
            fixture.files.fail([operation], ENOSPC)
            await cache.stored(fixture.entry("a", version: 2))
            expect(fixture.paths(), equals: [])
            await expect(cache.loaded("a", from: .disk).failure, equals: .absent)
            // The entry is in memory.
            expect(cache.memoryEntry(for: "a")?.version(of: "a"), equals: 2)
            fixture.files.fail(nil)
        }
    }

    @Test(
        "CCH-4: after random failures the cache is within its limits, without leftover files",
        arguments: UInt64(1)...UInt64(TestLoad.count(12, part: 3))
    )
    func random(seed: UInt64) async {
        var generator = SeededGenerator(seed: seed)
        let limits = fixture.disk(bytes: 6_000, count: 6, age: 10_000)
        var cache = fixture.cache(limits)
        let failing = Locked(SeededGenerator(seed: seed &+ 1_000))
        fixture.files.fail { _, _ in
            failing.withLock {
                Int.random(in: 0..<5, using: &$0) == 0 ? [EIO, ENOSPC, EINTR].randomElement(using: &$0) : nil
            }
        }
        for step in 1...200 {
            fixture.clock.advance(by: .random(in: 0...120, using: &generator))
            let key = "key \(Int.random(in: 0..<10, using: &generator))"
            switch Int.random(in: 0..<12, using: &generator) {
            case 0..<5:
                let count = Int.random(in: 0...1_500, using: &generator)
                await cache.stored(fixture.entry(key, version: step, count: count), in: .disk)
            case 5..<9: await answersOneOf(1...step, key, cache)
            case 9: await cache.removed(key)
            case 10: try? await cache.remove { $0.receivedAt < .distantPast || $0.key.hasSuffix("3") }
            default: cache = fixture.cache(limits)
            }
        }
        fixture.files.fail(nil)
        cache = fixture.cache(limits)
        for path in fixture.paths() where path.hasSuffix(".tmp") {
            let date = [FileAttributeKey.modificationDate: Date(timeIntervalSince1970: 0)]
            try? FileManager.default.setAttributes(date, ofItemAtPath: "\(fixture.directory.path)/\(path)")
        }
        let usage = await cache.usage
        expect(usage.diskCount <= 6 && usage.diskBytes <= 6_000, "seed \(seed)")
        expect(fixture.paths().count, equals: usage.diskCount, "seed \(seed)")
        for index in 0..<10 { await answersOneOf(1...200, "key \(index)", cache) }
    }

    /// Accepts a miss as well.
    private func answersOneOf(_ versions: some Collection<Int> & Sendable, _ key: String, _ cache: NetworkCache) async {
        guard let entry = await cache.loaded(key, from: .disk).value else { return }
        let version = entry.version(of: key)
        expect(
            version.map { versions.contains($0) },
            equals: true,
            "\(key): \(version.map(String.init) ?? "not whole")"
        )
    }
}
