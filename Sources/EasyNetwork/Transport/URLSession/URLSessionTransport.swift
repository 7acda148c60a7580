import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The transport over Foundation's `URLSession`.
///
/// ```swift
/// let transport = URLSessionTransport { session in session.httpMaximumConnectionsPerHost = 8 }
/// let host = HostConfiguration(baseURL: url, transport: transport)
/// ```
///
/// It uses one session without cache, cookies and credentials, has its own deadlines and decides itself when an
/// exchange begins. On Linux any other use stops the process or loses answers. [Transports](doc:Transports) lists its
/// limits there.
///
/// A body from a ``TransportBodyStream`` is first written to a temporary file, which is removed at the end.
public final class URLSessionTransport: NetworkTransport {
    private let session: URLSession
    let delegate: URLSessionTransportDelegate
    let configuration: TransportConfiguration
    let clock: any NetworkClock
    private let admission: Locked<ConnectionAdmission<URLSessionExchange>>

    /// To start a task waits for the queue that all sessions share, up to seconds on Linux.
    private let starting = DispatchQueue(
        label: "EasyNetwork.URLSessionTransport.starting",
        autoreleaseFrequency: .workItem
    )

    /// The reason why the session does not support the configuration.
    private let problem: NetworkError?

    /// Creates a transport with its session.
    ///
    /// - Parameters:
    ///   - configuration: Limits, trust and proxy. `maximumStreamsPerHost` is ignored: a session does not tell its
    ///     protocol. Default: those of ``TransportConfiguration``.
    ///   - clock: The clock of the deadlines.
    ///   - change: Changes the session's configuration, for instance its protocol classes. Called at once. Cache,
    ///     cookies, credentials and time limits must stay as they are.
    public convenience init(
        _ configuration: TransportConfiguration = TransportConfiguration(),
        clock: any NetworkClock = SystemClock(),
        change: (URLSessionConfiguration) -> Void = { _ in }
    ) {
        self.init(configuration, clock, URLSessionTransportDelegate(configuration.tls), change)
    }

    #if canImport(Darwin)
    /// Answers a challenge; nil to leave it to the transport's configuration.
    public typealias ChallengeHook =
        @Sendable (URLAuthenticationChallenge) -> (URLSession.AuthChallengeDisposition, URLCredential?)?

    /// A transport that asks about each challenge of a connection, for a server's certificate or a client's: for
    /// identities in the keychain, and for trust that ``TLSConfiguration`` cannot express.
    ///
    /// - Parameters:
    ///   - configuration: See ``init(_:clock:change:)``.
    ///   - clock: The clock of the deadlines.
    ///   - change: See ``init(_:clock:change:)``.
    ///   - challenge: Called on a background queue, for several connections at a time.
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
        // Every exchange keeps its transport until it has ended, so no task is made after this.
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
            // A session reads streams on the queue that all of its tasks share, so they are written to files first.
            exchange.prepareBody { self.enter(exchange) }
        }
        return exchange
    }

    private func enter(_ exchange: URLSessionExchange) {
        if admission.withLock({ $0.enter(exchange, origin: exchange.origin) }) { begin(exchange) }
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
