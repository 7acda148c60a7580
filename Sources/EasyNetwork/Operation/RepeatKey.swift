import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The key by which a queue recognizes repeats of a request.
enum RepeatKey: Hashable, Sendable {
    /// The key that the user set.
    case named(String)
    /// The message, and the identity of the host's configuration, which the owner of the key keeps alive.
    case message(host: ObjectIdentifier, Additions, NetworkService.Method, URL, HTTPHeaders, TransportBody)

    init(_ snapshot: RequestSnapshot) {
        let (host, message) = (ObjectIdentifier(snapshot.host), snapshot.message)
        let additions = Additions(snapshot)
        self = .message(host: host, additions, message.method, message.url, message.headers, message.body)
    }

    /// The fields that the host adds to the message when it is sent.
    struct Additions: Hashable, Sendable {
        /// The user of the credential; `nil` without a credential.
        private let userVersion: Int?
        private let cookies: String?
        /// The jar that stores the cookies of the response.
        private let jar: ObjectIdentifier?
        private let isCustom: Bool

        init(_ snapshot: RequestSnapshot) {
            let (options, message, host) = (snapshot.options, snapshot.message, snapshot.host)
            let isExempt = host.credentialState(for: options, message)?.isExempt ?? true
            userVersion = isExempt ? nil : host.settings.authentication?.userVersion
            cookies = host.cookies(for: options, message)
            jar = host.jar(options).map { ObjectIdentifier($0) }
            isCustom = options.customURLRequest != nil
        }
    }
}

extension RequestOptions {
    /// Whether the request has code that can change its messages when they are sent. Only its key can then tell which
    /// requests are equal to it.
    var changesMessages: Bool { !interceptors.isEmpty || redirects?.decide != nil }
}

/// The key by which requests share one message and its response. It is narrower than ``RepeatKey``. All of them get the
/// response as the sender received it, so the key includes everything that affects how it is received.
struct SharingKey: Hashable, Sendable {
    private let key: RepeatKey
    private let host: ObjectIdentifier
    /// Requests that differ in one of these fields never share a message, whatever their keys are.
    private let credentials: HTTPHeaders
    private let additions: RepeatKey.Additions
    private let allowsCellularAccess: Bool
    private let networkServiceType: URLRequest.NetworkServiceType
    private let deadlines: TransportDeadlines
    private let validation: ResponseValidation
    private let retry: RetryPolicy
    private let overallTimeout: TimeInterval?
    private let redirects: [String]
    private let cache: [String?]
    /// See ``RequestOperation/ignoresCache``.
    let ignoresCache: Bool
    /// The categories that the message excludes while it is sent. A request in a group that already holds the category
    /// does not wait for a request that waits for the group.
    let categories: Set<String>
    /// The type of the item, or of the request if that changes its messages. `nil` if the key is the message, because
    /// the response is then the same for every type.
    private let type: ObjectIdentifier?

    /// - Parameter name: not `nil` for a request that changes its messages.
    init(
        name: String?,
        _ snapshot: RequestSnapshot,
        itemType: Any.Type,
        ignoresCache: Bool = false,
        categories: Set<String> = []
    ) {
        self.ignoresCache = ignoresCache
        self.categories = categories
        let (message, options) = (snapshot.message, snapshot.options)
        key = name.map(RepeatKey.named) ?? RepeatKey(snapshot)
        host = ObjectIdentifier(snapshot.host)
        credentials = message.headers.credentials
        additions = RepeatKey.Additions(snapshot)
        allowsCellularAccess = message.allowsCellularAccess
        networkServiceType = message.networkServiceType
        deadlines = message.deadlines
        validation = snapshot.validation
        retry = snapshot.retry
        overallTimeout = snapshot.overallTimeout
        cache = snapshot.cachePolicy.identity
        redirects = snapshot.redirects.identity
        let ownType = options.changesMessages ? ObjectIdentifier(Swift.type(of: snapshot.request)) : nil
        type = name.map { _ in ownType ?? ObjectIdentifier(itemType) }
    }
}
