import Foundation

/// A value that describes one request. Everything but ``api`` has a default.
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
/// ``params``, ``headers`` and ``body`` may be declared with any type that can be read as such; another type is an error
/// of the request. The other properties must have exactly the types that they have here: `let method = "POST"`, a text, is
/// another property to Swift, and the default applies. Swift warns of that if the extension that declares the
/// conformance also computes the property. A property with the name of an option, such as `let timeout = 5`, is one of
/// your own, too: options are set in ``options`` alone.
///
/// Each property is read once for a call, with all its retries. ``options`` are read when the operation is created or
/// the method of the service is called; ``api`` then, too, for the limits of the host. The others are read on a
/// background thread when the call begins; with a ``RepeatPolicy`` other than ``RepeatPolicy/allow`` on the thread that
/// adds the operation to a queue, which compares it with others, and what is read then is what is sent.
public protocol BaseAPIRequest: Sendable {
    /// The type of ``params``, as they are declared.
    associatedtype Params = [String: Any]?
    /// The type of ``headers``, as they are declared.
    associatedtype Headers = [String: String]?
    /// The type of ``body``, as it is declared.
    associatedtype DeclaredBody = RequestBody?

    /// The path below the host's base URL, or an absolute http or https URL.
    ///
    /// It may have a query, which is kept, and a fragment, which stays last. Escaped bytes are left as they are;
    /// characters that a URL may not hold (spaces, Unicode, control characters) are percent-encoded. A `..` leads to
    /// the parent folder, as in any URL: percent-encode text from other sources before you insert it.
    var api: String { get }

    /// Default ``NetworkService/Method/get``.
    var method: NetworkService.Method { get }

    /// The place of the parameters. Default ``NetworkService/QueryType/automatic``: by the method, and as the host
    /// says.
    var query: NetworkService.QueryType { get }

    /// The parameters: a dictionary with String keys, an `Encodable` value, or an optional of one. Default nil.
    ///
    /// A value in a dictionary may be a Bool, a number, a String, a Date (by default sent as ISO 8601 in UTC), a Data
    /// (as Base64), a URL, a UUID, an enum with such a raw value, nil or `NSNull`, an array, or a dictionary with
    /// String keys. Anything else is ``NetworkError/Code/invalidRequest``, with a message that names the place.
    ///
    /// An `Encodable` value follows the same rules. A nil property of it is left out, unless its type encodes it. The
    /// elements of a Set come in any order.
    ///
    /// ```swift
    /// var params: [String: String] { filter }
    /// ```
    var params: Params { get }

    /// Header fields, which replace those of the host; the case of the names does not count: a dictionary of Strings,
    /// ``HTTPHeaders``, or an optional of one. Default nil.
    var headers: Headers { get }

    /// The body, if it does not come from ``params``: a ``RequestBody``, or an optional of one. Default nil.
    ///
    /// ```swift
    /// var body: RequestBody { .json(filter) }
    /// ```
    ///
    /// A request that has a text of this name among its values says `typealias DeclaredBody = RequestBody?`, and it is
    /// a property of its own. Of a request of unknown type, the body is `request.body as? RequestBody`.
    var body: DeclaredBody { get }

    /// Refuses parameters before anything is sent. Called when the request is built. Default: all pass.
    ///
    /// - Throws: any error; all but a ``NetworkError`` become ``NetworkError/Code/invalidRequest``.
    func validateParameters() throws

    /// All the rest. Default: that of the host.
    var options: RequestOptions { get }
}

extension BaseAPIRequest {
    public var method: NetworkService.Method { .get }
    public var query: NetworkService.QueryType { .automatic }
    public var options: RequestOptions { .standard }
    public func validateParameters() throws {}

    /// The header fields of a request that sends JSON and accepts JSON.
    public func defaultJsonHeader() -> [String: String] {
        ["Content-Type": "application/json", "Accept": "application/json"]
    }
}

// Not for all requests: for one of unknown type Swift would take these for its own properties.
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
        /// For POST, PUT and PATCH that of ``HostSettings/query``, by default ``form``, since their parameters may be
        /// secrets that do not belong in a URL. For other methods, and for a request with a ``BaseAPIRequest/body``,
        /// ``path``.
        case automatic
        /// The query of the URL: `?page=2&tags%5B%5D=new`. Not for secrets: servers and proxies write URLs into their
        /// logs.
        case path
        /// The body, as JSON with sorted keys; `Content-Type: application/json`.
        case json
        /// The body, as a form of a browser; `Content-Type: application/x-www-form-urlencoded`.
        case form
    }
}
