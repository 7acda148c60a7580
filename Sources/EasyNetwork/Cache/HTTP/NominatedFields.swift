import Foundation

/// The request fields that `Vary` names. A stored response is for requests with the same values (RFC 9111, section
/// 4.1).
///
/// Only the SHA-256 of each value is stored, because a `Cookie` or an `Authorization` can be among them. A partial
/// response nominates `Range`, with its `Content-Range` as the value: it is for requests for bytes that it contains.
struct NominatedFields: Hashable, Codable, Sendable {
    /// The digests by name in lowercase; nil for a field that the request does not have.
    var digests: [String: Data?] = [:]
    /// Whether `Vary` has a `*` or an invalid name, so that no request matches.
    var matchesNone = false

    /// - Parameters:
    ///   - names: additional fields that responses depend on.
    ///   - request: the fields as they were sent, with credentials and cookies.
    ///   - part: the bytes of a 206. Defaults to nil: the response is whole.
    init(vary response: HTTPHeaders, and names: [String] = [], of request: HTTPHeaders, part: ContentRange? = nil) {
        for name in response.listMembers("Vary") + names {
            guard name != "*", HTTPSyntax.isToken(name.utf8) else {
                matchesNone = true
                continue
            }
            let key = name.lowercased()
            // `updateValue` also stores nil, for an absent field.
            if !digests.keys.contains(key) { digests.updateValue(Self.digest(key, of: request), forKey: key) }
        }
        if let text = part?.fieldValue { digests["range"] = Data(text.utf8) }
    }

    /// Returns whether a request has the same values. A request with an additional credential does not match. Cookies
    /// count only if they are nominated.
    func match(_ request: HTTPHeaders) -> Bool {
        !matchesNone && digests.allSatisfy { Self.match($0.key, $0.value, request) }
            && request.allSatisfy { field in
                !field.isCredential || field.isCookie || digests.keys.contains(field.name.lowercased())
            }
    }

    private static func match(_ name: String, _ value: Data?, _ request: HTTPHeaders) -> Bool {
        if name == "range", let value, let part = ContentRange(String(decoding: value, as: UTF8.self)) {
            return request["Range"].flatMap(part.part) != nil
        }
        return value == digest(name, of: request)
    }

    private static func digest(_ name: String, of request: HTTPHeaders) -> Data? {
        let values = request.rawValues(for: name)
        guard !values.isEmpty else { return nil }
        return SHA256.digest(of: Data(normalized(values.joined(separator: ", "), name.lowercased())))
    }

    /// The lists of preferences, in which case, spaces and order have no meaning (RFC 9110, section 12.5).
    private static let preferenceFields: Set<String> = ["accept-charset", "accept-encoding", "accept-language"]

    /// Returns the value without insignificant differences: spaces at its ends and around commas and, in some fields,
    /// order and case, except between quotes.
    private static func normalized(_ value: String, _ name: String) -> [UInt8] {
        let isPreference = preferenceFields.contains(name)
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
                if !isAtComma && !isPreference { bytes += reader.bytes[start..<reader.position] }
            default:
                bytes.append(isPreference ? byte.lowercasedASCII : byte)
            }
        }
        return isPreference ? sorted(bytes) ?? bytes : bytes
    }

    /// Returns the members of a list of preferences in alphabetical order, each with its weight, or nil for an invalid
    /// list.
    private static func sorted(_ list: [UInt8]) -> [UInt8]? {
        var members: [String] = []
        for member in list.split(separator: UInt8(ascii: ",")) {
            let parts = member.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false)
            let weight = parts.count == 1 ? "q=1" : String(decoding: parts[1], as: UTF8.self)
            guard parts.count <= 2, HTTPSyntax.isToken(parts[0]), weight.hasPrefix("q="),
                weight.utf8.dropFirst(2).allSatisfy({ $0.isDigit || $0 == UInt8(ascii: ".") }),
                let number = Double(weight.dropFirst(2))
            else { return nil }
            members.append("\(String(decoding: parts[0], as: UTF8.self));\(number)")
        }
        return Array(members.sorted().joined(separator: ",").utf8)
    }
}
