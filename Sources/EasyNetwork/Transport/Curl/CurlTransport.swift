#if os(Linux) && canImport(CCurl)
import Dispatch

/// The transport over libcurl, on Linux: HTTP/1.1, and HTTP/2 over TLS.
///
/// One thread of its own does all the work. Connections are kept open and used again; an exchange that finds all of them
/// taken waits for one, and its deadlines begin after that. `Content-Length` and `Transfer-Encoding` among the headers of
/// a request are left out, as the body says what they are, and so are user and password in a URL. A message whose kept
/// connection turns out to be closed, or to have an answer on it that nobody asked for, before a byte of it went out, goes
/// out on a new one. Nothing else is sent a second time, but what a server refuses unread on a connection that serves it
/// alone (RFC 9113, section 8.7): to send again is for ``RetryPolicy`` to say. With `Expect: 100-continue` among the
/// headers the body waits for the server's word, a second at most; a 417 that comes instead is the answer, and may be
/// without its body.
///
/// Content codings are taken off by the libraries that libcurl itself uses, which are found at run time: gzip and deflate
/// by zlib, br by brotli, zstd by libzstd. `Accept-Encoding` names those that are there, unless the request has its own.
/// A body in another coding, or in several, is handed over as it came.
///
/// It needs libcurl 7.81 or later, which is found at run time. Without it, each exchange ends with
/// ``NetworkError/Code/invalidRequest`` and says what was looked for. With one older than 7.87, a cancel during the look-up of a
/// name holds up the other exchanges until the system's resolver returns. With one older than 8.1, each exchange over HTTP/2 has a connection of its own,
/// kept for the next: of several on one, what comes for one that is paused would be kept in memory, without bound.
///
/// When the transport is let go of, the exchanges that are still under way end with ``NetworkError/Code/cancelled``, its
/// connections are closed and its thread ends.
public final class CurlTransport: NetworkTransport {
    /// One for the whole process.
    public static let shared = CurlTransport()

    /// Its thread keeps it, so a test sees by it that the thread has ended.
    let loop: CurlLoop

    /// - Parameters:
    ///   - configuration: default none of one's own.
    ///   - clock: for the deadlines.
    public init(
        _ configuration: TransportConfiguration = TransportConfiguration(),
        clock: any NetworkClock = SystemClock()
    ) {
        loop = CurlLoop(configuration, clock: clock)
    }

    deinit {
        loop.stop()
    }

    public func start(
        _ request: TransportRequest,
        events: @escaping @Sendable (TransportEvent) -> Void
    ) -> any TransportExchange {
        let exchange = CurlExchange(loop)
        let start = CurlStart(exchange: exchange, request: request, time: loop.clock.now, events: events)
        if !loop.post(.start(start)) {
            let error =
                CurlLibrary.problem
                ?? NetworkError(code: .cannotConnect, message: "the system has no thread or socket left")
            DispatchQueue.global().async { events(.end(TransportEnd(error: error))) }
        }
        return exchange
    }
}
#endif
