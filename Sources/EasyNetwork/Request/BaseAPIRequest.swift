import Foundation

/// A value that describes one request. Every property except ``api`` has a default.
///
/// ```swift
/// struct Search: BaseAPIRequest {
///     let text: String
///     var api: String { "search" }
///     var params: [String: Any]? { ["q": text, "limit": 20] }
///     var options: RequestOptions { RequestOptions(timeout: 5) }
/// }
/// ```
///
/// You can declare ``params``, ``headers`` and ``body`` with any of the types that they list; with another type, the
/// request fails. The other properties must have exactly the types that they have here: to Swift, the String in
/// `let method = "POST"` is an unrelated property, and the default applies. Swift warns about that if the extension
/// that declares the conformance also computes the property. A property with the name of an option, such as
/// `let timeout = 5`, is unrelated, too: options are set only in ``options``.
///
/// Each property is read once for a call, including its retries. ``options`` is read when the operation is created or
/// the method of the service is called; so is ``api``, for the limits of the host. The other properties are read on a
/// background thread when the call begins. With a ``RepeatPolicy`` other than ``RepeatPolicy/allow``, they are read on
/// the thread that adds the operation to a queue, because the queue compares requests. The values that are read then
/// are sent.
public protocol BaseAPIRequest: Sendable {
    /// The type of ``params``, as they are declared.
    associatedtype Params = [String: Any]?
    /// The type of ``headers``, as they are declared.
    associatedtype Headers = [String: String]?
    /// The type of ``body``, as it is declared.
    associatedtype DeclaredBody = RequestBody?

    /// The path below the host's base URL, or an absolute http or https URL.
    ///
    /// The path can have a query, which is kept, and a fragment, which stays last. Escaped bytes are not changed.
    /// Characters that are invalid in a URL (spaces, Unicode, control characters) are percent-encoded. A `..` leads to
    /// the parent folder, as in any URL: percent-encode strings from other sources before you insert them.
    var api: String { get }

    /// The HTTP method. Defaults to ``NetworkService/Method/get``.
    var method: NetworkService.Method { get }

    /// The place of the parameters. Defaults to ``NetworkService/QueryType/automatic``, which depends on the method and
    /// the host.
    var query: NetworkService.QueryType { get }

    /// The parameters: a dictionary with String keys, an `Encodable` value, or an optional of one. Defaults to `nil`.
    ///
    /// A value in a dictionary can be a Bool, a number, a String, a Date (by default sent as ISO 8601 in UTC), a Data
    /// (as Base64), a URL, a UUID, an enum with such a raw value, nil or `NSNull`, an array, or a dictionary with
    /// String keys. Anything else fails with ``NetworkError/Code/invalidRequest`` and a message that names the place.
    ///
    /// An `Encodable` value follows the same rules. A property that is nil is omitted, unless its type encodes it. The
    /// elements of a Set are sent in any order.
    ///
    /// ```swift
    /// var params: [String: String] { filter }
    /// ```
    var params: Params { get }

    /// The header fields, which replace the host's: a dictionary of Strings, ``HTTPHeaders``, or an optional of one.
    /// Names are case-insensitive. Defaults to `nil`.
    var headers: Headers { get }

    /// The body, if it does not come from ``params``: a ``RequestBody``, or an optional of one. Defaults to `nil`.
    ///
    /// ```swift
    /// var body: RequestBody { .json(filter) }
    /// ```
    ///
    /// If a request has a String value named `body`, declare `typealias DeclaredBody = RequestBody?`; the String is
    /// then an unrelated property. For a request of unknown type, the body is `request.body as? RequestBody`.
    var body: DeclaredBody { get }

    /// Validates the parameters before anything is sent. The call happens when the request is built. By default, all
    /// parameters are valid.
    ///
    /// - Throws: any error. Errors other than ``NetworkError`` become ``NetworkError/Code/invalidRequest``.
    func validateParameters() throws

    /// All other settings. Defaults to the host's.
    var options: RequestOptions { get }
}

extension BaseAPIRequest {
    public var method: NetworkService.Method { .get }
    public var query: NetworkService.QueryType { .automatic }
    public var options: RequestOptions { .standard }
    public func validateParameters() throws {}

    /// Returns the header fields of a request that sends JSON and accepts JSON.
    public func defaultJsonHeader() -> [String: String] {
        ["Content-Type": "application/json", "Accept": "application/json"]
    }
}

// These defaults are not for all requests: for a request of unknown type, Swift would take them for the request's own
// properties.
extension BaseAPIRequest where Params == [String: Any]? {
    /// No parameters.
    public var params: [String: Any]? { nil }
}

extension BaseAPIRequest where Headers == [String: String]? {
    /// No header fields.
    public var headers: [String: String]? { nil }
}

extension BaseAPIRequest where DeclaredBody == RequestBody? {
    /// No body.
    public var body: RequestBody? { nil }
}

extension NetworkService {
    /// The place of a request's parameters.
    ///
    /// ```swift
    /// var query: NetworkService.QueryType { .json }
    /// ```
    public enum QueryType: Hashable, Sendable {
        /// ``HostSettings/query``, by default ``form``, for POST, PUT and PATCH, because their parameters can be
        /// secrets that do not belong in a URL. ``path`` for other methods, and for a request with a
        /// ``BaseAPIRequest/body``.
        case automatic
        /// The query of the URL: `?page=2&tags%5B%5D=new`. Do not use it for secrets: servers and proxies write URLs
        /// into their logs.
        case path
        /// The body, as JSON with sorted keys; `Content-Type: application/json`.
        case json
        /// The body, as a form like a browser's; `Content-Type: application/x-www-form-urlencoded`.
        case form
    }
}
