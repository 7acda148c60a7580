import Foundation

extension NominatedFields {
    private static let prefix = "vary:"
    /// No digest in base 64 is that.
    private static let absent = "-"

    static func isAttribute(_ name: String) -> Bool { name.hasPrefix(prefix) }

    /// These as texts, to be written among the attributes of an entry.
    var attributes: [String: String] {
        var attributes: [String: String] = matchesNone ? [Self.prefix + "*": ""] : [:]
        for (name, digest) in digests { attributes[Self.prefix + name] = digest?.base64EncodedString() ?? Self.absent }
        return attributes
    }

    /// - Parameters:
    ///   - attributes: those of an entry, others among them.
    ///   - response: the entry's fields. What their `Vary` names has to be among the attributes; if not, nobody knows which
    ///     requests the entry is for, and it matches none.
    init(attributes: [String: String], vary response: HTTPHeaders) {
        self.init(vary: response, of: HTTPHeaders())
        let expected = Set(digests.keys)
        digests = [:]
        for (attribute, text) in attributes where Self.isAttribute(attribute) {
            let name = String(attribute.dropFirst(Self.prefix.count))
            let digest = Data(base64Encoded: text)
            if HTTPSyntax.isToken(name.utf8), name != "*", text == Self.absent || digest?.count == 32 {
                digests.updateValue(text == Self.absent ? nil : digest, forKey: name)
            } else {
                matchesNone = true
            }
        }
        if !expected.isSubset(of: digests.keys) { matchesNone = true }
    }
}

extension StoredResponse {
    /// The answer of an entry of the store.
    init(_ entry: CacheHeader) {
        self.init(
            method: NetworkService.Method(rawValue: entry.method),
            status: entry.statusCode,
            headers: entry.headers,
            nominated: NominatedFields(attributes: entry.attributes, vary: entry.headers),
            requestDate: entry.requestedAt,
            responseDate: entry.receivedAt
        )
    }

    /// Writes this answer into an entry, and leaves its key, its URL and its other attributes.
    func write(to entry: inout CacheHeader) {
        entry.method = method.rawValue
        entry.statusCode = status
        entry.headers = headers
        entry.requestedAt = requestDate
        entry.receivedAt = responseDate
        let others = entry.attributes.filter { !NominatedFields.isAttribute($0.key) }
        entry.attributes = nominated.attributes.merging(others) { nominated, _ in nominated }
    }
}
