import Foundation

#if canImport(CryptoKit)
import CryptoKit

/// MD5 (RFC 1321), which Digest authentication still requires. It is not secure.
enum MD5 {
    /// The digest of `data`: 16 bytes.
    static func digest(of data: Data) -> Data {
        Data(Insecure.MD5.hash(data: data))
    }
}

/// SHA-256 (FIPS 180-4) of bytes that arrive in pieces.
package struct SHA256 {
    private var hash = CryptoKit.SHA256()

    /// The digest of all of `data`: 32 bytes.
    package static func digest(of data: Data) -> Data {
        Data(CryptoKit.SHA256.hash(data: data))
    }

    mutating func update(_ bytes: some DataProtocol) {
        hash.update(data: bytes)
    }

    /// Returns the digest of the bytes so far: 32 bytes. More bytes can follow.
    func finalize() -> Data {
        Data(hash.finalize())
    }
}
#else
/// MD5 (RFC 1321), which Digest authentication still requires. It is not secure.
enum MD5 {
    /// The digest of `data`: 16 bytes.
    static func digest(of data: Data) -> Data {
        var state: [UInt32] = [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476]
        let length = UInt64(data.count)
        let bytes = [UInt8](data) + padding(of: length, lengthInBits: (length &<< 3).littleEndian)
        for start in stride(from: 0, to: bytes.count, by: 64) {
            let words = (0..<16).map { word in
                (0..<4).reduce(UInt32(0)) { $0 | UInt32(bytes[start + word * 4 + $1]) << UInt32($1 * 8) }
            }
            var (a, b, c, d) = (state[0], state[1], state[2], state[3])
            for step in 0..<64 {
                let (mix, word): (UInt32, Int) =
                    switch step / 16 {
                    case 0: ((b & c) | (~b & d), step)
                    case 1: ((b & d) | (c & ~d), (5 * step + 1) % 16)
                    case 2: (b ^ c ^ d, (3 * step + 5) % 16)
                    default: (c ^ (b | ~d), 7 * step % 16)
                    }
                let sum = a &+ mix &+ constants[step] &+ words[word]
                let shift = shifts[step / 16][step % 4]
                (a, d, c, b) = (d, c, b, b &+ ((sum << shift) | (sum >> (32 - shift))))
            }
            state = zip(state, [a, b, c, d]).map { $0 &+ $1 }
        }
        return Data(state.flatMap { word in (0..<4).map { UInt8(truncatingIfNeeded: word >> UInt32($0 * 8)) } })
    }

    private static let shifts: [[UInt32]] = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]]

    /// RFC 1321, section 3.4.
    private static let constants = (1...64).map { UInt32(abs(sin(Double($0))) * 4_294_967_296) }
}

/// Returns the bytes that follow a message in the last blocks: a one bit, zeros, and the length in bits.
private func padding(of length: UInt64, lengthInBits: UInt64) -> [UInt8] {
    let zeros = [UInt8](repeating: 0, count: (64 + 55 - Int(length % 64)) % 64)
    return [0x80] + zeros + withUnsafeBytes(of: lengthInBits, Array.init)
}

/// SHA-256 (FIPS 180-4, section 6.2) of bytes that arrive in pieces.
///
/// Implemented here because Linux has no CryptoKit and the package has no dependencies.
package struct SHA256 {
    private static let blockLength = 64

    private var state: SIMD8<UInt32> = [
        0x6A09_E667, 0xBB67_AE85, 0x3C6E_F372, 0xA54F_F53A, 0x510E_527F, 0x9B05_688C, 0x1F83_D9AB, 0x5BE0_CD19,
    ]
    /// The last bytes, which do not yet fill a block.
    private var pending: [UInt8] = []
    private var length: UInt64 = 0

    /// The digest of all of `data`: 32 bytes.
    package static func digest(of data: Data) -> Data {
        var hash = SHA256()
        hash.update(data)
        return hash.finalize()
    }

    mutating func update(_ bytes: some DataProtocol) {
        for region in bytes.regions { region.withUnsafeBytes { update($0) } }
    }

    mutating func update(_ bytes: UnsafeRawBufferPointer) {
        length &+= UInt64(bytes.count)
        var rest = bytes[...]
        if !pending.isEmpty {
            let added = rest.prefix(Self.blockLength - pending.count)
            pending += added
            guard pending.count == Self.blockLength else { return }
            pending.withUnsafeBytes { Self.compress($0, into: &state) }
            pending.removeAll(keepingCapacity: true)
            rest = rest.dropFirst(added.count)
        }
        let whole = rest.prefix(rest.count / Self.blockLength * Self.blockLength)
        if !whole.isEmpty { Self.compress(UnsafeRawBufferPointer(rebasing: whole), into: &state) }
        pending += rest.dropFirst(whole.count)
    }

    /// Returns the digest of the bytes so far: 32 bytes. More bytes can follow.
    func finalize() -> Data {
        var last = self
        last.update(padding(of: length, lengthInBits: (length &<< 3).bigEndian))
        var words = last.state
        for index in words.indices { words[index] = words[index].bigEndian }
        return withUnsafeBytes(of: words) { Data($0) }
    }
}

