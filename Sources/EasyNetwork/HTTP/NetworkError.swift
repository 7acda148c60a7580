import Foundation

/// The reason why a request, an operation or a mapping failed: the only error type of the package.
///
/// It keeps what a caller needs to act: the ``code`` to decide on, status, headers and the beginning of the body, the server's
/// message, the underlying error, the request, and the number of attempts.
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
    /// The maximum length of ``responseBody``, in bytes.
    public static let responseBodyLimit = 16_384

    /// The kind of the failure.
    public var code: Code

    /// A text that says what went wrong and what to mend, without a full stop; nil if the code says enough.
    ///
    /// It may quote a server, so it is kept as one line of at most 2,000 Unicode scalars, without control characters and
    /// marks of writing direction.
    public var message: String? {
        didSet { message = message?.cleaned() }
    }

    /// The status of the answer; nil if there was none. With ``Code/notCached`` it is 504 if the request has
    /// `only-if-cached` (RFC 9111, section 5.2.1.7).
    public var statusCode: Int?

    /// The headers of the answer; empty if there was none.
    public var headers: HTTPHeaders

    /// The first ``responseBodyLimit`` bytes of the answer's body; nil if there was no answer.
    public var responseBody: Data? {
        didSet { responseBody = Self.prefix(of: responseBody) }
    }

    /// The message in the body of the answer, if there is one. It is cleaned as ``message`` is, but keeps its line breaks.
    public var serverMessage: String? {
        didSet { serverMessage = serverMessage?.cleaned(keepsLines: true) }
    }

    /// The cause: a `URLError`, a `DecodingError`, or, for ``Code/dependencyFailed``, the ``NetworkError`` of the dependency
    /// that failed first.
    public var underlying: (any Error)?

    /// The request that failed, as it was sent.
    public var request: Request?

    /// The number of attempts to send; 0 if there was none.
    public var attempts: Int

    /// Every message that was sent, in order, redirects and retries included.
    public internal(set) var history: [NetworkAttempt] = []

    /// Whether the closures and the delegate of the operation are not called, since it was cancelled silently.
    public internal(set) var isSilent = false

    /// The phase that the last attempt had reached; nil if nothing was sent, if the answer was complete, or if the transport
    /// cannot tell.
    public var phase: TransportPhase?

    /// The measurements of the last attempt; nil if there are none.
    public var metrics: TransportMetrics?

    /// For ``Code/notCached``, the reason why the cache did not answer.
    public internal(set) var cacheMiss: CacheMiss?

    /// For ``Code/dependencyFailed``, the names of the operations from the one that failed to the one that this operation
    /// waited for. For ``Code/cycle``, the cycle, which begins and ends with this operation. Else empty. At most sixteen
    /// names, with `"…"` for those left out.
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

    /// Whether the server may have seen the request, so that sending it again may repeat its effect. True if the transport
    /// cannot tell.
    public var mayHaveReachedServer: Bool {
        if statusCode != nil, code != .notCached { return true }
        if let phase { return phase >= .send }
        switch code {
        case .cannotConnect, .notConnected, .tls, .invalidRequest: return false
        default: return attempts > 0
        }
    }

    /// The head of a request.
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

    /// The error of the dependency that failed first; the error itself if it is not ``Code/dependencyFailed``.
    public var rootCause: NetworkError {
        var cause = self
        while cause.code == .dependencyFailed, let next = cause.underlying as? NetworkError { cause = next }
        return cause
    }

    /// Copies the bytes, so that the error does not keep a large body alive.
    private static func prefix(of body: Data?) -> Data? {
        body.map { $0.count > responseBodyLimit ? Data(Array($0.prefix(responseBodyLimit))) : $0 }
    }
}

extension NetworkError {
    /// The error for what code of the user threw.
    ///
    /// - Parameters:
    ///   - code: the code for an error that is neither a ``NetworkError`` nor a `CancellationError`.
    ///   - prefix: the beginning of the message.
    static func thrown(_ error: any Error, otherwise code: Code, prefix: String = "") -> NetworkError {
        switch error {
        case let error as NetworkError: error
        case is CancellationError: NetworkError(code: .cancelled)
        default: NetworkError(code: code, message: prefix + error.wording, underlying: error)
        }
    }

    /// Takes over the messages that were sent until the failure.
    mutating func adopt(_ history: [NetworkAttempt]) {
        self.history = history
        attempts = history.attemptCount
        request = history.last?.request
    }
}
