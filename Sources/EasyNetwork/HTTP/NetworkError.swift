import Foundation

/// The reason why a request, an operation or a mapping failed. It is the only error type of the package.
///
/// The error contains what you need to react to it: the ``code`` to switch over, the status, the headers, the beginning
/// of the body, the server's message, the underlying error, the request, and the number of attempts.
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
        var undoFailures: [NetworkError] = []
    }

    /// The values in an object of their own. Nearly every step of a request returns an error or a value and reserves
    /// space for both, so the error must be small.
    private var values: Shared<Values>

    /// The kind of the failure.
    public var code: Code {
        get { values.value.code }
        set { values.value.code = newValue }
    }

    /// A description of what went wrong and how to fix it, without a final period; nil if the code says enough.
    ///
    /// The message can quote a server. It is therefore kept as one line of at most 2,000 Unicode scalars, without
    /// control characters and marks of writing direction.
    public var message: String? {
        get { values.value.message }
        set { values.value.message = newValue?.cleaned() }
    }

    /// The status of the response; nil if there was none. With ``Code/notCached`` it is 504 if the request has
    /// `only-if-cached` (RFC 9111, section 5.2.1.7). With ``Code/cannotConnect``, the status and the ``headers`` come
    /// from a proxy that refused a tunnel to the server.
    public var statusCode: Int? {
        get { values.value.statusCode }
        set { values.value.statusCode = newValue }
    }

    /// The headers of the response; empty if there was none.
    public var headers: HTTPHeaders {
        get { values.value.headers }
        set { values.value.headers = newValue }
    }

    /// The first ``responseBodyLimit`` bytes of the response's body; nil if there was no response.
    public var responseBody: Data? {
        get { values.value.responseBody }
        set { values.value.responseBody = newValue.map { BodyExcerpt($0, limit: Self.responseBodyLimit).bytes } }
    }

    /// The message in the body of the response, if there is one. If the refresh of a credential failed, the message is
    /// from the response to the refresh. It is cleaned like ``message``, but keeps its line breaks.
    public var serverMessage: String? {
        get { values.value.serverMessage }
        set { values.value.serverMessage = newValue?.cleaned(keepsLines: true) }
    }

    /// The cause: for example a `URLError` or a `DecodingError`. For ``Code/dependencyFailed``, it is the
    /// ``NetworkError`` of the dependency that failed first.
    public var underlying: (any Error)? {
        get { values.value.underlying }
        set { values.value.underlying = newValue }
    }

    /// The failed request, as it was sent.
    public var request: Request? {
        get { values.value.request }
        set { values.value.request = newValue }
    }

    /// The number of attempts to send the request; 0 if there was none.
    public var attempts: Int {
        get { values.value.attempts }
        set { values.value.attempts = newValue }
    }

    /// All messages that were sent, in order, including redirects and retries.
    public internal(set) var history: [NetworkAttempt] {
        get { values.value.history }
        set { values.value.history = newValue }
    }

    /// Whether the operation does not call its closures and its delegate, because it was cancelled silently.
    public internal(set) var isSilent: Bool {
        get { values.value.isSilent }
        set { values.value.isSilent = newValue }
    }

    /// The phase that the last attempt reached; nil if nothing was sent, if the response was complete, or if the
    /// transport cannot determine it.
    public var phase: TransportPhase? {
        get { values.value.phase }
        set { values.value.phase = newValue }
    }

    /// The metrics of the last attempt; nil if there are none.
    public var metrics: TransportMetrics? {
        get { values.value.metrics }
        set { values.value.metrics = newValue }
    }

    /// For ``Code/notCached``, the reason why the cache did not provide the response.
    public internal(set) var cacheMiss: CacheMiss? {
        get { values.value.cacheMiss }
        set { values.value.cacheMiss = newValue }
    }

    /// For ``Code/dependencyFailed``, the names of the operations from the failed one to the one that this operation
    /// waited for. For ``Code/cycle``, the cycle, which begins and ends with this operation. Otherwise empty. There are
    /// at most sixteen names; `"…"` replaces omitted ones.
    public var dependencyPath: [String] {
        get { values.value.dependencyPath }
        set { values.value.dependencyPath = newValue }
    }

    /// The errors of the undos that failed when the batch or chain with this error was undone, in the order of these
    /// undos. Each message names the job that could not be undone. Otherwise empty. See ``RequestOperation/undo``.
    public internal(set) var undoFailures: [NetworkError] {
        get { values.value.undoFailures }
        set { values.value.undoFailures = newValue }
    }

    /// Creates an error. An omitted part is nil, empty or 0.
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
                responseBody: responseBody.map { BodyExcerpt($0, limit: Self.responseBodyLimit).bytes },
                serverMessage: serverMessage?.cleaned(keepsLines: true),
                underlying: underlying,
                request: request,
                attempts: attempts,
                dependencyPath: dependencyPath
            )
        )
    }

    /// Whether the server might have received the request, so that sending it again might repeat its effect. True if
    /// the transport cannot determine this, and if an earlier message of the ``history`` might have had an effect.
    public var mayHaveReachedServer: Bool {
        if history.contains(where: \.mayHaveActed) { return true }
        if let phase, phase < .send { return false }
        if phase != nil || statusCode != nil && code != .notCached { return true }
        return attempts > 0 && !code.meansNotSent
    }

    /// The head of a request.
    ///
    /// ```swift
    /// if let request = error.request { print(request.method, request.url.path) }
    /// ```
    public struct Request: Hashable, Sendable {
        /// The method, such as `GET`.
        public var method: String
        /// The absolute URL, including secrets.
        public var url: URL
        /// The headers that were sent, including secrets, as far as they are known. Empty by default.
        public var headers: HTTPHeaders

        /// Creates the head of a request.
        public init(method: String, url: URL, headers: HTTPHeaders = HTTPHeaders()) {
            self.method = method
            self.url = url
            self.headers = headers
        }
    }

    /// The error of the dependency that failed first; this error if its code is not ``Code/dependencyFailed``.
    public var rootCause: NetworkError {
        var cause = self
        while cause.code == .dependencyFailed, let next = cause.underlying as? NetworkError { cause = next }
        return cause
    }
}

extension NetworkError {
    /// Returns the error of a request that cannot be sent.
    package static func invalidRequest(_ message: String, underlying: (any Error)? = nil) -> NetworkError {
        NetworkError(code: .invalidRequest, message: message, underlying: underlying)
    }

    /// Returns the error for an error that user code threw.
    ///
    /// - Parameters:
    ///   - code: The code for an error that is neither a ``NetworkError`` nor a `CancellationError`.
    ///   - prefix: The beginning of the message. Empty by default.
    static func thrown(_ error: any Error, otherwise code: Code, prefix: String = "") -> NetworkError {
        switch error {
        case let error as NetworkError: error
        case is CancellationError: NetworkError(code: .cancelled)
        default: NetworkError(code: code, message: prefix + error.wording, underlying: error)
        }
    }

    /// Adopts the messages that were sent before the failure.
    mutating func adopt(_ history: [NetworkAttempt]) {
        self.history = history
        // A redirect is part of its attempt.
        attempts = history.count { $0.reason != .redirect }
        request = history.last?.request
    }
}
