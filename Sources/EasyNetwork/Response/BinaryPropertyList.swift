import Foundation

/// Reads a binary property list.
///
/// The format is that of CFBinaryPList.c: objects, a table of their offsets, and a trailer of 32 bytes that says where the
/// table is and how long its numbers are. An object is a byte with its kind and often its length, then what it holds;
/// containers hold the numbers of other objects, so that one may be held many times, and by itself.
struct BinaryPropertyList {
    private let bytes: [UInt8]
    private let offsetSize: Int
    private let referenceSize: Int
    private let objectCount: Int
    private let root: Int
    private let table: Int

    /// What may still be read: a list in which everything is there once needs a small part of it. Without it one of a
    /// kilobyte could be read for ever.
    private var budget: Int

    static func value(of data: Data) throws(PropertyListFailure) -> Any {
        guard var list = BinaryPropertyList(Array(data)) else {
            throw PropertyListFailure("its trailer is broken")
        }
        return try list.value(of: list.root, depth: 1)
    }

    private init?(_ bytes: [UInt8]) {
        guard bytes.count >= 41 else { return nil }
        let trailer = bytes.count - 32
        let (offsetSize, referenceSize) = (Int(bytes[trailer + 6]), Int(bytes[trailer + 7]))
        guard (1...8).contains(offsetSize), (1...8).contains(referenceSize),
            let objectCount = Self.number(bytes, at: trailer + 8, 8),
            let root = Self.number(bytes, at: trailer + 16, 8),
            let table = Self.number(bytes, at: trailer + 24, 8),
            table > 8, table < trailer, root < objectCount, objectCount <= (trailer - table) / offsetSize
        else { return nil }
        self.bytes = bytes
        self.offsetSize = offsetSize
        self.referenceSize = referenceSize
        self.objectCount = objectCount
        self.root = root
        self.table = table
        let (sum, isTooMuch) = bytes.count.multipliedReportingOverflow(by: 64)
        budget = isTooMuch ? .max : max(sum, 1_000_000)
    }

    private mutating func value(of object: Int, depth: Int) throws(PropertyListFailure) -> Any {
        guard depth <= PropertyListFailure.maximumDepth else { throw .tooDeep }
        guard object < objectCount, let offset = Self.number(bytes, at: table + object * offsetSize, offsetSize),
            offset >= 8, offset < table
        else { throw .broken }
        let low = bytes[offset] & 0x0F
        switch bytes[offset] >> 4 {
        case 0x0:
            guard low == 8 || low == 9 else { throw .broken }
            return low == 9
        case 0x1: return try integer(try content(offset + 1, 1 << Int(low & 7)))
        case 0x2: return try real(try content(offset + 1, 1 << Int(low & 7)))
        case 0x3: return try date(try content(offset + 1, 8))
        case 0x4:
            let (count, start) = try count(at: offset)
            return Data(try content(start, count))
        case 0x5:
            let (count, start) = try count(at: offset)
            let text = try content(start, count)
            guard text.allSatisfy({ $0 < 0x80 }) else { throw .broken }
            return String(decoding: text, as: UTF8.self)
        case 0x6:
            let (count, start) = try count(at: offset)
            guard count <= bytes.count / 2,
                let text = Charset.utf16(bigEndian: true).decode(Data(try content(start, 2 * count)))
            else { throw .broken }
            return text
        case 0xA: return try array(at: offset, depth)
        case 0xD: return try dictionary(at: offset, depth)
        default: throw PropertyListFailure("an object of it is of a kind that property lists do not have")
        }
    }

    private mutating func array(at offset: Int, _ depth: Int) throws(PropertyListFailure) -> [Any] {
        let (count, start) = try count(at: offset)
        var result: [Any] = []
        for reference in try references(start, count) { result.append(try value(of: reference, depth: depth + 1)) }
        return result
    }

