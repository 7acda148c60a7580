import Foundation

/// The rule for holding the calls to a failing server back, as a value.
///
/// ```swift
/// host.circuitBreaker = CircuitBreaker()                                                  // five failures in a row
/// host.circuitBreaker = CircuitBreaker(opensAfter: .share(0.5, ofAtLeast: 20, within: 10))
/// ```
///
/// Each server that a host calls has a circuit: scheme, host and port of a message's URL name it. It is closed until
/// the failures reach the ``threshold``. While it is open, nothing is sent to that server: messages fail at once with
/// ``NetworkError/Code/circuitOpen``, or, with ``waits``, wait without a slot. After ``openTime`` one message goes out
/// as a trial. The head of its response decides: success closes the circuit, failure opens it again, for twice as long,
/// up to ``maximumOpenTime``. A trial that has run for ``trialTime`` without failing, such as a long upload, closes the
/// circuit, too. A trial that ends without either, as by a cancel, lets another one go.
///
/// Each attempt counts: first messages, retries, redirects, and those of a refresh. A failure is a status in
/// ``statusCodes``, accepted or not, or an error in ``errorCodes``. Any other answer is a success. What remains says
/// nothing of the server and is not counted: an answer of the cache, a call that is cancelled or whose
/// ``RequestOptions/overallTimeout`` passes, and what fails while ``HostSettings/reachability`` has no network.
///
/// The state is that of the ``HostConfiguration``, and is lost with it. A request whose options have another breaker
/// shares it; ``never`` neither counts nor holds it back.
public struct CircuitBreaker: Hashable, Sendable {
    /// A number of failures that opens a circuit. A number below 1 counts as 1, a time that is not positive as a
    /// millisecond.
    ///
    /// ```swift
    /// let threshold = CircuitBreaker.Threshold.failures(20, within: 60)
    /// ```
    public enum Threshold: Hashable, Sendable {
        /// No failures: the circuit stays closed.
        case never
        /// So many failures without a success between them.
        case failuresInRow(Int)
        /// So many failures within so many seconds, counted in tenths of that time.
        case failures(Int, within: TimeInterval)
        /// This share of the messages within so many seconds, from 0 to 1, when there are at least so many.
        case share(Double, ofAtLeast: Int, within: TimeInterval)

        /// The time in which messages are counted; nil without.
        var window: TimeInterval? {
            switch self {
            case .never, .failuresInRow: nil
            case .failures(_, let time), .share(_, _, let time): time > 0.001 ? time : 0.001
            }
        }
    }

    /// The failures that open the circuit. Default five failures in a row.
    public var threshold: Threshold

    /// The seconds from the opening to the first trial; they double with each trial that fails. Default 5. A
    /// `Retry-After` (RFC 9110, section 10.2.3) of a failure is the minimum. More than a day counts as a day.
    public var openTime: TimeInterval

    /// The longest time to the next trial in seconds, unless the server asks for a longer one. Default 60.
    public var maximumOpenTime: TimeInterval

    /// The seconds after which other messages go, too, although the trial still runs. Should it fail after that, before
    /// another message has succeeded, the circuit opens again as after any failed trial. Zero, less or NaN: when the
    /// trial is sent. Defaults to 5.
    public var trialTime: TimeInterval

    /// Whether messages wait while the circuit is open, without a slot, in place of failing. The wait has no other end
    /// than ``RequestOptions/overallTimeout``, ``NetworkOperation/deadline`` and a cancel. Default false.
    public var waits: Bool

    /// The statuses that are failures. Default 429 and 500 to 599.
    public var statusCodes: Set<Int>

    /// The errors that are failures. Default ``NetworkError/Code/cannotConnect``, ``NetworkError/Code/tls``,
    /// ``NetworkError/Code/timedOut``, ``NetworkError/Code/connectionLost`` and
    /// ``NetworkError/Code/badServerResponse``.
    public var errorCodes: Set<NetworkError.Code>

    /// Creates a breaker. The defaults are those of the properties.
    public init(
        opensAfter threshold: Threshold = .failuresInRow(5),
        openTime: TimeInterval = 5,
        maximumOpenTime: TimeInterval = 60,
        trialTime: TimeInterval = 5,
        waits: Bool = false,
        statusCodes: Set<Int> = Self.serverErrors,
        errorCodes: Set<NetworkError.Code> = [.cannotConnect, .tls, .timedOut, .connectionLost, .badServerResponse]
    ) {
        self.threshold = threshold
        self.openTime = openTime
        self.maximumOpenTime = maximumOpenTime
        self.trialTime = trialTime
        self.waits = waits
        self.statusCodes = statusCodes
        self.errorCodes = errorCodes
    }

    /// Holds no call back; for a request whose host has a breaker.
    public static let never = CircuitBreaker(opensAfter: .never, statusCodes: [], errorCodes: [])

    /// 429 and 500 to 599.
    public static let serverErrors = Set(500...599).union([429])

    /// The longest time that a circuit is open without a trial.
    static let day: TimeInterval = 86_400

    /// The meaning of a message's end for its server.
    enum Verdict: Equatable {
        case success
        /// - Parameter what: for a person, such as "status 503".
        case failure(what: String, retryAfter: TimeInterval?)
    }

    /// - Parameter date: now, for a `Retry-After` that is a date.
    func verdict(on status: Int, _ headers: HTTPHeaders, at date: Date) -> Verdict {
        guard statusCodes.contains(status) else { return .success }
        return .failure(what: "status \(status)", retryAfter: RetryPolicy.retryAfter(headers, now: date))
    }

    /// - Returns: nil when it says nothing.
    func verdict(on error: NetworkError, at date: Date) -> Verdict? {
        // A call that was cancelled behind its head has a status, and the message was broken off all the same.
        if error.code == .cancelled { return nil }
        if errorCodes.contains(error.code) { return .failure(what: "\(error.code)", retryAfter: nil) }
        return error.statusCode.map { verdict(on: $0, error.headers, at: date) }
    }

    /// The seconds until the next trial.
    func openTime(afterFailedTrials count: Int) -> TimeInterval {
        let base = openTime > 0 ? openTime : 0
        return min(Backoff(base: base, maximum: max(base, maximumOpenTime)).bound(after: count), Self.day)
    }
}
