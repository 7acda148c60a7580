import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("DiskCache")
struct DiskCacheTests {
    private let fixture = CacheFixture()
    private var now: Date { fixture.clock.date }

    private func disk(_ limits: NetworkCache.Disk? = nil) -> DiskCache {
        DiskCache(limits ?? fixture.disk(), files: fixture.files)
    }

    private func version(_ key: String, _ disk: DiskCache) -> Int? {
        (try? disk.load(key, now: now))?.entry.version(of: key)
    }

    private func failure(_ key: String, _ disk: DiskCache) -> CacheMiss? {
        do throws(CacheMiss) {
            _ = try disk.load(key, now: now)
            return nil
        } catch {
            return error
        }
    }

    private func mode(_ path: String) throws -> Int {
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        return try #require(attributes[.posixPermissions] as? NSNumber).intValue & 0o777
    }

    @Test("CCH-2: an entry is one file, named by the digest of its key")
    func place() throws {
        let disk = disk()
        try disk.store(fixture.entry("abc"), now: now)
        // SHA-256 of "abc", FIPS 180-4.
        let name = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        expect(fixture.paths(), equals: ["ba/\(name)"])
        expect(version("abc", disk), equals: 1)
        try disk.store(fixture.entry("abc", version: 2), now: now)
        expect(fixture.paths(), equals: ["ba/\(name)"])
        expect(version("abc", disk), equals: 2)
        try disk.remove(named: DiskCache.name(of: "abc"))
        expect(fixture.paths(), equals: [])
        expect(failure("abc", disk), equals: .absent)
        try disk.remove(named: DiskCache.name(of: "abc"))
    }

    @Test("CCH-4: files and directories can be read by their owner only")
    func permissions() throws {
        let disk = disk()
        try disk.store(fixture.entry("a"), now: now)
        let file = fixture.path(of: "a")
        try expect(mode(file), equals: 0o600)
        try expect(mode((file as NSString).deletingLastPathComponent), equals: 0o700)
        try expect(mode(fixture.directory.path), equals: 0o700)
    }

    @Test("CCH-4: after a relaunch all entries are present, with their sizes and the order of their use")
    func relaunch() throws {
        let disk = disk()
        for key in ["a", "b", "c"] {
            try disk.store(fixture.entry(key), now: now)
            fixture.clock.advance(by: 100)
        }
        let found = try disk.load("a", now: now)
        disk.use("a", found.status, now: now)
        let later = self.disk(fixture.disk(count: 2))
        try later.refresh(now: now)
        expect(later.usage.count, equals: 2)
        expect(["a", "b", "c"].map { version($0, later) }, equals: [1, nil, 1])
        let sizes = try fixture.paths().map {
            try FileManager.default.attributesOfItem(atPath: "\(fixture.directory.path)/\($0)")[.size] as? Int
        }
        expect(later.usage.bytes, equals: sizes.compactMap { $0 }.reduce(0, +))
    }

    @Test("CCH-4: a use updates the file at most once a minute")
    func touches() throws {
        let disk = disk()
        try disk.store(fixture.entry("a"), now: now)
        for _ in 0..<10 {
            fixture.clock.advance(by: 20)
            disk.use("a", try disk.load("a", now: now).status, now: now)
        }
        expect(fixture.files.count(.touch), equals: 3)
        try expect(disk.load("a", now: now).status.usedAt, equals: now.addingTimeInterval(-20))
    }

    @Test("CCH-4: an entry that was not used for too long is a miss, and is removed")
    func age() throws {
        let disk = disk(fixture.disk(age: 1_000))
        try disk.store(fixture.entry("a"), now: now)
        try disk.store(fixture.entry("b"), now: now)
        fixture.clock.advance(by: 600)
        disk.use("a", try disk.load("a", now: now).status, now: now)
        fixture.clock.advance(by: 401)
        expect(version("a", disk), equals: 1)
        expect(failure("b", disk), equals: .expired)
        try disk.refresh(now: now)
        expect(disk.usage.count, equals: 1)
        expect(fixture.paths().count, equals: 1)
    }

