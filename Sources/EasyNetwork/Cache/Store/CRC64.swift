import Foundation

/// CRC-64 as in ECMA-182, bits reversed, the one of XZ: notices every change of up to 64 bits in a row and, but for
/// one in 2⁶⁴, all others.
///
/// Against chance and not against an attacker, as SHA-256 would be: whoever can write the file can write its sum.
struct CRC64 {
    private static let polynomial: UInt64 = 0xC96C_5795_D787_0F42
    private(set) var value: UInt64 = 0

    mutating func update(_ bytes: some DataProtocol) {
        for region in bytes.regions { region.withUnsafeBytes { update($0) } }
    }

    /// Eight bytes at a time, each by a table of its own ("slicing by 8").
    private mutating func update(_ bytes: UnsafeRawBufferPointer) {
        Self.tables.withUnsafeBufferPointer { tables in
            var state = ~value
            let whole = bytes.count & ~7
            for offset in stride(from: 0, to: whole, by: 8) {
                state ^= UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
                var next: UInt64 = 0
                for place in 0..<8 {
                    next ^= tables[(7 &- place) &* 256 &+ Int(truncatingIfNeeded: state & 255)]
                    state &>>= 8
                }
                state = next
            }
            for offset in whole..<bytes.count {
                state = tables[Int((state ^ UInt64(bytes[offset])) & 255)] ^ state >> 8
            }
            value = ~state
        }
    }

    /// Eight tables of 256, one after the other: what a byte does to the sum, followed by none to seven zero bytes.
    private static let tables: [UInt64] = {
        var tables = (0..<256).map { (byte: UInt64) -> UInt64 in
            var state = byte
            for _ in 0..<8 { state = state & 1 == 1 ? state >> 1 ^ polynomial : state >> 1 }
            return state
        }
        for index in 256..<2_048 {
            let last = tables[index - 256]
            tables.append(tables[Int(last & 255)] ^ last >> 8)
        }
        return tables
    }()
}
