import Foundation

/// The rule for holding back calls to a failing server.
///
/// ```swift
/// host.circuitBreaker = CircuitBreaker()                                                  // five failures in a row
/// host.circuitBreaker = CircuitBreaker(opensAfter: .share(0.5, ofAtLeast: 20, within: 10))
/// ```
///
/// Each server that a host calls has a circuit. The scheme, host and port of a message's URL identify it. The circuit
/// is closed until the failures reach the ``threshold``. While it is open, nothing is sent to the server: messages fail
/// at once with ``NetworkError/Code/circuitOpen`` or, with ``waitsWhileOpen``, wait without a slot. After ``openTime``,
/// one message is sent as a trial. The head of its response decides: success closes the circuit, and failure opens it
/// again for twice as long, up to ``maximumOpenTime``. A trial that has run for ``trialTime`` without failing, such as
/// a long upload, also closes the circuit. If a trial ends with neither success nor failure, for example because it is
/// cancelled, another one can start.
///
/// Each attempt counts: first messages, retries, redirects, and the messages of a refresh. A failure is a status in
/// ``statusCodes``, accepted or not, or an error in ``errorCodes``. Any other response is a success. All other outcomes
/// say nothing about the server and are not counted: a response from the cache, a call that is cancelled or whose
/// ``RequestOptions/overallTimeout`` passes, and any failure while ``HostSettings/reachability`` has no network.
///
/// The state belongs to the ``HostConfiguration``, and is lost with it. A request whose options have another breaker
/// shares the state; ``never`` neither counts the request nor holds it back.
public struct CircuitBreaker: Hashable, Sendable {
    /// The number of failures that opens a circuit. A number below 1 counts as 1, and a time that is not positive as a
    /// millisecond.
    ///
    /// ```swift
    /// let threshold = CircuitBreaker.Threshold.failures(20, within: 60)
    /// ```
    public enum Threshold: Hashable, Sendable {
        /// The circuit always stays closed.
        case never
        /// This many failures without a success between them.
        case failuresInRow(Int)
        /// This many failures within this many seconds, counted in tenths of that time.
        case failures(Int, within: TimeInterval)
        /// This share of the messages within this many seconds, from 0 to 1, if there are at least this many messages.
        case share(Double, ofAtLeast: Int, within: TimeInterval)

        /// The time in which messages are counted, or nil if the threshold has no time.
        var window: TimeInterval? {
            switch self {
            case .never, .failuresInRow: nil
            case .failures(_, let time), .share(_, _, let time): time > 0.001 ? time : 0.001
            }
        }
    }

    /// The failures that open the circuit. Defaults to five failures in a row.
    public var threshold: Threshold

    /// The seconds from opening the circuit to the first trial. They double with each trial that fails. Defaults to 5.
    /// A `Retry-After` (RFC 9110, section 10.2.3) of a failure is the minimum. More than a day counts as a day.
    public var openTime: TimeInterval

    /// The maximum time until the next trial in seconds, unless the server requests a longer one. Defaults to 60.
    public var maximumOpenTime: TimeInterval

    /// The seconds after which other messages are sent although the trial is still running. If the trial then fails
    /// before another message has succeeded, the circuit opens again, as after any failed trial. With zero, a negative
    /// number or NaN, other messages are sent as soon as the trial is. Defaults to 5.
    public var trialTime: TimeInterval

    /// Whether messages wait while the circuit is open, without a slot, instead of failing. The wait has no timeout of
    /// its own: only ``RequestOptions/overallTimeout``, ``NetworkOperation/deadline`` and a cancellation end it early.
    /// Defaults to `false`.
    public var waitsWhileOpen: Bool

    /// The former name of ``waitsWhileOpen``.
    @available(*, deprecated, renamed: "waitsWhileOpen")
    public var waits: Bool {
        get { waitsWhileOpen }
        set { waitsWhileOpen = newValue }
    }

    /// The statuses that are failures. Defaults to 429 and 500 to 599.
    public var statusCodes: Set<Int>

    /// The errors that are failures. Defaults to ``NetworkError/Code/cannotConnect``, ``NetworkError/Code/tls``,
    /// ``NetworkError/Code/timedOut``, ``NetworkError/Code/connectionLost`` and
    /// ``NetworkError/Code/badServerResponse``.
    public var errorCodes: Set<NetworkError.Code>

