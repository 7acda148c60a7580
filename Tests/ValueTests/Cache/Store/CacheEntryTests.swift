import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("The file of a CacheEntry")
struct CacheEntryTests {
    private static let date = Date(timeIntervalSince1970: 1_767_225_600.125)
    private static let entry = CacheEntry.made("a key", version: 7, count: 60, at: date)

    private static func file(_ entry: CacheEntry = entry) throws -> Data {
        try entry.encoded().reduce(Data(), +)
    }

    private static func failure(_ file: Data, key: String = "a key") -> CacheMiss? {
        do throws(CacheMiss) {
            _ = try CacheEntry(file: file, key: key)
            return nil
        } catch {
            return error
        }
    }

    @Test("CCH-2: a written entry can be read")
    func roundTrip() throws {
        var odd = CacheEntry(
            header: NetworkCache.Entry(
                key: "κλειδί \u{0} \"\n",
                url: nil,
                requestedAt: .distantPast,
                receivedAt: .distantFuture
            ),
            body: Data()
        )
        odd.header.headers = HTTPHeaders([.init(name: "", value: "\u{FEFF}\\ü"), .init(name: "a", value: "")])
        odd.header.attributes = ["": "", "é": "\u{1F600}"]
        odd.header.statusCode = .min
        for entry in [Self.entry, odd] {
            try expect(CacheEntry(file: Self.file(entry), key: entry.header.key), equals: entry)
            let header = try NetworkCache.Entry(file: Self.file(entry))
            expect(header, equals: entry.header)
            expect(header?.bodyCount, equals: entry.body.count)
        }
        // A slice whose first index is not 0.
        var sliced = Self.entry
        sliced.body = Data("....body".utf8).dropFirst(4)
        try expect(CacheEntry(file: Self.file(sliced), key: "a key").body, equals: Data("body".utf8))
    }

    @Test("CCH-2: a truncated or extended file is damaged")
    func prefixes() throws {
        let file = try Self.file()
        for length in 0..<file.count { expect(Self.failure(file.prefix(length)), equals: .damaged, "length \(length)") }
        expect(Self.failure(file + [0]), equals: .damaged)
        expect(Self.failure(file + file), equals: .damaged)
        expect(Self.failure(file) == nil)
    }

    @Test("CCH-2: a file with a changed bit or byte cannot be read")
    func flips() throws {
        let file = try Self.file()
        for index in file.indices {
            for change in [1, 2, 4, 8, 16, 32, 64, 128, 255] as [UInt8] {
                var changed = file
                changed[index] ^= change
                expect(Self.failure(changed) != nil, "byte \(index), change \(change)")
                _ = NetworkCache.Entry(file: changed)
            }
        }
    }

    @Test("CCH-2: files of another key, another version, or another program are damaged")
    func foreign() throws {
        let file = try Self.file()
        expect(Self.failure(file, key: "another key"), equals: .damaged)
        for version in [1, 2, 4] as [UInt8] {
            var other = file
            other[4] = version
            expect(Self.failure(other), equals: .damaged)
            expect(NetworkCache.Entry(file: other) == nil)
        }
        expect(Self.failure(Data("somebody else's".utf8)), equals: .damaged)
        expect(Self.failure(Data(repeating: 0, count: 1_000)), equals: .damaged)
    }

    @Test(
        "CCH-2: impossible lengths do not trap",
        arguments: [0, 23, 24, 31, 1 << 63].map { UInt64.max - $0 } + [1 << 40, 1 << 62] as [UInt64]
    )
    func lengths(length: UInt64) throws {
        var file = try Self.file()
        withUnsafeBytes(of: length.littleEndian) { file.replaceSubrange(8..<16, with: $0) }
        expect(Self.failure(file), equals: .damaged)
        expect(NetworkCache.Entry(file: file) == nil)
    }

    @Test("CCH-2: an entry with a date of NaN cannot be written")
    func noNumber() {
        var entry = Self.entry
        entry.header.receivedAt = Date(timeIntervalSince1970: .nan)
        #expect(throws: EncodingError.self) { try entry.encoded() }
    }

    @Test("CCH-2: a file with random bytes cannot be read", arguments: UInt64(1)...3)
    func noise(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let file = try Self.file()
        for _ in 0..<2_000 {
            var changed = file
            for _ in 0..<Int.random(in: 1...12, using: &generator) {
                let index = Int.random(in: 0..<changed.count, using: &generator)
                changed[index] = UInt8.random(in: 0...255, using: &generator)
            }
            expect(changed == file || Self.failure(changed) != nil, "seed \(seed)")
        }
    }
}
