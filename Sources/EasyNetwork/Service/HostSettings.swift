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
    /// The URL to which the paths of requests are joined. Its own path and query are kept. It must not contain a user
    /// or a password. Defaults to `nil`: requests need an absolute URL.
    public var baseURL: URL?

    /// The base URL of requests with ``RequestOptions/useCDN``. Defaults to `nil`: ``baseURL``.
    ///
    /// If it has another origin than ``baseURL``, its requests get no credential of the host, neither from
    /// ``authentication`` nor from ``headers``.
    public var cdnURL: URL?

    /// The base URLs by the name of the environment, such as `develop`, for ``HostConfiguration/switched(to:change:)``.
    /// Empty by default.
    public var environments: [String: URL] = [:]

    /// The place of the parameters of POST, PUT and PATCH requests that neither set ``BaseAPIRequest/query`` nor have a
    /// ``BaseAPIRequest/body``. Defaults to ``NetworkService/QueryType/form``, and
    /// ``NetworkService/QueryType/automatic`` means the same. The parameters of other methods are sent in the URL's
    /// query.
    ///
    /// ```swift
    /// host.query = .json
    /// ```
    public var query = NetworkService.QueryType.form

    /// The encoder of parameters in queries and forms, unless a request sets ``RequestOptions/queryEncoder``. By
    /// default, arrays are encoded as `a[]=1`, and Bools as `true` and `false`: see ``QueryEncoder``.
    public var queryEncoder = QueryEncoder()

    /// The header fields that are sent with every request, unless ``headers`` or the request has a field of that name.
    /// Defaults to ``HTTPHeaders/standard``.
    public var standardHeaders = HTTPHeaders.standard

    /// The header fields that are sent with every request. A request's own field of the same name takes precedence.
    /// Empty by default.
    public var headers = HTTPHeaders()

    /// The names of secrets of this host's API, in addition to the names that ``Redaction`` knows: header fields,
    /// parameters, JSON keys. They are compared by their letters and digits, ignoring case. Empty by default.
    ///
    /// ```swift
    /// host.secretNames = ["X-Customer", "card_number"]
    /// ```
    ///
    /// Once the ``HostConfiguration`` is created, and until the program ends, the package hides their values wherever
    /// it prints them, even for other hosts: in errors, logs, recordings, timelines and graphs. A header field with
    /// such a name counts as a credential: it is not sent to another origin than the origin of ``baseURL``, and the
    /// cache keeps responses with different values apart.
    public var secretNames: Set<String> = []

    /// The closures that change every request before it is encoded, in order. For example, they add a common parameter,
    /// a version in the path, or a header. Empty by default.
    ///
    /// ```swift
    /// host.filters = [{ draft in draft.parameters["lang"] = "de" }]
    /// ```
    ///
    /// Filters apply to every request, including requests with an absolute URL, but not to a
    /// ``RequestOptions/customURLRequest``. They are called once for each call, when the request is read: see
    /// ``BaseAPIRequest``. A value that must be new for each message, such as a signature with the time, belongs in an
    /// interceptor. An error ends the request before it is sent. An error other than a ``NetworkError`` becomes
    /// ``NetworkError/Code/invalidRequest``.
    public var filters: [@Sendable (inout RequestDraft) throws -> Void] = []

    /// The interceptors that see and change every message and response, in order, before the request's interceptors.
    /// Empty by default.
    public var interceptors: [any RequestInterceptor] = []

    /// The time limits of an attempt, unless the request sets its own. By default, an attempt fails after 60 seconds of
    /// silence and has no total limit, so a response that arrives byte by byte never ends. To limit it, set
    /// ``TransportDeadlines/total`` or ``RequestOptions/timeout``.
    public var deadlines = TransportDeadlines()

    /// The rules for responses that count as success. By default, the status must be 200 to 299.
    public var validation = ResponseValidation()

    /// The decoder of ``NetworkResponse/decode(_:with:)``, and therefore of a `Decodable` item. Defaults to `nil`:
    /// ``ResponseDecoder/json``, which reads dates as RFC 3339 strings or as seconds since 2001.
    public var decoder: ResponseDecoder?

    /// The rules for sending a failed request again, unless the request sets its own. Defaults to a plain
    /// ``RetryPolicy``: two retries of requests that can be repeated safely.
    public var retry = RetryPolicy()

    /// The number of retries that all requests together can have, in addition to one for every five requests. It limits
    /// the load on a server that is down. Defaults to 10. With `.infinity`, only each request's policy limits its
    /// retries.
    ///
    /// Every request that is sent adds a fifth of a retry, up to 100 in all, or up to this number if it is larger.
    /// Every retry takes one. The retry of a download whose last attempt received bytes takes a tenth.
    public var retryBudget: Double = 10

    /// The rules for holding back calls to a failing server, unless the request sets its own. Defaults to `nil`: calls
    /// are never held back.
    ///
    /// ```swift
    /// host.circuitBreaker = CircuitBreaker(opensAfter: .failuresInRow(5))
    /// ```
    public var circuitBreaker: CircuitBreaker?

    /// The redirects that are followed, unless the request sets its own policy. By default, up to 20 are followed, and
    /// never from https to http.
    public var redirects = RedirectPolicy()

    /// The authentication that adds a credential to requests to the origin of ``baseURL``, and gets another one when it
    /// is refused: an ``AuthenticationSession`` or a
    /// ``RequestAuthentication/password(user:password:allowsBasicWithoutTLS:)``. A request with its own `Authorization`
    /// keeps it. Defaults to `nil`.
    public var authentication: RequestAuthentication?

    /// The jar that stores the cookies of servers, and sends them back. A request with its own `Cookie` keeps it. A
    /// ``RequestOptions/customURLRequest`` does not use the jar. Defaults to `nil`: no cookies.
    public var cookies: CookieJar?

    /// The use of the cache by GET and HEAD requests that set no policy. Defaults to ``CachePolicy/never``.
    public var cachePolicy = CachePolicy.never

    /// The cache for responses. Defaults to ``NetworkCache/shared``.
    public var cache: NetworkCache {
        get { ownCache ?? .shared }
        set { ownCache = newValue }
    }
    // The shared cache is created when it is first used, because to find its directory takes most of a millisecond. A
    // request with an unsafe method uses it, too, since it invalidates stored responses.
    private var ownCache: NetworkCache?

    /// A part of every cache key, such as the signed-in user, so that no user gets another user's responses. Defaults
    /// to `nil`.
    public var cachePartition: String?

    /// The queue for callbacks if neither the operation nor its queue names one. Defaults to `nil`: a concurrent
    /// background queue of the package.
    public var callbackQueue: DispatchQueue?

    /// Whether the closures and delegates of cancelled ``ServiceOperation``s are not called. Defaults to `false`: they
    /// get ``NetworkError/Code/cancelled``.
    public var silencesCancellation = false

    /// Whether the start and the end of requests are posted to `NotificationCenter.default`, as
    /// ``EasyNetworkService/requestDidStartNotification`` and ``EasyNetworkService/requestDidFinishNotification``.
    /// Neither a request that shares another request's response nor a background revalidation posts them.
    /// ``DidPerformUnauthorizedOperation`` is always posted. Defaults to `false`: posting adds nearly a tenth to the
    /// cost of a small request.
    public var postsNotifications = false

    /// Whether messages carry their trace in `traceparent` and `tracestate`
    /// ([W3C Trace Context](https://www.w3.org/TR/trace-context/)). Only messages to the origin of ``baseURL`` carry
    /// it. A redirect to another origin and a request with an absolute URL of another origin do not, unless
    /// ``RedirectPolicy/crossOriginHeaders`` names the two fields. Without a base URL, each request sends its trace to
    /// the origin of its own URL. Defaults to `false`.
    ///
    /// ```swift
    /// host.sendsTraceContext = true
    /// ```
    ///
    /// The jobs of one graph share one trace, or join ``TraceContext/current``. Each message has its own span ID. A
    /// `traceparent` that a request, the host's ``headers`` or an interceptor sets is not changed, and the package adds
    /// no `tracestate` to it.
    public var sendsTraceContext = false

    /// The source of the network's status. While there is no network, no message to this host begins. An unknown status
    /// counts as reachable. Defaults to `nil`: messages are sent, and fail.
    ///
    /// ```swift
    /// host.reachability = NetworkReachability.system
    /// ```
    ///
    /// - Jobs in a ``NetworkQueue`` wait as with ``NetworkQueue/reachability``, which applies in addition. A job that
    ///   has a ``NetworkOperation/host`` waits when its turn comes, without a slot and without failing. It has not used
    ///   the cache yet.
    /// - Calls of an ``EasyNetworkService`` without a queue, and calls of running jobs, wait before each of their
    ///   messages, including retries, after the cache lookup. Meanwhile, the job has no slot, and
    ///   ``RequestOptions/overallTimeout`` continues.
    ///
    /// A request to a host on this machine does not wait for ``NetworkReachability/system``.
    ///
    /// These waits have no timeout of their own. To fail instead of waiting, add
    /// ``OperationCondition/reachable(_:waits:)`` to a job.
    public var reachability: NetworkReachability?

    /// The transport of the messages. Defaults to ``TransportConfiguration/sharedTransport``.
    public var transport: any NetworkTransport = TransportConfiguration.sharedTransport

    /// The clock for retries and the deadlines of whole requests. Defaults to ``SystemClock``. The deadlines of an
    /// exchange use the clock of its transport.
    public var clock: any NetworkClock = SystemClock()

    /// Returns random numbers from 0 to 1, for the delays of retries.
    package var random: @Sendable () -> Double = { Double.random(in: 0...1) }

    /// Creates settings with their defaults.
    public init(baseURL: URL? = nil) {
        self.baseURL = baseURL
    }
}

extension HostSettings {
    /// Returns the cache policy of a request without its own. The response to a method other than GET and HEAD must not
    /// be reused for a later request.
    package func cachePolicy(for method: NetworkService.Method) -> CachePolicy {
        method == .get || method == .head ? cachePolicy : .never
    }
}

extension HostSettings: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The base URL, without user, password, query and fragment, which can contain secrets.
    public var description: String {
        "HostSettings \(baseURL?.withoutSecrets ?? "without base URL")"
    }

    /// URLs and headers on several lines, without the secrets whose names ``Redaction`` knows.
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

    /// A mirror without children, so that a dump shows no secret.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
