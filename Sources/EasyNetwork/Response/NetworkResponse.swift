import Foundation

/// The answer to a request: status, headers and the whole body.
///
/// It is an immutable value. A request that is sent again gets another one; two answers are never mixed. What the body
/// means is worked out when it is asked for, on the thread that asks, each time anew:
///
/// ```swift
/// let user = try response.decode(User.self)
/// ```
public struct NetworkResponse: Sendable {
    /// The status code; 100 to 599 are defined (RFC 9110, section 15), a server may send others up to 999.
    public let statusCode: Int

    /// The header fields, in order and with repeats as far as the transport tells: ``URLSessionTransport`` does not.
    public let headers: HTTPHeaders

    /// The body, content codings such as gzip taken off; empty when there is none.
    public let body: Data

    /// Where the answer came from.
    public internal(set) var source: Source

    /// The URL that answered; nil when nobody said.
    public let url: URL?

    /// What is said of it beside. An answer goes through many hands, and each copies what stands here alone.
    private var circumstances = Shared(Circumstances())

    /// - Parameters:
    ///   - statusCode: default 200.
    ///   - headers: default none.
    ///   - body: default empty.
    ///   - source: default ``Source/network``.
    ///   - url: default nil.
    public init(
        statusCode: Int = 200,
        headers: HTTPHeaders = HTTPHeaders(),
        body: Data = Data(),
        source: Source = .network,
        url: URL? = nil
    ) {
        self.statusCode = statusCode
        self.headers = headers
        self.body = body
        self.source = source
        self.url = url
    }

    /// This answer with what reading it has to know of its request and of its host.
    func prepared(
        for method: NetworkService.Method,
        _ validation: ResponseValidation,
        decoder: (any ResponseDecoder)?
    ) -> NetworkResponse {
        var response = self
        response.circumstances.change {
            $0.requestMethod = method
            $0.emptyBody = validation.emptyBody
            $0.decoder = decoder
        }
        return response
    }

    /// Where an answer came from.
    ///
    /// A struct and not an enum, so that a new source breaks no `switch`.
    public struct Source: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
        public let rawValue: String

        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        public var description: String { rawValue }

        /// The server sent it.
        public static let network = Source(rawValue: "network")
        /// The cache had it, and nothing was sent.
        public static let cache = Source(rawValue: "cache")
        /// The cache had it, and the server confirmed it (304 Not Modified).
        public static let revalidated = Source(rawValue: "revalidated")
        /// It is the answer to an identical request that was already in flight.
        public static let joined = Source(rawValue: "joined")
    }
}

extension NetworkResponse {
    private struct Circumstances: Sendable {
        var trailers = HTTPHeaders()
        var metrics: TransportMetrics?
        var history: [NetworkAttempt] = []
        var requestMethod: NetworkService.Method?
        var emptyBody = EmptyBodyRule.standard
        var decoder: (any ResponseDecoder)?
        var userInfo: [String: any Sendable] = [:]
    }

    /// The fields that came after the body (RFC 9110, section 6.5). ``URLSessionTransport`` does not tell.
    public internal(set) var trailers: HTTPHeaders {
        get { circumstances.value.trailers }
        set { circumstances.change { $0.trailers = newValue } }
    }

    /// How the exchange went that brought it; nil when none did.
    public internal(set) var metrics: TransportMetrics? {
        get { circumstances.value.metrics }
        set { circumstances.change { $0.metrics = newValue } }
    }

    /// Every message that was sent to get it, in order, redirects and retries included; empty when none was.
    public internal(set) var history: [NetworkAttempt] {
        get { circumstances.value.history }
        set { circumstances.change { $0.history = newValue } }
    }

    /// Values that a program attaches to the answer: an interceptor for ``APIRequest/item(from:)``, for instance. Default
    /// none. The cache does not keep them.
    ///
    /// ```swift
    /// func didReceive(_ result: Result<NetworkResponse, NetworkError>, context: AttemptContext) async -> ResponseDecision {
    ///     guard case .success(var response) = result else { return .proceed }
    ///     response.userInfo["page"] = response.headers["X-Page"].flatMap { Int($0) }
    ///     return .succeed(response)
    /// }
    /// ```
    public var userInfo: [String: any Sendable] {
        get { circumstances.value.userInfo }
        set { circumstances.change { $0.userInfo = newValue } }
    }

    /// The method of the request; nil when nobody said.
    public internal(set) var requestMethod: NetworkService.Method? {
        get { circumstances.value.requestMethod }
        set { circumstances.change { $0.requestMethod = newValue } }
    }

    /// Whether an empty body is an item too. Default ``EmptyBodyRule/standard``.
    public internal(set) var emptyBody: EmptyBodyRule {
        get { circumstances.value.emptyBody }
        set { circumstances.change { $0.emptyBody = newValue } }
    }

    /// What ``decode(_:)`` reads with; nil, the default, means JSON, with dates as text of RFC 3339 or as numbers.
    public internal(set) var decoder: (any ResponseDecoder)? {
        get { circumstances.value.decoder }
        set { circumstances.change { $0.decoder = newValue } }
    }
}

extension NetworkResponse {
    /// An error that carries what this answer says: status, headers, the beginning of the body and, for a status of 400
    /// and above, the server's own words.
    package func error(
        _ code: NetworkError.Code,
        message: String? = nil,
        underlying: (any Error)? = nil
    ) -> NetworkError {
        var error = NetworkError(
            code: code,
            message: message,
            statusCode: statusCode,
            headers: headers,
            responseBody: body,
            serverMessage: statusCode >= 400 ? ServerMessage.find(in: body, headers: headers) : nil,
            underlying: underlying
        )
        error.metrics = metrics
        error.adopt(history)
        return error
    }

    /// What `map` makes of this answer, or its error as that of the package.
    func item<Item>(_ map: (NetworkResponse) throws -> Item) -> Result<Item, NetworkError> {
        do {
            return .success(try map(self))
        } catch {
            return .failure(mappingError(error))
        }
    }

    /// What a mapper, or ``APIRequest/item(from:)``, threw at this answer, as the error of the package.
    ///
    /// A ``NetworkError`` is kept and only filled up with what it lacks. Anything else becomes
    /// ``NetworkError/Code/cannotParseResponse`` with the text of the error, which for a ``ResponseMapperError`` names
    /// the key and the index.
    package func mappingError(_ error: any Error) -> NetworkError {
        switch error {
        case var error as NetworkError:
            guard error.statusCode == nil else { return error }
            if error.history.isEmpty { error.adopt(history) }
            error.statusCode = statusCode
            if error.headers.isEmpty { error.headers = headers }
            if error.responseBody == nil { error.responseBody = body }
            if error.metrics == nil { error.metrics = metrics }
            return error
        case let error as ResponseMapperError:
            return self.error(.cannotParseResponse, message: error.phrase, underlying: error)
        case let error as DecodingError:
            let message = DecodingFailure.message(for: error, inJSON: body, headers)
            return self.error(.cannotParseResponse, message: message, underlying: error)
        default:
            return self.error(.cannotParseResponse, message: error.wording, underlying: error)
        }
    }
}
