import Foundation

/// An answer as it is kept: what is said of it, and its body.
struct CacheEntry: Hashable, Sendable {
    var header: CacheHeader
    var body: Data

    /// About what it takes of memory, in bytes.
    var cost: Int {
        let texts = header.key.utf8.count + (header.url?.absoluteString.utf8.count ?? 0)
        let fields = header.headers.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count + 32 }
        let attributes = header.attributes.reduce(0) { $0 + $1.key.utf8.count + $1.value.utf8.count + 32 }
        return 256 + texts + fields + attributes + body.count
    }
}

/// All of a kept answer but its body.
struct CacheHeader: Hashable, Sendable {
    /// What it is found by, whole. Any text.
    var key: String
    /// The method of the request.
    var method = NetworkService.Method.get.rawValue
    /// The URL that answered; nil when nobody said.
    var url: URL?
    var statusCode = 200
    var headers = HTTPHeaders()
    /// When the request was sent and its answer came; RFC 9111, section 4.2.3, computes the age from both.
    var requestedAt: Date
    var receivedAt: Date
    /// What the policies compare: a version, the digest of sensitive data, the fields that Vary names.
    var attributes: [String: String] = [:]
}
