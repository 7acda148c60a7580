import Foundation

/// What makes two requests alike for a queue.
enum RepeatKey: Hashable, Sendable {
    /// The key that the user gave.
    case named(String)
    /// The message, and the identity of the host's configuration, which whoever holds the key keeps alive.
    case message(host: ObjectIdentifier, Additions, NetworkService.Method, URL, HTTPHeaders, TransportBody)

    static func message(
        _ message: TransportRequest,
        of request: some BaseAPIRequest,
        _ host: HostConfiguration
    ) -> RepeatKey {
        let (host, additions) = (ObjectIdentifier(host), Additions(request))
        return .message(host: host, additions, message.method, message.url, message.headers, message.body)
    }

    /// Whether the host adds to the message when it is sent: its credential, its cookies.
    struct Additions: Hashable, Sendable {
        private let isAuthenticated: Bool
        private let isCustom: Bool

        init(_ request: some BaseAPIRequest) {
            isAuthenticated = request.isAuthenticated
            isCustom = request.customURLRequest != nil
        }
    }
}

/// What requests must have in common to share one message and its answer: more than to be alike.
///
/// The answer comes to all as it came to the one that sent, so all that decides how it comes belongs here.
struct SharingKey: Hashable, Sendable {
    private let key: RepeatKey
    private let host: ObjectIdentifier
    /// Requests that differ in one of these fields never share, whatever their keys.
    private let credentials: HTTPHeaders
    private let additions: RepeatKey.Additions
    private let allowsCellularAccess: Bool
    private let networkServiceType: NetworkServiceType
    private let deadlines: TransportDeadlines
    private let validation: ResponseValidation
    private let retry: RetryPolicy
    private let overallTimeout: TimeInterval?
    private let cache: [String?]
    private let ignoresCache: Bool
    /// What the message excludes while it is sent. One that has a category already, as a part of a group, does not wait
    /// for one that waits for that.
    let categories: Set<String>
    /// The type of the item, or of the request if that looks into its answers itself; nil when the key is the message,
    /// which gives the same answer whatever is made of it.
    private let type: ObjectIdentifier?

    init(
        name: String?,
        message: TransportRequest,
        request: some APIRequest,
        host: HostConfiguration,
        ignoresCache: Bool = false,
        categories: Set<String> = []
    ) {
        self.ignoresCache = ignoresCache
        self.categories = categories
        key = name.map(RepeatKey.named) ?? .message(message, of: request, host)
        self.host = ObjectIdentifier(host)
        credentials = message.headers.credentials
        additions = RepeatKey.Additions(request)
        allowsCellularAccess = message.allowsCellularAccess
        networkServiceType = message.networkServiceType
        deadlines = message.deadlines
        validation = request.validation ?? host.settings.validation
        retry = request.retry ?? host.settings.retry
        overallTimeout = request.overallTimeout
        cache = (request.cache ?? host.settings.cachePolicy(for: message.method)).identity
        if !request.interceptors.isEmpty || request.redirects != nil {
            type = ObjectIdentifier(Swift.type(of: request))
        } else {
            type = name.map { _ in ObjectIdentifier(Self.itemType(of: request)) }
        }
    }

    private static func itemType<Request: APIRequest>(of request: Request) -> Any.Type {
        Request.Item.self
    }
}
