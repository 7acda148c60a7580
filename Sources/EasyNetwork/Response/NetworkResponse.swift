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

    /// The fields that came after the body (RFC 9110, section 6.5). ``URLSessionTransport`` does not tell.
    public internal(set) var trailers = HTTPHeaders()

    /// How the exchange went that brought it; nil when none did.
    public internal(set) var metrics: TransportMetrics?

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
        return error
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
            error.statusCode = statusCode
            if error.headers.isEmpty { error.headers = headers }
            if error.responseBody == nil { error.responseBody = body }
            if error.metrics == nil { error.metrics = metrics }
            return error
        case let error as ResponseMapperError:
            return self.error(.cannotParseResponse, message: error.phrase, underlying: error)
        case let error as DecodingError:
            return self.error(
                .cannotParseResponse,
                message: DecodingFailure.message(for: error, in: body),
                underlying: error
            )
        default:
            return self.error(.cannotParseResponse, message: error.wording, underlying: error)
        }
    }
}
