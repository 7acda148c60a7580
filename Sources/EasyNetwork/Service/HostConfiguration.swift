import Dispatch
import Foundation

/// A server and its settings: addresses, headers, deadlines, retries, redirects, credentials, transport.
///
/// Set the program's host once at launch, before the first request is made:
///
/// ```swift
/// try HostConfiguration.baseURL("https://api.example.com/v1")
/// ```
///
/// or with all its settings:
///
/// ```swift
/// HostConfiguration.shared = HostConfiguration(baseURL: url) { host in
///     host.headers = ["X-App": "shop"]
///     host.retry = .never
/// }
/// ```
///
/// A configuration never changes. A new value of ``shared`` applies to operations and services made after that.
/// Several hosts can be used at once, each with its own ``EasyNetworkService``.
public final class HostConfiguration: Sendable {
    private static let sharedConfiguration = Locked(HostConfiguration(baseURL: nil))

    /// The host of requests that name no other.
    ///
    /// Until it is set there is no base URL: requests with an absolute URL work, requests with a path fail with
    /// ``NetworkError/Code/invalidRequest``.
    public static var shared: HostConfiguration {
        get { sharedConfiguration.withLock { $0 } }
        set { sharedConfiguration.exchange(newValue) }
    }

    /// Makes a host with this base URL the ``shared`` one.
    ///
    /// - Parameter string: an absolute http or https URL, with or without a path. A user and a password in it are
    ///   refused: they belong in ``RequestOptions/credential`` or in ``HostSettings/authentication``.
    /// - Throws: ``NetworkError/Code/invalidRequest`` for any other string; ``shared`` stays as it was.
    @discardableResult
    public static func baseURL(_ string: String) throws(NetworkError) -> HostConfiguration {
        let configuration = HostConfiguration(baseURL: try URLBuilder.base(string))
        shared = configuration
        return configuration
    }

    /// The settings of the host.
    public let settings: HostSettings

    /// The host of ``HostSettings/baseURL``, with the port if the URL names one.
    let host: String?

    /// The components of ``HostSettings/baseURL``, or the reason why requests cannot be joined to it; nil without one.
    let base: Result<URLParts, NetworkError>?

    /// The headers of every request, and the reason why they cannot be sent.
    private let headers: HTTPHeaders
    private let headerProblem: NetworkError?
    /// The headers of a request to another origin; nil when ``headers`` has no credentials.
    private let headersElsewhere: HTTPHeaders?

    /// The number of retries that are left.
    private let retryBudget: Locked<Double>

    /// The circuits to the servers that were called by a ``CircuitBreaker``, by their origins.
    private let circuits = Locked<[String: Circuit]>([:])

    /// The types of requests for which ``NetworkEvent/Kind/contentTypeReplaced(_:by:)`` was sent to listeners.
    private let toldTypes = Locked<Set<String>>([])

    package let broadcast = EventBroadcast()

    /// Creates a host with settings.
    public init(_ settings: HostSettings) {
        // First, since they say which headers are credentials.
        Redaction.addHostNames(settings.secretNames)
        if settings.sendsTraceContext { TraceContext.isUsed.isSet = true }
        self.settings = settings
        host = settings.baseURL?.hostAndPort
        base = settings.baseURL.map { url in
            Result { () throws(NetworkError) in try URLBuilder.parts(ofBase: url.absoluteString) }
        }
        headers = settings.standardHeaders.merging(settings.headers)
        do throws(NetworkError) {
            try headers.checkSyntax()
            try headers.checkFraming()
            headerProblem = nil
        } catch {
            headerProblem = error
        }
        let others = headers.withoutCredentials
        headersElsewhere = settings.baseURL == nil || others == headers ? nil : others
        retryBudget = Locked(settings.retryBudget)
    }

    deinit {
        broadcast.finish()
    }

