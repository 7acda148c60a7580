import Dispatch
import Foundation

/// All that a ``HostConfiguration`` is made of. Every property has a default.
public struct HostSettings: Sendable {
    /// What the paths of requests are joined to. Its own path and query are kept. Default nil: requests need an absolute
    /// URL.
    public var baseURL: URL?

    /// What they are joined to when ``BaseAPIRequest/useCDN`` says so. Default nil: ``baseURL``.
    public var cdnURL: URL?

    /// Base URLs by name, for ``HostConfiguration/switched(to:change:)``. Default none.
    public var environments: [NetworkEnvironment: URL]

    /// How parameters are written into queries and forms, unless a request says otherwise
    /// (``BaseAPIRequest/queryEncoder``). Default: arrays as `a[]=1`, Bools as `true` and `false`, see ``QueryEncoder``.
    public var queryEncoder: QueryEncoder

    /// Sent with every request unless ``headers`` or the request has a field of that name. Default
    /// ``HTTPHeaders/standard``.
    public var standardHeaders: HTTPHeaders

    /// Sent with every request; a request's own header of the same name wins. Default none.
    public var headers: HTTPHeaders

    /// Applied to every request, in order. Default none.
    public var filters: [any RequestFilter]

    /// See and alter every message and answer, in order, before those of the request. Default none.
    public var interceptors: [any RequestInterceptor]

    /// How long an attempt may take, unless the request says otherwise. Default: 60 seconds of silence, no total.
    public var deadlines: TransportDeadlines

    /// Which answers count as success. Default: status 200 to 299.
    public var validation: ResponseValidation

    /// What ``NetworkResponse/decode(_:)``, and so a `Decodable` item, is read with. Default nil: JSON with a plain
    /// `JSONDecoder`.
    public var decoder: (any ResponseDecoder)?

    /// When a failed request is sent again, unless the request says otherwise. Default a plain ``RetryPolicy``: two
    /// retries of what can be repeated without harm.
    public var retry: RetryPolicy

    /// How many retries all requests together may be given. Default: 10, and one more for each five requests.
    public var retryBudget: RetryBudget

    /// Which redirects are followed, unless the request says otherwise. Default: up to 20, never from https to http.
    public var redirects: RedirectPolicy

    /// Puts a credential into requests to the origin of ``baseURL``, and gets another one when it is refused: an
    /// ``AuthenticationSession`` or a ``PasswordAuthentication``. A request with an `Authorization` of its own goes out
    /// with that. Default nil.
    public var authentication: RequestAuthentication?

    /// Keeps what servers set, and gives it back. A request with a `Cookie` of its own goes out with that. Default nil:
    /// no cookies.
    public var cookies: CookieJar?

    /// How GET and HEAD requests use the cache, unless they say otherwise. Default ``CachePolicy/never``.
    public var cachePolicy: CachePolicy

    /// Where answers are kept. Default ``NetworkCache/shared``.
    public var cache: NetworkCache

    /// Added to what every answer is found by: the user who is signed in, so that none ever sees what another one was
    /// answered. Default nil.
    public var cachePartition: String?

    /// Where callbacks go when neither operation nor queue names a queue; nil, the default, means a concurrent
    /// background queue of the package.
    public var callbackQueue: DispatchQueue?

    /// Whether the closures and delegates of cancelled ``ServiceOperation``s are not called. Default false: they are told
    /// of ``NetworkError/Code/cancelled``.
    public var silencesCancellation: Bool

    /// Whether `NotificationCenter.default` is told of the start and the end of each request, see ``NetworkNotification``.
    /// Default false: nobody hears of most requests, and telling nobody costs nearly a tenth of a small one.
    /// ``DidPerformUnauthorizedOperation`` is posted in any case.
    public var postsNotifications: Bool

    /// What carries the messages. Default: one ``DefaultTransport`` that all hosts share.
    public var transport: any NetworkTransport

    /// What retries and deadlines of whole requests go by. Default ``SystemClock``. The deadlines of an exchange go by
    /// the clock of its transport.
    public var clock: any NetworkClock

    /// From 0 to 1, for the delays of retries.
    package var random: @Sendable () -> Double

    public init(baseURL: URL? = nil) {
        self.baseURL = baseURL
        environments = [:]
        queryEncoder = QueryEncoder()
        standardHeaders = .standard
        headers = HTTPHeaders()
        filters = []
        interceptors = []
        deadlines = TransportDeadlines()
        validation = ResponseValidation()
        retry = RetryPolicy()
        retryBudget = RetryBudget()
        redirects = RedirectPolicy()
        cachePolicy = .never
        cache = .shared
        silencesCancellation = false
        postsNotifications = false
        transport = DefaultTransport.shared
        clock = SystemClock()
        random = { Double.random(in: 0...1) }
    }
}

extension HostSettings {
    /// What holds for a request that says nothing of the cache. An answer to another method is not for the next one.
    func cachePolicy(for method: NetworkService.Method) -> CachePolicy {
        method == .get || method == .head ? cachePolicy : .never
    }
}

extension HostSettings: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The base URL, without user, password, query and fragment: they may hold secrets.
    public var description: String {
        "HostSettings \(baseURL?.withoutSecrets ?? "without base URL")"
    }

    /// Addresses and headers on several lines, without secrets: those that ``Redaction`` knows by name.
    public var debugDescription: String {
        let redaction = Redaction.standard
        var text = DebugText(title: description)
        text.add("CDN", cdnURL.map(redaction.redacted))
        for (name, url) in environments.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
            text.add(name.rawValue, redaction.redacted(url))
        }
        text.add("Headers", redaction.redacted(standardHeaders.merging(headers)))
        return text.lines.joined(separator: "\n")
    }

    /// Without children, so that a dump has no secret either.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// The name of a set of servers, see ``HostSettings/environments``. A program may have its own beside these.
public struct NetworkEnvironment: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    public let rawValue: String

    public init(rawValue: String) {
        self.rawValue = rawValue
    }

    public var description: String { rawValue }

    public static let develop = NetworkEnvironment(rawValue: "develop")
    public static let releaseCandidate = NetworkEnvironment(rawValue: "release candidate")
    public static let release = NetworkEnvironment(rawValue: "release")
}
