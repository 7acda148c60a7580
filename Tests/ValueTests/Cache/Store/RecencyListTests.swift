import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("RecencyList")
struct RecencyListTests {
    private static let date = Date(timeIntervalSince1970: 1_767_225_600)

    private static func entry(_ key: String, version: Int = 1, count: Int = 100) -> CacheEntry {
        .made(key, version: version, count: count, at: date)
    }

    @Test("CCH-4: the least recently used entry is removed first")
    func leastLately() {
        var cache = RecencyList<CacheEntry>(costLimit: .max, countLimit: 2)
        _ = cache.store(Self.entry("a"))
        _ = cache.store(Self.entry("b"))
        _ = cache.use("a")
        let released = cache.store(Self.entry("c"))
        expect(released.map(\.header.key), equals: ["b"])
        expect(Set(cache.values.map(\.header.key)), equals: ["a", "c"])
    }

    @Test("CCH-4: a look does not count as a use")
    func looking() {
        var cache = RecencyList<CacheEntry>(costLimit: .max, countLimit: 2)
        _ = cache.store(Self.entry("a"))
        _ = cache.store(Self.entry("b"))
        _ = cache["a"]
        let released = cache.store(Self.entry("c"))
        expect(released.map(\.header.key), equals: ["a"])
    }

    @Test("CCH-4: an entry larger than the limit is not stored, and the entry that it replaces is removed")
    func tooLarge() {
        var cache = RecencyList<CacheEntry>(costLimit: 2_000, countLimit: 10)
        _ = cache.store(Self.entry("a"))
        _ = cache.store(Self.entry("b"))
        let released = cache.store(Self.entry("a", count: 2_000))
        expect(released.map(\.header.key), equals: ["a"])
        expect(cache.values.map(\.header.key), equals: ["b"])
    }

    @Test(
        "CCH-4: with limits of zero or less no entry is stored",
        arguments: [(0, 10), (-5, 10), (10_000, 0), (10_000, -1)]
    )
    func noRoom(cost: Int, count: Int) {
        var cache = RecencyList<CacheEntry>(costLimit: cost, countLimit: count)
        _ = cache.store(Self.entry("a"))
        expect(cache.count, equals: 0)
        expect(cache.cost, equals: 0)
    }

    @Test("CCH-2, CCH-4: after random steps the cache equals a plain list", arguments: UInt64(1)...20)
    func random(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let costLimit = Int.random(in: 500...10_000, using: &generator)
        let countLimit = Int.random(in: 1...12, using: &generator)
        var cache = RecencyList<CacheEntry>(costLimit: costLimit, countLimit: countLimit)
        // The most recently used entry is the last.
        var list: [CacheEntry] = []
        for step in 0..<500 {
            let key = "key \(Int.random(in: 0..<20, using: &generator))"
            let index = list.firstIndex { $0.header.key == key }
            switch Int.random(in: 0..<10, using: &generator) {
            case 0..<5:
                let entry = Self.entry(key, version: step, count: Int.random(in: 0...1_500, using: &generator))
                _ = cache.store(entry)
                if let index { list.remove(at: index) }
                if entry.cost <= costLimit { list.append(entry) }
                while list.count > countLimit || list.reduce(0, { $0 + $1.cost }) > costLimit { list.removeFirst() }
            case 5..<9:
                let loaded = cache.use(key)
                expect(loaded, equals: index.map { list[$0] }, "seed \(seed), step \(step)")
                if let index { list.append(list.remove(at: index)) }
            default:
                let removed = cache.remove(key)
                expect(removed, equals: index.map { list.remove(at: $0) }, "seed \(seed), step \(step)")
            }
            expect(cache.count, equals: list.count, "seed \(seed), step \(step)")
            expect(cache.cost, equals: list.reduce(0) { $0 + $1.cost }, "seed \(seed), step \(step)")
        }
        expect(Set(cache.values), equals: Set(list), "seed \(seed)")
    }
}