    /// Creates a breaker with the given properties.
    public init(
        opensAfter threshold: Threshold = .failuresInRow(5),
        openTime: TimeInterval = 5,
        maximumOpenTime: TimeInterval = 60,
        trialTime: TimeInterval = 5,
        waitsWhileOpen: Bool = false,
        statusCodes: Set<Int> = Self.serverErrors,
        errorCodes: Set<NetworkError.Code> = [.cannotConnect, .tls, .timedOut, .connectionLost, .badServerResponse]
    ) {
        self.threshold = threshold
        self.openTime = openTime
        self.maximumOpenTime = maximumOpenTime
        self.trialTime = trialTime
        self.waitsWhileOpen = waitsWhileOpen
        self.statusCodes = statusCodes
        self.errorCodes = errorCodes
    }

    /// Creates a breaker with the former label of ``waitsWhileOpen``.
    // `waits` has no default here, so a call without that label is not ambiguous.
    @available(
        *,
        deprecated,
        renamed: "init(opensAfter:openTime:maximumOpenTime:trialTime:waitsWhileOpen:statusCodes:errorCodes:)"
    )
    public init(
        opensAfter threshold: Threshold = .failuresInRow(5),
        openTime: TimeInterval = 5,
        maximumOpenTime: TimeInterval = 60,
        trialTime: TimeInterval = 5,
        waits: Bool,
        statusCodes: Set<Int> = Self.serverErrors,
        errorCodes: Set<NetworkError.Code> = [.cannotConnect, .tls, .timedOut, .connectionLost, .badServerResponse]
    ) {
        self.init(opensAfter: threshold, openTime: openTime, maximumOpenTime: maximumOpenTime, trialTime: trialTime)
        waitsWhileOpen = waits
        self.statusCodes = statusCodes
        self.errorCodes = errorCodes
    }

    /// A breaker that holds back no calls, for a request whose host has a breaker.
    public static let never = CircuitBreaker(opensAfter: .never, statusCodes: [], errorCodes: [])

    /// The statuses 429 and 500 to 599.
    public static let serverErrors = Set(500...599).union([429])

    /// The maximum time that a circuit is open without a trial.
    static let day: TimeInterval = 86_400

    /// The meaning of a message's outcome for its server.
    enum Verdict: Equatable {
        case success
        /// - Parameter what: a description for error messages, such as "status 503".
        case failure(what: String, retryAfter: TimeInterval?)
    }

    /// - Parameter date: the current date, for a `Retry-After` that is a date.
    func verdict(on status: Int, _ headers: HTTPHeaders, at date: Date) -> Verdict {
        guard statusCodes.contains(status) else { return .success }
        return .failure(what: "status \(status)", retryAfter: RetryPolicy.retryAfter(headers, now: date))
    }

    /// - Returns: nil if the error says nothing about the server.
    func verdict(on error: NetworkError, at date: Date) -> Verdict? {
        // A call that is cancelled after the head of the response has a status, although the message was aborted.
        if error.code == .cancelled { return nil }
        if errorCodes.contains(error.code) { return .failure(what: "\(error.code)", retryAfter: nil) }
        return error.statusCode.map { verdict(on: $0, error.headers, at: date) }
    }

    /// Returns the seconds until the next trial.
    func openTime(afterFailedTrials count: Int) -> TimeInterval {
        let base = openTime > 0 ? openTime : 0
        return min(Backoff(base: base, maximum: max(base, maximumOpenTime)).bound(after: count), Self.day)
    }
}

extension CircuitBreaker: CustomStringConvertible {
    /// The threshold, and the properties that differ from their defaults.
    public var description: String {
        let changes = Changes(value: self, standard: CircuitBreaker())
        return String(
            listing: "CircuitBreaker",
            [
                ("opensAfter", threshold), ("openTime", changes[\.openTime]),
                ("maximumOpenTime", changes[\.maximumOpenTime]), ("trialTime", changes[\.trialTime]),
                ("waitsWhileOpen", changes[\.waitsWhileOpen]), ("statusCodes", changes[\.statusCodes]),
                ("errorCodes", changes[\.errorCodes]?.map(\.description).sorted()),
            ]
        )
    }
}
