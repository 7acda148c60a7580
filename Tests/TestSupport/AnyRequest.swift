import Foundation

@testable import EasyNetwork

/// A request with settable properties. `params` is computed, because `Any` is not Sendable.
struct AnyRequest: BaseAPIRequest {
    var api = "users"
    var method = NetworkService.Method.get
    var query = NetworkService.QueryType.path
    var makeParams: @Sendable () -> [String: Any]? = { nil }
    var encodableParams: (any Encodable & Sendable)?
    var queryEncoder: QueryEncoder?
    var headers: [String: String]?
    var body: RequestBody?
    var timeout: TimeInterval?
    var baseURL: URL?
    var options: RequestOptions { RequestOptions(timeout: timeout, baseURL: baseURL, queryEncoder: queryEncoder) }

    var params: Any? { encodableParams.map { $0 as Any } ?? makeParams() }
}
