import Dispatch
import Foundation

/// The settings of a ``HostConfiguration``. Every property has a default.
///
/// ```swift
/// var settings = HostSettings(baseURL: url)
/// settings.headers = ["X-App": "shop"]
/// settings.deadlines.idle = 20
/// HostConfiguration.shared = HostConfiguration(settings)
/// ```
public struct HostSettings: Sendable {
    /// The URL to which the paths of requests are joined. Its own path and query are kept; a user and a password
    /// are refused. Defaults to `nil`: requests need an absolute URL.
    public var baseURL: URL?

    /// The base URL of requests with ``RequestOptions/useCDN``. Default nil: ``baseURL``.
    ///
    /// When it has another origin than ``baseURL``, its requests get no credential of the host: neither that of
    /// ``authentication`` nor those among ``headers``.
    public var cdnURL: URL?

    /// Base URLs by the name of the environment, `develop` for instance, for
    /// ``HostConfiguration/switched(to:change:)``. Default none.
    public var environments: [String: URL] = [:]

    /// The place of the parameters of POST, PUT and PATCH requests that neither name one (``BaseAPIRequest/query``) nor
    /// have a ``BaseAPIRequest/body``. Default ``NetworkService/QueryType/form``, and
    /// ``NetworkService/QueryType/automatic`` is that too. The parameters of other methods go into the query of the
    /// URL.
    ///
    /// ```swift
    /// host.query = .json
    /// ```
    public var query = NetworkService.QueryType.form

    /// How parameters are written into queries and forms, unless a request says otherwise
    /// (``RequestOptions/queryEncoder``). Default: arrays as `a[]=1`, Bools as `true` and `false`, see
    /// ``QueryEncoder``.
    public var queryEncoder = QueryEncoder()

    /// Sent with every request unless ``headers`` or the request has a field of that name. Default
    /// ``HTTPHeaders/standard``.
    public var standardHeaders = HTTPHeaders.standard

    /// Sent with every request; a request's own header of the same name wins. Default none.
    public var headers = HTTPHeaders()

    /// Names of secrets of this host's API, besides those that ``Redaction`` knows: header fields, parameters, keys of
    /// JSON, compared by their letters and digits without case. Default none.
    ///
    /// ```swift
    /// host.secretNames = ["X-Customer", "card_number"]
    /// ```
    ///
    /// Their values are hidden wherever the package prints them from the moment that the ``HostConfiguration`` is made
    /// until the end of the program, also for other hosts: in errors, logs, recordings, timelines and graphs. A field
    /// with such a name counts as a credential: it is not sent to another origin than that of ``baseURL``, and answers
    /// are kept apart by it.
    public var secretNames: Set<String> = []

    /// Change every request before it is encoded, in order, for example by a common parameter, a version in the path,
    /// or a header. Default none.
    ///
    /// ```swift
    /// host.filters = [{ draft in draft.parameters["lang"] = "de" }]
    /// ```
    ///
    /// They apply to every request, also to one with an absolute URL, but not to a ``RequestOptions/customURLRequest``.
    /// They are called once for each call, where the request is read, see ``BaseAPIRequest``: what must be new for each
    /// message, such as a signature with the time, belongs in an interceptor. An error ends the request before it is
    /// sent; all but a ``NetworkError`` become ``NetworkError/Code/invalidRequest``.
    public var filters: [@Sendable (inout RequestDraft) throws -> Void] = []

    /// See and change every message and answer, in order, before those of the request. Default none.
    public var interceptors: [any RequestInterceptor] = []

    /// How long an attempt may take, unless the request says otherwise. Default: 60 seconds of silence, no total: an
    /// answer that comes byte by byte never ends. Set ``TransportDeadlines/total`` or ``RequestOptions/timeout``.
    public var deadlines = TransportDeadlines()

    /// The answers that count as success. Default: status 200 to 299.
    public var validation = ResponseValidation()

    /// The decoder of ``NetworkResponse/decode(_:with:)``, and so of a `Decodable` item. Default nil:
    /// ``ResponseDecoder/json``, which reads dates as text of RFC 3339 or as seconds since 2001.
    public var decoder: ResponseDecoder?

    /// When a failed request is sent again, unless the request says otherwise. Default a plain ``RetryPolicy``: two
    /// retries of requests that can be repeated safely.
    public var retry = RetryPolicy()

    /// The number of retries that all requests together may have beyond one for each five requests, which limits the
    /// load on a server that is down. Default 10; `.infinity` means that only each request's policy limits its retries.
    ///
    /// Every request that is sent adds a fifth of a retry, up to 100 in all, and every retry takes one. The retry of a
    /// download that gained bytes with its last attempt takes a tenth.
    public var retryBudget: Double = 10

    /// When the calls to a server that fails are held back, unless the request says otherwise. Default nil: never.
    ///
    /// ```swift
    /// host.circuitBreaker = CircuitBreaker(opensAfter: .failuresInRow(5))
    /// ```
    public var circuitBreaker: CircuitBreaker?

    /// The redirects that are followed, unless the request says otherwise. Default: up to 20, never from https to http.
    public var redirects = RedirectPolicy()

