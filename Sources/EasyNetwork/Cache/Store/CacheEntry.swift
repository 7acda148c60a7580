import Foundation

/// A stored response.
struct CacheEntry: Hashable, Sendable {
    var header: NetworkCache.Entry
    var body: Data

    init(header: NetworkCache.Entry, body: Data) {
        self.header = header
        self.header.bodyCount = body.count
        self.body = body
    }

    /// The approximate size in memory, in bytes.
    var cost: Int {
        let texts = header.key.utf8.count + (header.url?.absoluteString.utf8.count ?? 0)
        let fields = header.headers.reduce(0) { $0 + $1.name.utf8.count + $1.raw.utf8.count + 32 }
        let attributes = header.attributes.reduce(0) { $0 + $1.key.utf8.count + $1.value.utf8.count + 32 }
        return 256 + texts + fields + attributes + body.count
    }

    /// The maximum number of responses for a URL.
    static let variantLimit = 8

    /// Returns this entry as the newest of its URL. The entry that it replaces becomes a variant if it has other
    /// nominated fields.
    ///
    /// - Parameter old: the entry with the same key.
    /// - Returns: the entry with the list of its variants, without the oldest if there are too many; the replaced entry
    ///   under its new key; and the keys of the variants that are no longer listed.
    func replacing(_ old: CacheEntry?) -> (entry: CacheEntry, demoted: CacheEntry?, dropped: [String]) {
        guard let nominated = header.nominated, let old, let former = old.header.nominated else {
            return (self, nil, [])
        }
        let key = header.key
        var variants = header.variants ?? []
        let isListed = variants.contains(former)
        for other in [former] + (old.header.variants ?? []) where other != nominated && !variants.contains(other) {
            variants.append(other)
        }
        variants = Array(variants.prefix(Self.variantLimit - 1))
        var entry = self
        entry.header.variants = variants.isEmpty ? nil : variants
        var demoted = old
        demoted.header.key = CacheKey.variant(former, of: key)
        demoted.header.variants = nil
        let kept = entry.header.variantKeys
        let dropped = (header.variantKeys + old.header.variantKeys).filter { !kept.contains($0) }
        return (entry, former == nominated || isListed ? nil : demoted, dropped)
    }
}

extension NetworkCache {
    /// The properties of an entry, without its body.
    ///
    /// ```swift
    /// try await cache.remove { entry in entry.url?.host == "old.example.com" }
    /// ```
    public struct Entry: Hashable, Codable, Sendable {
        /// The key of the entry, any string.
        public internal(set) var key: String
        /// The method of the request.
        public internal(set) var method = NetworkService.Method.get.rawValue
        /// The URL of the response.
        public internal(set) var url: URL?
        /// The status of the response.
        public internal(set) var statusCode = 200
        /// The header fields of the response.
        public internal(set) var headers = HTTPHeaders()
        /// The date at which the request was sent, for the age in RFC 9111, section 4.2.3.
        var requestedAt: Date
        /// The date at which the response arrived.
        public internal(set) var receivedAt: Date
        /// The size of the body in bytes.
        public internal(set) var bodyCount = 0
        /// The values that explicit policies compare: the version, the digest of sensitive data, and the version of the
        /// app.
        var attributes: [String: String] = [:]
        /// The request fields that the response depends on, by the rules of HTTP.
        var nominated: NominatedFields?
        /// The nominated fields of the URL's other responses, beginning with the newest; see
        /// ``CacheKey/variant(_:of:)``.
        var variants: [NominatedFields]?
        /// Whether the response must not be on disk, even if it becomes a variant of a response that can be.
        var isInMemoryOnly: Bool?

        /// Returns the newest other response that is for a request, or nil if this one is.
        func variant(for request: HTTPHeaders) -> NominatedFields? {
            guard let variants, nominated?.match(request) != true else { return nil }
            return variants.first { $0.match(request) }
        }

        var variantKeys: [String] {
            (variants ?? []).map { CacheKey.variant($0, of: key) }
        }
    }
}

extension NetworkCache.Entry: CustomStringConvertible, CustomReflectable {
    /// The method, the URL without user, password, query and fragment, the status, the size and the date.
    public var description: String {
        let address = url?.withoutSecrets ?? "of an unknown address"
        return "\(method) \(address): \(statusCode), \(bodyCount) bytes, received \(receivedAt.timestamp)".cleaned()
    }

    /// A mirror without children, so that a dump has no secrets.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension HTTPHeaders: Codable {
    /// Reads an array of pairs of name and value.
    public init(from decoder: any Decoder) throws {
        let pairs = try decoder.singleValueContainer().decode([[String]].self)
        guard pairs.allSatisfy({ $0.count == 2 }) else { throw CacheMiss.damaged }
        self.init(pairs.map { Field(name: $0[0], value: $0[1]) })
    }

    /// Writes an array of pairs of name and value, in order.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(map { [$0.name, $0.raw] })
    }
}

// The format of an entry's file. Numbers are little-endian.
//
// | bytes | contents |
// |-|-|
// | 4 | `ENCF` |
// | 4 | version of the format: 3 |
// | 8 | length of the header |
// | | header: JSON |
// | | body |
// | 32 | SHA-256 of all before it |
//
// Files of earlier versions count as damaged.
extension CacheEntry {
    private static let checksumLength = 32

    /// Returns the pieces of the file. The body is not copied.
    func encoded() throws -> [Data] {
        let json = try JSONEncoder().encode(header)
        var start = NetworkCache.Entry.signature
        Swift.withUnsafeBytes(of: UInt64(json.count).littleEndian) { start.append(contentsOf: $0) }
        start.append(json)
        var checksum = SHA256()
        checksum.update(start)
        checksum.update(body)
        return [start, body, checksum.finalize()]
    }

    /// Reads a whole file.
    ///
    /// - Throws: ``CacheMiss/damaged``, even for the file of another key.
    init(file: Data, key: String) throws(CacheMiss) {
        let end = file.count - Self.checksumLength
        guard let headerEnd = NetworkCache.Entry.end(in: file), headerEnd <= end,
            SHA256.digest(of: file.prefix(end)) == file.suffix(Self.checksumLength),
            let header = NetworkCache.Entry(file: file), header.key == key
        else { throw .damaged }
        self.init(header: header, body: file.subdata(in: headerEnd..<end))
    }
}

extension NetworkCache.Entry {
    /// The name and the version of the format.
    fileprivate static let signature = Data("ENCF".utf8) + [3, 0, 0, 0]
    private static let start = 16

    /// Returns the end of the header in a file, or nil if the file does not begin like an entry.
    static func end(in file: Data) -> Int? {
        guard file.count >= start, file.starts(with: signature) else { return nil }
        let length = file.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: signature.count, as: UInt64.self) }
        // The limit avoids an overflow.
        guard let length = Int(exactly: UInt64(littleEndian: length)), length < Int.max / 2 else { return nil }
        return start + length
    }

    /// Reads the header from a file or its beginning, without verifying the checksum.
    ///
    /// - Returns: nil if the header is incomplete.
    init?(file: Data) {
        guard let end = Self.end(in: file), end <= file.count,
            let header = try? JSONDecoder().decode(Self.self, from: file.subdata(in: Self.start..<end))
        else { return nil }
        self = header
    }
}
