#if os(Linux) && canImport(CCurl)
internal import CCurl
import Foundation

/// A transport that uses libcurl, on Linux: HTTP/1.1, and HTTP/2 over TLS.
///
/// ```swift
/// let host = HostConfiguration(baseURL: url, transport: CurlTransport())
/// ```
///
/// A single thread does all the work. Connections are kept open and reused. An exchange that finds no free connection
/// waits for one, and its deadlines begin after that. The transport sets `Content-Length` and `Transfer-Encoding`
/// itself and ignores these fields of the request. It also ignores a user and password in the URL. If the request has
/// `Expect: 100-continue`, its body waits for the server for at most one second. A 417 is then the response, and its
/// body might be missing.
///
/// A message is sent again only if the server cannot have acted on it. This has two cases. First, before a byte of the
/// message was sent, the reused connection turns out to be closed or to hold an unsolicited response. Second, the
/// server reports over HTTP/2 that it has not processed the message: it rejects the message, or ends the connection and
/// names an earlier message as the last one (RFC 9113, section 8.7). The message is then sent on another connection, up
/// to five times, all of which count as the same attempt. After that the exchange ends with
/// ``NetworkError/Code/connectionLost``, and ``NetworkError/mayHaveReachedServer`` is false. A proxy that requires
/// credentials with 407 has not forwarded the message, and receives it again. All other retries are up to
/// ``RetryPolicy``.
///
/// A body without a length ends with its connection. Over TLS the server must close TLS first. If the connection is
/// cut, the exchange ends with ``NetworkError/Code/connectionLost``.
///
/// The libraries that libcurl itself uses remove content codings: zlib, brotli and libzstd. `Accept-Encoding` names
/// those that are installed, unless the request sets the field. Up to five codings are removed from a body. A body with
/// an unknown coding, and a part of a body (206), are delivered unchanged.
///
/// The transport needs libcurl 7.81 or later, which it finds at run time. Without it, each exchange ends with
/// ``NetworkError/Code/invalidRequest``, whose message explains what to install and how to use ``URLSessionTransport``.
/// [Transports](doc:Transports) lists the differences between versions.
///
/// Releasing the transport ends its exchanges with ``NetworkError/Code/cancelled``, closes its connections and ends its
/// thread.
public final class CurlTransport: NetworkTransport {
    /// The loop. Its thread retains it, so a test can observe the thread's end.
    let loop: CurlLoop

    /// Creates a transport.
    ///
    /// - Parameters:
    ///   - configuration: The limits, the trust and the proxy. Defaults to `TransportConfiguration()`.
    ///   - clock: The clock of the deadlines. Defaults to the machine's clock.
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

/// The libcurl of this process, found at run time: the library that Foundation has loaded, otherwise the system's.
///
/// The environment variable `EASYNETWORK_LIBCURL` names another library file, for tests and diagnosis. Programs with
/// other rights than their user's (set-user-id) ignore it.
enum CurlLibrary {
    /// The reason why no libcurl can be used, as an error for each request; nil if one can.
    static let problem = load(path: ccurl_environment_path().map { String(cString: $0) })

    /// The version, such as `0x08_01_00` for 8.1.0; 0 without libcurl.
    static let version = problem == nil ? ccurl_version() : 0

    /// Whether libcurl can keep the parsed authorities of the system's file for later connections. It keeps them only
    /// without a folder of authorities, which the securing callback then adds. Parsing the file takes 20 ms of processor
    /// time.
    static let keepsAuthorities = version >= 0x07_57_00 && ccurl_tls_can_add_default_folder()

    /// Loads a library into the process once. A library that is rejected changes nothing.
    ///
    /// - Parameter path: The path of the library; nil or empty for `libcurl.so.4`.
    static func load(path: String?) -> NetworkError? {
        let path = path.flatMap { $0.isEmpty ? nil : $0 }
        let reason = withUnsafeTemporaryAllocation(of: CChar.self, capacity: 512) { buffer -> String? in
            // The buffer is not empty, so it has a base address.
            guard let text = buffer.baseAddress else { return "" }
            return ccurl_load(path, 0x07_51_00, text, buffer.count) ? nil : String(cString: text)
        }
        if let reason {
            let name = path ?? "libcurl.so.4"
            return .invalidRequest(
                "libcurl 7.81 or later is needed; \(name) cannot be used: \(reason.withoutFullStop). "
                    + "Install a recent version, for example with \"apt-get install libcurl4\", or give the host a "
                    + "URLSessionTransport, whose limits the article Transports lists"
            )
        }
        // Foundation also initializes libcurl, which counts the calls.
        guard ccurl_global_init(CCURL_GLOBAL_DEFAULT) == CCURLE_OK else {
            return .invalidRequest("libcurl cannot be initialized")
        }
        ccurl_trace_http2()
        // OpenSSL has registered its own handler by now. Handlers run in the reverse order, so this one runs before it.
        atexit { CurlLibrary.stopUse() }
        return nil
    }

    // MARK: - The end of the process

    /// The lock that threads hold for reading while they use libcurl.
    // The functions of pthreads synchronize it, and it is never freed.
    nonisolated(unsafe) private static let useLock = {
        let lock = UnsafeMutablePointer<pthread_rwlock_t>.allocate(capacity: 1)
        pthread_rwlock_init(lock, nil)
        return lock
    }()

    /// Uses libcurl on a loop's thread. The use must not wait for anything. After ``stopUse()``, this method never
    /// returns.
    static func use<Result>(_ body: () -> Result) -> Result {
        let lock = useLock
        pthread_rwlock_rdlock(lock)
        defer { pthread_rwlock_unlock(lock) }
        return body()
    }

    /// Waits until no thread uses libcurl, and lets none use it again. At the end of a process, OpenSSL frees what all
    /// connections share, and a thread that still used it would crash the process.
    private static func stopUse() {
        var limit = timespec()
        clock_gettime(CLOCK_REALTIME, &limit)
        // A use takes milliseconds. But a program can also exit inside an event of its own transport's exchange.
        limit.tv_sec += 1
        pthread_rwlock_timedwrlock(useLock, &limit)
    }
}
#endif
