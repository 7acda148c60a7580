import Foundation

/// The form of an entry in a file, numbers with the lowest byte first:
///
/// | bytes | what |
/// |-|-|
/// | 4 | `ENCF` |
/// | 4 | version of the form: 1 |
/// | 8 | length of the header |
/// | 8 | length of the body |
/// | | header: JSON |
/// | | body |
/// | 8 | CRC-64 of all before it |
enum CacheFileFormat {
    static let prefixLength = 24
    private static let magic = Data("ENCF".utf8)
    private static let version: UInt32 = 1
    private static let checksumLength = 8

    /// The file in pieces, so that the body is not copied.
    static func encode(_ entry: CacheEntry) throws(CacheFailure) -> [Data] {
        let header: Data
        do {
            header = try JSONEncoder().encode(Record(entry.header))
        } catch {
            throw .unencodable
        }
        var start = magic
        start.append(version)
        start.append(UInt64(header.count))
        start.append(UInt64(entry.body.count))
        start.append(header)
        var checksum = CRC64()
        checksum.update(start)
        checksum.update(entry.body)
        var end = Data()
        end.append(checksum.value)
        return [start, entry.body, end]
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
        var checksum = CRC64()
        checksum.update(file.prefix(bodyEnd))
        guard
            checksum.value == file.number(at: bodyEnd, as: UInt64.self),
            let header = self.header(file, end: headerEnd)
        else { throw .damaged }
        guard header.key == key else { throw .foreign }
        return CacheEntry(header: header, body: file.subdata(in: headerEnd..<bodyEnd))
    }

    /// The header out of the beginning of a file, and the length of the body, unchecked: good enough to choose by, not
    /// to answer with.
    static func decodeHeader(_ beginning: Data) throws(CacheFailure) -> (header: CacheHeader, bodyCount: Int) {
        guard
            let end = try headerEnd(beginning),
            let header = header(beginning, end: end),
            let bodyCount = Int(exactly: beginning.number(at: 16, as: UInt64.self))
        else { throw .damaged }
        return (header, bodyCount)
    }

    /// Where the header of the file ends; nil when that cannot be.
    static func headerEnd(_ file: Data) throws(CacheFailure) -> Int? {
        guard file.prefix(magic.count) == magic else { throw magic.starts(with: file) ? .damaged : .foreign }
        guard file.count >= prefixLength else { throw .damaged }
        guard file.number(at: 4, as: UInt32.self) == version else { throw .otherVersion }
        // What is longer than half of all numbers is as wrong as what is longer than the file.
        guard let length = Int(exactly: file.number(at: 8, as: UInt64.self)) else { return nil }
        return length < Int.max / 2 ? prefixLength + length : nil
    }

    /// Whether a file of that size can be whole, judged by its beginning.
    static func isPlausible(_ beginning: Data, size: Int) -> Bool {
        guard let end = try? headerEnd(beginning), end <= size - checksumLength else { return false }
        return beginning.number(at: 16, as: UInt64.self) == UInt64(size - checksumLength - end)
    }

    private static func header(_ file: Data, end: Int) -> CacheHeader? {
        guard end <= file.count else { return nil }
        return try? JSONDecoder().decode(Record.self, from: file.subdata(in: prefixLength..<end)).header
    }

    private struct Record: Codable {
        var key: String
        var method: String
        var url: String?
        var statusCode: Int
        /// Names and values by turns.
        var fields: [[String]]
        /// Seconds since the beginning of 2001 (UTC), as a date has them, so that it comes back to the bit.
        var requestedAt: TimeInterval
        var receivedAt: TimeInterval
        var attributes: [String: String]

        init(_ header: CacheHeader) {
            key = header.key
            method = header.method
            url = header.url?.absoluteString
            statusCode = header.statusCode
            fields = header.headers.map { [$0.name, $0.value] }
            requestedAt = header.requestedAt.timeIntervalSinceReferenceDate
            receivedAt = header.receivedAt.timeIntervalSinceReferenceDate
            attributes = header.attributes
        }

        var header: CacheHeader? {
            guard fields.allSatisfy({ $0.count == 2 }) else { return nil }
            return CacheHeader(
                key: key,
                method: method,
                url: url.flatMap { URL(string: $0) },
                statusCode: statusCode,
                headers: HTTPHeaders(fields.map { HTTPHeaders.Field(name: $0[0], value: $0[1]) }),
                requestedAt: Date(timeIntervalSinceReferenceDate: requestedAt),
                receivedAt: Date(timeIntervalSinceReferenceDate: receivedAt),
                attributes: attributes
            )
        }
    }
}

extension Data {
    fileprivate mutating func append(_ number: some FixedWidthInteger) {
        Swift.withUnsafeBytes(of: number.littleEndian) { append(contentsOf: $0) }
    }

    /// Of data that begins at 0 and is long enough.
    fileprivate func number<Number: FixedWidthInteger>(at offset: Int, as type: Number.Type) -> Number {
        withUnsafeBytes { Number(littleEndian: $0.loadUnaligned(fromByteOffset: offset, as: type)) }
    }
}
