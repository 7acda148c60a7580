import Foundation

/// Bytes filled bit by bit from their lowest, as DEFLATE has it (RFC 1951, section 3.1.1).
struct BitWriter {
    private(set) var bytes = Data()
    private var pending: UInt64 = 0
    private var pendingCount = 0

    /// A number, its lowest bit first.
    mutating func write(_ value: UInt64, bits: Int) {
        pending |= value << UInt64(pendingCount)
        pendingCount += bits
        while pendingCount >= 8 {
            bytes.append(UInt8(truncatingIfNeeded: pending))
            pending >>= 8
            pendingCount -= 8
        }
    }

    /// A Huffman code, its highest bit first.
    mutating func write(code: String) {
        for bit in code.utf8 { write(bit == UInt8(ascii: "1") ? 1 : 0, bits: 1) }
    }

    mutating func writeZeros(bits count: Int) {
        let whole = count / 8
        write(0, bits: count % 8)
        guard whole > 0 else { return }
        // What is pending fills the first byte from below, and as many bits of the last are left over.
        bytes.append(UInt8(truncatingIfNeeded: pending))
        pending = 0
        bytes.append(Data(count: whole - 1))
    }

    /// The bytes, the last one filled up with zeros.
    consuming func finished() -> Data {
        if pendingCount > 0 { bytes.append(UInt8(truncatingIfNeeded: pending)) }
        return bytes
    }
}
