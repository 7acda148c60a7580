import Foundation

/// One message to send, complete: what a ``NetworkTransport`` gets.
///
/// By then base URL, parameters and headers have been worked in. A transport adds what the wire itself needs (`Host`,
/// `Content-Length`, `Accept-Encoding`); Foundation's adds a `User-Agent` and `Accept` where there is none.
public struct TransportRequest: Sendable {
    public var method: NetworkService.Method
    /// An absolute http or https URL.
    public var url: URL
    public var headers: HTTPHeaders
    /// Default `.none`.
    public var body: TransportBody
    public var deadlines: TransportDeadlines
    /// Whether it may go over a cellular network. Default true. On Linux nothing tells networks apart.
    public var allowsCellularAccess = true
    /// Default ``NetworkServiceType/standard``. On Linux nothing asks for it.
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
    /// Method and address, without user, password, query and fragment: they may hold secrets.
    public var description: String {
        "\(method.rawValue) \(url.withoutSecrets)"
    }

    /// Method, address and headers on several lines, without secrets: those that ``Redaction`` knows by name.
    public var debugDescription: String {
        let redaction = Redaction.standard
        var text = DebugText(title: "TransportRequest \(method.rawValue) \(redaction.redacted(url))")
        text.add("Headers", redaction.redacted(headers))
        return text.lines.joined(separator: "\n")
    }

    /// Without children, so that a dump has no secret either.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// What kind of traffic a message is, for systems that treat kinds differently: Apple's.
public enum NetworkServiceType: Hashable, Sendable {
    case standard
    /// Not asked for by the user, and not urgent.
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

/// Where the bytes of a request's body come from.
public enum TransportBody: Hashable, Sendable {
    case none
    case data(Data)
    /// A regular file, read while it is sent.
    case file(URL)
    /// Bytes that are read or made while they are sent.
    case stream(TransportBodyStream)

    /// Whether it can be sent again, by a retry or a redirect.
    var isReplayable: Bool {
        if case .stream(let stream) = self { stream.isReplayable } else { true }
    }
}
