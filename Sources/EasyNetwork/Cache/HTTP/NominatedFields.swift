import Foundation

/// What a request said in the fields that `Vary` names: for another request to get the same answer it has to say the same
/// (RFC 9111, section 4.1).
///
/// Of each value only the SHA-256 is kept, since a `Cookie` or an `Authorization` may be among them.
struct NominatedFields: Hashable, Sendable {
    /// By name in lower case; nil for a field that the request did not have.
    var digests: [String: Data?] = [:]
    /// Whether `Vary` has a `*`, or something that is no name: then no request is like this one.
    var matchesNone = false

    /// - Parameters:
    ///   - names: more fields that tell answers apart, whatever `Vary` says.
    ///   - request: the fields as they were sent, credentials and cookies included.
    init(vary response: HTTPHeaders, and names: [String] = [], of request: HTTPHeaders) {
        for name in response.listMembers("Vary") + names {
            guard name != "*", HTTPSyntax.isToken(name.utf8) else {
                matchesNone = true
                continue
            }
            let key = name.lowercased()
            // Absent ones too, as nil. A name that is repeated costs no second digest.
            if !digests.keys.contains(key) { digests.updateValue(Self.digest(key, of: request), forKey: key) }
        }
    }

    /// Whether a request says the same. One with a credential that the first request did not have does not; its cookies
    /// count only if they were named, see ``CacheUse``.
    func match(_ request: HTTPHeaders) -> Bool {
        !matchesNone && digests.allSatisfy { $0.value == Self.digest($0.key, of: request) }
            && request.allSatisfy { field in
                !field.isCredential || field.isCookie || digests.keys.contains(field.name.lowercased())
            }
    }

    private static func digest(_ name: String, of request: HTTPHeaders) -> Data? {
        guard let value = request[name] else { return nil }
        return SHA256.digest(of: Data(normalized(value, name.lowercased())))
    }

    /// Fields in which case does not count, nor blanks between any two words.
    private static let caselessFields: Set<String> = ["accept-charset", "accept-encoding", "accept-language"]

    /// The value without what may differ though nothing else is meant: blanks at its ends and around the commas of a list,
    /// and in some fields case. Not between quotes.
    private static func normalized(_ value: String, _ name: String) -> [UInt8] {
        let isCaseless = caselessFields.contains(name)
        var reader = HTTPFieldReader(value.trimmed)
        var bytes: [UInt8] = []
        while let byte = reader.next {
            let start = reader.position
            reader.position += 1
            switch byte {
            case UInt8(ascii: "\""):
                reader.position = start
                if reader.quotedString() == nil { reader.position = reader.bytes.count }
                bytes += reader.bytes[start..<reader.position]
            case UInt8(ascii: " "), UInt8(ascii: "\t"):
                reader.skipBlanks()
                let isAtComma = reader.next == UInt8(ascii: ",") || bytes.last == UInt8(ascii: ",")
                if !isAtComma && !isCaseless { bytes += reader.bytes[start..<reader.position] }
            default:
                bytes.append(isCaseless ? byte.lowercasedASCII : byte)
            }
        }
        return bytes
    }
}
