import Foundation

/// Takes secrets out of headers, URLs, JSON and forms before they are shown.
///
/// ```swift
/// print(Redaction.standard.redacted(response.headers))
/// ```
///
/// A value is secret by its name: a header, a URL parameter, a form field or a JSON key that is called Authorization,
/// Cookie or password, or whose name contains token, secret, API key, signature and the like, in any spelling
/// (`access_token`, `accessToken`, `X-Access-Token`). The parameters `code` and `key` of a URL or a form are secret
/// too, and so are user and password of a URL. A secret without such a name, like a token in a path, is not recognized.
public struct Redaction: Hashable, Sendable {
    /// The replacement for a secret. It is valid in a URL too.
    public static let mark = "REDACTED"

    /// A redaction without additional names.
    public static let standard = Redaction()

    /// Additional secret names, compared by their letters and digits without case. Default none.
    public let names: Set<String>

    /// Creates a redaction with additional secret names.
    public init(names: Set<String> = []) {
        self.names = Set(names.map { $0.utf8Bytes { Self.normalized($0) { String(decoding: $0, as: UTF8.self) } } })
    }

    /// Whether the value of a header, parameter or key with this name is secret.
    public func isSecret(_ name: String) -> Bool {
        name.utf8Bytes(isSecret)
    }

    func isSecret(_ name: UnsafeBufferPointer<UInt8>) -> Bool {
        Self.normalized(name) { name in
            guard let first = name.first else { return false }
            if Self.words[Int(first)].contains(where: { $0.count == name.count && name.has($0, at: 0) }) { return true }
            for start in name.indices {
                for part in Self.parts[Int(name[start])] where name.has(part, at: start) { return true }
            }
            return !names.isEmpty && names.contains(String(decoding: name, as: UTF8.self))
        }
    }

    /// The headers with their secret values replaced. The scheme of credentials stays: `Bearer REDACTED`. In other
    /// values, such as `Location`, the secrets of URLs are replaced.
    public func redacted(_ headers: HTTPHeaders) -> HTTPHeaders {
        HTTPHeaders(headers.map(redacted))
    }

    func redacted(_ field: HTTPHeaders.Field) -> HTTPHeaders.Field {
        let value = isSecret(field.name) ? Self.credentials(field.value) : redacted(field.value)
        return HTTPHeaders.Field(name: field.name, value: value)
    }

    /// The URL without user and password, and with secret parameters of query and fragment replaced.
    public func redacted(_ url: URL) -> String {
        redacted(url.absoluteString)
    }

    /// The text with the secrets of URLs and forms in it replaced: `https://user:password@host`, `token=abc`, and
    /// `token="a b"`.
    public func redacted(_ text: String) -> String {
        text.utf8Bytes(redactedBytes).map { String(decoding: $0, as: UTF8.self) } ?? text
    }

    /// - Returns: nil if there is no secret.
    private func redactedBytes(_ bytes: UnsafeBufferPointer<UInt8>) -> [UInt8]? {
        // No secret is without `=` or `://`, whose slashes JSON may escape.
        guard bytes.hasByte(of: "=") || bytes.hasByte(of: ":") && bytes.hasByte(of: "/") else { return nil }
        var result: [UInt8] = []
        /// The end of what the result has.
        var copied = 0
        var index = 0
        var nameStart = 0
        while index < bytes.count {
            let byte = bytes[index]
            index += 1
            var end: Int?
            if byte == UInt8(ascii: "="), isSecretParameter(bytes, nameStart..<(index - 1)) {
                end = Self.endOfValue(bytes, from: index)
            } else if byte == UInt8(ascii: ":"), let count = Self.countOfSlashes(bytes, at: index) {
                index += count
                end = Self.endOfUserInformation(bytes, from: index)
            } else if Self.isNameByte(byte) {
                continue
            }
            if let end, end > index || byte == UInt8(ascii: ":") {
                result += bytes[copied..<index]
                result += Self.mark.utf8
                (index, copied) = (end, end)
            }
            nameStart = index
        }
        guard copied > 0 else { return nil }
        return result + bytes[copied...]
    }

    /// The text of a body without its secrets, if it is a JSON object or array, or has the content type of a form. JSON
    /// is written again: on one line, with sorted keys.
    ///
    /// - Returns: nil for any other body, since its secrets cannot be recognized.
    public func redactedText(of body: Data, contentType: String? = nil) -> String? {
        if let text = redactedJSON(body) { return text }
        guard contentType.flatMap(MediaType.init)?.essence == "application/x-www-form-urlencoded" else { return nil }
        return redacted(String(decoding: body, as: UTF8.self))
    }