    private mutating func dictionary(at offset: Int, _ depth: Int) throws(PropertyListFailure) -> [String: Any] {
        let (count, start) = try count(at: offset)
        guard count <= bytes.count / 2 else { throw .broken }
        let references = try references(start, 2 * count)
        var result: [String: Any] = [:]
        for index in 0..<count {
            guard let key = try value(of: references[index], depth: depth + 1) as? String else {
                throw PropertyListFailure("a key of it is no text")
            }
            guard result.updateValue(try value(of: references[count + index], depth: depth + 1), forKey: key) == nil
            else { throw PropertyListFailure("the key \"\(JSONShape.Constant.quotable(key))\" is there twice") }
        }
        return result
    }

    // MARK: - Bytes

    private mutating func references(_ start: Int, _ count: Int) throws(PropertyListFailure) -> [Int] {
        guard count <= bytes.count / referenceSize else { throw .broken }
        let content = try content(start, count * referenceSize)
        // A value in memory is larger than a number in a file.
        try spend(count <= .max / 16 ? 16 * count : .max)
        var references: [Int] = []
        references.reserveCapacity(count)
        for index in 0..<count {
            guard let reference = Self.number(bytes, at: content.startIndex + index * referenceSize, referenceSize)
            else {
                throw .broken
            }
            references.append(reference)
        }
        return references
    }

    private mutating func content(_ start: Int, _ count: Int) throws(PropertyListFailure) -> ArraySlice<UInt8> {
        guard start <= table, count <= table - start else { throw .broken }
        try spend(count + 16)
        return bytes[start..<(start + count)]
    }

    private mutating func spend(_ amount: Int) throws(PropertyListFailure) {
        budget -= amount
        guard budget >= 0 else { throw PropertyListFailure("it holds the same things too many times") }
    }

    /// The length of what an object holds, and where that begins: in the first byte, or in an integer behind it.
    private func count(at offset: Int) throws(PropertyListFailure) -> (count: Int, start: Int) {
        let short = Int(bytes[offset] & 0x0F)
        guard short == 0x0F else { return (short, offset + 1) }
        guard offset + 1 < table, bytes[offset + 1] >> 4 == 1, bytes[offset + 1] & 0x0F <= 3 else { throw .broken }
        let size = 1 << Int(bytes[offset + 1] & 0x0F)
        guard let count = Self.number(bytes, at: offset + 2, size) else { throw .broken }
        return (count, offset + 2 + size)
    }

    /// Up to four bytes have no sign, eight have one, and sixteen are for what is beyond.
    private func integer(_ content: ArraySlice<UInt8>) throws(PropertyListFailure) -> Any {
        guard content.count <= 16 else { throw .broken }
        let low = content.suffix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        let high = content.dropLast(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        if content.count == 16, high == 0 { return Int(exactly: low).map { $0 as Any } ?? low }
        let signed = Int64(bitPattern: low)
        guard content.count < 16 || high == .max && signed < 0 else { throw .broken }
        return Int(exactly: signed).map { $0 as Any } ?? signed
    }

    private func real(_ content: ArraySlice<UInt8>) throws(PropertyListFailure) -> Double {
        let bits = content.suffix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        switch content.count {
        case 4: return Double(Float(bitPattern: UInt32(truncatingIfNeeded: bits)))
        case 8: return Double(bitPattern: bits)
        default: throw .broken
        }
    }

    private func date(_ content: ArraySlice<UInt8>) throws(PropertyListFailure) -> Date {
        let seconds = try real(content)
        guard seconds.isFinite else { throw .broken }
        return Date(timeIntervalSinceReferenceDate: seconds)
    }

    /// Big-endian; nil beyond the end and beyond Int.
    private static func number(_ bytes: [UInt8], at index: Int, _ size: Int) -> Int? {
        guard index >= 0, index <= bytes.count - size else { return nil }
        return Int(exactly: bytes[index..<(index + size)].reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
    }
}
