import Dispatch
import Foundation

/// A server and its settings: base URL, headers, deadlines, retries, redirects, credentials, transport.
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
/// A configuration never changes. A new value of ``shared`` applies to operations and services that are created later.
/// You can use several hosts at once, each with its own ``EasyNetworkService``.
public final class HostConfiguration: Sendable {
    private static let sharedConfiguration = Locked(HostConfiguration(baseURL: nil))

    /// The host of requests that name no other.
    ///
    /// Until it is set, there is no base URL. Requests with an absolute URL work, and requests with a path fail with
    /// ``NetworkError/Code/invalidRequest``.
    public static var shared: HostConfiguration {
        get { sharedConfiguration.withLock { $0 } }
        set { sharedConfiguration.exchange(newValue) }
    }

    /// Makes a host with this base URL the ``shared`` one.
    ///
    /// - Parameter string: An absolute http or https URL, with or without a path. It must not contain a user or a
    ///   password: set them in ``RequestOptions/credential`` or ``HostSettings/authentication``.
    /// - Throws: ``NetworkError/Code/invalidRequest`` for any other string. ``shared`` does not change then.
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

    /// The components of ``HostSettings/baseURL``, or the reason why requests cannot be joined to it; nil if it is not
    /// set.
    let base: Result<URLParts, NetworkError>?

    /// The headers of every request, and the reason why they cannot be sent.
    private let headers: HTTPHeaders
    private let headerProblem: NetworkError?
    /// The reason why the deadlines of the host cannot be used.
    private let deadlineProblem: NetworkError?
    /// The headers of a request to another origin; nil if ``headers`` contains no credentials.
    private let headersElsewhere: HTTPHeaders?

    /// The number of retries that are left.
    private let retryBudget: Locked<Double>
    /// Whether nothing can be added to the budget, so that most requests do not take its lock.
    private let isRetryBudgetFull = Flag()

    /// The circuits to the servers that were called with a ``CircuitBreaker``, by origin.
    private let circuits = Locked<[String: Circuit]>([:])

    /// The types of requests for which ``NetworkEvent/Kind/contentTypeReplaced(_:by:)`` was posted.
    private let toldTypes = Locked<Set<String>>([])

    package let broadcast = EventBroadcast()

