import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A request that is another one but for what it says itself: header fields more, another body. Filters and interceptors
/// are shown the other one.
///
/// ```swift
/// struct Ranged: RequestWrapper {
///     let wrapped: any BaseAPIRequest
///     var headers: [String: String]? { (wrapped.headers ?? [:]).merging(["Range": "bytes=0-99"]) { $1 } }
/// }
/// ```
public protocol RequestWrapper: BaseAPIRequest {
    /// The other request.
    var wrapped: any BaseAPIRequest { get }
}

// Each property of BaseAPIRequest: for one that is missing here its default would count, whatever the request says.
extension RequestWrapper {
    public var api: String { wrapped.api }
    public var method: NetworkService.Method { wrapped.method }
    public var query: NetworkService.QueryType { wrapped.query }
    public var params: [String: Any]? { wrapped.params }
    public var encodableParams: (any Encodable & Sendable)? { wrapped.encodableParams }
    public var queryEncoder: QueryEncoder { wrapped.queryEncoder }
    public var headers: [String: String]? { wrapped.headers }
    public var credential: HTTPCredential? { wrapped.credential }
    public var isAuthenticated: Bool { wrapped.isAuthenticated }
    public var body: RequestBody? { wrapped.body }
    public var timeout: TimeInterval? { wrapped.timeout }
    public var overallTimeout: TimeInterval? { wrapped.overallTimeout }
    public var retry: RetryPolicy? { wrapped.retry }
    public var idempotencyKey: String? { wrapped.idempotencyKey }
    public var redirects: RedirectPolicy? { wrapped.redirects }
    public var cache: CachePolicy? { wrapped.cache }
    public var interceptors: [any RequestInterceptor] { wrapped.interceptors }
    public func validateParameters() throws { try wrapped.validateParameters() }
    public var customURLRequest: URLRequest? { wrapped.customURLRequest }
    public var allowsCellularAccess: Bool { wrapped.allowsCellularAccess }
    public var networkServiceType: NetworkServiceType { wrapped.networkServiceType }
    public var priority: Operation.QueuePriority { wrapped.priority }
    public var baseURL: URL? { wrapped.baseURL }
    public var useCDN: Bool { wrapped.useCDN }
    public var validation: ResponseValidation? { wrapped.validation }
    public var repeatPolicy: RepeatPolicy { wrapped.repeatPolicy }
    public var repeatKey: String? { wrapped.repeatKey }
}

extension BaseAPIRequest {
    /// The request as its user made it: filters, interceptors and notifications may look for its type.
    var asMade: any BaseAPIRequest {
        (self as? any RequestWrapper)?.wrapped.asMade ?? self
    }
}
