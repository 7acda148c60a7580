import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The transport over Foundation's `URLSession`.
///
/// It uses one session with no cache, no cookies and no credentials of its own, with its own deadlines, and decides
/// itself when an exchange begins. On Linux that is the only way in which `URLSession` neither stops the process nor
/// forgets to answer. What it cannot do there is listed in <doc:Transports>.
///
/// A body from a ``TransportBodyStream`` is first written to a temporary file, which is removed at the end.
public final class URLSessionTransport: NetworkTransport {
    /// The one that hosts use when they name no other.
    public static let shared = URLSessionTransport()

    private let session: URLSession
    private let delegate: URLSessionTransportDelegate
    private let configuration: TransportConfiguration
    private let clock: any NetworkClock
    private let admission: Locked<ConnectionAdmission<URLSessionExchange>>

    /// Starting a task waits for the queue that all sessions share, up to seconds on Linux; so it is done here.
    private let starting = DispatchQueue(label: "EasyNetwork.URLSessionTransport.starting")

    /// Why nothing can be sent with this configuration.
    private let problem: NetworkError?

    /// - Parameters:
    ///   - configuration: default none of one's own. `maximumStreamsPerHost` has no meaning here: the session does not
    ///     tell which protocol it speaks.
    ///   - clock: for the deadlines.
    ///   - change: a last word on the session's configuration, called at once: protocol classes, for instance. What the
    ///     transport has switched off in it (cache, cookies, credentials, time limits) is to stay off.
    public convenience init(
        _ configuration: TransportConfiguration = TransportConfiguration(),
        clock: any NetworkClock = SystemClock(),
        change: (URLSessionConfiguration) -> Void = { _ in }
    ) {
        self.init(configuration, clock, URLSessionTransportDelegate(configuration.tls), change)
    }

    #if canImport(Darwin)
    /// What becomes of a challenge; nil for what the transport's configuration says.
    public typealias ChallengeHook =
        @Sendable (URLAuthenticationChallenge) -> (URLSession.AuthChallengeDisposition, URLCredential?)?

    /// A transport that asks about each challenge of a connection, such as a server's certificate or the wish for a
    /// client's: for identities in the keychain, and for trust that no ``TLSConfiguration`` can express.
    ///
    /// - Parameters:
    ///   - configuration: see ``init(_:clock:change:)``.
    ///   - clock: for the deadlines.
    ///   - change: see ``init(_:clock:change:)``.
    ///   - challenge: called on a background queue, for several connections at a time.
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
        session = URLSession(
            configuration: sessionConfiguration,
            delegate: delegate,
            delegateQueue: delegate.queue
        )
        admission = Locked(
            ConnectionAdmission(
                perOrigin: configuration.maximumConnectionsPerHost,
                total: configuration.maximumConnections
            )
        )
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
        let exchange = URLSessionExchange(
            request,
            maximumDecodedBodyCount: configuration.maximumDecodedBodyCount,
            transport: self,
            queue: delegate.queue,
            clock: clock,
            events: events
        )
        if let problem {
            exchange.stop(problem)
        } else {
            // A session takes bodies from files, and reads streams on the queue that all of its tasks share.
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

    /// An exchange that had been let in has ended.
    func leave(origin: String) {
        for next in admission.withLock({ $0.end(origin: origin) }) { begin(next) }
    }
}
