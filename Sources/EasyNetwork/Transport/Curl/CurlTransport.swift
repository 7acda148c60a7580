#if os(Linux) && canImport(CCurl)
import Dispatch

/// The transport over libcurl, on Linux: HTTP/1.1, and HTTP/2 over TLS.
///
/// One thread of its own does all the work. Connections are kept open and used again; an exchange that finds all of them
/// taken waits for one, and its deadlines begin after that. `Content-Length` and `Transfer-Encoding` among the headers of
/// a request are left out, as the body says what they are, and so are user and password in a URL. A message is sent again
/// without asking in two cases only: on a kept connection that the server had closed, before a byte of the answer, if its
/// method is idempotent (RFC 9110, section 9.2.2) or it has an `Idempotency-Key`; and when a server has said that it did
/// not act upon it, as HTTP/2 lets it. With `Expect: 100-continue` among the headers the body waits for the server's word,
/// a second at most; a 417 that comes instead is the answer, and may be without its body.
///
/// It needs libcurl 7.81 or later, which is found at run time. Without it, each exchange ends with
/// ``NetworkError/Code/invalidRequest`` and says what was looked for. With one older than 7.87, a cancel during the look-up of a name holds up the other exchanges
/// until the system's resolver returns. With one older than 8.1, each exchange over HTTP/2 has a connection of its own,
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
