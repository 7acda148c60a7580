import Foundation

extension NetworkResponse {
    /// The body as a property list, in XML or in binary: a dictionary, an array, a text, a number, a date or data, as
    /// `PropertyListSerialization` returns them.
    ///
    /// - Throws: ``NetworkError/Code/cannotParseResponse`` if the body is empty or no property list, or nested deeper
    ///   than 512 levels. In binary, sets, and containers that are held by many others, are refused.
    public func propertyList() throws(NetworkError) -> Any {
        guard !body.isEmpty else { throw emptyBodyError(wanted: "a property list") }
        var format = PropertyListSerialization.PropertyListFormat.xml
        do {
            guard !body.starts(with: "bplist".utf8) || BinaryPropertyListCheck.accepts(Array(body)) else {
                throw error(.cannotParseResponse, message: "the body is no property list: its structure is broken")
            }
            let list = try PropertyListSerialization.propertyList(from: body, options: [], format: &format)
            // Foundation takes any word for a list in its oldest format.
            guard format != .openStep, PropertyListSerialization.propertyList(list, isValidFor: .binary) else {
                throw error(.cannotParseResponse, message: "the body is no property list: it is neither XML nor binary")
            }
            return list
        } catch let error as NetworkError {
            throw error
        } catch let cause {
            let reason = ((cause as NSError).userInfo[NSDebugDescriptionErrorKey] as? String)?.withoutFullStop
            let message = "the body is no property list" + (reason.map { ": \($0)" } ?? "")
            throw error(.cannotParseResponse, message: message, underlying: cause)
        }
    }

    func decodePropertyList<T: Decodable>(_ type: T.Type) throws(NetworkError) -> T {
        let list = try propertyList()
        do {
            // `PropertyListDecoder` overflows the stack at deep lists, so it gets only what was read safely.
            let data = try PropertyListSerialization.data(fromPropertyList: list, format: .binary, options: 0)
            return try PropertyListDecoder().decode(type, from: data)
        } catch let error as DecodingError {
            let message = error.message(in: .tree(list))
            throw self.error(.cannotParseResponse, message: message, underlying: error)
        } catch {
            throw mappingError(error)
        }
    }
}

/// Refuses binary property lists that Foundation on Linux does not survive: it stops the process at sets and at the
/// text of a date that is no number, and never ends at lists that hold others twice, many levels deep.
///
/// The format is that of CFBinaryPList.c: objects, a table of their offsets, and a trailer of 32 bytes that describes
/// the table. Containers hold the numbers of other objects.
struct BinaryPropertyListCheck {
    private let bytes: [UInt8]
    private let offsetSize: Int
    private let referenceSize: Int
    private var objectCount: Int
    private var table: Int
    /// The size that the objects may still have together. It is small for a list that holds everything once.
    private var budget: Int

    static func accepts(_ bytes: [UInt8]) -> Bool {
        guard var check = BinaryPropertyListCheck(bytes) else { return false }
        return check.accepts(check.number(bytes.count - 16, 8), depth: 1)
    }

    private init?(_ bytes: [UInt8]) {
        guard bytes.count >= 41 else { return nil }
        let trailer = bytes.count - 32
        self.bytes = bytes
        offsetSize = Int(bytes[trailer + 6])
        referenceSize = Int(bytes[trailer + 7])
        budget = max(1_000_000, bytes.count > .max / 64 ? .max : 64 * bytes.count)
        (objectCount, table) = (0, 0)
        guard (1...8).contains(offsetSize), (1...8).contains(referenceSize),
            let objectCount = number(trailer + 8, 8), let table = number(trailer + 24, 8),
            table <= trailer, objectCount <= (trailer - table) / offsetSize
        else { return nil }
        (self.objectCount, self.table) = (objectCount, table)
    }

    private mutating func accepts(_ object: Int?, depth: Int) -> Bool {
        guard depth <= 512, let object, object < objectCount,
            let offset = number(table + object * offsetSize, offsetSize), offset < table,
            var (count, start) = contents(at: offset), count <= bytes.count
        else { return false }
        budget -= 16 + count
        let kind = bytes[offset] >> 4
        guard budget >= 0, ![0xB, 0xC].contains(kind), kind != 0x3 || isFinite(at: offset + 1) else { return false }
        guard kind == 0xA || kind == 0xD else { return true }
        if kind == 0xD { count *= 2 }
        for _ in 0..<count {
            guard accepts(number(start, referenceSize), depth: depth + 1) else { return false }
            start += referenceSize
        }
        return true
    }

    /// Whether the Double is a finite number, as that of a date has to be.
    private func isFinite(at index: Int) -> Bool {
        index + 8 <= table && (bytes[index] & 0x7F != 0x7F || bytes[index + 1] < 0xF0)
    }

    /// The length of an object, and the index behind it: the length is in the first byte, or in an integer behind that.
    private func contents(at offset: Int) -> (count: Int, start: Int)? {
        let count = Int(bytes[offset] & 0x0F)
        guard count == 0x0F else { return (count, offset + 1) }
        guard offset + 1 < table, bytes[offset + 1] >> 4 == 1, bytes[offset + 1] & 0x0F <= 3 else { return nil }
        let size = 1 << Int(bytes[offset + 1] & 0x0F)
        return number(offset + 2, size).map { ($0, offset + 2 + size) }
    }

    /// A big-endian number; nil beyond the end and beyond Int.
    private func number(_ index: Int, _ size: Int) -> Int? {
        guard index <= bytes.count - size else { return nil }
        return Int(exactly: bytes[index..<(index + size)].reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
    }
}
