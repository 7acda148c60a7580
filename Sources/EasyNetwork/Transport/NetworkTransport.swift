import Foundation

/// What carries a message to a server and brings the answer back.
///
/// A transport knows bytes, headers and deadlines. It follows no redirect, judges no status, answers no challenge for
/// credentials, keeps no cookie and caches nothing: that is all done above it, the same way for every transport.
///
/// What every transport promises:
/// - Events come in order, one after the other, never two at once: at most one `head`, then any number of `body`, then
///   exactly one `end`. Without `head`, the end carries an error. They may begin before ``start(_:events:)`` returns.
/// - Any number of `sent` come before the `end`: usually before the `head`, but a server may answer before it has read
///   the whole body, so that they may also come between the others. Each counts more bytes than the one before, unless
///   the body has begun anew. The last one counts all, if all were sent; a request without body has none.
/// - An exchange always ends: by the answer, by an error, by a deadline, or by being cancelled.
/// - ``TransportExchange/cancel()`` may be called at any time from any thread, also from inside `events`.
/// - `events` is called without any lock held, on a thread of the transport's. Whoever implements `events` hands the
///   work on and returns at once; no user code runs there.
public protocol NetworkTransport: Sendable {
    /// Starts one exchange.
    ///
    /// - Parameter events: told of everything that happens; released after `end`.
    func start(
        _ request: TransportRequest,
        events: @escaping @Sendable (TransportEvent) -> Void
    ) -> any TransportExchange
}

/// A message under way.
public protocol TransportExchange: Sendable {
    /// Stops the exchange. Its end follows soon, with ``NetworkError/Code/cancelled`` unless it had already ended.
    func cancel()

    /// Asks for no more of the body: the sender is held back until ``resume()``. Bytes that are on their way may still
    /// come, and so may the end. The idle deadline does not count meanwhile; the total one does.
    ///
    /// What is held meanwhile has a bound: some 64 KB over HTTP/1.1; over HTTP/2 with ``CurlTransport`` up to the 32 MiB
    /// that libcurl lets a server send ahead on one stream.
    ///
    /// By default nothing happens; ``URLSessionTransport`` on Linux cannot hold anybody back.
    func pause()

    /// Asks for the body again. Does nothing when it was not paused.
    func resume()
}

extension TransportExchange {
    public func pause() {}
    public func resume() {}
}

/// What happens to a message under way.
public enum TransportEvent: Sendable {
    /// How many bytes of the request's body have been handed to the system in all, without what frames them. The server
    /// may not have got them yet. Begins at a smaller number when the body is sent anew.
    case sent(Int)
    /// The status and the headers of the final answer; 1xx answers are passed over.
    case head(TransportHead)
    /// The next bytes of the body, content codings such as gzip taken off.
    case body(Data)
    /// The last event.
    case end(TransportEnd)
}

/// The status line and header fields of an answer.
public struct TransportHead: Hashable, Sendable {
    public var statusCode: Int
    public var headers: HTTPHeaders

    public init(statusCode: Int, headers: HTTPHeaders = HTTPHeaders()) {
        self.statusCode = statusCode
        self.headers = headers
    }
}

extension TransportHead {
    /// Lengths that differ, or are none, leave open where the answer ends (RFC 9112, section 6.3).
    ///
    /// - Throws: ``NetworkError/Code/badServerResponse``.
    func checkLength() throws(NetworkError) {
        var length: Int64?
        for field in headers where field.name.isEqualIgnoringASCIICase(to: "Content-Length") {
            for text in field.value.split(separator: ",", omittingEmptySubsequences: false) {
                let digits = text.trimmed
                guard digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let next = Int64(digits),
                    length == nil || length == next
                else {
                    let message =
                        "a Content-Length that is malformed, or differs from another: \(field.value.prefix(80))"
                    throw NetworkError(code: .badServerResponse, message: message)
                }
                length = next
            }
        }
    }
}

/// How an exchange ended.
public struct TransportEnd: Sendable {
    /// Nil when the whole answer arrived.
    public var error: NetworkError?
    /// The fields that came after the body (RFC 9110, section 6.5).
    public var trailers: HTTPHeaders
    /// How it went; nil when it never began.
    public var metrics: TransportMetrics?

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
