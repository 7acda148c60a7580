import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A transport that uses Foundation's `URLSession`.
///
/// ```swift
/// let transport = URLSessionTransport { session in session.httpMaximumConnectionsPerHost = 8 }
/// let host = HostConfiguration(baseURL: url, transport: transport)
/// ```
///
/// The transport uses one session without cache, cookies and credentials, has its own deadlines, and decides itself
/// when an exchange begins. On Linux, any other use of a session crashes the process or loses responses.
/// [Transports](doc:Transports) lists the transport's limits there.
///
/// A body from a ``TransportBodyStream`` is first written to a temporary file, which is removed when the exchange ends.
public final class URLSessionTransport: NetworkTransport {
    private let session: URLSession
    let delegate: URLSessionTransportDelegate
    let configuration: TransportConfiguration
    let clock: any NetworkClock
    private let admission: Locked<ConnectionAdmission<URLSessionExchange>>

    /// The queue on which tasks are started. Starting a task waits for the queue that all sessions share, up to several
    /// seconds on Linux.
    private let starting = DispatchQueue(
        label: "EasyNetwork.URLSessionTransport.starting",
        autoreleaseFrequency: .workItem
    )

    /// The reason why the session does not support the configuration.
    private let problem: NetworkError?

    /// Creates a transport with its session.
    ///
    /// - Parameters:
    ///   - configuration: The limits, the trust and the proxy. `maximumStreamsPerHost` is ignored, because a session
    ///     does not report its protocol. Defaults to `TransportConfiguration()`.
    ///   - clock: The clock of the deadlines. Defaults to the machine's clock.
    ///   - change: A closure that changes the session's configuration, for example its protocol classes. It is called
    ///     before the initializer returns. It must not change cache, cookies, credentials and timeouts.
    public convenience init(
        _ configuration: TransportConfiguration = TransportConfiguration(),
        clock: any NetworkClock = SystemClock(),
        change: (URLSessionConfiguration) -> Void = { _ in }
    ) {
        self.init(configuration, clock, URLSessionTransportDelegate(configuration.tls), change)
    }

    #if canImport(Darwin)
    /// A closure that responds to a challenge. It returns nil to apply the transport's configuration.
    public typealias ChallengeHook =
        @Sendable (URLAuthenticationChallenge) -> (URLSession.AuthChallengeDisposition, URLCredential?)?

    /// Creates a transport that calls a closure for each challenge of a connection, for a server's certificate or a
    /// client's. Use it for identities in the keychain, and for trust that ``TLSConfiguration`` cannot express.
    ///
    /// - Parameters:
    ///   - configuration: See ``init(_:clock:change:)``.
    ///   - clock: The clock of the deadlines. Defaults to the machine's clock.
    ///   - change: See ``init(_:clock:change:)``.
    ///   - challenge: The closure to call on a background queue, concurrently for several connections.
    public convenience init(
        _ configuration: TransportConfiguration = TransportConfiguration(),
        clock: any NetworkClock = SystemClock(),
        change: (URLSessionConfiguration) -> Void = { _ in },
        challenge: @escaping ChallengeHook
    ) {
        self.init(configuration, clock, URLSessionTransportDelegate(configuration.tls, challenge), change)
    }
    #endif

    private init(
        _ configuration: TransportConfiguration,
        _ clock: any NetworkClock,
        _ delegate: URLSessionTransportDelegate,
        _ change: (URLSessionConfiguration) -> Void
    ) {
        self.configuration = configuration
        self.delegate = delegate
        problem = URLSessionConfiguration.problem(with: configuration)
        let sessionConfiguration = URLSessionConfiguration.transport(configuration)
        change(sessionConfiguration)
        session = URLSession(configuration: sessionConfiguration, delegate: delegate, delegateQueue: delegate.queue)
        let (perOrigin, total) = (configuration.maximumConnectionsPerHost, configuration.maximumConnections)
        admission = Locked(ConnectionAdmission(perOrigin: perOrigin, total: total))
        self.clock = clock
    }

    deinit {
        // Every exchange retains its transport until it has ended, so no task is created after this.
        session.finishTasksAndInvalidate()
    }

    public func start(
        _ request: TransportRequest,
        events: @escaping @Sendable (TransportEvent) -> Void
    ) -> any TransportExchange {
        let exchange = URLSessionExchange(request, self, events: events)
        if let problem {
            exchange.stop(problem)
        } else {
            // A session reads streams on the queue that all of its tasks share, so streams are written to files first.
            exchange.prepareBody {
                if self.admission.withLock({ $0.enter(exchange, origin: exchange.origin) }) { self.begin(exchange) }
            }
        }
        return exchange
    }

    private func begin(_ exchange: URLSessionExchange) {
        starting.async {
            let hasBegun = exchange.begin(in: self.session) { self.delegate.register(exchange, for: $0) }
            if !hasBegun { self.leave(origin: exchange.origin) }
        }
    }

    /// Frees the place of an exchange that had begun.
    func leave(origin: String) {
        for next in admission.withLock({ $0.end(origin: origin) }) { begin(next) }
    }
}
