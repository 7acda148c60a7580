import Foundation

/// Carries a message to a server and brings the answer back.
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
/// A transport knows bytes, headers and deadlines. It follows no redirect, judges no status, answers no challenge for
/// credentials, keeps no cookie and caches nothing: the layers above do that in the same way for every transport.
///
/// Every transport promises:
/// - Events come in order, never two at once: at most one `head`, then any number of `body`, then exactly one `end`.
///   Without a `head`, the end carries an error. Events may come before ``start(_:events:)`` returns.
/// - Any number of `sent` come before the `end`, usually before the `head`; a server may answer before it has read the
///   whole body. Each counts more bytes than the one before, unless the body was begun again. If all bytes were sent,
///   the last one counts them all. A request without body has none.
/// - An exchange always ends: by the answer, an error, a deadline, or a cancel.
/// - ``TransportExchange/cancel()`` may be called at any time from any thread, also from inside `events`.
/// - `events` is called on a thread of the transport, without a lock held. An implementation hands its work on and
///   returns at once; no user code runs there.
public protocol NetworkTransport: Sendable {
    /// Starts an exchange.
    ///
    /// - Parameters:
    ///   - request: the message.
    ///   - events: Told of everything that happens; released after `end`.
    func start(
        _ request: TransportRequest,
        events: @escaping @Sendable (TransportEvent) -> Void
    ) -> any TransportExchange
}

extension NetworkTransport {
    /// The seconds for which an exchange may keep its connection and read nothing, while another one goes first. Where
    /// connections are few, the other one may need it.
    var heldConnectionInterval: TimeInterval {
        if self is URLSessionTransport { return 0 }
        #if os(Linux) && canImport(CCurl)
        let limit = (self as? CurlTransport)?.loop.configuration.maximumConnectionsPerHost
        if let limit, limit < TransportConfiguration().maximumConnectionsPerHost { return 2 }
        #endif
        return 30
    }
}

/// A message under way.
///
/// ```swift
/// let exchange = transport.start(TransportRequest(url: url)) { event in print(event) }
/// exchange.cancel()
/// ```
public protocol TransportExchange: Sendable {
    /// Stops the exchange. Its end follows soon, with ``NetworkError/Code/cancelled`` unless it had already ended.
    func cancel()

    /// Holds the sender of the body back until ``resume()``. Bytes that are on their way may still come, and so may the
    /// end. The idle deadline stops during the pause; the total one does not.
    ///
    /// The bytes held are bounded: some 64 KB over HTTP/1.1; over HTTP/2 with ``CurlTransport`` up to the 32 MiB that
    /// libcurl lets a server send ahead on one stream.
    ///
    /// Does nothing by default, and with ``URLSessionTransport`` on Linux, which cannot hold a sender back.
    func pause()

    /// Continues the body after ``pause()``. Does nothing if it was not paused.
    func resume()
}

extension TransportExchange {
    public func pause() {}
    public func resume() {}
}

/// Something that happens to a message under way.
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
    /// The bytes of the request's body handed to the system so far, without framing. The server may not have them yet.
    /// Starts at a smaller number if the body is sent again.
    case sent(Int)
    /// The status and the headers of the final answer; 1xx answers are skipped.
    case head(TransportHead)
    /// The next bytes of the body, with content codings such as gzip removed.
    case body(Data)
    /// The last event.
    case end(TransportEnd)
}

/// The status line and header fields of an answer.
///
/// ```swift
/// events(.head(TransportHead(statusCode: 200, headers: ["Content-Type": "text/plain"])))
/// ```
public struct TransportHead: Hashable, Sendable {
    /// The status code.
    public var statusCode: Int
    /// The header fields, in order and with repeats where the transport keeps them.
    public var headers: HTTPHeaders

    /// Creates the head of an answer.
    public init(statusCode: Int, headers: HTTPHeaders = HTTPHeaders()) {
        self.statusCode = statusCode
        self.headers = headers
    }
}

extension TransportHead {
    /// Checks that the lengths agree: otherwise it is open where the answer ends (RFC 9112, section 6.3).
    ///
    /// - Throws: ``NetworkError/Code/badServerResponse``.
    func checkLength() throws(NetworkError) {
        var length: Int64?
        for value in headers.values(for: "Content-Length") {
            if let first = value.utf8.first, first != 0x2B, first != 0x2D, let next = Int64(value),
                length ?? next == next
            {
                length = next
                continue
            }
            for text in value.split(separator: ",", omittingEmptySubsequences: false) {
                let digits = text.trimmed
                guard digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let next = Int64(digits),
                    length == nil || length == next
                else {
                    let message = "the Content-Length is malformed or differs from another: \(value.prefix(80))"
                    throw NetworkError(code: .badServerResponse, message: message)
                }
                length = next
            }
        }
    }

    /// Whether the body has a content coding.
    var hasContentCoding: Bool {
        !headers.contentCodings.isEmpty
    }

    /// The length of the body that follows, as it is handed on; nil when it is not known.
    ///
    /// - Parameter method: of the message that this answers.
    func bodyLength(answering method: NetworkService.Method) -> Int64? {
        if method == .head || [204, 205, 304].contains(statusCode) { return 0 }
        return hasContentCoding ? nil : headers.contentLength
    }

    /// Whether the transfer has a coding besides chunks. libcurl removes it unasked.
    var hasTransferCoding: Bool {
        headers["Transfer-Encoding"].map { !$0.isEqualIgnoringASCIICase(to: "chunked") } ?? false
    }
}

extension HTTPHeaders {
    /// `Content-Length` as a number; nil without one, and if two differ.
    package var contentLength: Int64? {
        single("Content-Length", .unanimous) { $0.trimmed.utf8.allSatisfy(\.isDigit) ? Int64($0.trimmed) : nil }
    }

    /// The names of the content codings in lower case, in the order in which they were applied.
    var contentCodings: [String] {
        listMembers("Content-Encoding").map { $0.lowercased() }.filter { $0 != "identity" }
    }
}

/// The rest of what a body may have whose coding is removed.
struct DecodedBodyLimit {
    private let limit: Int
    private var left: Int

    /// - Parameter limit: In bytes.
    init(_ limit: Int) {
        self.limit = limit
        left = limit
    }

    /// - Throws: ``NetworkError/Code/bodyTooLong``.
    mutating func take(_ count: Int) throws(NetworkError) {
        guard count <= left else {
            throw NetworkError(code: .bodyTooLong, message: "over \(limit) bytes without its content coding")
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
    /// Nil if the whole answer arrived.
    public var error: NetworkError?
    /// The fields that came after the body (RFC 9110, section 6.5).
    public var trailers: HTTPHeaders
    /// Times, bytes and connection; nil if the exchange never began.
    public var metrics: TransportMetrics?

    /// Creates the end of an exchange.
    public init(
        error: NetworkError? = nil,
        trailers: HTTPHeaders = HTTPHeaders(),
        metrics: TransportMetrics? = nil
    ) {
        self.error = error
        self.trailers = trailers
        self.metrics = metrics
    }
}
