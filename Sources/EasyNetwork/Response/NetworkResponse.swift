import Foundation

/// The response to a request: status, headers and the whole body.
///
/// A response is a value; a request that is sent again gets another one. Each call of a decoding method decodes the
/// body again, on the caller's thread. JSON is read once into an index, from which all decoders read values:
/// ```swift
/// let user = try response.decode(User.self)
/// ```
public struct NetworkResponse: Sendable {
    private struct Values: Sendable {
        let statusCode: Int
        let headers: HTTPHeaders
        var body: Data
        var source: Source
        let url: URL?
        var trailers = HTTPHeaders()
        var metrics: TransportMetrics?
        var history: [NetworkAttempt] = []
        var requestMethod: NetworkService.Method?
        var allowsEmptyBody = false
        var decoder: ResponseDecoder?
        var userInfo: [String: any Sendable] = [:]
        /// The index over the body. It exists only for responses of a call whose body can be a JSON object or array.
        var index: Locked<Result<JSONIndex, JSONSyntaxError>?>?
    }

    /// The values are in a shared object, because every step of a call passes the response on, and a task reserves
    /// memory for each copy.
    private var values: Shared<Values>

    /// The status code, 100 to 999 (RFC 9110, section 15).
    public var statusCode: Int { values.value.statusCode }

    /// The header fields, in order and including repeated ones. ``URLSessionTransport`` preserves neither.
    public var headers: HTTPHeaders { values.value.headers }

    /// The body without content codings such as gzip. Empty if there is none.
    public var body: Data { values.value.body }

    /// The source of the response.
    public internal(set) var source: Source {
        get { values.value.source }
        set { values.value.source = newValue }
    }

    /// The URL that the response comes from; `nil` if it is unknown.
    public var url: URL? { values.value.url }

    /// Creates a response, for tests and interceptors.
    ///
    /// - Parameters:
    ///   - statusCode: the status code. Defaults to 200.
    ///   - headers: the header fields. Defaults to none.
    ///   - body: the body. Defaults to empty data.
    ///   - source: the source. Defaults to ``Source/network``.
    ///   - url: the URL. Defaults to `nil`.
    public init(
        statusCode: Int = 200,
        headers: HTTPHeaders = HTTPHeaders(),
        body: Data = Data(),
        source: Source = .network,
        url: URL? = nil
    ) {
        values = Shared(Values(statusCode: statusCode, headers: headers, body: body, source: source, url: url))
    }

    /// Creates the response to a message.
    ///
    /// - Parameters:
    ///   - body: the body. Defaults to empty data.
    ///   - end: the end of the exchange. Defaults to `nil`: the body was not read to its end.
    init(_ head: TransportHead, body: Data = Data(), url: URL, end: TransportEnd? = nil) {
        var values = Values(statusCode: head.statusCode, headers: head.headers, body: body, source: .network, url: url)
        if let end { (values.trailers, values.metrics) = (end.trailers, end.metrics) }
        self.values = Shared(values)
    }

    /// Returns this response with the properties of its request and its host that decoding depends on.
    consuming func prepared(
        for method: NetworkService.Method,
        _ validation: ResponseValidation,
        decoder: ResponseDecoder?
    ) -> NetworkResponse {
        values.value.requestMethod = method
        values.value.allowsEmptyBody = validation.allowsEmptyBody
        values.value.decoder = decoder
        if let first = body.first, "{[".utf8.contains(first) { values.value.index = Locked(nil) }
        return self
    }

    /// Releases the body. The response is not copied if this is the only reference to it.
    mutating func dropBody() {
        guard !body.isEmpty || values.value.index != nil else { return }
        values.value.body = Data()
        values.value.index = nil
    }

    /// The index over the body as JSON. For the response of a call, the first reader makes it, and later ones share it.
    var indexedBody: Result<JSONIndex, JSONSyntaxError> {
        if let index = values.value.index?.withLock({ $0 }) { return index }
        let body = body
        let index = Result { () throws(JSONSyntaxError) in try JSONIndex(body) }
        values.value.index?.exchange(index)
        return index
    }

