import Dispatch
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("SHA-256")
struct SHA256Tests {
    private static func hex(_ bytes: Data) -> String {
        bytes.map { String(format: "%02x", $0) }.joined()
    }

    private static func bytes(_ count: Int, _ generator: inout SeededGenerator) -> Data {
        var data = Data()
        for _ in 0..<count { data.append(UInt8(truncatingIfNeeded: generator.next())) }
        return data
    }

    @Test(
        "TRF-6: the digests are those of the standard's examples",
        arguments: [
            ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            (
                "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
            ),
            (
                "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
                "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"
            ),
        ]
    )
    func examples(message: String, digest: String) {
        expect(Self.hex(SHA256.digest(of: Data(message.utf8))), equals: digest)
    }

    @Test("TRF-6: the digest of a million letters in pieces is that of the standard's example")
    func millionLetters() {
        let piece = Data(repeating: UInt8(ascii: "a"), count: 1_000)
        var hash = SHA256()
        for _ in 0..<1_000 { hash.update(piece) }
        expect(Self.hex(hash.finalize()), equals: "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0")
    }

    @Test("TRF-6: the digests of 0 to 200 bytes are those of openssl")
    func everyLength() {
        // The digest of all digests, computed with `openssl dgst -sha256` for the bytes of this seed.
        let expected = "5c7c7fbd1e0f5550f94012c51d4d23d8544b8291b3194b725274332f489a2537"
        var generator = SeededGenerator(seed: 1)
        var digests = SHA256()
        for length in 0...200 { digests.update(SHA256.digest(of: Self.bytes(length, &generator))) }
        expect(Self.hex(digests.finalize()), equals: expected)
    }

    @Test("TRF-6: the digest does not depend on a split")
    func everySplit() {
        var generator = SeededGenerator(seed: 2)
        let message = Self.bytes(200, &generator)
        let whole = SHA256.digest(of: message)
        for position in 0...message.count {
            var hash = SHA256()
            hash.update(message[..<position])
            hash.update(message[position...])
            expect(hash.finalize(), equals: whole, "split at \(position)")
        }
    }

    @Test("TRF-6: the digest does not depend on the lengths of pieces", arguments: UInt64(1)...20)
    func manyPieces(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let message = Self.bytes(1_000, &generator)
        var hash = SHA256()
        var rest = message[...]
        while !rest.isEmpty {
            let piece = rest.prefix(Int.random(in: 0...150, using: &generator))
            hash.update(piece)
            rest = rest.dropFirst(piece.count)
        }
        expect(hash.finalize(), equals: SHA256.digest(of: message), "seed \(seed)")
    }

    @Test("TRF-6: the regions of data are hashed in order")
    func severalRegions() {
        var generator = SeededGenerator(seed: 3)
        let message = Self.bytes(300, &generator)
        var scattered = DispatchData.empty
        for start in stride(from: 0, to: message.count, by: 70) {
            message[start...].prefix(70).withUnsafeBytes { scattered.append($0) }
        }
        expect(scattered.regions.count > 1)
        var hash = SHA256()
        hash.update(scattered)
        expect(hash.finalize(), equals: SHA256.digest(of: message))
    }

    @Test("TRF-6: the digest is available before the last bytes")
    func digestsOnTheWay() {
        var hash = SHA256()
        hash.update(Data("ab".utf8))
        expect(hash.finalize(), equals: SHA256.digest(of: Data("ab".utf8)))
        hash.update(Data("c".utf8))
        expect(hash.finalize(), equals: SHA256.digest(of: Data("abc".utf8)))
    }
}
