import Foundation

/// Sends a message to a server and delivers the response.
///
/// ```swift
/// /// Prints each message before another transport sends it.
/// struct PrintingTransport: NetworkTransport {
///     let base: any NetworkTransport
///
///     func start(
///         _ request: TransportRequest,
///         events: @escaping @Sendable (TransportEvent) -> Void
///     ) -> any TransportExchange {
///         print(request)
///         return base.start(request, events: events)
///     }
/// }
/// ```
///
/// A transport handles bytes, headers and deadlines. It follows no redirects, does not evaluate the status, does not
/// respond to challenges for credentials, stores no cookies and caches nothing. The layers above do this in the same
/// way for every transport.
///
/// Every transport guarantees:
/// - Events arrive in order, never two at once: at most one `head`, then any number of `body`, then exactly one `end`.
///   Without a `head`, the end contains an error. Events can arrive before ``start(_:events:)`` returns.
/// - Any number of `sent` events arrive before the `end`, usually before the `head`. A server can respond before it has
///   read the complete body. Each event counts more bytes than the previous one, unless the body was restarted. If all
///   bytes were sent, the last event counts all of them. A request without a body has no such event.
/// - An exchange always ends: by the response, an error, a deadline, or a cancellation.
/// - ``TransportExchange/cancel()`` can be called at any time from any thread, even from inside `events`.
/// - `events` is called on a thread of the transport, without holding a lock. An implementation passes its work on and
///   returns at once. No user code runs there.
public protocol NetworkTransport: Sendable {
    /// Starts an exchange.
    ///
    /// - Parameters:
    ///   - request: The message to send.
    ///   - events: The closure that receives all events. It is released after `end`.
    func start(
        _ request: TransportRequest,
        events: @escaping @Sendable (TransportEvent) -> Void
    ) -> any TransportExchange
}

extension NetworkTransport {
    /// The number of seconds for which a paused exchange can keep its connection while another exchange goes first.
    /// Where connections are few, the other exchange might need this one.
    var heldConnectionInterval: TimeInterval {
        if self is URLSessionTransport { return 0 }
        #if os(Linux) && canImport(CCurl)
        let limit = (self as? CurlTransport)?.loop.configuration.maximumConnectionsPerHost
        if let limit, limit < TransportConfiguration().maximumConnectionsPerHost { return 2 }
        #endif
        return 30
    }
}

/// A message in progress.
///
/// ```swift
/// let exchange = transport.start(TransportRequest(url: url)) { event in print(event) }
/// exchange.cancel()
/// ```
public protocol TransportExchange: Sendable {
    /// Cancels the exchange. Its end follows soon, with ``NetworkError/Code/cancelled`` unless the exchange had already
    /// ended.
    func cancel()

    /// Pauses the body of the response until ``resume()``. Bytes in transit can still arrive, and so can the end. The
    /// idle deadline stops during the pause; the total deadline does not.
    ///
    /// The number of buffered bytes is bounded: about 64 KB over HTTP/1.1. Over HTTP/2 with ``CurlTransport`` it is up
    /// to 32 MiB, which libcurl allows a server to send ahead on one stream.
    ///
    /// The default implementation does nothing. ``URLSessionTransport`` on Linux also does nothing, because it cannot
    /// pause the sender.
    func pause()

    /// Continues the body after ``pause()``. Does nothing if the body was not paused.
    func resume()
}

extension TransportExchange {
    public func pause() {}
    public func resume() {}
}

/// An event of a message in progress.
///
/// ```swift
/// let exchange = transport.start(TransportRequest(url: url)) { event in
///     switch event {
///     case .sent: break
///     case .head(let head): print(head.statusCode)
///     case .body(let bytes): print(bytes.count)
///     case .end(let end): print(end.error?.localizedDescription ?? "complete")
///     }
/// }
/// ```
public enum TransportEvent: Sendable {
    /// The number of bytes of the request's body that were passed to the system so far, without framing. The server
    /// might not have received them yet. The number starts again if the body is sent again.
    case sent(Int)
    /// The status and the headers of the final response. 1xx responses are skipped.
    case head(TransportHead)
    /// The next bytes of the body. Content codings such as gzip have been removed.
    case body(Data)
    /// The last event.
    case end(TransportEnd)
}

