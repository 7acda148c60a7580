#if os(Linux) && canImport(CCurl)
import Dispatch

/// The transport over libcurl, on Linux: HTTP/1.1, and HTTP/2 over TLS.
///
/// One thread of its own does all the work. Connections are kept open and used again; an exchange that finds all of them
/// taken waits for one, and its deadlines begin after that. Proxies come from the environment (`http_proxy`,
/// `https_proxy`, `all_proxy`, `no_proxy`), as with the `curl` command. `Content-Length` and `Transfer-Encoding` among
/// the headers of a request are left out, as the body says what they are, and so are user and password in a URL.
///
/// It needs libcurl 7.81. With one older than 7.87, a cancel during the look-up of a name holds up the other exchanges
/// until the system's resolver returns. With HTTP/2 the limits count exchanges, not connections.
///
/// When the transport is let go of, the exchanges that are still under way end with ``NetworkError/Code/cancelled``, its
/// connections are closed and its thread ends.
public final class CurlTransport: NetworkTransport {
    /// One for the whole process.
    public static let shared = CurlTransport()

    /// Its thread keeps it, so a test sees by it that the thread has ended.
    let loop: CurlLoop

    /// - Parameters:
    ///   - maximumConnectionsPerHost: exchanges under way to one scheme, host and port at once; more wait. Default 6.
    ///   - maximumConnections: exchanges under way in all. Default 256.
    ///   - clock: for the deadlines.
    public init(
        maximumConnectionsPerHost: Int = 6,
        maximumConnections: Int = 256,
        clock: any NetworkClock = SystemClock()
    ) {
        loop = CurlLoop(
            maximumConnectionsPerHost: maximumConnectionsPerHost,
            maximumConnections: maximumConnections,
            clock: clock
        )
    }

    deinit {
        loop.stop()
    }

    public func start(
        _ request: TransportRequest,
        events: @escaping @Sendable (TransportEvent) -> Void
    ) -> any TransportExchange {
        let exchange = CurlExchange(loop)
        if !loop.post(.start(CurlStart(exchange: exchange, request: request, events: events))) {
            DispatchQueue.global().async {
                let error = NetworkError(code: .cannotConnect, message: "the system has no thread or socket left")
                events(.end(TransportEnd(error: error)))
            }
        }
        return exchange
    }
}
#endif
