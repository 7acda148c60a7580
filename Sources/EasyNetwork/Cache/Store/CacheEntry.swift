import Foundation

/// A stored response.
struct CacheEntry: Hashable, Sendable {
    var header: CacheHeader
    var body: Data

    /// The approximate size in memory, in bytes.
    var cost: Int {
        let texts = header.key.utf8.count + (header.url?.absoluteString.utf8.count ?? 0)
        let fields = header.headers.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count + 32 }
        let attributes = header.attributes.reduce(0) { $0 + $1.key.utf8.count + $1.value.utf8.count + 32 }
        return 256 + texts + fields + attributes + body.count
    }
}

/// The properties of a stored response, without its body.
struct CacheHeader: Hashable, Codable, Sendable {
    /// Any text.
    var key: String
    /// The method of the request.
    var method = NetworkService.Method.get.rawValue
    /// The URL of the response.
    var url: URL?
    var statusCode = 200
    @PairsOfFields var headers = HTTPHeaders()
    /// When the request was sent and when its response arrived, for the age by RFC 9111, section 4.2.3.
    var requestedAt: Date
    var receivedAt: Date
    /// The values that explicit policies compare: the version, the digest of sensitive data, the version of the app.
    var attributes: [String: String] = [:]
    /// The request fields that the response depends on, by the rules of HTTP.
    var nominated: NominatedFields?
}

/// Codes header fields as pairs of name and value.
@propertyWrapper
struct PairsOfFields: Hashable, Codable, Sendable {
    var wrappedValue: HTTPHeaders

    init(wrappedValue: HTTPHeaders) {
        self.wrappedValue = wrappedValue
    }

    init(from decoder: any Decoder) throws {
        let pairs = try decoder.singleValueContainer().decode([[String]].self)
        guard pairs.allSatisfy({ $0.count == 2 }) else { throw CacheFailure.damaged }
        wrappedValue = HTTPHeaders(pairs.map { HTTPHeaders.Field(name: $0[0], value: $0[1]) })
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(wrappedValue.map { [$0.name, $0.value] })
    }
}

/// The reason why the cache has no entry, or did not store one.
enum CacheFailure: Error, Hashable, Sendable {
    /// There is no entry with the key.
    case absent
    /// The entry was not used for longer than the limit. It has been removed.
    case expired
    /// The file was truncated or changed. It has been removed.
    case damaged
    /// The file was not written by the cache, or for another key. It has been removed.
    case foreign
    /// The file has the format of another version. It has been removed.
    case otherVersion
    /// The entry is larger than the limit of the cache.
    case tooLarge
    /// A date of the header cannot be written as JSON.
    case unencodable
    case system(CacheFileError)
}

/// An error of the system.
struct CacheFileError: Error, Hashable, Sendable {
    enum Operation: Hashable, Sendable {
        case list, look, read, create, write, rename, remove, touch, makeDirectory
    }

    var operation: Operation
    /// The value of `errno`.
    var code: Int32
}
