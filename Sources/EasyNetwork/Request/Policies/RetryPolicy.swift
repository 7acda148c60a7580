import Foundation

/// When a request that failed is sent again, as a value.
///
/// ```swift
/// var retry: RetryPolicy? { RetryPolicy(maximumRetryCount: 5) }
/// var retry: RetryPolicy? { .never }
/// ```
///
/// A request is sent again when its failure may pass by itself, and sending it twice cannot do a thing twice: its method
/// is idempotent (RFC 9110, section 9.2.2), or it carries an `Idempotency-Key`, or it never reached the server. A key counts
/// only if it is the same for every attempt: an interceptor that makes another one for the retry ends the request with the
/// failure before it. A body that can be read only once is never sent again. Between two attempts the operation gives its
/// slot back.
///
/// The delay is drawn from zero to a bound that doubles with each retry ("full jitter"), so that the many clients of a
/// server that comes back do not come back at once. A `Retry-After` (RFC 9110, section 10.2.3) is its floor.
public struct RetryPolicy: Hashable, Sendable {
    /// How many times a request is sent again. Default 2. A download counts from the beginning when an attempt gained
    /// bytes, up to a hundred times as many retries in all.
    public var maximumRetryCount: Int

    /// The methods that may be sent again although the server may have acted. Default: the idempotent ones, which are
    /// GET, HEAD, PUT, DELETE, OPTIONS and TRACE.
    public var methods: Set<NetworkService.Method>

    /// The statuses that may pass by themselves, if they are not accepted. Default 408, 425, 429, 500, 502, 503, 504.
    public var statusCodes: Set<Int>

    /// The failures without an answer that may pass by themselves. Default: ``NetworkError/Code/cannotConnect``,
    /// ``NetworkError/Code/notConnected``, ``NetworkError/Code/connectionLost`` and ``NetworkError/Code/timedOut``.
    public var errorCodes: Set<NetworkError.Code>

    /// The bound of the first delay, in seconds; it doubles with each retry. Default 0.5.
    public var baseDelay: TimeInterval

    /// The bound that no delay exceeds, unless the server asks for it, in seconds. Default 30.
    public var maximumDelay: TimeInterval

    /// The longest `Retry-After` that is obeyed, in seconds; a longer one fails the request at once. Default 60.
    public var maximumRetryAfter: TimeInterval

    public init(
        maximumRetryCount: Int = 2,
        methods: Set<NetworkService.Method> = Self.idempotentMethods,
        statusCodes: Set<Int> = [408, 425, 429, 500, 502, 503, 504],
        errorCodes: Set<NetworkError.Code> = [.cannotConnect, .notConnected, .connectionLost, .timedOut],
        baseDelay: TimeInterval = 0.5,
        maximumDelay: TimeInterval = 30,
        maximumRetryAfter: TimeInterval = 60
    ) {
        self.maximumRetryCount = maximumRetryCount
        self.methods = methods
        self.statusCodes = statusCodes
        self.errorCodes = errorCodes
        self.baseDelay = baseDelay
        self.maximumDelay = maximumDelay
        self.maximumRetryAfter = maximumRetryAfter
    }

    /// No request is sent again.
    public static let never = RetryPolicy(maximumRetryCount: 0)

    /// The methods whose effect is the same however often they are sent (RFC 9110, section 9.2.2).
    public static let idempotentMethods = NetworkService.Method.idempotent

    /// When to send the request again.
    ///
    /// - Parameters:
    ///   - error: why it failed, with the number of ``NetworkError/attempts``.
    ///   - retryCount: how many times it has been sent again already.
    ///   - date: now, for a `Retry-After` that is a date.
    ///   - random: from 0 to 1, where in its range the delay is.
    /// - Returns: the delay in seconds; nil when it is not to be sent again.
    func delay(
        after error: NetworkError,
        of message: TransportRequest,
        retryCount: Int,
        date: Date,
        random: Double,
        mayHaveActed: Bool? = nil
    ) -> TimeInterval? {
        let isUnsafe = mayHaveActed ?? (!isRepeatable(message) && error.mayHaveReachedServer)
        guard retryCount < maximumRetryCount, mayPass(error), message.body.isReplayable, !isUnsafe else { return nil }
        let bound = min(baseDelay * pow(2, Double(min(retryCount, 64))), maximumDelay)
        let jitter = bound > 0 ? bound * min(max(random, 0), 1) : 0
        guard let floor = RetryAfter(error.headers, now: date)?.seconds else {
            return jitter
        }
        return floor > maximumRetryAfter ? nil : max(jitter, floor)
    }

    /// How many times ``maximumRetryCount`` a request with progress is sent again: a server that gives a byte an attempt
    /// would be asked without end.
    private static let progressFactor = 100

    /// Whether a request that makes progress may be sent again.
    ///
    /// - Parameter totalCount: how many times it has been already, progress or not.
    func mayGoOn(totalCount: Int) -> Bool {
        // So that no maximum overflows.
        totalCount / Self.progressFactor < maximumRetryCount
    }

    private func mayPass(_ error: NetworkError) -> Bool {
        if error.code == .unacceptableStatus, let status = error.statusCode { return statusCodes.contains(status) }
        return errorCodes.contains(error.code)
    }

    /// Whether sending it twice does a thing once.
    func isRepeatable(_ message: TransportRequest) -> Bool {
        methods.contains(message.method) || message.headers["Idempotency-Key"] != nil
    }
}
