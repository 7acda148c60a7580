import Foundation

/// A complete message for a ``NetworkTransport`` to send.
///
/// It contains base URL, parameters and headers. A transport adds the fields that the connection needs (`Host`,
/// `Content-Length`, `Accept-Encoding`); Foundation's adds a missing `User-Agent` and `Accept`.
public struct TransportRequest: Sendable {
    public var method: NetworkService.Method
    /// An absolute http or https URL.
    public var url: URL
    public var headers: HTTPHeaders
    /// Default ``TransportBody/none``.
    public var body: TransportBody
    public var deadlines: TransportDeadlines
    /// Whether the message may use a cellular network. Default true. Ignored on Linux, which does not tell networks apart.
    public var allowsCellularAccess = true
    /// Default ``NetworkServiceType/standard``. Ignored on Linux.
    public var networkServiceType = NetworkServiceType.standard

    public init(
        method: NetworkService.Method = .get,
        url: URL,
        headers: HTTPHeaders = HTTPHeaders(),
        body: TransportBody = .none,
        deadlines: TransportDeadlines = TransportDeadlines()
    ) {
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
        self.deadlines = deadlines
    }
}

extension TransportRequest: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Method and address, without user, password, query and fragment, which may contain secrets.
    public var description: String {
        "\(method.rawValue) \(url.withoutSecrets)"
    }

    /// Method, address and headers on several lines, without the secrets that ``Redaction`` knows by name.
    public var debugDescription: String {
        let redaction = Redaction.standard
        var text = DebugText(title: "TransportRequest \(method.rawValue) \(redaction.redacted(url))")
        text.add("Headers", redaction.redacted(headers))
        return text.lines.joined(separator: "\n")
    }

    /// Without children, so that a dump shows no secret.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// The kind of traffic of a message. Apple's platforms treat kinds differently; Linux does not.
public enum NetworkServiceType: Hashable, Sendable {
    case standard
    /// Not requested by the user, and not urgent.
    case background
    /// The user waits for it.
    case responsiveData
    case video
    case voice
    case callSignaling
    /// Audio and video that can be loaded ahead.
    case avStreaming
    /// Audio and video of this moment.
    case responsiveAV
}

/// The source of a request's body.
public enum TransportBody: Hashable, Sendable {
    case none
    case data(Data)
    /// A regular file, read while it is sent.
    case file(URL)
    /// Bytes that are read or made while they are sent.
    case stream(TransportBodyStream)

    /// Whether the body can be sent again, by a retry or a redirect.
    var isReplayable: Bool {
        if case .stream(let stream) = self { stream.isReplayable } else { true }
    }
}

extension TransportRequest {
    /// Checks that the message is well formed.
    ///
    /// - Throws: ``NetworkError/Code/invalidRequest`` that says what to mend.
    package func check() throws(NetworkError) {
        guard ["http", "https"].contains(url.scheme?.lowercased()), url.host?.isEmpty == false else {
            throw Self.invalid("\(url.withoutSecrets) is no absolute http or https address")
        }
        try checkLines()
    }

    /// Checks the message without its address, which is known to be good.
    package func checkLines() throws(NetworkError) {
        try checkMethod()
        try checkHeaders()
    }

    func checkMethod() throws(NetworkError) {
        guard HTTPSyntax.isToken(method.rawValue.utf8) else {
            throw Self.invalid("the method \"\(method.rawValue.prefix(40))\" is no token (RFC 9110, section 5.6.2)")
        }
    }

    func checkHeaders() throws(NetworkError) {
        for field in headers {
            guard HTTPSyntax.isToken(field.name.utf8) else {
                throw Self.invalid("the header name \"\(field.name.prefix(80))\" is no token (RFC 9110, section 5.6.2)")
            }
            // The value is left out: it may be a secret.
            guard HTTPSyntax.isFieldValue(field.value.utf8) else {
                let name = field.name.prefix(80)
                throw Self.invalid("the value of the header \(name) has a line break or control character in it")
            }
        }
    }

    private static func invalid(_ message: String) -> NetworkError {
        NetworkError(code: .invalidRequest, message: message)
    }
}

extension HTTPHeaders.Field {
    /// Whether the field frames the body, which only the transport may do: two lengths make two messages of one.
    package var isFraming: Bool {
        name.isEqualIgnoringASCIICase(to: "Content-Length") || name.isEqualIgnoringASCIICase(to: "Transfer-Encoding")
    }
}