/// The status line and header fields of a response.
///
/// ```swift
/// events(.head(TransportHead(statusCode: 200, headers: ["Content-Type": "text/plain"])))
/// ```
public struct TransportHead: Hashable, Sendable {
    /// The status code.
    public var statusCode: Int
    /// The header fields, in their order and with repeated fields if the transport preserves them.
    public var headers: HTTPHeaders

    /// Creates the head of a response.
    public init(statusCode: Int, headers: HTTPHeaders = HTTPHeaders()) {
        self.statusCode = statusCode
        self.headers = headers
    }
}

extension TransportHead {
    /// Checks that the lengths agree. Otherwise the end of the response is ambiguous (RFC 9112, section 6.3).
    ///
    /// - Throws: ``NetworkError/Code/badServerResponse``.
    func checkLength() throws(NetworkError) {
        var length: Int64?
        for value in headers.values(for: "Content-Length") {
            for text in value.split(separator: ",", omittingEmptySubsequences: false) {
                let digits = text.trimmed
                guard digits.utf8.allSatisfy(\.isDigit), let next = Int64(digits), length ?? next == next else {
                    let message = "the Content-Length is malformed or differs from another: \(value.prefix(80))"
                    throw NetworkError(code: .badServerResponse, message: message)
                }
                length = next
            }
        }
    }

    /// Whether the body has a content coding.
    var hasContentCoding: Bool {
        headers["Content-Encoding"] != nil && !headers.contentCodings.isEmpty
    }

    /// Returns the length of the body that follows, as it is delivered; nil if it is unknown.
    ///
    /// - Parameter method: The method of the request that this head responds to.
    func bodyLength(answering method: NetworkService.Method) -> Int64? {
        if method == .head || [204, 205, 304].contains(statusCode) { return 0 }
        return hasContentCoding ? nil : headers.contentLength
    }

    /// Whether the transfer has a coding in addition to chunks. libcurl removes such a coding by default.
    var hasTransferCoding: Bool {
        headers["Transfer-Encoding"].map { !$0.isEqualIgnoringASCIICase(to: "chunked") } ?? false
    }
}

extension HTTPHeaders {
    /// `Content-Length` as a number; nil if there is none, or if two differ.
    package var contentLength: Int64? {
        single("Content-Length", .unanimous) { $0.trimmed.utf8.allSatisfy(\.isDigit) ? Int64($0.trimmed) : nil }
    }

    /// The names of the content codings in lower case, in the order in which they were applied.
    var contentCodings: [String] {
        listMembers("Content-Encoding").map { $0.lowercased() }.filter { $0 != "identity" }
    }
}

/// A counter of the bytes that are left of the limit for a body whose coding is removed.
struct DecodedBodyLimit {
    private let limit: Int
    private var left: Int

    /// Creates a counter.
    ///
    /// - Parameter limit: The limit in bytes.
    init(_ limit: Int) {
        self.limit = limit
        left = limit
    }

    /// Counts bytes.
    ///
    /// - Throws: ``NetworkError/Code/bodyTooLong`` if the limit is exceeded.
    mutating func take(_ count: Int) throws(NetworkError) {
        guard count <= left else {
            throw NetworkError(code: .bodyTooLong, message: "the body has over \(limit) bytes without content coding")
        }
        left -= count
    }
}

/// The end of an exchange.
///
/// ```swift
/// events(.end(TransportEnd(error: NetworkError(code: .notConnected))))
/// ```
public struct TransportEnd: Sendable {
    /// The error; nil if the complete response was received.
    public var error: NetworkError?
    /// The trailer fields, which follow the body (RFC 9110, section 6.5).
    public var trailers: HTTPHeaders
    /// The metrics: times, bytes and connection; nil if the exchange never began.
    public var metrics: TransportMetrics?

    /// Creates the end of an exchange.
    public init(error: NetworkError? = nil, trailers: HTTPHeaders = HTTPHeaders(), metrics: TransportMetrics? = nil) {
        self.error = error
        self.trailers = trailers
        self.metrics = metrics
    }
}
