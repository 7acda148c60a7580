import Foundation

/// The reason why a request, an operation or a mapping failed: the only error type of the package.
///
/// It keeps what a caller needs to act: the ``code`` to decide on, status, headers and the beginning of the body, the
/// server's message, the underlying error, the request, and the number of attempts.
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

    private struct Values: Sendable {
        var code: Code
        var message: String?
        var statusCode: Int?
        var headers: HTTPHeaders
        var responseBody: Data?
        var serverMessage: String?
        var underlying: (any Error)?
        var request: Request?
        var attempts: Int
        var history: [NetworkAttempt] = []
        var isSilent: Bool = false
        var phase: TransportPhase?
        var metrics: TransportMetrics?
        var cacheMiss: CacheMiss?
        var dependencyPath: [String]
    }

    /// In an object of its own: nearly every step of a request returns an error or a value, and has room for both.
    private var values: Shared<Values>

    /// The kind of the failure.
    public var code: Code {
        get { values.value.code }
        set { values.value.code = newValue }
    }

    /// A text that says what went wrong and what to mend, without a full stop; nil if the code says enough.
    ///
    /// It may quote a server, so it is kept as one line of at most 2,000 Unicode scalars, without control characters
    /// and marks of writing direction.
    public var message: String? {
        get { values.value.message }
        set { values.value.message = newValue?.cleaned() }
    }

    /// The status of the answer; nil if there was none. With ``Code/notCached`` it is 504 if the request has
    /// `only-if-cached` (RFC 9111, section 5.2.1.7). With ``Code/cannotConnect`` it is that of a proxy that refused a
    /// tunnel to the server, and so are the ``headers``.
    public var statusCode: Int? {
        get { values.value.statusCode }
        set { values.value.statusCode = newValue }
    }

    /// The headers of the answer; empty if there was none.
    public var headers: HTTPHeaders {
        get { values.value.headers }
        set { values.value.headers = newValue }
    }

    /// The first ``responseBodyLimit`` bytes of the answer's body; nil if there was no answer.
    public var responseBody: Data? {
        get { values.value.responseBody }
        set { values.value.responseBody = Self.prefix(of: newValue) }
    }

    /// The message in the body of the answer, if there is one. It is cleaned as ``message`` is, but keeps its line
    /// breaks.
    public var serverMessage: String? {
        get { values.value.serverMessage }
        set { values.value.serverMessage = newValue?.cleaned(keepsLines: true) }
    }

    /// The cause: a `URLError`, a `DecodingError`, or, for ``Code/dependencyFailed``, the ``NetworkError`` of the
    /// dependency that failed first.
    public var underlying: (any Error)? {
        get { values.value.underlying }
        set { values.value.underlying = newValue }
    }

    /// The request that failed, as it was sent.
    public var request: Request? {
        get { values.value.request }
        set { values.value.request = newValue }
    }

    /// The number of attempts to send; 0 if there was none.
    public var attempts: Int {
        get { values.value.attempts }
        set { values.value.attempts = newValue }
    }

    /// Every message that was sent, in order, redirects and retries included.
    public internal(set) var history: [NetworkAttempt] {
        get { values.value.history }
        set { values.value.history = newValue }
    }

    /// Whether the closures and the delegate of the operation are not called, since it was cancelled silently.
    public internal(set) var isSilent: Bool {
        get { values.value.isSilent }
        set { values.value.isSilent = newValue }
    }

    /// The phase that the last attempt had reached; nil if nothing was sent, if the answer was complete, or if the
    /// transport cannot tell.
    public var phase: TransportPhase? {
        get { values.value.phase }
        set { values.value.phase = newValue }
    }

    /// The measurements of the last attempt; nil if there are none.
    public var metrics: TransportMetrics? {
        get { values.value.metrics }
        set { values.value.metrics = newValue }
    }

    /// For ``Code/notCached``, the reason why the cache did not answer.
    public internal(set) var cacheMiss: CacheMiss? {
        get { values.value.cacheMiss }
        set { values.value.cacheMiss = newValue }
    }

    /// For ``Code/dependencyFailed``, the names of the operations from the one that failed to the one that this
    /// operation waited for. For ``Code/cycle``, the cycle, which begins and ends with this operation. Else empty. At
    /// most sixteen names, with `"…"` for those left out.
    public var dependencyPath: [String] {
        get { values.value.dependencyPath }
        set { values.value.dependencyPath = newValue }
    }

    /// Creates an error. A part that is not given is nil, empty or 0.
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
        values = Shared(
            Values(
                code: code,
                message: message?.cleaned(),
                statusCode: statusCode,
                headers: headers,
                responseBody: Self.prefix(of: responseBody),
                serverMessage: serverMessage?.cleaned(keepsLines: true),
                underlying: underlying,
                request: request,
                attempts: attempts,
                dependencyPath: dependencyPath
            )
        )
    }

    /// Whether the server may have seen the request, so that sending it again may repeat its effect. True if the
    /// transport cannot tell.
    public var mayHaveReachedServer: Bool {
        if let phase, phase < .send { return false }
        if statusCode != nil, code != .notCached { return true }
        if phase != nil { return true }
        switch code {
        case .cannotConnect, .notConnected, .tls, .invalidRequest: return false
        default: return attempts > 0
        }
    }

    /// The head of a request.
    ///
    /// ```swift
    /// if let request = error.request { print(request.method, request.url.path) }
    /// ```
    public struct Request: Hashable, Sendable {
        /// The method, such as `GET`.
        public var method: String
        /// The absolute URL, secrets included.
        public var url: URL
        /// The headers that were sent, secrets included, as far as they are known. Default none.
        public var headers: HTTPHeaders

        /// Creates the head of a request.
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
    /// The error of a request that cannot be sent.
    package static func invalidRequest(_ message: String, underlying: (any Error)? = nil) -> NetworkError {
        NetworkError(code: .invalidRequest, message: message, underlying: underlying)
    }

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