    @Test("CCH-4: a file with a date in the future counts as new")
    func future() throws {
        let disk = disk(fixture.disk(age: 1_000))
        try disk.store(fixture.entry("a"), now: now.addingTimeInterval(1_000_000))
        let later = self.disk(disk.limits)
        later.use("a", try disk.load("a", now: now).status, now: now)
        fixture.clock.advance(by: 1_001)
        expect(failure("a", later), equals: .expired)
    }

    @Test(
        "CCH-4: the limits of bytes, count and age hold after random steps and relaunches",
        arguments: UInt64(1)...UInt64(TestLoad.count(6, part: 2))
    )
    func bounds(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let limits = fixture.disk(
            bytes: Int.random(in: 2_000...8_000, using: &generator),
            count: Int.random(in: 2...10, using: &generator),
            age: 1_000
        )
        var disk = disk(limits)
        var versions: [String: Int] = [:]
        for step in 0..<250 {
            fixture.clock.advance(by: .random(in: 0...60, using: &generator))
            let key = "key \(Int.random(in: 0..<15, using: &generator))"
            switch Int.random(in: 0..<20, using: &generator) {
            case 0..<9:
                let count = Int.random(in: 0...2_500, using: &generator)
                versions[key] = step
                do {
                    try disk.store(fixture.entry(key, version: step, count: count), now: now)
                } catch {
                    expect((error as? POSIXError)?.code == .EFBIG && count > 1_000, "seed \(seed), step \(step)")
                    expect(failure(key, disk), equals: .absent, "seed \(seed), step \(step)")
                }
            case 9..<17:
                guard let (entry, status) = try? disk.load(key, now: now) else { break }
                expect(entry.version(of: key), equals: versions[key], "seed \(seed), step \(step)")
                disk.use(key, status, now: now)
            case 17:
                try disk.remove(named: DiskCache.name(of: key))
                expect(failure(key, disk), equals: .absent)
            case 18:
                try disk.refresh(now: now)
            default:
                disk = self.disk(limits)
                try disk.refresh(now: now)
            }
            let found = try disk.scan(now: now)
            let bytes = found.reduce(0) { $0 + $1.status.size }
            expect(bytes <= limits.bytes ?? 0, "seed \(seed), step \(step)")
            expect(found.count <= limits.count ?? 0, "seed \(seed), step \(step)")
            expect(disk.usage == (bytes, found.count), "seed \(seed), step \(step)")
        }
        expect(!fixture.hasTemporaries)
    }

    @Test("CCH-2: a truncated file and one with a changed byte are misses, and are removed")
    func damage() throws {
        let disk = disk()
        try disk.store(fixture.entry("a", count: 20), now: now)
        let url = URL(fileURLWithPath: fixture.path(of: "a"))
        let file = try Data(contentsOf: url)
        var files = file.indices.map { file.prefix($0) }
        for index in file.indices {
            var changed = file
            changed[index] ^= 1 << UInt8(index % 8)
            files.append(changed)
        }
        for damaged in files {
            try damaged.write(to: url)
            expect(version("a", disk) == nil)
            disk.discard("a", now: now)
            expect(failure("a", disk), equals: .absent)
        }
        // A file that has been replaced stays.
        try file.write(to: url)
        disk.discard("a", now: now)
        expect(version("a", disk), equals: 1)
    }

    @Test("CCH-2: an entry under the name of another key is never used")
    func otherKey() throws {
        let disk = disk()
        try disk.store(fixture.entry("a"), now: now)
        try disk.store(fixture.entry("b"), now: now)
        try FileManager.default.removeItem(atPath: fixture.path(of: "a"))
        try FileManager.default.copyItem(atPath: fixture.path(of: "b"), toPath: fixture.path(of: "a"))
        expect(failure("a", disk), equals: .damaged)
        disk.discard("a", now: now)
        expect(failure("a", disk), equals: .absent)
        expect(version("b", disk), equals: 1)
    }

    @Test("CCH-5: keys that are equal in Swift are one key")
    func equivalent() throws {
        let disk = disk()
        try disk.store(fixture.entry("caf\u{E9}"), now: now)
        try expect(disk.load("cafe\u{301}", now: now).entry.header.key, equals: "caf\u{E9}")
    }

