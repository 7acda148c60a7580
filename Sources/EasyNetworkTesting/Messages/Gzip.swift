import Foundation

/// Writes gzip (RFC 1952) by hand, as Foundation has no writer of it on Linux.
enum Gzip {
    /// No name, no time, no operating system.
    private static let header = Data([0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 0xFF])

    /// The bytes in blocks that are not compressed (RFC 1951, section 3.2.4).
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

    /// So many bytes of zero in about a 1,032th of the room, the most that DEFLATE can do.
    static func zeros(_ count: Int) -> Data {
        var writer = BitWriter()
        // The last block, with codes of its own (RFC 1951, section 3.2.7): 286 for literals and lengths, 1 for distances.
        writer.write(0b101, bits: 3)
        writer.write(286 - 257, bits: 5)
        writer.write(1 - 1, bits: 5)
        // The lengths of the codes in which the lengths are told, in their odd order: 1 bit for "many zeros" (18), 2 for
        // a length of 2 and of 1.
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
        // From these lengths follow: 10 for a literal 0, 11 for the end, and 0 0 for 258 bytes from 1 back.
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
