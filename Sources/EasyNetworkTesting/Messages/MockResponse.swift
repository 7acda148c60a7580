import EasyNetwork
import Foundation

/// What a route answers: a status, header fields and a body, or a fault.
///
/// ```swift
/// server.route("GET", "/slow") { _ in
///     var response = MockResponse.text("late")
///     response.delay = 0.5
///     return response
/// }
/// ```
///
/// The header fields go out as they are written, but for those that frame the message: `Content-Length` and
/// `Transfer-Encoding` follow from the body, except in the answer to HEAD and in a 304, where a scripted
/// `Content-Length` stays. A response that cannot be sent, because a header field holds a line break, say, goes out as
/// a 500 whose body tells the reason.
public struct MockResponse: Sendable {
    /// The bytes of a body and how they are framed.
    public enum Body: Hashable, Sendable {
        /// Sent with a `Content-Length`.
        case data(Data)
        /// Sent with `Transfer-Encoding: chunked`, one chunk for each that is not empty.
        case chunks([Data])
        /// One byte over and over, sent with a `Content-Length`. The bytes are made as they are sent, so that a body of
        /// many gigabytes takes no memory. A count below 0 is taken for 0.
        case repeating(UInt8, count: Int)
    }

    /// An answer before the final one (RFC 9110, section 15.2).
    public struct Interim: Hashable, Sendable {
        /// From 100 to 199.
        public var statusCode: Int
        /// Default none.
        public var headers: HTTPHeaders

        public init(_ statusCode: Int, headers: HTTPHeaders = HTTPHeaders()) {
            self.statusCode = statusCode
            self.headers = headers
        }
    }

    /// Default 200; from 100 to 999. An answer with 1xx, 204 or 304, and every answer to HEAD, goes out without body.
    public var statusCode: Int
    /// Default none. A `Connection: close` among them closes the connection after the answer.
    public var headers: HTTPHeaders
    /// Default no bytes.
    public var body: Body
    /// Seconds between the closure's return and the first byte of the answer, or its fault. Default 0.
    public var delay: TimeInterval
    /// What goes wrong, by intent. Default nothing.
    public var fault: Fault?
    /// Answers that go out before this one, after the delay: 100, 102, 103. Default none. A client of HTTP/1.0 gets none
    /// (RFC 9110, section 15.2), and ``InMemoryTransport`` shows none, as a transport passes them over.
    public var interim: [Interim]
    /// Fields after the body, which then goes out in chunks whatever it is. Default none. They are dropped where there is
    /// no chunked body: for HEAD, a status without body, a client of HTTP/1.0, and in ``InMemoryTransport``.
    public var trailers: HTTPHeaders
    /// How fast the answer trickles, head included, in bytes per second; below 1 is taken for 1. Default nil, which is
    /// as fast as the client reads. It is never faster than this, the first byte included, and may be slower.
    /// ``InMemoryTransport`` passes it over.
    public var bytesPerSecond: Int?

    public init(
        statusCode: Int = 200,
        headers: HTTPHeaders = HTTPHeaders(),
        body: Body = .data(Data()),
        delay: TimeInterval = 0,
        fault: Fault? = nil,
        interim: [Interim] = [],
        trailers: HTTPHeaders = HTTPHeaders(),
        bytesPerSecond: Int? = nil
    ) {
        self.statusCode = statusCode
        self.headers = headers
        self.body = body
        self.delay = delay
        self.fault = fault
        self.interim = interim
        self.trailers = trailers
        self.bytesPerSecond = bytesPerSecond
    }
}