    /// The words of a transport, which may quote the address of a proxy: everything before the last `@` may be user and
    /// password.
    func transportWords(_ text: String) -> String {
        let bytes = Array(text.utf8)
        guard let end = bytes.lastIndex(of: UInt8(ascii: "@")) else { return redacted(text) }
        var start = bytes[..<end].firstIndex { $0 == UInt8(ascii: "'") || $0 == UInt8(ascii: "\"") }.map { $0 + 1 } ?? 0
        let scheme = bytes[start..<end].prefix { $0.isLetter || $0.isDigit }
        if bytes[scheme.endIndex..<end].starts(with: "://".utf8) { start = scheme.endIndex + 3 }
        return redacted(String(decoding: bytes[..<start] + Array(Self.mark.utf8) + bytes[end...], as: UTF8.self))
    }

    /// An error with the same domain and code, and with the texts, URLs and underlying errors of its dictionary without
    /// their secrets.
    ///
    /// - Parameter depth: how many levels of underlying errors are kept.
    func redacted(_ error: any Error, depth: Int = 8) -> any Error {
        // It redacts its own dictionary.
        if error is NetworkError { return error }
        let error = error as NSError
        // The dictionary of a Swift error does not have its text.
        var information: [String: Any] = [NSLocalizedDescriptionKey: redacted(error.localizedDescription)]
        for (key, value) in error.userInfo where !isSecret(key) {
            switch value {
            case let text as String: information[key] = redacted(text)
            case let url as URL: information[key] = URL(string: redacted(url))
            case let error as any Error: if depth > 1 { information[key] = redacted(error, depth: depth - 1) }
            default: break
            }
        }
        return NSError(domain: error.domain, code: error.code, userInfo: information)
    }
}

// MARK: - JSON

extension Redaction {
    /// - Returns: nil if the body is no JSON object or array.
    private func redactedJSON(_ body: Data, level: Int = 0) -> String? {
        guard Self.mayBeJSON(body), let json = try? JSONSerialization.jsonObject(with: body) else { return nil }
        let result = redacted(json: json, level: level)
        // Without this check Foundation traps at a number that is not finite.
        guard JSONSerialization.isValidJSONObject(result),
            let data = try? JSONSerialization.data(
                withJSONObject: result,
                options: [.sortedKeys, .withoutEscapingSlashes]
            )
        else { return nil }
        return String(decoding: data, as: UTF8.self)
    }

    /// Whether the body may be a JSON object or array: a failure of Foundation's reader costs far more than this look.
    private static func mayBeJSON(_ body: Data) -> Bool {
        body.withUnsafeBytes { bytes in
            // UTF-16 and UTF-32, and a mark of the order of bytes.
            if bytes.prefix(4).contains(where: { $0 == 0 || $0 >= 0x80 }) { return true }
            let first = bytes.first { !($0 == 0x20 || (0x09...0x0D).contains($0)) }
            return first == UInt8(ascii: "{") || first == UInt8(ascii: "[")
        }
    }

    /// - Parameter level: how many strings of JSON are around the value.
    private func redacted(json value: Any, level: Int) -> Any {
        switch value {
        case let text as String: return redacted(string: text, level: level)
        case let array as [Any]: return array.map { redacted(json: $0, level: level) }
        case let object as [String: Any]:
            var result: [String: Any] = [:]
            for (key, value) in object {
                let isHidden = isSecret(key) && !(value is NSNull)
                result[redacted(key)] = isHidden ? Self.mark : redacted(json: value, level: level)
            }
            return result
        default: return value
        }
    }

    /// JSON in a string is redacted as JSON. A string with other markup, or with a secret name before a colon, is
    /// replaced as a whole, since the end of its secrets is unknown.
    private func redacted(string: String, level: Int) -> String {
        if level < 3, let text = redactedJSON(Data(string.utf8), level: level + 1) { return text }
        let names = string.utf8.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false).dropLast()
        let hasSecret = names.contains { text in
            let end = text.lastIndex(where: Self.isNameByte).map(text.index(after:)) ?? text.endIndex
            let start = text[..<end].lastIndex { !Self.isNameByte($0) }.map(text.index(after:)) ?? text.startIndex
            return isSecret(String(decoding: text[start..<end], as: UTF8.self))
        }
        return hasSecret || string.utf8.contains { "{<".utf8.contains($0) } ? Self.mark : redacted(string)
    }
}

// MARK: - Scanning