    @Test("CCH-4: files of other programs stay")
    func foreign() throws {
        let disk = disk(fixture.disk(bytes: 10_000, count: 0))
        let name = DiskCache.name(of: "a")
        let shard = String(name.prefix(2))
        let other = shard == "00" ? "01" : "00"
        let paths = [
            "notes.txt", "ab.tmp", name, "zz/\(name)", "\(other)/\(name)", "\(shard)/\(name.dropLast())",
            "\(shard)/\(name.uppercased())", "\(shard)/\(name).tmp", "\(shard)/\(name).x.tmp", "\(shard)/.hidden",
            "\(shard)/\(name)/inner", "AB/\(name)",
            shard == "11" ? "12" : "11",
        ]
        for path in paths {
            let url = fixture.directory.appendingPathComponent(path)
            let folder = url.deletingLastPathComponent()
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            try Data("mine".utf8).write(to: url)
            // Old enough for a temporary file.
            try FileManager.default.setAttributes([.modificationDate: Date.distantPast], ofItemAtPath: url.path)
        }
        try disk.refresh(now: now)
        expect(disk.usage.count, equals: 0)
        expect(fixture.paths(), equals: paths.sorted())
        // There is a folder in the place of the entry.
        let unlimited = self.disk()
        #expect(throws: POSIXError.self) { try unlimited.store(fixture.entry("a"), now: now) }
        expect(version("a", disk) == nil)
        disk.discard("a", now: now)
        expect(fixture.paths(), equals: paths.sorted())
    }

    @Test("CCH-2: a link in the place of an entry is not followed")
    func link() throws {
        let disk = disk()
        try disk.store(fixture.entry("a"), now: now)
        let target = fixture.directory.appendingPathComponent("target").path
        try FileManager.default.moveItem(atPath: fixture.path(of: "a"), toPath: target)
        try FileManager.default.createSymbolicLink(atPath: fixture.path(of: "a"), withDestinationPath: target)
        expect(version("a", disk) == nil)
        try disk.store(fixture.entry("a", version: 2), now: now)
        expect(version("a", disk), equals: 2)
        expect(FileManager.default.fileExists(atPath: target))
    }

    @Test("CCH-4: old temporary files are removed")
    func sweep() throws {
        let disk = disk()
        try disk.store(fixture.entry("a"), now: now)
        let (old, young) = (fixture.path(of: "a") + ".\(UUID()).tmp", fixture.path(of: "a") + ".\(UUID()).tmp")
        for (path, age) in [(old, DiskCache.temporaryAge + 1), (young, DiskCache.temporaryAge - 1)] {
            try Data("half".utf8).write(to: URL(fileURLWithPath: path))
            let date = now.addingTimeInterval(-age)
            try FileManager.default.setAttributes([.modificationDate: date], ofItemAtPath: path)
        }
        let later = self.disk()
        try later.refresh(now: now)
        expect(!FileManager.default.fileExists(atPath: old))
        expect(FileManager.default.fileExists(atPath: young))
        expect(later.usage.count, equals: 1)
    }

    @Test("CCH-2: a directory that was removed is created again")
    func remade() throws {
        let disk = disk()
        try disk.store(fixture.entry("a"), now: now)
        try FileManager.default.removeItem(at: fixture.directory)
        expect(failure("a", disk), equals: .absent)
        try disk.store(fixture.entry("a", version: 2), now: now)
        expect(version("a", disk), equals: 2)
        try expect(mode(fixture.directory.path), equals: 0o700)
    }

    @Test("CCH-4: files of another process are counted at the next scan")
    func others() throws {
        let (first, second) = (disk(fixture.disk(count: 3)), disk(fixture.disk(count: 3)))
        try first.refresh(now: now)
        try second.refresh(now: now)
        for index in 0..<3 {
            try first.store(fixture.entry("first \(index)"), now: now)
            try second.store(fixture.entry("second \(index)"), now: now)
        }
        expect(fixture.paths().count, equals: 6)
        fixture.clock.advance(by: DiskCache.indexLifetime + 1)
        try first.store(fixture.entry("first"), now: now)
        expect(fixture.paths().count, equals: 3)
        expect(version("first", second), equals: 1)
    }
}