    /// Creates a host with settings.
    public init(_ settings: HostSettings) {
        // Add the names first, because they decide which headers are credentials.
        Redaction.addHostNames(settings.secretNames)
        if settings.sendsTraceContext { TraceContext.isUsed.isSet = true }
        self.settings = settings
        host = settings.baseURL?.hostAndPort
        base = settings.baseURL.map { url in
            Result { () throws(NetworkError) in try URLBuilder.parts(ofBase: url.absoluteString) }
        }
        let headers = settings.standardHeaders.merging(settings.headers)
        self.headers = headers
        headerProblem = Result { () throws(NetworkError) in try Self.checkFields(headers) }.failure
        deadlineProblem = Result { () throws(NetworkError) in try settings.deadlines.check(of: "host") }.failure
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
    ///   - baseURL: See ``HostSettings/baseURL``.
    ///   - headers: See ``HostSettings/headers``.
    ///   - deadlines: See ``HostSettings/deadlines``.
    ///   - transport: See ``HostSettings/transport``.
    ///   - change: Changes other settings. Called at once.
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

    /// The events of the calls to this host from now on, including the calls of jobs, for as long as you iterate the
    /// sequence. Any number of tasks can iterate. For the events of jobs, see ``NetworkQueue/events``.
    ///
    /// A slow listener loses the oldest events: the last 4,096 are kept. The sequence ends when the host is
    /// deallocated.
    public var events: AsyncStream<NetworkEvent> {
        broadcast.stream(keeping: 4_096, add: broadcast.add)
    }

    /// Adds a listener.
    ///
    /// - Parameters:
    ///   - bodyCount: The number of first bytes that the listener wants of bodies that are consumed as they arrive.
    ///     Defaults to 0.
    ///   - owner: The owner of the listener. Events that the owner receives from a queue are not received here again.
    ///     Defaults to `nil`.
    ///   - receive: Called on any thread, possibly the transport's, so it must not block.
    package func subscribe(
        bodyCount: Int = 0,
        owner: AnyObject? = nil,
        _ receive: @escaping @Sendable (NetworkEvent) -> Void
    ) -> EventSubscription {
        let owner = owner.map(ObjectIdentifier.init)
        let listener = EventBroadcast.Listener(receive: receive, bodyCount: bodyCount, owner: owner)
        return EventSubscription(broadcast, broadcast.add(listener))
    }

    /// Posts an event of a call, if there is a listener.
    ///
    /// - Parameter told: The owners that have received the event from a queue. Empty by default.
    func tell(
        _ kind: @autoclosure () -> NetworkEvent.Kind,
        of call: Call,
        except told: [ObjectIdentifier] = []
    ) {
        guard broadcast.hasListeners.isSet else { return }
        let job = call.job
        let number = job?.actions.number()
        let event = NetworkEvent(
            kind(),
            operation: number == nil ? nil : job?.operation,
            operationID: number,
            callNumber: call.number,
            host: host,
            jobBroadcast: job.flatMap { $0.operation.isFinished ? nil : $0.broadcast },
            trace: call.trace
        )
        broadcast.post(event, except: told)
    }

    /// The host's base URL.
    public var baseURL: URL? { settings.baseURL }

    /// Returns this host in another environment, with the base URL from ``HostSettings/environments``.
    ///
    /// ```swift
    /// HostConfiguration.shared = try HostConfiguration.shared.switched(to: "release candidate")
    /// ```
    ///
    /// - Parameters:
    ///   - environment: A name in ``HostSettings/environments``.
    ///   - change: Changes other settings. Credentials are not copied: ``HostSettings/authentication`` is nil, and
    ///     ``HostSettings/headers`` has no field with the name of a secret (`Authorization`, `X-Api-Key`), unless you
    ///     set them here.
    /// - Throws: ``NetworkError/Code/invalidRequest`` if the environment has no URL.
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

    /// The network that jobs for the host wait for. Optional chaining to a setting copies all settings.
    var reachability: NetworkReachability? { settings.reachability }

    /// Returns whether a URL has another origin than the base URL. Requests to it get neither credentials nor traces of
    /// the host.
    func isElsewhere(_ url: URL) -> Bool {
        url.isElsewhere(than: settings.baseURL)
    }

    /// Returns the host's headers for a request to this URL. Another server than the host's gets none of its
    /// credentials.
    func headers(for url: URL, _ options: RequestOptions) -> HTTPHeaders {
        var result = headers
        if let headersElsewhere, isElsewhere(url) { result = headersElsewhere }
        for name in options.values.omittedHeaders { result[name] = nil }
        return result
    }

    /// Returns the deadlines of a message.
    func deadlines(_ options: RequestOptions) throws(NetworkError) -> TransportDeadlines {
        guard let own = options.values.deadlines else {
            if let deadlineProblem { throw deadlineProblem }
            return settings.deadlines
        }
        try own.check(of: "request")
        return own
    }

    /// Checks the header fields of a message. The host's own fields were checked before.
    func check(_ headers: HTTPHeaders) throws(NetworkError) {
        guard headers.hasStorage(of: self.headers) else { return try Self.checkFields(headers) }
        if let headerProblem { throw headerProblem }
    }

    private static func checkFields(_ headers: HTTPHeaders) throws(NetworkError) {
        try headers.checkSyntax()
        try headers.checkFraming()
    }

    /// Returns the headers after the filters. If a filter changed the origin, the host's credentials are removed.
    func headers(of draft: RequestDraft, for url: URL) -> HTTPHeaders {
        guard headersElsewhere != nil, isElsewhere(url) else { return draft.headers }
        return draft.headers.withoutCredentials(of: headers)
    }

    /// Returns the first authentication state of a request; nil without authentication.
    func credentialState(for options: RequestOptions, _ message: TransportRequest) -> RequestAuthentication
        .CredentialState?
    {
        settings.authentication.map { authentication in
            var credentialState = authentication.begin(message.url, base: settings.baseURL)
            let isOwn = message.headers["Authorization"] != nil || options.values.customURLRequest != nil
            if isOwn || !options.isAuthenticated { credentialState.isExempt = true }
            return credentialState
        }
    }

    /// Returns the version of the user whose credential is added to requests to this URL; nil if none is added.
    package func userVersion(for url: URL) -> Int? {
        guard let authentication = settings.authentication else { return nil }
        return isElsewhere(url) ? nil : authentication.userVersion
    }

    /// Returns the cookies to add to a message; nil if there are no cookies, or if the message has its own.
    func cookies(for options: RequestOptions, _ message: TransportRequest) -> String? {
        guard let jar = jar(options), message.headers["Cookie"] == nil else { return nil }
        return jar.cookieHeader(for: message.url, at: settings.clock.date)
    }

    /// Returns the cookie jar of a request; nil if the request uses no cookies.
    func jar(_ options: RequestOptions) -> CookieJar? {
        guard let jar = options.values.cookies ?? settings.cookies, options.usesCookies,
            options.values.customURLRequest == nil
        else { return nil }
        return jar
    }

    /// Returns the circuit to the server of this URL.
    func circuit(to url: URL) -> Circuit {
        let origin = url.origin ?? ""
        // The clock can be user code, so it is not called under the lock.
        let now = settings.clock.now
        return circuits.withLock { circuits in
            if let circuit = circuits[origin] { return circuit }
            // A program can call very many servers, so remove circuits that are no longer needed.
            if circuits.count >= 1_000 { circuits = circuits.filter { !$0.value.isForgettable(at: now) } }
            let circuit = Circuit(host: url.hostAndPort ?? origin, clock: settings.clock)
            circuits[origin] = circuit
            return circuit
        }
    }

    /// Returns true for the first call with this type of request. Used to post an event about its headers once.
    func isFirstTold(of request: any BaseAPIRequest) -> Bool {
        let name = String(reflecting: type(of: request))
        return toldTypes.withLock { $0.insert(name).inserted }
    }

    /// Adds one request's share of a retry to the budget.
    func payForRetries() {
        guard !isRetryBudgetFull.isSet else { return }
        let maximum = max(100, settings.retryBudget)
        retryBudget.withLock { balance in
            balance = min(balance + 0.2, maximum)
            if balance == maximum { isRetryBudgetFull.isSet = true }
        }
    }

    /// Takes a retry from the budget.
    ///
    /// - Parameter hasProgressed: Whether the last attempt received bytes. A retry then costs a tenth.
    /// - Returns: Whether a retry can be sent to the host.
    func takeRetry(afterProgress hasProgressed: Bool) -> Bool {
        let cost = hasProgressed ? 0.1 : 1
        return retryBudget.withLock { balance in
            guard balance >= cost else { return false }
            balance -= cost
            isRetryBudgetFull.isSet = false
            return true
        }
    }
}
