import Foundation

/// Why a request, an operation or a mapping failed: the one error type of the package.
///
/// It is a value that keeps what is needed to act: the ``code`` to decide on, status, headers and the beginning of the
/// body, the server's own words, the error underneath, the request, and how often it was tried.
///
/// ```swift
/// operation.failure = { error in
///     switch error.code {
///     case .unauthorized: showSignIn()
///     case .cancelled: break
///     default: show(error.localizedDescription)
///     }
/// }
/// ```
public struct NetworkError: Error, Sendable {
    /// How much of a body ``responseBody`` keeps, in bytes.
    public static let responseBodyLimit = 16_384

    /// What kind of failure this is.
    public var code: Code

    /// What went wrong in this case, and what to mend; nil when the code says it all. No full stop at its end.
    ///
    /// It may quote a server, so it is one line of at most 2,000 Unicode scalars, without control characters and without
    /// marks of the direction of writing, however it is set.
    public var message: String? {
        didSet { message = message?.cleaned() }
    }

    /// The status of the answer, if there was one. Of ``Code/notCached`` 504 if the request has `only-if-cached`, which is
    /// what a cache answers then (RFC 9111, section 5.2.1.7).
    public var statusCode: Int?

    /// The headers of the answer, if there was one.
    public var headers: HTTPHeaders

    /// The first ``responseBodyLimit`` bytes of the answer's body; nil when there was no answer.
    public var responseBody: Data? {
        didSet { responseBody = Self.prefix(of: responseBody) }
    }

    /// What the server says of it in its own words, when the body holds such a text; cleaned as ``message`` is, but for its
    /// line breaks.
    public var serverMessage: String? {
        didSet { serverMessage = serverMessage?.cleaned(keepsLines: true) }
    }

    /// The error from below: a `URLError`, a `DecodingError`, or, for ``Code/dependencyFailed``, the ``NetworkError``
    /// at the bottom of the row of dependencies.
    public var underlying: (any Error)?

    /// The request that failed, as it was sent.
    public var request: Request?

    /// How many times sending was tried; 0 when it never was.
    public var attempts: Int

    /// Every message that was sent, in order, redirects and retries included; empty when none was.
    public internal(set) var history: [NetworkAttempt] = []

    /// Whether the closures and the delegate of an operation are not told of it: it was stopped on purpose.
    public internal(set) var isSilent = false

    /// How far the last attempt had come; nil when nothing was to be sent, when the answer was whole, and when the
    /// transport cannot tell.
    public var phase: TransportPhase?

    /// How the last attempt went; nil when there was none, or nobody measured it.
    public var metrics: TransportMetrics?

    /// For ``Code/notCached``: why the cache did not answer.
    public internal(set) var cacheMiss: CacheMiss?

    /// The names of the operations that led here. For ``Code/dependencyFailed`` from the one that failed to the one
    /// this operation waited for; for ``Code/cycle`` among dependencies the circle, which begins and ends with this
    /// operation; else empty. At most sixteen, `"…"` for those left out.
    public var dependencyPath: [String]

    public init(
        code: Code,
        message: String? = nil,
        statusCode: Int? = nil,
        headers: HTTPHeaders = HTTPHeaders(),
        responseBody: Data? = nil,
        serverMessage: String? = nil,
        underlying: (any Error)? = nil,
        request: Request? = nil,
        attempts: Int = 0,
        dependencyPath: [String] = []
    ) {
        self.code = code
        self.message = message?.cleaned()
        self.statusCode = statusCode
        self.headers = headers
        self.responseBody = Self.prefix(of: responseBody)
        self.serverMessage = serverMessage?.cleaned(keepsLines: true)
        self.underlying = underlying
        self.request = request
        self.attempts = attempts
        self.dependencyPath = dependencyPath
    }

    /// Whether the server may have seen the request, so that sending it again may do a thing twice. When the transport
    /// cannot tell, it may have.
    public var mayHaveReachedServer: Bool {
        if statusCode != nil, code != .notCached { return true }
        if let phase { return phase >= .send }
        switch code {
        case .cannotConnect, .notConnected, .tls, .invalidRequest: return false
        default: return attempts > 0
        }
    }

    /// The head of a request, for messages.
    public struct Request: Hashable, Sendable {
        public var method: String
        public var url: URL
        /// The headers that were sent, secrets included, as far as they are known. Default none.
        public var headers: HTTPHeaders

        public init(method: String, url: URL, headers: HTTPHeaders = HTTPHeaders()) {
            self.method = method
            self.url = url
            self.headers = headers
        }
    }

    /// The error at the bottom of a row of failed dependencies; the error itself when it is no such row.
    public var rootCause: NetworkError {
        var cause = self
        while cause.code == .dependencyFailed, let next = cause.underlying as? NetworkError { cause = next }
        return cause
    }

    /// Copies the bytes, so that an error that is kept does not keep a large body alive.
    private static func prefix(of body: Data?) -> Data? {
        body.map { $0.count > responseBodyLimit ? Data(Array($0.prefix(responseBodyLimit))) : $0 }
    }
}
