import Foundation

/// Removes secrets from headers, URLs, JSON, forms and other text before they are shown.
///
/// ```swift
/// print(Redaction.standard.redacted(response.headers))
/// ```
///
/// A value is secret because of its name: the name of a header, URL parameter, form field, JSON key, XML element or
/// attribute, or the word before a colon. Secret names are Authorization, Cookie and password, and names that contain
/// token, secret, API key, signature and the like, in any spelling (`access_token`, `accessToken`, `X-Access-Token`).
/// The words of the name decide: `security_code` is secret, `status_code` and `keyboard` are not. In a JSON array, the
/// string after such a name is secret: `["Authorization", "…"]`. The parameters `code` and `key` of a URL or a form are
/// secret, too, and so are the user and password of a URL, and anything after `Bearer` that looks like a credential.
/// Encoded URLs, forms and JSON inside a parameter are searched as well. A secret without such a name, like a token in
/// a path, is not recognized.
///
/// All output of the package (errors, log, HAR, `curl` commands, timeline, graph) is redacted. To add names of your
/// own, set ``HostSettings/secretNames``, which applies to every redaction in the program.
public struct Redaction: Hashable, Sendable {
    /// The replacement for a secret. It is also valid in a URL.
    public static let mark = "REDACTED"

    /// A redaction without additional names.
    public static let standard = Redaction()

    /// The additional secret names, apart from the ``HostSettings/secretNames`` of all hosts. They are compared by
    /// their letters and digits, ignoring case. Empty by default.
    public let names: Set<String>

    /// Creates a redaction with additional secret names.
    public init(names: Set<String> = []) {
        self.names = Self.normalized(names)
    }

    /// Returns whether the value of a header, parameter or key with this name is secret.
    public func isSecret(_ name: String) -> Bool {
        name.utf8Bytes(isSecret)
    }

    /// Returns the headers with their secret values replaced. The scheme of credentials stays: `Bearer REDACTED`. In
    /// other values, such as `Location`, the secrets of URLs are replaced.
    public func redacted(_ headers: HTTPHeaders) -> HTTPHeaders {
        HTTPHeaders(headers.map(redacted))
    }

    package func redacted(_ field: HTTPHeaders.Field) -> HTTPHeaders.Field {
        let value = isSecret(field.name) ? Self.credentials(field.raw) : redacted(field.raw)
        return HTTPHeaders.Field(name: field.name, value: value)
    }

    /// Returns the URL without user and password, and with the secret parameters of its query and fragment replaced.
    public func redacted(_ url: URL) -> String {
        redacted(url.absoluteString)
    }

    /// Returns the string with its secrets replaced, as in `https://user:password@host`, `token=abc` and `token="a b"`.
    /// The value after `Authorization:` is replaced to the end of the line.
    public func redacted(_ text: String) -> String {
        redacted(text, level: 0)
    }

    /// Returns the string with its secrets replaced.
    ///
    /// - Parameters:
    ///   - level: The number of encodings around the string.
    ///   - isDecoded: Whether the string is the decoded value of a parameter, in which only `&` ends a value.
    private func redacted(_ text: String, level: Int, isDecoded: Bool = false) -> String {
        text.utf8Bytes { bytes in
            RedactionScanner.redacted(bytes, by: self, level: level, isDecoded: isDecoded)
        }
        .map { String(decoding: $0, as: UTF8.self) } ?? text
    }

    /// Returns the text of a body without its secrets, if it is a JSON object or array, or has the content type of a
    /// form. JSON is serialized again, on one line and with sorted keys.
    ///
    /// - Returns: Nil for any other body, because its secrets cannot be recognized.
    public func redactedText(of body: Data, contentType: String? = nil) -> String? {
        if let text = redactedJSON(body) { return text }
        guard contentType.flatMap(MediaType.init)?.essence == "application/x-www-form-urlencoded" else { return nil }
        return redacted(form: body)
    }

    /// Returns an error message of a transport without secrets. It can quote the URL of a proxy, so everything before
    /// the last `@` is treated as user and password.
    func transportWords(_ text: String) -> String {
        let bytes = Array(text.utf8)
        guard let end = bytes.lastIndex(of: UInt8(ascii: "@")) else { return redacted(text) }
        var start = bytes[..<end].firstIndex { $0 == UInt8(ascii: "'") || $0 == UInt8(ascii: "\"") }.map { $0 + 1 } ?? 0
        let scheme = bytes[start..<end].prefix { $0.isLetter || $0.isDigit }
        if bytes[scheme.endIndex..<end].starts(with: "://".utf8) { start = scheme.endIndex + 3 }
        return redacted(String(decoding: bytes[..<start] + Array(Self.mark.utf8) + bytes[end...], as: UTF8.self))
    }

