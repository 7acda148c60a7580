import Foundation

/// The file format of an entry, with little-endian numbers:
///
/// | bytes | contents |
/// |-|-|
/// | 4 | `ENCF` |
/// | 4 | version of the format: 2 |
/// | 8 | length of the header |
/// | 8 | length of the body |
/// | | header: JSON |
/// | | body |
/// | 32 | SHA-256 of all before it |
///
/// Version 1 had another checksum; its files count as damaged.
enum CacheFileFormat {
    static let prefixLength = 24
    private static let magic = Data("ENCF".utf8)
    private static let version: UInt32 = 2
    private static let checksumLength = 32

    /// The pieces of the file. The body is not copied.
    static func encode(_ entry: CacheEntry) throws(CacheFailure) -> [Data] {
        let header: Data
        do {
            header = try JSONEncoder().encode(entry.header)
        } catch {
            throw .unencodable
        }
        var start = magic
        start.append(version)
        start.append(UInt64(header.count))
        start.append(UInt64(entry.body.count))
        start.append(header)
        var checksum = SHA256()
        checksum.update(start)
        checksum.update(entry.body)
        return [start, entry.body, checksum.finalize()]
    }

    static func decode(_ file: Data, key: String) throws(CacheFailure) -> CacheEntry {
        let headerEnd = try self.headerEnd(file)
        let bodyLength = file.number(at: 16, as: UInt64.self)
        guard
            let headerEnd,
            file.count >= headerEnd + checksumLength,
            bodyLength == UInt64(file.count - headerEnd - checksumLength)
        else { throw .damaged }
        let bodyEnd = file.count - checksumLength
        guard SHA256.digest(of: file.prefix(bodyEnd)) == file.suffix(checksumLength),
            let header = self.header(file, end: headerEnd)
        else { throw .damaged }
        guard header.key == key else { throw .foreign }
        return CacheEntry(header: header, body: file.subdata(in: headerEnd..<bodyEnd))
    }

    /// The header and the length of the body, from the beginning of a file, without a check of the checksum.
    static func decodeHeader(_ beginning: Data) throws(CacheFailure) -> (header: CacheHeader, bodyCount: Int) {
        guard
            let end = try headerEnd(beginning),
            let header = header(beginning, end: end),
            let bodyCount = Int(exactly: beginning.number(at: 16, as: UInt64.self))
        else { throw .damaged }
        return (header, bodyCount)
    }

    /// The end of the header; nil when it is impossible.
    static func headerEnd(_ file: Data) throws(CacheFailure) -> Int? {
        guard file.prefix(magic.count) == magic else { throw magic.starts(with: file) ? .damaged : .foreign }
        guard file.count >= prefixLength else { throw .damaged }
        guard file.number(at: 4, as: UInt32.self) == version else { throw .otherVersion }
        // Avoids an overflow.
        guard let length = Int(exactly: file.number(at: 8, as: UInt64.self)) else { return nil }
        return length < Int.max / 2 ? prefixLength + length : nil
    }

    /// Whether a file of a size can be whole, by its beginning.
    static func isPlausible(_ beginning: Data, size: Int) -> Bool {
        guard let end = try? headerEnd(beginning), end <= size - checksumLength else { return false }
        return beginning.number(at: 16, as: UInt64.self) == UInt64(size - checksumLength - end)
    }

    private static func header(_ file: Data, end: Int) -> CacheHeader? {
        guard end <= file.count else { return nil }
        return try? JSONDecoder().decode(CacheHeader.self, from: file.subdata(in: prefixLength..<end))
    }
}

extension Data {
    fileprivate mutating func append(_ number: some FixedWidthInteger) {
        Swift.withUnsafeBytes(of: number.littleEndian) { append(contentsOf: $0) }
    }

    /// The number at an offset of data that begins at 0 and is long enough.
    fileprivate func number<Number: FixedWidthInteger>(at offset: Int, as type: Number.Type) -> Number {
        withUnsafeBytes { Number(littleEndian: $0.loadUnaligned(fromByteOffset: offset, as: type)) }
    }
}
