/// A challenge of a `WWW-Authenticate` field (RFC 9110, section 11.6.1).
struct AuthenticationChallenge: Hashable, Sendable {
    /// The scheme in lower case, because schemes are case-insensitive.
    var scheme: String
    /// The parameters by name in lower case, without their quotes. Empty for a scheme that has a token instead.
    var parameters: [String: String] = [:]

    /// Returns the challenges of all fields, in order, without malformed ones.
    static func all(in headers: HTTPHeaders) -> [AuthenticationChallenge] {
        headers.rawValues(for: "WWW-Authenticate").flatMap { value in
            var reader = HTTPFieldReader(value)
            return reader.challenges()
        }
    }

    /// Returns the parameters of an `Authentication-Info` field, which has no scheme (RFC 9110, section 11.6.3).
    static func information(in headers: HTTPHeaders) -> [String: String] {
        var reader = HTTPFieldReader(headers.rawValues(for: "Authentication-Info").joined(separator: ", "))
        let all = reader.challenges(after: AuthenticationChallenge(scheme: ""))
        return all.count == 1 && all[0].scheme.isEmpty ? all[0].parameters : [:]
    }

    /// Returns whether a parameter is `true`, ignoring case.
    func isTrue(_ name: String) -> Bool {
        parameters[name]?.isEqualIgnoringASCIICase(to: "true") == true
    }
}

// The comma separates challenges as well as the parameters of one challenge, so the meaning of a word depends on what
// follows: a word before `=` is a parameter, and any other word is the scheme of the next challenge. Servers omit
// commas and quotes, or use wrong ones. A guess is safe: if it is wrong, the server refuses the response to its
// challenge.
extension HTTPFieldReader {
    /// Reads the challenges, without malformed ones.
    ///
    /// - Parameter first: The challenge that parameters before the first scheme belong to. Defaults to `nil`.
    mutating func challenges(after first: AuthenticationChallenge? = nil) -> [AuthenticationChallenge] {
        var found = [first].compactMap(\.self)
        var malformed: Set<Int> = []
        skipListSeparators()
        // Bytes can be read again after each mistake, so many mistakes end the reading.
        while !isAtEnd, readCount <= 4 * bytes.count {
            let isRead = token().map { readRest(of: $0, into: &found) }
            if isRead == false { malformed.insert(found.count - 1) }
            if isRead != true {
                // Quotes are ignored here, because one of them can be the mistake.
                position = bytes[position...].firstIndex(of: UInt8(ascii: ",")) ?? bytes.count
            }
            skipListSeparators()
        }
        if !isAtEnd { malformed.insert(found.count - 1) }
        return found.indices.filter { !malformed.contains($0) }.map { found[$0] }
    }

    /// Reads what follows a name: the value of a parameter, or a new challenge up to its parameters.
    ///
    /// - Returns: False if the last challenge is malformed.
    private mutating func readRest(of name: String, into found: inout [AuthenticationChallenge]) -> Bool {
        let end = position
        skipBlanks()
        if take(UInt8(ascii: "=")) {
            skipBlanks()
            // A name must occur once (RFC 9110, section 11.2). With two values, the intended one is unknown.
            guard let value = parameterValue(), !found.isEmpty else { return false }
            return found[found.count - 1].parameters.updateValue(value, forKey: name.lowercased()) == nil
        }
        found.append(AuthenticationChallenge(scheme: name.lowercased()))
        guard position > end || isAtSeparator() else { return false }
        skipToken68()
        return true
    }

    /// Reads a value, which can be in double quotes, in single quotes, or unquoted, and can contain blanks.
    ///
    /// - Returns: Nil if the value is malformed. In this case, nothing is consumed.
    private mutating func parameterValue() -> String? {
        let start = position
        let value = next == UInt8(ascii: "\"") ? quotedString() : singleQuotedText() ?? unquotedText()
        if value != nil, isAtEnd || isDelimiter(position) { return value }
        position = start
        return nil
    }

    private func isDelimiter(_ index: Int) -> Bool {
        bytes[index] == UInt8(ascii: ",") || bytes[index] == UInt8(ascii: " ") || bytes[index] == UInt8(ascii: "\t")
    }

    private mutating func singleQuotedText() -> String? {
        guard next == UInt8(ascii: "'"), let end = bytes[(position + 1)...].firstIndex(of: UInt8(ascii: "'")),
            end + 1 == bytes.count || isDelimiter(end + 1)
        else { return nil }
        defer { position = end + 1 }
        return String(decoding: bytes[(position + 1)..<end], as: UTF8.self)
    }

    /// Reads up to a comma, or up to a blank before the name of another parameter.
    private mutating func unquotedText() -> String? {
        let start = position
        var end = start
        while let byte = next, byte != UInt8(ascii: ","), byte != UInt8(ascii: "\"") {
            if isDelimiter(position) {
                skipBlanks()
                if isAtParameter { break }
            } else {
                position += 1
                end = position
            }
        }
        guard next != UInt8(ascii: "\""), end > start, bytes[start] != UInt8(ascii: "=") else { return nil }
        position = end
        return String(decoding: bytes[start..<end], as: UTF8.self)
    }

    private var isAtParameter: Bool {
        let name = bytes[position...].prefix(while: HTTPSyntax.isTokenByte)
        let sign = bytes[name.endIndex...].first { $0 != UInt8(ascii: " ") && $0 != UInt8(ascii: "\t") }
        return !name.isEmpty && sign == UInt8(ascii: "=")
    }

    /// Skips the token that some schemes have instead of parameters.
    private mutating func skipToken68() {
        let start = position
        let letters = bytes[start...].prefix(while: HTTPSyntax.isToken68Byte)
        guard !letters.isEmpty else { return }
        position = bytes[letters.endIndex...].firstIndex { $0 != UInt8(ascii: "=") } ?? bytes.count
        if !isAtSeparator() { position = start }
    }
}
