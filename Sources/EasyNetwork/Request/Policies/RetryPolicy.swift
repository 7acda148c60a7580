import Foundation

/// The rule for sending a failed request again.
///
/// ```swift
/// var options: RequestOptions { RequestOptions(retry: RetryPolicy(maximumRetryCount: 5)) }   // or .never
/// ```
///
/// A request is sent again if its failure could be temporary and the server cannot act twice: its method is idempotent
/// (RFC 9110, section 9.2.2), or it carries an `Idempotency-Key`, or it never reached the server. The key must be the
/// same for every attempt: if an interceptor changes it for the retry, the request ends with the previous failure. A
/// body that can be read only once is never sent again. Between two attempts, the operation gives up its slot.
///
/// The delay is random, from zero to a bound that doubles with each retry ("full jitter"), so that the clients of a
/// recovering server do not return at the same moment. A `Retry-After` (RFC 9110, section 10.2.3) is the minimum.
public struct RetryPolicy: Hashable, Sendable {
    /// The maximum number of retries. Defaults to 2. Progress of a download resets the count, up to a hundred times as
    /// many retries in total.
    public var maximumRetryCount: Int

    /// The methods that are sent again even if the server could have acted. Defaults to the idempotent methods GET,
    /// HEAD, PUT, DELETE, OPTIONS and TRACE.
    public var methods: Set<NetworkService.Method>

    /// The statuses that can be temporary, if they are not accepted. Defaults to 408, 425, 429, 500, 502, 503 and 504.
    public var statusCodes: Set<Int>

    /// The failures without a response that can be temporary. Defaults to ``NetworkError/Code/cannotConnect``,
    /// ``NetworkError/Code/notConnected``, ``NetworkError/Code/connectionLost`` and ``NetworkError/Code/timedOut``. If
    /// a proxy has refused the connection, its status must also be among ``statusCodes``.
    public var errorCodes: Set<NetworkError.Code>

    /// The bound of the first delay, in seconds. It doubles with each retry. Defaults to 0.5.
    public var baseDelay: TimeInterval

    /// The maximum delay in seconds, unless the server requests a longer one. Defaults to 30.
    public var maximumDelay: TimeInterval

    /// The maximum accepted `Retry-After` in seconds. A longer one ends the request at once. Defaults to 60.
    public var maximumRetryAfter: TimeInterval

    /// Creates a policy with the given properties.
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

    /// A policy that never sends a request again.
    public static let never = RetryPolicy(maximumRetryCount: 0)

    /// The methods that have the same effect once and several times (RFC 9110, section 9.2.2).
    public static let idempotentMethods: Set<NetworkService.Method> = [
        .get, .head, .put, .delete, .init(rawValue: "OPTIONS"), .init(rawValue: "TRACE"),
    ]

    /// Returns the delay before the request is sent again.
    ///
    /// - Parameters:
    ///   - error: the failure, with the number of ``NetworkError/attempts``.
    ///   - retryCount: the number of retries so far.
    ///   - date: the current date, for a `Retry-After` that is a date.
    ///   - random: the position of the delay in its range, from 0 to 1.
    ///   - mayHaveActed: whether a server could have acted on a message that must not be sent twice.
    /// - Returns: the delay in seconds, or nil if the request is not sent again.
    func delay(
        after error: NetworkError,
        of message: TransportRequest,
        retryCount: Int,
        date: Date,
        random: Double,
        mayHaveActed: Bool
    ) -> TimeInterval? {
        guard retryCount < maximumRetryCount, mayPass(error), message.body.isReplayable, !mayHaveActed else {
            return nil
        }
        let delay = backoff.delay(after: retryCount, random: random)
        guard let floor = Self.retryAfter(error.headers, now: date) else { return delay }
        return floor > maximumRetryAfter ? nil : max(delay, floor)
    }

    package var backoff: Backoff { Backoff(base: baseDelay, maximum: maximumDelay) }

    /// The factor on ``maximumRetryCount`` for a request that makes progress. It ends a request whose server sends one
    /// byte per attempt.
    private static let progressFactor = 100

    /// Returns whether a request that makes progress can be sent again.
    ///
    /// - Parameter totalCount: the number of all retries so far.
    func mayGoOn(totalCount: Int) -> Bool {
        // Divide, because the product could overflow.
        totalCount / Self.progressFactor < maximumRetryCount
    }

    private func mayPass(_ error: NetworkError) -> Bool {
        guard let status = error.statusCode else { return errorCodes.contains(error.code) }
        switch error.code {
        case .unacceptableStatus: return statusCodes.contains(status)
        // The status is the proxy's. Check it, because a rejected password would be sent again.
        case .cannotConnect: return errorCodes.contains(.cannotConnect) && statusCodes.contains(status)
        default: return errorCodes.contains(error.code)
        }
    }

    /// Returns whether a server acts only once if the message is sent twice.
    func isRepeatable(_ message: TransportRequest) -> Bool {
        methods.contains(message.method) || message.headers["Idempotency-Key"] != nil
    }

    /// Returns the seconds that a server asks to wait (RFC 9110, section 10.2.3): the longest of all fields, and 0 for
    /// a date in the past.
    ///
    /// - Parameter now: the current date, for a field with a date.
    /// - Returns: nil without a valid field.
    package static func retryAfter(_ headers: HTTPHeaders, now: Date) -> TimeInterval? {
        headers.values(for: "Retry-After").compactMap { value in
            let text = value.trimmed
            if !text.isEmpty, text.utf8.allSatisfy(\.isDigit) {
                // A number with more digits than a Double can represent still means a finite time.
                return min(Double(text) ?? .greatestFiniteMagnitude, .greatestFiniteMagnitude)
            }
            return Date(httpText: text, now: now).map { max(0, $0.timeIntervalSince(now)) }
        }.max()
    }
}

extension RetryPolicy: CustomStringConvertible {
    /// The number of retries, and the properties that differ from their defaults.
    public var description: String {
        let changes = Changes(value: self, standard: RetryPolicy())
        return String(
            listing: "RetryPolicy",
            [
                ("maximumRetryCount", maximumRetryCount), ("methods", changes[\.methods]?.map(\.rawValue).sorted()),
                ("statusCodes", changes[\.statusCodes]),
                ("errorCodes", changes[\.errorCodes]?.map(\.description).sorted()),
                ("baseDelay", changes[\.baseDelay]), ("maximumDelay", changes[\.maximumDelay]),
                ("maximumRetryAfter", changes[\.maximumRetryAfter]),
            ]
        )
    }
}