    /// The body as JSON, or nil if it is not JSON.
    var node: JSONNode? { (try? indexedBody.get()).map { .indexed($0, 0) } }

    /// The source of a response.
    ///
    /// ```swift
    /// if response.source == .cache { print("nothing was sent") }
    /// ```
    ///
    /// `Source` is a struct and not an enum, so that a new source breaks no `switch`.
    public struct Source: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
        public let rawValue: String

        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        public var description: String { rawValue }

        /// The server sent the response.
        public static let network = Source(rawValue: "network")
        /// The cache had the response, and nothing was sent.
        public static let cache = Source(rawValue: "cache")
        /// The cache had the response, and the server confirmed it (304 Not Modified).
        public static let revalidated = Source(rawValue: "revalidated")
        /// The response belongs to an identical request that was already in flight.
        public static let joined = Source(rawValue: "joined")
    }
}

extension NetworkResponse {
    /// The fields after the body (RFC 9110, section 6.5). ``URLSessionTransport`` does not report them.
    public internal(set) var trailers: HTTPHeaders {
        get { values.value.trailers }
        set { values.value.trailers = newValue }
    }

    /// The measurements of the exchange; `nil` if there was none.
    public internal(set) var metrics: TransportMetrics? {
        get { values.value.metrics }
        set { values.value.metrics = newValue }
    }

    /// Every message that was sent for the response, in order, including redirects and retries. Empty if none was sent.
    public internal(set) var history: [NetworkAttempt] {
        get { values.value.history }
        set { values.value.history = newValue }
    }

    /// Values that your code attaches to the response, for example in an interceptor for ``APIRequest/item(from:)``.
    /// Defaults to an empty dictionary. The cache does not store them.
    ///
    /// ```swift
    /// func didReceive(_ result: Result<NetworkResponse, NetworkError>, context: AttemptContext) async -> ResponseDecision {
    ///     guard case .success(var response) = result else { return .proceed }
    ///     response.userInfo["page"] = response.headers["X-Page"].flatMap { Int($0) }
    ///     return .succeed(response)
    /// }
    /// ```
    public var userInfo: [String: any Sendable] {
        get { values.value.userInfo }
        set { values.value.userInfo = newValue }
    }

    /// The method of the request; `nil` if it is unknown.
    public internal(set) var requestMethod: NetworkService.Method? {
        get { values.value.requestMethod }
        set { values.value.requestMethod = newValue }
    }

    /// Whether an optional item can be decoded from an empty body: with ``ResponseValidation/allowsEmptyBody``, with a
    /// status that never has a body (RFC 9110, sections 15.3.5, 15.3.6 and 15.4.5), and for HEAD (section 9.3.2).
    var mayBeEmpty: Bool {
        [204, 205, 304].contains(statusCode) || requestMethod == .head || values.value.allowsEmptyBody
    }

    /// The decoder of ``decode(_:with:)``. Defaults to `nil`: JSON, with dates as strings of RFC 3339 or as numbers.
    public internal(set) var decoder: ResponseDecoder? {
        get { values.value.decoder }
        set { values.value.decoder = newValue }
    }
}

extension NetworkResponse: CustomDebugStringConvertible, CustomReflectable {
    /// Status, headers and the beginning of the body on several lines, without the secrets that ``Redaction``
    /// recognizes.
    public var debugDescription: String {
        let redaction = Redaction.standard
        var text = DebugText(title: "NetworkResponse \(statusCode) from \(source)")
        text.add("URL", url.map(redaction.redacted))
        text.add("Headers", headers)
        text.add("Body", body, contentType: headers["Content-Type"])
        text.add("Trailers", trailers)
        text.add("Sent", history)
        text.add("Metrics", metrics?.description)
        return text.lines.joined(separator: "\n")
    }

    /// A mirror without children, so that a dump shows only ``debugDescription``.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
