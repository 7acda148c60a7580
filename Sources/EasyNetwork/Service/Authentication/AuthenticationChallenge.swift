/// A challenge of a `WWW-Authenticate` field (RFC 9110, section 11.6.1).
struct AuthenticationChallenge: Hashable, Sendable {
    /// In lower case, as schemes are case-insensitive.
    var scheme: String
    /// By name in lower case, without the quotes; empty for a scheme that has a token instead.
    var parameters: [String: String] = [:]

    /// All challenges of all fields, in order. Reading a field ends at the first malformed part.
    static func all(in headers: HTTPHeaders) -> [AuthenticationChallenge] {
        headers.rawValues(for: "WWW-Authenticate").flatMap { value in
            var reader = HTTPFieldReader(value)
            return reader.challenges()
        }
    }

    /// The parameters of an `Authentication-Info` field, which has no scheme (section 11.6.3).
    static func information(in headers: HTTPHeaders) -> [String: String] {
        var reader = HTTPFieldReader(headers.rawValues(for: "Authentication-Info").joined(separator: ", "))
        reader.skipListSeparators()
        guard let parameters = reader.parameters(), reader.isAtEnd else { return [:] }
        return parameters
    }

    /// Whether a parameter is `true`, in any case.
    func isTrue(_ name: String) -> Bool {
        parameters[name]?.isEqualIgnoringASCIICase(to: "true") == true
    }
}

// The comma separates challenges as well as the parameters of one challenge, so the meaning of a word depends on what
// follows: a word before `=` is a parameter, any other word is the scheme of the next challenge.
extension HTTPFieldReader {
    /// The valid challenges before the first mistake. After a mistake the start of the next challenge is unknown: it
    /// could be inside a quoted string.
    mutating func challenges() -> [AuthenticationChallenge] {
        var challenges: [AuthenticationChallenge] = []
        skipListSeparators()
        while let scheme = token() {
            var challenge = AuthenticationChallenge(scheme: scheme.lowercased())
            if !isAtSeparator() {
                guard next == UInt8(ascii: " ") else { break }
                skipBlanks()
                if !skipToken68() {
                    guard let parameters = parameters(), !parameters.isEmpty else { break }
                    challenge.parameters = parameters
                }
            }
            challenges.append(challenge)
            skipListSeparators()
        }
        return challenges
    }

    /// Reads `name=token` and `name="text"`, also with blanks around the sign, up to the scheme of the next challenge.
    ///
    /// - Returns: nil when one is malformed.
    mutating func parameters() -> [String: String]? {
        var parameters: [String: String] = [:]
        while true {
            let start = position
            guard let name = token() else { return parameters }
            skipBlanks()
            guard take(UInt8(ascii: "=")) else {
                position = start
                return parameters
            }
            skipBlanks()
            // A name occurs once (section 11.2); with two values the intended one is unknown.
            guard let value = next == UInt8(ascii: "\"") ? quotedString() : token(),
                parameters.updateValue(value, forKey: name.lowercased()) == nil, isAtSeparator()
            else { return nil }
            skipListSeparators()
        }
    }

    /// Skips the token that some schemes have instead of parameters.
    ///
    /// - Returns: false, with nothing read, when there is none.
    private mutating func skipToken68() -> Bool {
        let rest = bytes[position...]
        let letters = rest.prefix(while: HTTPSyntax.isToken68Byte)
        guard !letters.isEmpty else { return false }
        let start = position
        position = rest[letters.endIndex...].firstIndex { $0 != UInt8(ascii: "=") } ?? bytes.count
        if !isAtSeparator() { position = start }
        return position > start
    }
}
