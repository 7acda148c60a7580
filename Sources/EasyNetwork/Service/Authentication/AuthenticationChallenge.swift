/// A challenge of a `WWW-Authenticate` or `Proxy-Authenticate` field (RFC 9110, section 11.6.1).
struct AuthenticationChallenge: Hashable, Sendable {
    /// In lower case, as schemes are case-insensitive.
    var scheme: String
    /// The token that some schemes have instead of parameters; nil when there is none.
    var token68: String?
    /// By name in lower case, without the quotes.
    var parameters: [String: String]

    init(scheme: String, token68: String? = nil, parameters: [String: String] = [:]) {
        self.scheme = scheme
        self.token68 = token68
        self.parameters = parameters
    }

    /// All challenges of all fields of that name, in order. Reading a field ends at the first malformed part.
    static func all(in headers: HTTPHeaders, field: String = "WWW-Authenticate") -> [AuthenticationChallenge] {
        headers.values(for: field).flatMap { value in
            var parser = AuthenticationParser(value)
            return parser.challenges()
        }
    }

    /// The parameters of an `Authentication-Info` field, which has no scheme (section 11.6.3).
    static func information(in headers: HTTPHeaders, field: String = "Authentication-Info") -> [String: String] {
        guard let value = headers[field] else { return [:] }
        var parser = AuthenticationParser(value)
        return parser.information() ?? [:]
    }
}

/// Reads challenges from the bytes of a field.
///
/// The comma separates challenges as well as the parameters of one challenge, so the meaning of a word depends on what
/// follows: a word before `=` is a parameter, any other word is the scheme of the next challenge.
struct AuthenticationParser {
    private(set) var reader: HTTPFieldReader

    init(_ value: String) {
        reader = HTTPFieldReader(value)
    }

    /// The valid challenges before the first mistake. After a mistake the start of the next challenge is unknown: it
    /// could be inside a quoted string.
    mutating func challenges() -> [AuthenticationChallenge] {
        var challenges: [AuthenticationChallenge] = []
        reader.skipListSeparators()
        while let scheme = reader.token(), let challenge = try? rest(of: scheme) {
            challenges.append(challenge)
            reader.skipListSeparators()
        }
        return challenges
    }

    mutating func information() -> [String: String]? {
        reader.skipListSeparators()
        guard let parameters = try? parameters(), reader.isAtEnd else { return nil }
        return parameters
    }

    private mutating func rest(of scheme: String) throws(Malformed) -> AuthenticationChallenge {
        var challenge = AuthenticationChallenge(scheme: scheme.lowercased())
        guard !reader.isAtSeparator() else { return challenge }
        guard reader.next == UInt8(ascii: " ") else { throw Malformed() }
        reader.skipBlanks()
        challenge.token68 = token68()
        if challenge.token68 == nil {
            challenge.parameters = try parameters()
            if challenge.parameters.isEmpty { throw Malformed() }
        }
        return challenge
    }

    // MARK: - Pieces

    private struct Malformed: Error {}

    /// Reads all parameters, up to the scheme of the next challenge.
    private mutating func parameters() throws(Malformed) -> [String: String] {
        var parameters: [String: String] = [:]
        while let (name, value) = try parameter() {
            // A name occurs once (section 11.2); with two values the intended one is unknown.
            guard parameters.updateValue(value, forKey: name) == nil, reader.isAtSeparator() else { throw Malformed() }
            reader.skipListSeparators()
        }
        return parameters
    }

    /// Reads `name=token` or `name="text"`, also with blanks around the sign.
    ///
    /// - Returns: nil, and nothing is read, when no name with its sign comes next.
    private mutating func parameter() throws(Malformed) -> (name: String, value: String)? {
        let start = reader.position
        guard let name = reader.token() else { return nil }
        reader.skipBlanks()
        guard reader.take(UInt8(ascii: "=")) else {
            reader.position = start
            return nil
        }
        reader.skipBlanks()
        guard let value = reader.next == UInt8(ascii: "\"") ? reader.quotedString() : reader.token() else {
            throw Malformed()
        }
        return (name.lowercased(), value)
    }

    private mutating func token68() -> String? {
        let rest = reader.bytes[reader.position...]
        let letters = rest.prefix(while: HTTPSyntax.isToken68Byte)
        let end = rest[letters.endIndex...].firstIndex { $0 != UInt8(ascii: "=") } ?? reader.bytes.count
        guard !letters.isEmpty else { return nil }
        let start = reader.position
        reader.position = end
        guard reader.isAtSeparator() else {
            reader.position = start
            return nil
        }
        return String(decoding: reader.bytes[start..<end], as: UTF8.self)
    }
}
