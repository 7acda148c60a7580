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

/// Where the bytes of a request's body come from.
public enum TransportBody: Hashable, Sendable {
    case none
    case data(Data)
    /// A regular file, read while it is sent.
    case file(URL)
}

/// How long one exchange may take. Both are counted from the moment the transport begins to send, not from the moment
/// it was asked: waiting for a free connection is not the server's fault.
public struct TransportDeadlines: Hashable, Sendable {
    /// The longest silence in seconds, with no byte going out or coming in; nil means no limit. Default 60.
    public var idle: TimeInterval?
    /// The longest time in seconds from start to last byte; nil, the default, means no limit.
    public var total: TimeInterval?

    public init(idle: TimeInterval? = 60, total: TimeInterval? = nil) {
        self.idle = idle
        self.total = total
    }
}
