import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The transport over Foundation's `URLSession`.
///
/// It uses one session with no cache, no cookies and no credentials of its own, with its own deadlines, and decides
/// itself when an exchange begins. On Linux that is the only way in which `URLSession` neither stops the process nor
/// forgets to answer. What it cannot do:
///
/// | what | where | why |
/// |-|-|-|
/// | repeated headers apart from each other, and their order | everywhere | Foundation keeps a dictionary |
/// | answers with trailers | Linux | Foundation stops the process |
/// | own certificate authorities, pinning, client certificates | Linux | Foundation has no such setting |
/// | back-pressure | Linux | Foundation reads on and keeps what nobody takes |
public final class URLSessionTransport: NetworkTransport {
    /// The one that hosts use when they name no other.
    public static let shared = URLSessionTransport()

    private let session: URLSession
    private let delegate = URLSessionTransportDelegate()
    private let clock: any NetworkClock
    private let admission: Locked<ConnectionAdmission<URLSessionExchange>>

    /// Starting a task waits for the queue that all sessions share, up to seconds on Linux; so it is done here.
    private let starting = DispatchQueue(label: "EasyNetwork.URLSessionTransport.starting")

    /// - Parameters:
    ///   - maximumConnectionsPerHost: exchanges under way to one host at once; more wait. Default 64: how many run at
    ///     once is for the ``NetworkQueue`` to say.
    ///   - clock: for the deadlines.
    public init(maximumConnectionsPerHost: Int = 64, clock: any NetworkClock = SystemClock()) {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.urlCache = nil
        configuration.urlCredentialStorage = nil
        configuration.httpCookieStorage = nil
        configuration.httpCookieAcceptPolicy = .never
        configuration.httpShouldSetCookies = false
        configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
        configuration.timeoutIntervalForRequest = URLSessionExchange.noTimeout
        configuration.timeoutIntervalForResource = URLSessionExchange.noTimeout
        configuration.httpMaximumConnectionsPerHost = max(maximumConnectionsPerHost, 1)
        session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: delegate.queue)
        admission = Locked(ConnectionAdmission(limit: maximumConnectionsPerHost))
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
        let exchange = URLSessionExchange(request, transport: self, queue: delegate.queue, clock: clock, events: events)
        if admission.withLock({ $0.enter(exchange, origin: exchange.origin) }) { begin(exchange) }
        return exchange
    }

    private func begin(_ exchange: URLSessionExchange) {
        starting.async {
            let hasBegun = exchange.begin(in: self.session) { self.delegate.register(exchange, for: $0) }
            if !hasBegun { self.leave(origin: exchange.origin) }
        }
    }

    /// An exchange that had been let in has ended.
    func leave(origin: String) {
        if let next = admission.withLock({ $0.end(origin: origin) }) { begin(next) }
    }
}
