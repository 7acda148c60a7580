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
    /// Bytes that are read or made while they are sent.
    case stream(TransportBodyStream)
}
