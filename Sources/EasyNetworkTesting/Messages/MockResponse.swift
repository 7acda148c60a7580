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

    public init(
        statusCode: Int = 200,
        headers: HTTPHeaders = HTTPHeaders(),
        body: Body = .data(Data()),
        delay: TimeInterval = 0,
        fault: Fault? = nil
    ) {
        self.statusCode = statusCode
        self.headers = headers
        self.body = body
        self.delay = delay
        self.fault = fault
    }

    /// A failure that the client is to meet. A struct and not an enum, so that a new fault breaks no `switch`.
    public struct Fault: Hashable, Sendable {
        enum Kind: Hashable, Sendable {
            case stall
            case close
            case reset
            case truncate(Int)
            case raw(Data)
        }

        let kind: Kind

        /// Never answers. The connection stays open until the client closes it or the server stops.
        public static let stall = Fault(kind: .stall)
        /// Closes the connection in place of an answer.
        public static let close = Fault(kind: .close)
        /// Breaks the connection off in place of an answer: the client sees a TCP reset.
        public static let reset = Fault(kind: .reset)

        /// Sends the head as if the whole body followed, then that many bytes of the body, and closes.
        ///
        /// - Parameter count: bytes of the body, chunk framing not counted. With a `Content-Length`, as many as there
        ///   are or more make a complete answer; a chunked body still lacks its last chunk.
        public static func truncate(after count: Int) -> Fault {
            Fault(kind: .truncate(max(count, 0)))
        }

        /// Sends these bytes in place of the answer, head included, and closes. ``InMemoryTransport``, which reads no
        /// bytes, ends with `NetworkError.Code.badServerResponse`.
        public static func raw(_ bytes: Data) -> Fault {
            Fault(kind: .raw(bytes))
        }
    }
}
