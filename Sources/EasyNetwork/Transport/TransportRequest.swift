import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A complete message for a ``NetworkTransport`` to send.
///
/// ```swift
/// let message = TransportRequest(method: .put, url: url, headers: ["Content-Type": "text/plain"], body: .data(bytes))
/// ```
///
/// It contains base URL, parameters and headers. A transport adds the fields that the connection needs (`Host`,
/// `Content-Length`, `Accept-Encoding`); Foundation's adds a missing `User-Agent` and `Accept`.
public struct TransportRequest: Sendable {
    private struct Values: Sendable {
        var method: NetworkService.Method
        var url: URL
        var headers: HTTPHeaders
        var body: TransportBody
        var deadlines: TransportDeadlines
        var allowsCellularAccess = true
        var networkServiceType = URLRequest.NetworkServiceType.default
    }

    /// In an object of its own: every step of a call passes the message on, and a task has room for each.
    private var values: Shared<Values>

    /// Whether the message is still to be sent; nil means yes. Asked on the transport's thread before the first byte,
    /// as its sender may have been cancelled before it has the exchange to cancel.
    package var isWanted: (@Sendable () -> Bool)?

    /// The method. Default GET.
    public var method: NetworkService.Method {
        get { values.value.method }
        set { values.value.method = newValue }
    }

    /// An absolute http or https URL.
    public var url: URL {
        get { values.value.url }
        set { values.value.url = newValue }
    }

    /// The header fields. Default none.
    public var headers: HTTPHeaders {
        get { values.value.headers }
        _modify { yield &values.value.headers }
    }

    /// Default ``TransportBody/none``.
    public var body: TransportBody {
        get { values.value.body }
        set { values.value.body = newValue }
    }

    /// The deadlines. Default those of ``TransportDeadlines``.
    public var deadlines: TransportDeadlines {
        get { values.value.deadlines }
        _modify { yield &values.value.deadlines }
    }

    /// Whether the message may use a cellular network. Default true. Ignored on Linux, which does not tell networks
    /// apart.
    public var allowsCellularAccess: Bool {
        get { values.value.allowsCellularAccess }
        set { values.value.allowsCellularAccess = newValue }
    }

    /// The kind of traffic. Default `default`. Ignored on Linux.
    public var networkServiceType: URLRequest.NetworkServiceType {
        get { values.value.networkServiceType }
        set { values.value.networkServiceType = newValue }
    }

    /// Creates a message. The defaults are those of the properties.
    public init(
        method: NetworkService.Method = .get,
        url: URL,
        headers: HTTPHeaders = HTTPHeaders(),
        body: TransportBody = .none,
        deadlines: TransportDeadlines = TransportDeadlines()
    ) {
        values = Shared(Values(method: method, url: url, headers: headers, body: body, deadlines: deadlines))
    }
}

extension TransportRequest {
    /// Whether a body is sent, even one that turns out to be empty.
    var hasBody: Bool {
        switch body {
        case .none: false
        case .data(let data): !data.isEmpty
        case .file, .stream: true
        }
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

/// The source of a request's body.
///
/// ```swift
/// let message = TransportRequest(method: .put, url: url, body: .file(file))
/// ```
public enum TransportBody: Hashable, Sendable {
    /// No body.
    case none
    /// Bytes in memory.
    case data(Data)
    /// A regular file, read while it is sent.
    case file(URL)
    /// Bytes that are read or made while they are sent.
    case stream(TransportBodyStream)

    /// Whether the body can be sent again, by a retry or a redirect.
    var isReplayable: Bool {
        if case .stream(let stream) = self { stream.isReplayable } else { true }
    }

    /// - Throws: ``NetworkError/Code/invalidRequest`` if bytes in memory have a ``SegmentMark``.
    func checkSegments(as role: String = "the body") throws(NetworkError) {
        guard case .data(let data) = self, data.withUnsafeBytes({ SegmentMark.isIn($0) }) else { return }
        throw SegmentMark.refusal(role)
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
        try checkMethod()
        try headers.checkSyntax()
    }

    func checkMethod() throws(NetworkError) {
        guard HTTPSyntax.isToken(method.rawValue.utf8) else {
            throw Self.invalid("the method \"\(method.rawValue.prefix(40))\" is no token (RFC 9110, section 5.6.2)")
        }
        // RFC 9110, section 9.3.8.
        guard method.rawValue != "TRACE" || body == .none else { throw Self.invalid("a TRACE request has no body") }
    }

    fileprivate static func invalid(_ message: String) -> NetworkError {
        NetworkError(code: .invalidRequest, message: message)
    }
}

extension HTTPHeaders {
    /// Checks that the fields are well formed.
    ///
    /// - Throws: ``NetworkError/Code/invalidRequest`` that says what to mend.
    func checkSyntax() throws(NetworkError) {
        for field in self {
            guard HTTPSyntax.isToken(field.name.utf8) else {
                throw TransportRequest.invalid(
                    "the header name \"\(field.name.prefix(80))\" is no token (RFC 9110, section 5.6.2)"
                )
            }
            // The value is left out: it may be a secret.
            guard HTTPSyntax.isFieldValue(field.raw.utf8) else {
                let name = field.name.prefix(80)
                throw TransportRequest.invalid(
                    "the value of the header \(name) has a line break or control character in it"
                )
            }
            let mayBeMarked = field.value.utf8.contains { $0 >= 0x80 || $0 == UInt8(ascii: "%") }
            if mayBeMarked, SegmentMark.isIn(field.value) {
                throw SegmentMark.refusal("the value of the header \(field.name.prefix(80))")
            }
        }
    }

    /// Checks that no field frames the body. Set by hand, such a field can only contradict the body, and the server
    /// then waits for missing bytes.
    func checkFraming() throws(NetworkError) {
        if let field = first(where: \.isFraming) {
            throw TransportRequest.invalid("the header \(field.name) follows from the body and is not to be set")
        }
    }
}

extension HTTPHeaders.Field {
    /// Whether the field frames the body, which only the transport may do: two lengths make two messages of one.
    package var isFraming: Bool {
        name.isEqualIgnoringASCIICase(to: "Content-Length") || name.isEqualIgnoringASCIICase(to: "Transfer-Encoding")
    }
}