extension SHA256 {
    /// Adds whole blocks to the state without copying them. Hashing a large file spends its time here.
    private static func compress(_ blocks: UnsafeRawBufferPointer, into state: inout SIMD8<UInt32>) {
        constants.withUnsafeBufferPointer { constants in
            withUnsafeTemporaryAllocation(of: UInt32.self, capacity: constants.count) { schedule in
                for offset in stride(from: 0, to: blocks.count, by: blockLength) {
                    for index in 0..<16 {
                        let word = blocks.loadUnaligned(fromByteOffset: offset &+ index &* 4, as: UInt32.self)
                        schedule[index] = UInt32(bigEndian: word)
                    }
                    for index in 16..<64 {
                        let early = schedule[index &- 15]
                        let late = schedule[index &- 2]
                        let earlyMix = rotate(early, 7) ^ rotate(early, 18) ^ (early &>> 3)
                        let lateMix = rotate(late, 17) ^ rotate(late, 19) ^ (late &>> 10)
                        schedule[index] = schedule[index &- 16] &+ earlyMix &+ schedule[index &- 7] &+ lateMix
                    }
                    var (a, b, c, d) = (state[0], state[1], state[2], state[3])
                    var (e, f, g, h) = (state[4], state[5], state[6], state[7])
                    // After eight rounds every variable is back in its place, so none is moved.
                    for index in stride(from: 0, to: 64, by: 8) {
                        round(a, b, c, &d, e, f, g, &h, schedule[index] &+ constants[index])
                        round(h, a, b, &c, d, e, f, &g, schedule[index &+ 1] &+ constants[index &+ 1])
                        round(g, h, a, &b, c, d, e, &f, schedule[index &+ 2] &+ constants[index &+ 2])
                        round(f, g, h, &a, b, c, d, &e, schedule[index &+ 3] &+ constants[index &+ 3])
                        round(e, f, g, &h, a, b, c, &d, schedule[index &+ 4] &+ constants[index &+ 4])
                        round(d, e, f, &g, h, a, b, &c, schedule[index &+ 5] &+ constants[index &+ 5])
                        round(c, d, e, &f, g, h, a, &b, schedule[index &+ 6] &+ constants[index &+ 6])
                        round(b, c, d, &e, f, g, h, &a, schedule[index &+ 7] &+ constants[index &+ 7])
                    }
                    state &+= SIMD8(a, b, c, d, e, f, g, h)
                }
            }
        }
    }

    /// Runs one round, with the variable names of the standard. The new a is in `h`, the new e in `d`.
    @inline(__always)
    private static func round(
        _ a: UInt32,
        _ b: UInt32,
        _ c: UInt32,
        _ d: inout UInt32,
        _ e: UInt32,
        _ f: UInt32,
        _ g: UInt32,
        _ h: inout UInt32,
        _ input: UInt32
    ) {
        let choice = (e & f) ^ (~e & g)
        let first = h &+ (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) &+ choice &+ input
        let majority = (a & b) ^ (a & c) ^ (b & c)
        d &+= first
        h = first &+ (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) &+ majority
    }

    @inline(__always)
    private static func rotate(_ word: UInt32, _ count: UInt32) -> UInt32 {
        (word &>> count) | (word &<< (32 &- count))
    }

    private static let constants: [UInt32] = [
        0x428A_2F98, 0x7137_4491, 0xB5C0_FBCF, 0xE9B5_DBA5, 0x3956_C25B, 0x59F1_11F1, 0x923F_82A4, 0xAB1C_5ED5,
        0xD807_AA98, 0x1283_5B01, 0x2431_85BE, 0x550C_7DC3, 0x72BE_5D74, 0x80DE_B1FE, 0x9BDC_06A7, 0xC19B_F174,
        0xE49B_69C1, 0xEFBE_4786, 0x0FC1_9DC6, 0x240C_A1CC, 0x2DE9_2C6F, 0x4A74_84AA, 0x5CB0_A9DC, 0x76F9_88DA,
        0x983E_5152, 0xA831_C66D, 0xB003_27C8, 0xBF59_7FC7, 0xC6E0_0BF3, 0xD5A7_9147, 0x06CA_6351, 0x1429_2967,
        0x27B7_0A85, 0x2E1B_2138, 0x4D2C_6DFC, 0x5338_0D13, 0x650A_7354, 0x766A_0ABB, 0x81C2_C92E, 0x9272_2C85,
        0xA2BF_E8A1, 0xA81A_664B, 0xC24B_8B70, 0xC76C_51A3, 0xD192_E819, 0xD699_0624, 0xF40E_3585, 0x106A_A070,
        0x19A4_C116, 0x1E37_6C08, 0x2748_774C, 0x34B0_BCB5, 0x391C_0CB3, 0x4ED8_AA4A, 0x5B9C_CA4F, 0x682E_6FF3,
        0x748F_82EE, 0x78A5_636F, 0x84C8_7814, 0x8CC7_0208, 0x90BE_FFFA, 0xA450_6CEB, 0xBEF9_A3F7, 0xC671_78F2,
    ]
}
#endif