extension Redaction {
    /// The parameters `code` (RFC 6749, section 4.1.2) and `key` are secret in a URL or a form only.
    private func isSecretParameter(_ bytes: UnsafeBufferPointer<UInt8>, _ range: Range<Int>) -> Bool {
        guard !range.isEmpty else { return false }
        let text = String(decoding: bytes[range], as: UTF8.self)
        let name = bytes[range].contains(UInt8(ascii: "%")) ? text.removingPercentEncoding ?? text : text
        let isParameter = range.lowerBound == 0 || "?&#;".utf8.contains(bytes[range.lowerBound - 1])
        return isSecret(name) || isParameter && (name == "code" || name == "key")
    }

    /// The number of bytes of two slashes, which JSON may escape; nil if there are none.
    private static func countOfSlashes(_ bytes: UnsafeBufferPointer<UInt8>, at index: Int) -> Int? {
        if bytes.has([0x2F, 0x2F], at: index) { return 2 }
        return bytes.has([0x5C, 0x2F, 0x5C, 0x2F], at: index) ? 4 : nil
    }

    /// The index behind a value in quotes, else of the next `&`, `#`, white space or quote.
    private static func endOfValue(_ bytes: UnsafeBufferPointer<UInt8>, from start: Int) -> Int {
        guard start < bytes.count else { return start }
        let quote = bytes[start]
        if quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") {
            return bytes[(start + 1)...].firstIndex(of: quote).map { $0 + 1 } ?? bytes.count
        }
        return bytes[start...].firstIndex { $0 <= 0x20 || "&#\"<>\\".utf8.contains($0) } ?? bytes.count
    }

    /// The index of the `@` behind user and password, or the end of a text that is cut within a password; nil if there
    /// are none.
    private static func endOfUserInformation(_ bytes: UnsafeBufferPointer<UInt8>, from start: Int) -> Int? {
        let end = bytes[start...].firstIndex(where: isEndOfAuthority) ?? bytes.count
        let authority = bytes[start..<end]
        if let at = authority.lastIndex(of: UInt8(ascii: "@")) { return at }
        guard end == bytes.count, authority.first != UInt8(ascii: "["),
            let colon = authority.firstIndex(of: UInt8(ascii: ":"))
        else { return nil }
        return authority[(colon + 1)...].allSatisfy(\.isDigit) ? nil : end
    }

    private static func isEndOfAuthority(_ byte: UInt8) -> Bool {
        switch byte {
        case 0...0x20, UInt8(ascii: "/"), UInt8(ascii: "?"), UInt8(ascii: "#"), UInt8(ascii: "\""), UInt8(ascii: "<"),
            UInt8(ascii: ">"), UInt8(ascii: "\\"):
            true
        default: false
        }
    }

    /// Whether names of parameters contain the byte, escapes and brackets included.
    private static func isNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "_"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "%"), UInt8(ascii: "["),
            UInt8(ascii: "]"), UInt8(ascii: "+"), UInt8(ascii: "$"), 0x80...:
            true
        default: byte.isLetter || byte.isDigit
        }
    }

    static func credentials(_ value: String) -> String {
        let scheme = value.prefix { $0 != " " }
        let schemes = ["basic", "bearer", "digest", "negotiate", "hmac", "aws4-hmac-sha256", "token"]
        return schemes.contains(scheme.lowercased()) ? "\(scheme) \(mark)" : mark
    }

    /// Gives the letters and digits of the name in lower case.
    private static func normalized<Result>(
        _ name: UnsafeBufferPointer<UInt8>,
        _ body: (UnsafeBufferPointer<UInt8>) -> Result
    ) -> Result {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: name.count) { letters in
            var count = 0
            for byte in name where byte.isLetter || byte.isDigit {
                letters[count] = byte.lowercasedASCII
                count += 1
            }
            return body(UnsafeBufferPointer(rebasing: letters[..<count]))
        }
    }

    /// Texts by their first byte.
    private static func table(_ texts: [String]) -> [[[UInt8]]] {
        var table = [[[UInt8]]](repeating: [], count: 128)
        for text in texts.map({ Array($0.utf8) }) { table[Int(text[0])].append(text) }
        return table
    }

    /// Whole secret names.
    private static let words = table([
        "auth", "authcode", "bearer", "codeverifier", "devicecode", "otp", "pass", "pin", "pwd", "samlresponse",
        "session", "sid", "sig", "usercode", "xauth",
    ])

    /// Parts of secret names.
    private static let parts = table([
        "accesskey", "accountkey", "adminkey", "apikey", "appkey", "applicationkey", "assertion", "authentication",
        "authkey", "authorization", "clientkey", "cookie", "credential", "csrf", "encryptionkey", "functionkey",
        "functionskey", "jwt", "licensekey", "masterkey", "passphrase", "passwd", "password", "privatekey",
        "secret", "serverkey", "servicekey", "sessionid", "sharedkey", "signature", "signingkey",
        "subscriptionkey", "token", "xsrf",
    ])
}