    /// Adds a credential to requests to the origin of ``baseURL``, and gets another one when it is refused: an
    /// ``AuthenticationSession`` or a ``RequestAuthentication/password(user:password:allowsBasicWithoutTLS:)``. A
    /// request with its own `Authorization` keeps it. Default nil.
    public var authentication: RequestAuthentication?

    /// Stores the cookies of servers, and sends them back. A request with its own `Cookie` keeps it. A
    /// ``RequestOptions/customURLRequest`` has nothing to do with it. Default nil: no cookies.
    public var cookies: CookieJar?

    /// How GET and HEAD requests use the cache, unless they say otherwise. Default ``CachePolicy/never``.
    public var cachePolicy = CachePolicy.never

    /// The cache for answers. Default ``NetworkCache/shared``.
    public var cache = NetworkCache.shared

    /// A part of every cache key, such as the signed-in user, so that no user gets another one's answers. Default nil.
    public var cachePartition: String?

    /// The queue of callbacks when neither the operation nor its queue names one; nil, the default, means a concurrent
    /// background queue of the package.
    public var callbackQueue: DispatchQueue?

    /// Whether the closures and delegates of cancelled ``ServiceOperation``s are not called. Default false: they get
    /// ``NetworkError/Code/cancelled``.
    public var silencesCancellation = false

    /// Whether the start and the end of requests are posted to `NotificationCenter.default`, as
    /// ``EasyNetworkService/requestDidStartNotification`` and ``EasyNetworkService/requestDidFinishNotification``. A
    /// request that joins another one's answer posts none, and neither does a revalidation in the background.
    /// Default false: posting costs nearly a tenth of a small request. ``DidPerformUnauthorizedOperation`` is posted in
    /// any case.
    public var postsNotifications = false

    /// Whether messages carry the trace that they belong to, in `traceparent` and `tracestate`
    /// ([W3C Trace Context](https://www.w3.org/TR/trace-context/)). Only messages to the origin of ``baseURL`` carry it:
    /// neither a redirect to another origin nor a request with an absolute URL there does, unless
    /// ``RedirectPolicy/crossOriginHeaders`` names the two fields. Without a base URL each request sends it to the origin
    /// of its own address. Default false.
    ///
    /// ```swift
    /// host.sendsTraceContext = true
    /// ```
    ///
    /// The jobs of one graph are in one trace, or in that of ``TraceContext/current``. Each message has a span id of
    /// its own. A `traceparent` that a request, the host's ``headers`` or an interceptor sets stays as it is, without a
    /// `tracestate` of the package.
    public var sendsTraceContext = false

    /// The source of the network's status. While there is no network, no message to this host begins; an unknown status
    /// counts as reachable. Default nil: messages are sent, and fail.
    ///
    /// ```swift
    /// host.reachability = NetworkReachability.system
    /// ```
    ///
    /// - Jobs in a ``NetworkQueue`` wait as with ``NetworkQueue/reachability``, which applies besides: a job that has a
    ///   ``NetworkOperation/host`` and whose turn has come waits, without a slot and without failing. It has not asked
    ///   the cache yet.
    /// - Calls of an ``EasyNetworkService`` without a queue, and calls of jobs that have been started, wait before each
    ///   of their messages, retries included, after the cache has been asked. The job has no slot in that time, and
    ///   ``RequestOptions/overallTimeout`` goes on.
    ///
    /// A request to a host on this machine does not wait for ``NetworkReachability/system``.
    ///
    /// The waits have no other end. For an error in place of one, add ``OperationCondition/reachable(_:waits:)`` to a
    /// job.
    public var reachability: NetworkReachability?

    /// The transport of the messages. Default ``TransportConfiguration/sharedTransport``.
    public var transport: any NetworkTransport = TransportConfiguration.sharedTransport

    /// The clock for retries and the deadlines of whole requests. Default ``SystemClock``. The deadlines of an exchange
    /// use the clock of its transport.
    public var clock: any NetworkClock = SystemClock()

    /// Random numbers from 0 to 1, for the delays of retries.
    package var random: @Sendable () -> Double = { Double.random(in: 0...1) }

    /// Creates settings with their defaults.
    public init(baseURL: URL? = nil) {
        self.baseURL = baseURL
    }
}

extension HostSettings {
    /// The cache policy of a request without its own. The answer to a method other than GET and HEAD must not serve a
    /// later request.
    package func cachePolicy(for method: NetworkService.Method) -> CachePolicy {
        method == .get || method == .head ? cachePolicy : .never
    }
}

extension HostSettings: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The base URL, without user, password, query and fragment, which may hold secrets.
    public var description: String {
        "HostSettings \(baseURL?.withoutSecrets ?? "without base URL")"
    }

    /// Addresses and headers on several lines, without the secrets whose names ``Redaction`` knows.
    public var debugDescription: String {
        let redaction = Redaction.standard
        var text = DebugText(title: description)
        text.add("CDN", cdnURL.map(redaction.redacted))
        for (name, url) in environments.sorted(by: { $0.key < $1.key }) {
            text.add(name, redaction.redacted(url))
        }
        text.add("Headers", redaction.redacted(standardHeaders.merging(headers)))
        return text.lines.joined(separator: "\n")
    }

    /// Without children, so that a dump has no secret either.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
