#if os(Linux) || os(macOS)
import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

/// Kills a program that writes to a cache, `CACHE_KILLS` times for each seed; without this environment variable the
/// test does not run.
///
/// Serialized: on Linux, Foundation's `Process.run()` was seen to read foreign data when hundreds of processes start at
/// the same time.
@Suite("A cache whose process is killed", .enabled(if: ProcessInfo.processInfo.environment["CACHE_KILLS"] != nil))
struct CacheKillTests {
    private static let lives = ProcessInfo.processInfo.environment["CACHE_KILLS"].flatMap(Int.init) ?? 75

    @Test(
        "CCH-2: after a kill at any time each entry is whole or absent, and the written ones are present",
        arguments: UInt64(1)...4
    )
    func kills(seed: UInt64) async throws {
        let fixture = CacheFixture()
        var generator = SeededGenerator(seed: seed)
        let places = (0..<4).map { "key \($0)" } + (4..<8).flatMap { key in (0..<10).map { "key \(key)/\($0)" } }
        // By key and variant; 0 for an absent entry.
        var versions: [String: Int] = [:]
        var leftovers = 0
        var mostVariants = 0
        for life in 1...Self.lives {
            // A line has some 15 bytes.
            let count = Int.random(in: 0..<400, using: &generator)
            let seed = generator.next()
            let program = ["cache", fixture.directory.path, "\(seed)", "\(life * 1_000_000)"]
            let lines = try await KilledProgram.lines(of: program, bytes: count, seed: seed).map { line in
                Line(line) ?? Line(word: line, key: "", version: 0)
            }
            var begun: (key: String, version: Int)?
            // The keys from which a variant may be absent, since all were removed or there were too many.
            var losing: Set<String> = []
            for line in lines {
                let key = line.key.components(separatedBy: "/")[0]
                let isVariant = key != line.key
                switch line.word {
                case "begin":
                    begun = (line.key, line.version)
                    let present = places.filter { $0.hasPrefix(key + "/") && $0 != line.key && versions[$0] ?? 0 > 0 }
                    if isVariant, line.version == 0 || present.count >= CacheEntry.variantLimit { losing.insert(key) }
                case "done":
                    if isVariant, line.version == 0 {
                        for place in places where place.hasPrefix(key + "/") { versions[place] = 0 }
                        losing.remove(key)
                    }
                    versions[line.key] = line.version
                    begun = nil
                default: Issue.record("\(line), seed \(seed), life \(life)")
                }
            }
            // With the system's clock, like the writer.
            let cache = try NetworkCache(directory: fixture.directory, diskBytes: nil, diskCount: nil, diskAge: nil)
            for place in places {
                let parts = place.components(separatedBy: "/")
                let answer =
                    parts.count == 1
                    ? await cache.loaded(place, from: .disk)
                    : await cache.loaded(parts[0], for: ["Foo": parts[1]])
                let version = Self.version(of: parts[0], answer)
                let old = versions[place] ?? 0
                let isBegun = begun?.key == place && version == begun?.version
                let isLost = version == 0 && losing.contains(parts[0])
                let message = "seed \(seed), life \(life), \(place): \(answer), was \(old)"
                expect(version == old || isBegun || isLost, Comment(rawValue: message))
                versions[place] = version
            }
            for key in 4..<8 {
                let found = places.filter { $0.hasPrefix("key \(key)/") && versions[$0] != 0 }.count
                expect(found <= CacheEntry.variantLimit)
                mostVariants = max(mostVariants, found)
            }
            leftovers = fixture.paths().filter { $0.hasSuffix(".tmp") }.count
        }
        print("seed \(seed): \(Self.lives) lives, killed in the middle of a file \(leftovers) times")
        let later = ManualClock(now: Date().timeIntervalSince(ManualClock().date) + DiskCache.temporaryAge + 60)
        let cache = try NetworkCache(
            directory: fixture.directory,
            diskBytes: nil,
            diskCount: nil,
            diskAge: nil,
            clock: later
        )
        let usage = await cache.usage
        // A kill may leave variants that their URL does not list.
        expect(usage.diskCount >= versions.values.filter { $0 > 0 }.count, "seed \(seed)")
        expect(mostVariants > 1 || Self.lives < 20, "seed \(seed)")
        expect(fixture.paths().count, equals: usage.diskCount, "seed \(seed)")
    }

    /// Nil for an entry that is not whole.
    private static func version(of key: String, _ answer: Result<CacheEntry, CacheMiss>) -> Int? {
        guard let entry = answer.value else { return answer.failure == .absent ? 0 : nil }
        guard
            entry.header.key.hasPrefix(key),
            let version = entry.header.attributes["version"].flatMap(Int.init),
            let count = entry.header.attributes["count"].flatMap(Int.init),
            entry.body == Data(repeating: UInt8(version % 251), count: count)
        else { return nil }
        return version
    }

    private struct Line: Sendable {
        var word: String
        var key: String
        var version: Int

        init?(_ text: String) {
            let parts = text.split(separator: " ")
            guard parts.count == 4, let version = Int(parts[3]) else { return nil }
            self.init(word: String(parts[0]), key: "\(parts[1]) \(parts[2])", version: version)
        }

        init(word: String, key: String, version: Int) {
            (self.word, self.key, self.version) = (word, key, version)
        }
    }
}
#endif
