import Foundation

extension NetworkResponse {
    /// Returns the body as a property list, in XML or binary format: a dictionary, an array, a string, a number, a date
    /// or data, as `PropertyListSerialization` returns them.
    ///
    /// - Throws: ``NetworkError/Code/cannotParseResponse`` if the body is empty, is not a property list, or is nested
    ///   deeper than 512 levels. In the binary format, sets are rejected, and so are containers that many others
    ///   contain.
    public func propertyList() throws(NetworkError) -> Any {
        guard !body.isEmpty else { throw emptyBodyError(wanted: "a property list") }
        guard !body.starts(with: "bplist".utf8) || BinaryPropertyListCheck.accepts(Array(body)) else {
            throw error(.cannotParseResponse, message: "the body is not a property list: its structure is broken")
        }
        var format = PropertyListSerialization.PropertyListFormat.xml
        let list: Any
        do {
            list = try PropertyListSerialization.propertyList(from: body, options: [], format: &format)
        } catch let cause {
            let reason = ((cause as NSError).userInfo[NSDebugDescriptionErrorKey] as? String)?.withoutFullStop
            let message = "the body is not a property list" + (reason.map { ": \($0)" } ?? "")
            throw error(.cannotParseResponse, message: message, underlying: cause)
        }
        // Foundation accepts any word as a list in its oldest format.
        guard format != .openStep, PropertyListSerialization.propertyList(list, isValidFor: .binary) else {
            throw error(.cannotParseResponse, message: "the body is not a property list: neither XML nor binary")
        }
        return list
    }

    func decodePropertyList<T: Decodable>(_ type: T.Type) throws(NetworkError) -> T {
        let list = try propertyList()
        do {
            // `PropertyListDecoder` overflows the stack at deeply nested lists, so pass it only a list that was read
            // safely.
            let data = try PropertyListSerialization.data(fromPropertyList: list, format: .binary, options: 0)
            return try PropertyListDecoder().decode(type, from: data)
        } catch let error as DecodingError {
            throw self.error(.cannotParseResponse, message: error.message(in: .tree(list)), underlying: error)
        } catch {
            throw mappingError(error)
        }
    }
}

/// A check that rejects binary property lists that Foundation on Linux cannot handle. Foundation crashes on sets and on
/// dates that are not finite numbers, and never finishes lists that contain others twice, many levels deep.
///
/// The format is that of CFBinaryPList.c: objects, a table of their offsets, and a trailer of 32 bytes that describes
/// the table. Containers contain the numbers of other objects.
struct BinaryPropertyListCheck {
    private let bytes: [UInt8]
    private let offsetSize: Int
    private let referenceSize: Int
    private var objectCount = 0
    private var table = 0
    /// The remaining total size of all objects. A list that contains each object once needs only a little of it.
    private var budget: Int

    static func accepts(_ bytes: [UInt8]) -> Bool {
        guard bytes.count >= 41 else { return false }
        let trailer = bytes.count - 32
        let (offsetSize, referenceSize) = (Int(bytes[trailer + 6]), Int(bytes[trailer + 7]))
        let budget = max(1_000_000, bytes.count > .max / 64 ? .max : 64 * bytes.count)
        var check = Self(bytes: bytes, offsetSize: offsetSize, referenceSize: referenceSize, budget: budget)
        guard (1...8).contains(offsetSize), (1...8).contains(referenceSize),
            let objectCount = check.number(trailer + 8, 8), let table = check.number(trailer + 24, 8),
            table <= trailer, objectCount <= (trailer - table) / offsetSize
        else { return false }
        (check.objectCount, check.table) = (objectCount, table)
        return check.accepts(check.number(trailer + 16, 8), depth: 1)
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

    /// Returns whether the Double is a finite number, as required for a date.
    private func isFinite(at index: Int) -> Bool {
        index + 8 <= table && (bytes[index] & 0x7F != 0x7F || bytes[index + 1] < 0xF0)
    }

    /// Returns the length of an object, and the index after it. The length is in the first byte, or in an integer after
    /// that byte.
    private func contents(at offset: Int) -> (count: Int, start: Int)? {
        let count = Int(bytes[offset] & 0x0F)
        guard count == 0x0F else { return (count, offset + 1) }
        guard offset + 1 < table, bytes[offset + 1] >> 4 == 1, bytes[offset + 1] & 0x0F <= 3 else { return nil }
        let size = 1 << Int(bytes[offset + 1] & 0x0F)
        return number(offset + 2, size).map { ($0, offset + 2 + size) }
    }

    /// Reads a big-endian number. Returns nil beyond the end, and for numbers larger than Int.
    private func number(_ index: Int, _ size: Int) -> Int? {
        guard index <= bytes.count - size else { return nil }
        return Int(exactly: bytes[index..<(index + size)].reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
    }
}
