import Foundation

/// Takes secrets out of what is shown: headers, URLs, texts and bodies.
///
/// ```swift
/// print(Redaction.standard.redacted(response.headers))
/// ```
///
/// A thing is secret by its name: a header, a query parameter, a form field, a JSON key or an XML element that is called
/// Authorization, Cookie, password, or has token, secret, API key, signature and the like in its name, however it is written
/// (`access_token`, `accessToken`, `X-Access-Token`). So are `code` and `key` as parameters of a URL or a form. User and password in a URL are secret as well. It would rather take too
/// much; what has no name that says so, such as a token in a path, it cannot know.
///
/// It is a value and changes nothing but the texts that it returns.
public struct Redaction: Hashable, Sendable {
    /// What stands in the place of a secret: a word that may stand anywhere, in a URL too.
    public static let mark = "REDACTED"

    public static let standard = Redaction()

    /// More names that are secret, compared by their letters and digits without case. Default none.
    public let names: Set<String>

    public init(names: Set<String> = []) {
        self.names = Set(names.map(Self.normalized))
    }

    /// Whether what has this name is secret: a header, a parameter, a key.
    public func isSecret(_ name: String) -> Bool {
        let name = Self.normalized(name)
        return Self.words.contains(name) || names.contains(name) || Self.parts.contains { name.contains($0) }
    }

    /// The headers with the values of secret ones replaced; of credentials the scheme stays: `Bearer REDACTED`. In other
    /// values, such as `Location`, the secrets of URLs are.
    public func redacted(_ headers: HTTPHeaders) -> HTTPHeaders {
        HTTPHeaders(headers.map(redacted))
    }

    func redacted(_ field: HTTPHeaders.Field) -> HTTPHeaders.Field {
        let value = isSecret(field.name) ? Self.credentials(field.value) : redacted(field.value)
        return HTTPHeaders.Field(name: field.name, value: value)
    }

    /// The URL without user and password, and with the values of secret parameters replaced, in query and fragment.
    public func redacted(_ url: URL) -> String {
        redacted(url.absoluteString)
    }

    /// A text with the secrets in its URLs, forms and attributes (`name=value`, `name="value"`) replaced.
    public func redacted(_ text: String) -> String {
        pairs(in: userInformation(in: text))
    }

    /// An error with the same domain and code, and of what else it knows the texts, URLs and errors underneath, without
    /// their secrets.
    ///
    /// - Parameter depth: how many errors underneath are kept, one below the other.
    func redacted(_ error: any Error, depth: Int = 8) -> any Error {
        // It does so by itself.
        if error is NetworkError { return error }
        let error = error as NSError
        // A Swift error has its text in no dictionary.
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

    /// A body as text without its secrets: JSON and XML, cut ones too, JSON in strings of JSON, forms, header fields
    /// and other lines that begin with a name and a colon, and any text.
    ///
    /// - Returns: nil when it is no text.
    public func redactedText(of body: Data, contentType: String? = nil) -> String? {
        guard let text = BodyText.text(of: body, contentType: contentType) else { return nil }
        let start = text.utf8.first { $0 > 0x20 }
        guard start != UInt8(ascii: "<") else { return redacted(lines(in: redactedXML(text))) }
        let levels = text.utf8.contains(UInt8(ascii: "\\")) ? 2 : 0
        return redacted(lines(in: (0...levels).reduce(text) { redactedJSON($0, level: $1) }))
    }

    private static func normalized(_ name: String) -> String {
        String(decoding: name.utf8.map(\.lowercasedASCII).filter { $0.isLetter || $0.isDigit }, as: UTF8.self)
    }

    static func credentials(_ value: String) -> String {
        let scheme = value.prefix { $0 != " " }
        let schemes = ["basic", "bearer", "digest", "negotiate", "hmac", "aws4-hmac-sha256", "token"]
        return schemes.contains(scheme.lowercased()) ? "\(scheme) \(mark)" : mark
    }

    private static let words: Set<String> = [
        "auth", "authcode", "bearer", "codeverifier", "devicecode", "otp", "pass", "pin", "pwd", "samlresponse",
        "session", "sid", "sig", "usercode", "xauth",
    ]

    private static let parts = [
        "accesskey", "accountkey", "adminkey", "apikey", "appkey", "applicationkey", "assertion", "authentication",
        "authkey", "authorization", "clientkey", "cookie", "credential", "csrf", "encryptionkey", "functionkey",
        "functionskey", "jwt", "licensekey", "masterkey", "passphrase", "passwd", "password", "privatekey", "secret",
        "serverkey", "servicekey", "sessionid", "sharedkey", "signature", "signingkey", "subscriptionkey", "token",
        "xsrf",
    ]
}

/// A body as text for people.
enum BodyText {
    /// - Returns: nil for bytes that are no text in the charset that is named, and for control characters: those are data.
    ///   The last character may be cut.
    static func text(of body: Data, contentType: String?) -> String? {
        guard let text = decoded(body, contentType) else { return nil }
        let isText = text.unicodeScalars.allSatisfy { scalar in
            scalar.value >= 0x20 && scalar.value != 0x7F || scalar == "\n" || scalar == "\r" || scalar == "\t"
        }
        return isText ? text : nil
    }

    private static func decoded(_ body: Data, _ contentType: String?) -> String? {
        let named = contentType.flatMap(MediaType.init)?.charset.flatMap(Charset.init)
        let (charset, mark) = Charset.byteOrderMark(of: body) ?? (named ?? .utf8, 0)
        let bytes = body.dropFirst(mark)
        for cut in 0...3 where cut <= bytes.count {
            if let text = charset.decode(bytes.dropLast(cut)) { return text }
        }
        return nil
    }
}