    /// Returns an error with the same domain and code. The strings, URLs and underlying errors of its dictionary are
    /// redacted.
    ///
    /// - Parameter depth: The number of levels of underlying errors that are kept.
    func redacted(_ error: any Error, depth: Int = 8) -> any Error {
        // A NetworkError redacts its own dictionary.
        if error is NetworkError { return error }
        let error = error as NSError
        // The dictionary of a Swift error does not contain its description.
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

// MARK: - Credentials

extension Redaction {
    /// Returns the mark after the scheme of the credentials: `Bearer REDACTED`.
    static func credentials(_ value: String) -> String {
        let scheme = value.prefix { $0 != " " }
        return isScheme(scheme.utf8) ? "\(scheme) \(mark)" : mark
    }

    static func isScheme(_ word: some Collection<UInt8>) -> Bool {
        let letters = word.lazy.map(\.lowercasedASCII)
        return schemes.contains { $0.utf8.elementsEqual(letters) }
    }

    private static let schemes = ["basic", "bearer", "digest", "negotiate", "hmac", "aws4-hmac-sha256", "token"]
}

// MARK: - Encoded values

extension Redaction {
    /// The maximum number of nested encodings that are searched.
    static let levelLimit = 4

    /// Redacts a form, in which only `&` ends a value.
    private func redacted(form body: Data) -> String {
        let fields = body.split(separator: UInt8(ascii: "&"), omittingEmptySubsequences: false).map { field -> String in
            let equals = field.firstIndex(of: UInt8(ascii: "=")) ?? field.endIndex
            let value = field[equals...].dropFirst()
            let name = String(decoding: field[..<equals], as: UTF8.self)
            if !value.isEmpty, isSecretParameter(name) { return "\(name)=\(Self.mark)" }
            let shown = [field[..<equals], value].map { part in
                redacted(encoded: part, level: 0, isForm: true) ?? String(decoding: part, as: UTF8.self)
            }
            return shown.joined(separator: equals == field.endIndex ? "" : "=")
        }
        return fields.joined(separator: "&")
    }

    /// Redacts the value of a parameter, which can be a URL, a form or JSON.
    ///
    /// - Returns: Nil if it contains no secret.
    func redacted(encoded bytes: some Collection<UInt8>, level: Int, isForm: Bool = false) -> String? {
        let decoded = PercentEncoding.decode(bytes, isForm: isForm)
        guard isForm || !decoded.elementsEqual(bytes) else { return nil }
        guard level < Self.levelLimit else { return Self.mark }
        let text = String(decoding: decoded, as: UTF8.self)
        let shown =
            redactedJSON(Data(decoded), level: level + 1) ?? redacted(text, level: level + 1, isDecoded: true)
        guard shown != text, shown.contains(Self.mark) else { return nil }
        return PercentEncoding.encode(shown, .form)
    }

    /// Returns whether a parameter is secret. The names `code` (RFC 6749, section 4.1.2) and `key` are secret only in a
    /// URL or a form.
    ///
    /// - Parameter name: The name with its escapes.
    func isSecretParameter(_ name: String, mayBeWord: Bool = true) -> Bool {
        var name = name
        if name.utf8.contains(UInt8(ascii: "%")) {
            name = String(decoding: PercentEncoding.decode(name.utf8), as: UTF8.self)
        }
        return isSecret(name) || mayBeWord && (name == "code" || name == "key")
    }
}

// MARK: - JSON

extension Redaction {
    /// Redacts a JSON object or array.
    ///
    /// - Parameter level: The number of encodings around the body.
    /// - Returns: Nil if the body is not a JSON object or array.
    private func redactedJSON(_ body: Data, level: Int = 0) -> String? {
        guard level < Self.levelLimit, Self.mayBeJSON(body), let json = try? JSONSerialization.jsonObject(with: body)
        else { return nil }
        let result = redacted(json: json, level: level)
        // Without this check, Foundation traps on a number that is not finite.
        guard JSONSerialization.isValidJSONObject(result),
            let data = try? JSONSerialization.data(
                withJSONObject: result,
                options: [.sortedKeys, .withoutEscapingSlashes]
            )
        else { return nil }
        return String(decoding: data, as: UTF8.self)
    }

    /// Returns whether the body can be a JSON object or array. A failure of Foundation's reader costs far more than
    /// this check.
    private static func mayBeJSON(_ body: Data) -> Bool {
        body.withUnsafeBytes { bytes in
            // The body can be UTF-16 or UTF-32, or begin with a byte order mark.
            if bytes.prefix(4).contains(where: { $0 == 0 || $0 >= 0x80 }) { return true }
            let first = bytes.first { !($0 == 0x20 || (0x09...0x0D).contains($0)) }
            return first == UInt8(ascii: "{") || first == UInt8(ascii: "[")
        }
    }

    private func redacted(json value: Any, level: Int) -> Any {
        switch value {
        case let text as String: return redacted(string: text, level: level)
        case let array as [Any]:
            return array.indices.map { index -> Any in
                isNamed(array, index) ? Self.mark : redacted(json: array[index], level: level)
            }
        case let object as [String: Any]:
            var result: [String: Any] = [:]
            // The object names a secret, as `{"name":"password","value":"…"}` does.
            let isNamedSecret = ["name", "key", "type", "field"].contains {
                (object[$0] as? String).map(isSecret) ?? false
            }
            for (key, value) in object {
                let isHidden = (isSecret(key) || isNamedSecret && key == "value") && !(value is NSNull)
                result[redacted(key)] = isHidden ? Self.mark : redacted(json: value, level: level)
            }
            return result
        default: return value
        }
    }

    /// Returns whether the element follows the name of a secret: in `["Authorization", "…"]`, or in a list of such
    /// pairs.
    private func isNamed(_ array: [Any], _ index: Int) -> Bool {
        guard array.count % 2 == 0, index % 2 == 1, !(array[index] is NSNull) else { return false }
        guard let name = array[index - 1] as? String, name.utf8.allSatisfy(Self.isPartOfName) else { return false }
        return isSecret(name)
    }

    /// Redacts a string of a JSON value. JSON in the string is redacted as JSON. A string with other markup and the
    /// name of a secret is replaced completely, because the end of its secrets is unknown.
    private func redacted(string: String, level: Int) -> String {
        if let text = redactedJSON(Data(string.utf8), level: level + 1) { return text }
        if string.utf8.contains(where: { "{<".utf8.contains($0) }), hasSecretName(string) { return Self.mark }
        return redacted(string, level: level)
    }
}

// MARK: - Bodies of any format

extension Redaction {
    /// Returns whether the text contains the name of a secret where its value can be next to it, other than in
    /// `name=value`: as a key before a colon, in quotes, as an XML element, as a column, or as a part of a form
    /// (`name=password`).
    package func hasSecretName(_ text: String) -> Bool {
        text.utf8Bytes { bytes in
            guard bytes.hasByte(of: Self.beforeKey) || bytes.hasByte(of: ":>=") else { return false }
            var index = 0
            while index < bytes.count {
                let start = index
                while index < bytes.count, Self.isPartOfName(bytes[index]) || Self.isEscape(bytes, index) { index += 1 }
                if index > start {
                    let next = bytes[index...].first { $0 != UInt8(ascii: " ") } ?? UInt8(ascii: " ")
                    let before = start > 0 ? bytes[start - 1] : UInt8(ascii: " ")
                    let isPart = before == UInt8(ascii: "=") && start >= 5 && bytes.has("name", at: start - 5)
                    let isKey = isPart || Self.beforeKey.utf8.contains(before) || Self.behindKey.utf8.contains(next)
                    if isKey, isSecret(escaped: bytes[start..<index]) { return true }
                }
                index += 1
            }
            return false
        }
    }

    /// Returns whether a name that can contain JSON escapes is secret: `\u0074oken`, or the same with more backslashes.
    func isSecret(escaped name: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
        guard name.contains(UInt8(ascii: "\\")) else { return isSecret(UnsafeBufferPointer(rebasing: name)) }
        var decoded: [UInt8] = []
        var rest = name
        while let byte = rest.popFirst() {
            if byte != UInt8(ascii: "\\") {
                decoded.append(byte)
            } else if rest.first == UInt8(ascii: "u"),
                let number = UInt16(String(decoding: rest.dropFirst().prefix(4), as: UTF8.self), radix: 16)
            {
                decoded.append(UInt8(exactly: number) ?? 0xFF)
                rest = rest.dropFirst(5)
            }
        }
        return decoded.withUnsafeBufferPointer(isSecret)
    }

    /// Returns whether an escaped character of a name begins here, with backslashes for up to four levels of JSON.
    private static func isEscape(_ bytes: UnsafeBufferPointer<UInt8>, _ index: Int) -> Bool {
        let backslash = UInt8(ascii: "\\")
        return bytes[index] == backslash && bytes[index...].prefix(9).first { $0 != backslash } == UInt8(ascii: "u")
    }

    private static let aroundKey = "\"',;|\t"
    private static let beforeKey = "</" + aroundKey
    private static let behindKey = ":>" + aroundKey

    private static func isPartOfName(_ byte: UInt8) -> Bool {
        byte.isLetter || byte.isDigit || byte >= 0x80 || byte == UInt8(ascii: "_") || byte == UInt8(ascii: "-")
            || byte == UInt8(ascii: ".") || byte == UInt8(ascii: "$")
    }
}