    /// Creates a host with a base URL and other settings.
    ///
    /// - Parameters:
    ///   - baseURL: see ``HostSettings/baseURL``.
    ///   - headers: see ``HostSettings/headers``.
    ///   - deadlines: see ``HostSettings/deadlines``.
    ///   - transport: see ``HostSettings/transport``.
    ///   - change: changes other settings; called at once.
    public convenience init(
        baseURL: URL?,
        headers: HTTPHeaders = HTTPHeaders(),
        deadlines: TransportDeadlines = TransportDeadlines(),
        transport: (any NetworkTransport)? = nil,
        change: (inout HostSettings) -> Void = { _ in }
    ) {
        var settings = HostSettings(baseURL: baseURL)
        settings.headers = headers
        settings.deadlines = deadlines
        if let transport { settings.transport = transport }
        change(&settings)
        self.init(settings)
    }

    /// The events of the calls to this host from now on, those of jobs too, for as long as the sequence is iterated.
    /// Any number of tasks may listen. ``NetworkQueue/events`` has the life of jobs.
    ///
    /// A slow listener loses the oldest events: the last 4,096 are kept. The sequence ends when the host is
    /// deallocated.
    public var events: AsyncStream<NetworkEvent> {
        broadcast.stream(keeping: 4_096, add: broadcast.add)
    }

    /// - Parameters:
    ///   - bodyCount: the first bytes that are wanted of bodies that are used while they come. Default 0.
    ///   - owner: who listens: what it hears from a queue, it does not hear from here. Default nil.
    ///   - receive: called on any thread, possibly the transport's: it must not block.
    package func subscribe(
        bodyCount: Int = 0,
        owner: AnyObject? = nil,
        _ receive: @escaping @Sendable (NetworkEvent) -> Void
    ) -> EventSubscription {
        let owner = owner.map(ObjectIdentifier.init)
        let listener = EventBroadcast.Listener(receive: receive, bodyCount: bodyCount, owner: owner)
        return EventSubscription(broadcast, broadcast.add(listener))
    }

    /// Tells an event of a call, if there is a listener.
    ///
    /// - Parameter told: the owners that a queue has told it. Default none.
    func tell(
        _ kind: @autoclosure () -> NetworkEvent.Kind,
        of call: Call,
        _ operation: (any CallOwner)?,
        except told: [ObjectIdentifier] = []
    ) {
        guard broadcast.isHeard else { return }
        let id = operation?.shownID
        broadcast.post(
            NetworkEvent(
                kind(),
                operation: id == nil ? nil : operation,
                operationID: id,
                callNumber: call.number,
                host: host,
                trace: call.trace
            ),
            except: told
        )
    }

    /// The host's base URL.
    public var baseURL: URL? { settings.baseURL }

    /// This host in another environment: with the base URL from ``HostSettings/environments``.
    ///
    /// ```swift
    /// HostConfiguration.shared = try HostConfiguration.shared.switched(to: "release candidate")
    /// ```
    ///
    /// - Parameters:
    ///   - environment: a name in ``HostSettings/environments``.
    ///   - change: changes other settings. Credentials are not copied: ``HostSettings/authentication`` is nil, and
    ///     ``HostSettings/headers`` have no field with the name of a secret (`Authorization`, `X-Api-Key`), unless they
    ///     are set here.
    /// - Throws: ``NetworkError/Code/invalidRequest`` when there is no URL for it.
    public func switched(
        to environment: String,
        change: (inout HostSettings) -> Void = { _ in }
    ) throws(NetworkError) -> HostConfiguration {
        guard let url = settings.environments[environment] else {
            let known = settings.environments.keys.sorted().joined(separator: ", ")
            throw NetworkError(
                code: .invalidRequest,
                message: "the host has no environment \"\(environment)\"; it has: \(known.isEmpty ? "none" : known)"
            )
        }
        var settings = settings
        settings.baseURL = url
        settings.authentication = nil
        settings.headers = settings.headers.withoutCredentials
        change(&settings)
        return HostConfiguration(settings)
    }

    /// The queue for callbacks.
    package var deliveryQueue: DispatchQueue {
        settings.callbackQueue ?? WorkQueue.shared
    }

