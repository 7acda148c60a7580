import Foundation

/// The request fields that `Vary` names. A stored response is for requests with the same values (RFC 9111, section
/// 4.1).
///
/// Has only the SHA-256 of each value, since a `Cookie` or an `Authorization` may be among them.
struct NominatedFields: Hashable, Codable, Sendable {
    /// By name in lower case; nil for a field that is not in the request.
    var digests: [String: Data?] = [:]
    /// Whether `Vary` has a `*` or an invalid name, so that no request matches.
    var matchesNone = false

    /// - Parameters:
    ///   - names: further fields that responses depend on.
    ///   - request: the fields as they were sent, with credentials and cookies.
    init(vary response: HTTPHeaders, and names: [String] = [], of request: HTTPHeaders) {
        for name in response.listMembers("Vary") + names {
            guard name != "*", HTTPSyntax.isToken(name.utf8) else {
                matchesNone = true
                continue
            }
            let key = name.lowercased()
            // `updateValue` also stores nil, for an absent field.
            if !digests.keys.contains(key) { digests.updateValue(Self.digest(key, of: request), forKey: key) }
        }
    }

    /// Whether a request has the same values. A request with a further credential does not match; cookies count only if
    /// they are nominated.
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

    /// The fields in which case and spaces have no meaning.
    private static let caselessFields: Set<String> = ["accept-charset", "accept-encoding", "accept-language"]

    /// The value without differences that have no meaning: spaces at its ends and around commas, and in some fields
    /// case, except between quotes.
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
