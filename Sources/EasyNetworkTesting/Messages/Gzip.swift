import EasyNetwork
import Foundation

/// Writes gzip (RFC 1952), which Foundation cannot write on Linux.
enum Gzip {
    /// The header, without name, time and operating system.
    private static let header = Data([0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 0xFF])

    /// Returns the bytes in blocks that are not compressed (RFC 1951, section 3.2.4).
    static func stored(_ data: Data) -> Data {
        var result = header
        var rest = data[...]
        repeat {
            let block = rest.prefix(0xFFFF)
            rest = rest.dropFirst(block.count)
            result.append(rest.isEmpty ? 1 : 0)
            result.append(littleEndian: UInt16(block.count))
            result.append(littleEndian: ~UInt16(block.count))
            result.append(block)
        } while !rest.isEmpty
        var checksum = CRC32()
        checksum.append(data)
        return finished(result, checksum, count: data.count)
    }

    /// Returns `count` zeros in about a 1,032nd of their size, the best ratio of DEFLATE.
    static func zeros(_ count: Int) -> Data {
        var writer = BitWriter()
        // The last block, with dynamic codes (RFC 1951, section 3.2.7): 286 for literals and lengths, 1 for distances.
        writer.write(0b101, bits: 3)
        writer.write(286 - 257, bits: 5)
        writer.write(1 - 1, bits: 5)
        // The lengths of the code length codes, in their fixed order: 1 bit for "many zeros" (18), 2 bits for the
        // lengths 2 and 1.
        let lengths: [UInt64] = [0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 2]
        writer.write(UInt64(lengths.count - 4), bits: 4)
        for length in lengths { writer.write(length, bits: 3) }
        let (zeros, one, two) = ("0", "10", "11")
        // Literal 0: 2 bits. Literals 1 to 255: unused. End of block: 2 bits. 257 to 284: unused. 285, a length of 258:
        // 1 bit. Distance 1: 1 bit.
        writer.write(code: two)
        for run in [138, 255 - 138] as [UInt64] {
            writer.write(code: zeros)
            writer.write(run - 11, bits: 7)
        }
        writer.write(code: two)
        writer.write(code: zeros)
        writer.write(28 - 11, bits: 7)
        writer.write(code: one)
        writer.write(code: one)
        // The resulting codes: 10 for a literal 0, 11 for the end, and 0 0 for 258 bytes at distance 1.
        let left = max(count - 1, 0)
        for _ in 0..<min(count, left % 258 + 1) { writer.write(code: "10") }
        writer.writeZeros(bits: left / 258 * 2)
        writer.write(code: "11")
        var checksum = CRC32()
        checksum.appendZeros(count)
        return finished(header + writer.finished(), checksum, count: count)
    }

    private static func finished(_ stream: Data, _ checksum: CRC32, count: Int) -> Data {
        var result = stream
        result.append(littleEndian: checksum.value)
        result.append(littleEndian: UInt32(truncatingIfNeeded: count))
        return result
    }
}

extension Data {
    fileprivate mutating func append(littleEndian value: some FixedWidthInteger) {
        Swift.withUnsafeBytes(of: value.littleEndian) { append(contentsOf: $0) }
    }
}

/// Writes bits into bytes, starting with the lowest bit, as DEFLATE does (RFC 1951, section 3.1.1).
struct BitWriter {
    private(set) var bytes = Data()
    private var pending: UInt64 = 0
    private var pendingCount = 0

    /// Writes a number, starting with its lowest bit.
    mutating func write(_ value: UInt64, bits: Int) {
        pending |= value << UInt64(pendingCount)
        pendingCount += bits
        while pendingCount >= 8 {
            bytes.append(UInt8(truncatingIfNeeded: pending))
            pending >>= 8
            pendingCount -= 8
        }
    }

    /// Writes a Huffman code, starting with its highest bit.
    mutating func write(code: String) {
        for bit in code.utf8 { write(bit == UInt8(ascii: "1") ? 1 : 0, bits: 1) }
    }

    mutating func writeZeros(bits count: Int) {
        let whole = count / 8
        write(0, bits: count % 8)
        guard whole > 0 else { return }
        // The pending bits begin the first byte, and the same number of bits is pending after the last.
        bytes.append(UInt8(truncatingIfNeeded: pending))
        pending = 0
        bytes.append(Data(count: whole - 1))
    }

    /// Returns the bytes, with the last one padded with zeros.
    consuming func finished() -> Data {
        if pendingCount > 0 { bytes.append(UInt8(truncatingIfNeeded: pending)) }
        return bytes
    }
}

extension CRC32 {
    /// Appends zeros in logarithmic time. A zero byte changes the state by a linear map of its bits, and repeated
    /// squaring of that map skips many zeros at once.
    mutating func appendZeros(_ count: Int) {
        // The images of the 32 bits under the map.
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
