#if os(Linux) && canImport(CCurl)
internal import CCurl
import Foundation

/// The transport over libcurl, on Linux: HTTP/1.1, and HTTP/2 over TLS.
///
/// ```swift
/// let host = HostConfiguration(baseURL: url, transport: CurlTransport())
/// ```
///
/// A single thread does all the work. Connections are kept open and reused. An exchange that finds all of them taken
/// waits for one, and its deadlines begin after that. The transport sets `Content-Length` and `Transfer-Encoding`
/// itself and ignores those of the request, as it does a user and password in the URL. With `Expect: 100-continue` the
/// body waits for the server, one second at most; a 417 is the answer and may lack its body.
///
/// A message is sent twice only if the server cannot have acted on it: if its kept connection turns out to be closed,
/// or to hold an unsolicited response, before a byte of the message went out, or if the server says over HTTP/2 that it
/// has not processed it: it refuses the message, or ends the connection and names an earlier one as the last (RFC 9113,
/// section 8.7). The message then goes out on another connection, up to five times, and each time counts as the same
/// attempt; after that the exchange ends with ``NetworkError/Code/connectionLost``, and
/// ``NetworkError/mayHaveReachedServer`` is false. A proxy that asks for a password with 407 has not passed the message
/// on, and gets it once more. Everything else is up to ``RetryPolicy``.
///
/// A body without a length ends with its connection. Over TLS the server has to say so: if the connection is cut, the
/// exchange ends with ``NetworkError/Code/connectionLost``.
///
/// Content codings are removed by the libraries that libcurl itself uses: zlib, brotli and libzstd. `Accept-Encoding`
/// names those that are installed, unless the request sets it. A body in an unknown coding, or in several, is passed on
/// as is.
///
/// The transport needs libcurl 7.81 or later, found at run time. Without it each exchange ends with
/// ``NetworkError/Code/invalidRequest``, whose message says what to install and how to use ``URLSessionTransport``.
/// [Transports](doc:Transports) lists the differences between versions.
///
/// Releasing the transport ends its exchanges with ``NetworkError/Code/cancelled``, closes its connections and ends its
/// thread.
public final class CurlTransport: NetworkTransport {
    /// The thread keeps it, so a test can observe the thread's end.
    let loop: CurlLoop

    /// Creates a transport with its thread.
    ///
    /// - Parameters:
    ///   - configuration: Limits, trust and proxy. Default: those of ``TransportConfiguration``.
    ///   - clock: The clock of the deadlines.
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
        exchange.start(request, events: events)
        return exchange
    }
}

/// The libcurl of this process, found at run time: the one that Foundation has loaded, or else the system's.
///
/// The environment variable `EASYNETWORK_LIBCURL` names another library file, for tests and diagnosis. Programs with
/// other rights than their user's (set-user-id) ignore it.
enum CurlLibrary {
    /// The reason why no libcurl can be used, as an error of each request; nil if one can.
    static let problem = load(path: ccurl_environment_path().map { String(cString: $0) })

    /// The version, as `0x08_01_00` for 8.1.0; 0 without libcurl.
    static let version = problem == nil ? ccurl_version() : 0

    /// Loads a library into the process, once. A library that is refused changes nothing.
    ///
    /// - Parameter path: nil or empty for `libcurl.so.4`.
    static func load(path: String?) -> NetworkError? {
        let path = path.flatMap { $0.isEmpty ? nil : $0 }
        let reason = withUnsafeTemporaryAllocation(of: CChar.self, capacity: 512) { buffer -> String? in
            // The buffer is not empty, so it has a base address.
            guard let text = buffer.baseAddress else { return "" }
            return ccurl_load(path, 0x07_51_00, text, buffer.count) ? nil : String(cString: text)
        }
        if let reason {
            let name = path ?? "libcurl.so.4"
            return NetworkError(
                code: .invalidRequest,
                message: "libcurl 7.81 or later is needed; \(name) cannot be used: \(reason.withoutFullStop). "
                    + "Install a recent one, for instance with \"apt-get install libcurl4\", or give the host a "
                    + "URLSessionTransport, which has the limits that the article Transports lists"
            )
        }
        // Foundation does this too; libcurl counts the calls.
        guard ccurl_global_init(CCURL_GLOBAL_DEFAULT) == CCURLE_OK else {
            return NetworkError(code: .invalidRequest, message: "libcurl cannot be initialized")
        }
        ccurl_trace_http2()
        return nil
    }
}
#endif
