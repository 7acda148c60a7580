#if DEBUG
import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Finds properties that were meant as those of ``BaseAPIRequest`` and are not: `let timeout = 0.2` is a `Double`, and the
/// protocol wants a `TimeInterval?`, so that Swift takes the default without a word.
///
/// In debug builds only: it looks through the request each time.
enum MisplacedProperty {
    /// - Throws: ``NetworkError/Code/invalidRequest`` that names the property and the type to write.
    static func check(_ request: some BaseAPIRequest) throws(NetworkError) {
        if let wrapper = request as? any RequestWrapper { return try check(wrapper.wrapped) }
        for case (let name?, let value) in Mirror(reflecting: request).children {
            guard let type = wanted(name, value, request) else { continue }
            throw NetworkError(
                code: .invalidRequest,
                message:
                    "\"\(name)\" is a \(Swift.type(of: value)), which is not the request's own: write \"\(name): \(type)?\", or "
                    + "give it another name"
            )
        }
    }

    /// - Returns: the type that the property should be an optional of; nil when it is no such property, or has effect.
    private static func wanted(_ name: String, _ value: Any, _ request: some BaseAPIRequest) -> String? {
        switch (name, value) {
        case ("timeout", is TimeInterval) where request.timeout == nil: "TimeInterval"
        case ("overallTimeout", is TimeInterval) where request.overallTimeout == nil: "TimeInterval"
        case ("body", is RequestBody) where request.body == nil: "RequestBody"
        case ("headers", is [String: String]) where request.headers == nil: "[String: String]"
        case ("params", is [String: Any]) where request.params == nil: "[String: Any]"
        case ("validation", is ResponseValidation) where request.validation == nil: "ResponseValidation"
        case ("retry", is RetryPolicy) where request.retry == nil: "RetryPolicy"
        case ("redirects", is RedirectPolicy) where request.redirects == nil: "RedirectPolicy"
        case ("cache", is CachePolicy) where request.cache == nil: "CachePolicy"
        case ("credential", is HTTPCredential) where request.credential == nil: "HTTPCredential"
        case ("baseURL", is URL) where request.baseURL == nil: "URL"
        case ("idempotencyKey", is String) where request.idempotencyKey == nil: "String"
        case ("repeatKey", is String) where request.repeatKey == nil: "String"
        case ("customURLRequest", is URLRequest) where request.customURLRequest == nil: "URLRequest"
        default: nil
        }
    }
}
#endif
