import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The key by which a queue recognizes repeats of a request.
enum RepeatKey: Hashable, Sendable {
    /// The key that the user gave.
    case named(String)
    /// The message, and the identity of the host's configuration, which the owner of the key keeps alive.
    case message(host: ObjectIdentifier, Additions, NetworkService.Method, URL, HTTPHeaders, TransportBody)

    static func message(
        _ message: TransportRequest,
        of request: some BaseAPIRequest,
        _ host: HostConfiguration
    ) -> RepeatKey {
        let (host, additions) = (ObjectIdentifier(host), Additions(request))
        return .message(host: host, additions, message.method, message.url, message.headers, message.body)
    }

    /// Whether the host adds its credential and cookies to the message when it is sent.
    struct Additions: Hashable, Sendable {
        private let isAuthenticated: Bool
        private let isCustom: Bool

        init(_ request: some BaseAPIRequest) {
            isAuthenticated = request.isAuthenticated
            isCustom = request.customURLRequest != nil
        }
    }
}

/// The key by which requests share one message and its answer. It is narrower than ``RepeatKey``: the answer is
/// delivered to all as the sender received it, so everything that influences how it is received belongs to the key.
struct SharingKey: Hashable, Sendable {
    private let key: RepeatKey
    private let host: ObjectIdentifier
    /// Requests that differ in one of these fields never share, whatever their keys.
    private let credentials: HTTPHeaders
    private let additions: RepeatKey.Additions
    private let allowsCellularAccess: Bool
    private let networkServiceType: URLRequest.NetworkServiceType
    private let deadlines: TransportDeadlines
    private let validation: ResponseValidation
    private let retry: RetryPolicy
    private let overallTimeout: TimeInterval?
    private let cache: [String?]
    /// See ``RequestOperation/ignoresCache``.
    let ignoresCache: Bool
    /// The categories that the message excludes while it is sent. A request that is part of a group, which holds the
    /// category already, does not wait for one that waits for the group.
    let categories: Set<String>
    /// The type of the item, or of the request if that has interceptors or redirect rules; nil when the key is the
    /// message, which gives the same answer for every type.
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
