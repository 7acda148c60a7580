/// The checksum of gzip (RFC 1952, section 8).
package struct CRC32 {
    private var state: UInt32 = 0xFFFF_FFFF

    package init() {}

    package var value: UInt32 { ~state }

    private static let table: [UInt32] = (0..<256).map { index in
        (0..<8).reduce(UInt32(index)) { value, _ in value & 1 == 1 ? 0xEDB8_8320 ^ value >> 1 : value >> 1 }
    }

    package mutating func append(_ bytes: some Sequence<UInt8>) {
        let table = Self.table
        for byte in bytes { state = table[Int(UInt8(truncatingIfNeeded: state) ^ byte)] ^ state >> 8 }
    }

    /// Appends zeros in a time logarithmic in their number: a zero changes the state by a linear map of its bits, which
    /// is squared repeatedly.
    package mutating func appendZeros(_ count: Int) {
        // The images of the 32 bits.
        var map = (0..<32).map { bit -> UInt32 in
            let value = UInt32(1) << UInt32(bit)
            return Self.table[Int(UInt8(truncatingIfNeeded: value))] ^ value >> 8
        }
        var left = count
        while left > 0 {
            if left & 1 == 1 { state = Self.image(of: state, map) }
            let square = map.map { Self.image(of: $0, map) }
            map = square
            left >>= 1
        }
    }

    private static func image(of value: UInt32, _ map: [UInt32]) -> UInt32 {
        var left = value
        var result: UInt32 = 0
        while left != 0 {
            result ^= map[left.trailingZeroBitCount]
            left &= left - 1
        }
        return result
    }
}
