import Foundation
import Testing

@testable import EasyNetwork

@Suite("CacheFileFormat")
struct CacheFileFormatTests {
    private static let date = Date(timeIntervalSince1970: 1_767_225_600.125)
    private static let entry = CacheEntry.made("a key", version: 7, count: 60, at: date)

    private static func file(_ entry: CacheEntry = entry) throws -> Data {
        try CacheFileFormat.encode(entry).reduce(Data(), +)
    }

    private static func failure(_ file: Data, key: String = "a key") -> CacheFailure? {
        do throws(CacheFailure) {
            _ = try CacheFileFormat.decode(file, key: key)
            return nil
        } catch {
            return error
        }
    }

    @Test("CCH-2: what is written is read again")
    func roundTrip() throws {
        var odd = CacheEntry(
            header: CacheHeader(
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
            #expect(try CacheFileFormat.decode(Self.file(entry), key: entry.header.key) == entry)
            let found = try CacheFileFormat.decodeHeader(Self.file(entry))
            #expect(found.header == entry.header)
            #expect(found.bodyCount == entry.body.count)
        }
        // A slice, whose first index is not 0.
        var sliced = Self.entry
        sliced.body = Data("....body".utf8).dropFirst(4)
        #expect(try CacheFileFormat.decode(Self.file(sliced), key: "a key").body == Data("body".utf8))
    }

    @Test("CCH-2: every beginning of a file is a miss, and so is a longer file")
    func prefixes() throws {
        let file = try Self.file()
        for length in 0..<file.count { #expect(Self.failure(file.prefix(length)) == .damaged, "length \(length)") }
        #expect(Self.failure(file + [0]) == .damaged)
        #expect(Self.failure(file + file) == .damaged)
        #expect(Self.failure(file) == nil)
    }

    @Test("CCH-2: every file of which one bit or one byte was changed is a miss")
    func flips() throws {
        let file = try Self.file()
        for index in file.indices {
            for change in [1, 2, 4, 8, 16, 32, 64, 128, 255] as [UInt8] {
                var changed = file
                changed[index] ^= change
                #expect(Self.failure(changed) != nil, "byte \(index), change \(change)")
                _ = try? CacheFileFormat.decodeHeader(changed)
                _ = CacheFileFormat.isPlausible(changed, size: changed.count)
            }
        }
    }

    @Test("CCH-2: why a file is a miss is told")
    func reasons() throws {
        var file = try Self.file()
        #expect(Self.failure(file, key: "another key") == .foreign)
        file[4] = 2
        #expect(Self.failure(file) == .otherVersion)
        #expect(Self.failure(Data("somebody else's".utf8)) == .foreign)
        #expect(Self.failure(Data(repeating: 0, count: 1_000)) == .foreign)
    }

    @Test(
        "CCH-2: lengths that no file has are no trap",
        arguments: [0, 23, 24, 31, 1 << 63].map { UInt64.max - $0 } + [1 << 40, 1 << 62] as [UInt64]
    )
    func lengths(length: UInt64) throws {
        for offset in [8, 16] {
            var file = try Self.file()
            withUnsafeBytes(of: length.littleEndian) { file.replaceSubrange(offset..<offset + 8, with: $0) }
            #expect(Self.failure(file) == .damaged)
            #expect(!CacheFileFormat.isPlausible(file, size: file.count))
            _ = try? CacheFileFormat.decodeHeader(file)
        }
    }

    @Test("CCH-2: an entry whose date is no number is refused")
    func noNumber() {
        var entry = Self.entry
        entry.header.receivedAt = Date(timeIntervalSince1970: .nan)
        #expect(throws: CacheFailure.unencodable) { try CacheFileFormat.encode(entry) }
    }

    @Test("CCH-2: random bytes are a miss", arguments: UInt64(1)...3)
    func noise(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let file = try Self.file()
        for _ in 0..<2_000 {
            var changed = file
            for _ in 0..<Int.random(in: 1...12, using: &generator) {
                let index = Int.random(in: 0..<changed.count, using: &generator)
                changed[index] = UInt8.random(in: 0...255, using: &generator)
            }
            #expect(changed == file || Self.failure(changed) != nil, "seed \(seed)")
        }
    }

    @Test("CCH-2: the checksum is that of XZ")
    func checksum() {
        var whole = CRC64()
        whole.update(Data("123456789".utf8))
        #expect(whole.value == 0x995D_C9BB_DF19_39FA)
        for split in 0...9 {
            var parts = CRC64()
            parts.update(Data("123456789".utf8.prefix(split)))
            parts.update(Data("123456789".utf8.dropFirst(split)))
            #expect(parts.value == whole.value)
        }
    }
}
