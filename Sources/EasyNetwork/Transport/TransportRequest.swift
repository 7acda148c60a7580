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
/// The message contains the complete URL, parameters and headers. A transport adds the fields that the connection needs
/// (`Host`, `Content-Length`, `Accept-Encoding`). Foundation's transport adds `User-Agent` and `Accept` if they are
/// missing.
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

    /// The values in an object of their own. Every step of a call passes the message on, and a task reserves space for
    /// each.
    private var values: Shared<Values>

    /// Returns whether the message must still be sent; nil means yes. The transport calls it on its thread before the
    /// first byte, because a sender can be cancelled before it has an exchange to cancel.
    package var isWanted: (@Sendable () -> Bool)?

    /// The method. Defaults to GET.
    public var method: NetworkService.Method {
        get { values.value.method }
        set { values.value.method = newValue }
    }

    /// An absolute http or https URL.
    public var url: URL {
        get { values.value.url }
        set { values.value.url = newValue }
    }

    /// The header fields. Empty by default.
    public var headers: HTTPHeaders {
        get { values.value.headers }
        _modify { yield &values.value.headers }
    }

    /// The body. Defaults to ``TransportBody/none``.
    public var body: TransportBody {
        get { values.value.body }
        set { values.value.body = newValue }
    }

    /// The deadlines. Default to `TransportDeadlines()`.
    public var deadlines: TransportDeadlines {
        get { values.value.deadlines }
        _modify { yield &values.value.deadlines }
    }

    /// Whether the message is allowed to use a cellular network. Defaults to `true`. Linux does not distinguish
    /// networks and ignores it.
    public var allowsCellularAccess: Bool {
        get { values.value.allowsCellularAccess }
        set { values.value.allowsCellularAccess = newValue }
    }

    /// The kind of traffic. Defaults to `default`. Ignored on Linux.
    public var networkServiceType: URLRequest.NetworkServiceType {
        get { values.value.networkServiceType }
        set { values.value.networkServiceType = newValue }
    }

    /// Creates a message. The default arguments are the defaults of the properties.
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

extension TransportRequest: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The method and the URL without user, password, query and fragment, which can contain secrets.
    public var description: String {
        "\(method.rawValue) \(url.withoutSecrets)"
    }

    /// The method, URL and headers on several lines, without the secrets that ``Redaction`` recognizes by name.
    public var debugDescription: String {
        let redaction = Redaction.standard
        var text = DebugText(title: "TransportRequest \(method.rawValue) \(redaction.redacted(url))")
        text.add("Headers", redaction.redacted(headers))
        return text.lines.joined(separator: "\n")
    }

    /// An empty mirror, so that a dump shows no secret.
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
    /// A regular file that is read while it is sent.
    case file(URL)
    /// Bytes that are read or created while they are sent.
    case stream(TransportBodyStream)

    /// Whether the body can be sent again, by a retry or a redirect.
    var isReplayable: Bool {
        if case .stream(let stream) = self { stream.isReplayable } else { true }
    }

    /// Checks that bytes in memory contain no ``SegmentMark``.
    ///
    /// - Throws: ``NetworkError/Code/invalidRequest`` if they do.
    func checkSegments(as role: String = "the body") throws(NetworkError) {
        guard case .data(let data) = self, data.withUnsafeBytes({ SegmentMark.isIn($0) }) else { return }
        throw SegmentMark.refusal(role)
    }
}

extension TransportRequest {
    /// Checks that the message is well formed.
    ///
    /// - Throws: ``NetworkError/Code/invalidRequest`` with a message that explains how to fix it.
    package func check() throws(NetworkError) {
        guard ["http", "https"].contains(url.scheme?.lowercased()), url.host?.isEmpty == false else {
            throw .invalidRequest("the URL must be an absolute http or https URL, but is \(url.withoutSecrets)")
        }
        try checkMethod()
        try headers.checkSyntax()
    }

    func checkMethod() throws(NetworkError) {
        guard HTTPSyntax.isToken(method.rawValue.utf8) else {
            let name = method.rawValue.prefix(40)
            throw .invalidRequest("the method \"\(name)\" must be a token (RFC 9110, section 5.6.2)")
        }
        // A client must not send content in a TRACE request (RFC 9110, section 9.3.8).
        if method.rawValue == "TRACE", body != .none { throw .invalidRequest("a TRACE request takes no body") }
    }
}

extension HTTPHeaders {
    /// Checks that the fields are well formed.
    ///
    /// - Throws: ``NetworkError/Code/invalidRequest`` with a message that explains how to fix it.
    func checkSyntax() throws(NetworkError) {
        for field in self {
            guard HTTPSyntax.isToken(field.name.utf8) else {
                let name = field.name.prefix(80)
                throw .invalidRequest("the header name \"\(name)\" must be a token (RFC 9110, section 5.6.2)")
            }
            // The message omits the value, because it can be a secret.
            guard HTTPSyntax.isFieldValue(field.raw.utf8) else {
                let rule = "must not contain a line break or control character"
                throw .invalidRequest("the value of the header \(field.name.prefix(80)) \(rule)")
            }
            let mayBeMarked = field.value.utf8.contains { $0 >= 0x80 || $0 == UInt8(ascii: "%") }
            if mayBeMarked, SegmentMark.isIn(field.value) {
                throw SegmentMark.refusal("the value of the header \(field.name.prefix(80))")
            }
        }
    }

    /// Checks that no field frames the body. Such a field could only contradict the body, and the server would then
    /// wait for missing bytes.
    func checkFraming() throws(NetworkError) {
        if let field = first(where: \.isFraming) {
            throw .invalidRequest("the header \(field.name) follows from the body and must not be set")
        }
    }
}

extension HTTPHeaders.Field {
    /// Whether the field frames the body, which only the transport is allowed to do. Two different lengths would split
    /// one message into two.
    package var isFraming: Bool {
        name.isEqualIgnoringASCIICase(to: "Content-Length") || name.isEqualIgnoringASCIICase(to: "Transfer-Encoding")
    }
}