    /// Whether an address has another origin than the base URL: it gets neither credentials nor traces of the host.
    func isElsewhere(_ url: URL) -> Bool {
        url.isElsewhere(than: settings.baseURL)
    }

    /// The host's headers for a request to this address: a server other than the host's gets none of its credentials.
    func headers(for url: URL, _ options: RequestOptions) -> HTTPHeaders {
        var result = headers
        if let headersElsewhere, isElsewhere(url) { result = headersElsewhere }
        for name in options.omittedHeaders { result[name] = nil }
        return result
    }

    /// Checks the fields of a message; the host's own were checked before.
    func check(_ headers: HTTPHeaders) throws(NetworkError) {
        if headers.hasStorage(of: self.headers) {
            if let headerProblem { throw headerProblem }
            return
        }
        try headers.checkSyntax()
        try headers.checkFraming()
    }

    /// The headers after the filters. When a filter changed the origin, the host's credentials are removed.
    func headers(of draft: RequestDraft, for url: URL) -> HTTPHeaders {
        guard headersElsewhere != nil, isElsewhere(url) else { return draft.headers }
        return draft.headers.withoutCredentials(of: headers)
    }

    /// The first authentication state of a request; nil without authentication.
    func credentialState(for options: RequestOptions, _ message: TransportRequest) -> RequestAuthentication
        .CredentialState?
    {
        settings.authentication.map { authentication in
            var credentialState = authentication.begin(message.url, base: settings.baseURL)
            if message.headers["Authorization"] != nil || !options.isAuthenticated || options.customURLRequest != nil {
                credentialState.isExempt = true
            }
            return credentialState
        }
    }

    /// The version of the user whose credential requests to this address get; nil for none.
    package func userVersion(for url: URL) -> Int? {
        guard let authentication = settings.authentication else { return nil }
        return isElsewhere(url) ? nil : authentication.userVersion
    }

    /// The cookies to add to a message; nil when there are none, or it has its own.
    func cookies(for options: RequestOptions, _ message: TransportRequest) -> String? {
        guard let jar = jar(options), message.headers["Cookie"] == nil else { return nil }
        return jar.cookieHeader(for: message.url, at: settings.clock.date)
    }

    /// The cookies of a request; nil for one without.
    func jar(_ options: RequestOptions) -> CookieJar? {
        options.usesCookies && options.customURLRequest == nil ? options.cookies ?? settings.cookies : nil
    }

    /// The circuit to the server of this address.
    func circuit(to url: URL) -> Circuit {
        let origin = url.origin ?? ""
        // Code of the user's, and so not asked under the lock.
        let now = settings.clock.now
        return circuits.withLock { circuits in
            if let circuit = circuits[origin] { return circuit }
            // A program that visits very many servers.
            if circuits.count >= 1_000 { circuits = circuits.filter { !$0.value.isForgettable(at: now) } }
            let circuit = Circuit(host: url.hostAndPort ?? origin, clock: settings.clock)
            circuits[origin] = circuit
            return circuit
        }
    }

    /// Whether nothing was told about the headers of this type of request; true once.
    func isFirstTold(of request: any BaseAPIRequest) -> Bool {
        let name = String(reflecting: type(of: request))
        return toldTypes.withLock { $0.insert(name).inserted }
    }

    /// Adds a request's part of a retry to the budget.
    func payForRetries() {
        let maximum = max(100, settings.retryBudget)
        retryBudget.withLock { $0 = min($0 + 0.2, maximum) }
    }

    /// Takes a retry out of the budget.
    ///
    /// - Parameter hasProgressed: whether the last attempt gained bytes; its retry costs a tenth.
    /// - Returns: whether the host may get one more message than was asked for.
    func takeRetry(afterProgress hasProgressed: Bool) -> Bool {
        let cost = hasProgressed ? 0.1 : 1
        return retryBudget.withLock { balance in
            guard balance >= cost else { return false }
            balance -= cost
            return true
        }
    }
}
