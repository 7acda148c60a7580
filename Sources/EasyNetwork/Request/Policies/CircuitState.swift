import Foundation

/// The circuit to one server: closed, open, or with a running trial. The value takes events and follows the rule of a
/// ``CircuitBreaker``. All times are those of one clock, in seconds.
///
///     closed ──(threshold)──▶ open ──(after its time)──▶ trial ──(success)─────────▶ closed
///                              ▲───────(failure, given up)──┤                         ▲
///                              │                    (its time)──▶ trusted ──(success)─┘
///                              └───────(failure of the trial, threshold)──┘
struct CircuitState: Sendable {
    /// A permission to send one message. The message's outcome counts only if nothing has opened or closed the circuit
    /// since.
    struct Pass: Equatable, Sendable {
        fileprivate let number: UInt64
        let isTrial: Bool
    }

    enum Admission: Equatable {
        case go(Pass)
        /// - Parameter seconds: the time until a trial can start; nil while one is running.
        case refused(seconds: TimeInterval?)
    }

    enum Change: Equatable {
        case opened
        case closed
        /// The trial ended without a result; another one can start.
        case freed
    }

    private enum Phase: Equatable {
        case closed
        case open(until: TimeInterval)
        case trial
        /// The trial has run for its time without failing, and other messages are sent, too. If the trial fails before
        /// another message has succeeded, the circuit opens again.
        case trusted
    }

    private var phase = Phase.closed
    /// The number of the passes that count.
    private var number: UInt64 = 0
    private var tally = CircuitTally()
    private var failedTrialCount = 0
    /// The time before which the server does not want requests.
    private var notBefore = -TimeInterval.infinity
    /// The reason for opening, for error messages, such as "5 failures in a row".
    private var reason = ""
    private var lastFailure = ""

    /// The time at which a trial can start; nil while the circuit is closed or a trial is running.
    var nextTrial: TimeInterval? {
        if case .open(let until) = phase { max(until, notBefore) } else { nil }
    }

    /// Returns the refusal that a message would get at a time, or nil if it can be sent.
    func refusal(at now: TimeInterval) -> Admission? {
        if phase == .trial { return .refused(seconds: nil) }
        return nextTrial.flatMap { $0 > now ? .refused(seconds: $0 - now) : nil }
    }

    mutating func mayCall(at now: TimeInterval) -> Admission {
        if let refusal = refusal(at: now) { return refusal }
        let isTrial = nextTrial != nil
        return .go(Pass(number: isTrial ? enter(.trial) : number, isTrial: isTrial))
    }

    mutating func succeeded(_ pass: Pass, at now: TimeInterval, _ breaker: CircuitBreaker) -> Change? {
        guard pass.number == number else { return nil }
        notBefore = -.infinity
        guard phase == .trial else {
            if phase == .trusted { (phase, failedTrialCount) = (.closed, 0) }
            tally.add(isFailure: false, at: now, within: breaker.threshold.window)
            return nil
        }
        tally = CircuitTally()
        failedTrialCount = 0
        enter(.closed)
        return .closed
    }

    /// Notes that the trial has run for ``CircuitBreaker/trialTime``.
    mutating func ranLong(_ pass: Pass) -> Change? {
        guard pass.number == number, phase == .trial else { return nil }
        tally = CircuitTally()
        // Keep the number of the trial, so that its outcome counts.
        phase = .trusted
        return .closed
    }

    /// - Parameters:
    ///   - what: the failure, for error messages.
    ///   - retryAfter: the seconds that the server asks to wait.
    mutating func failed(
        _ pass: Pass,
        at now: TimeInterval,
        what: String,
        retryAfter: TimeInterval?,
        _ breaker: CircuitBreaker
    ) -> Change? {
        // This applies even to a message that was sent before the circuit opened.
        if let retryAfter { notBefore = max(notBefore, now + min(retryAfter, CircuitBreaker.day)) }
        guard pass.number == number else { return nil }
        lastFailure = what
        if pass.isTrial, phase != .closed {
            failedTrialCount += 1
        } else {
            tally.add(isFailure: true, at: now, within: breaker.threshold.window)
            guard let counted = tally.counted(for: breaker.threshold) else { return nil }
            reason = counted
        }
        enter(.open(until: now + breaker.openTime(afterFailedTrials: failedTrialCount)))
        return .opened
    }

    /// Notes that a message's outcome is unknown or says nothing about the server.
    mutating func givenUp(_ pass: Pass, at now: TimeInterval) -> Change? {
        guard pass.number == number, pass.isTrial, phase == .trial else { return nil }
        enter(.open(until: now))
        return .freed
    }

    @discardableResult
    private mutating func enter(_ phase: Phase) -> UInt64 {
        self.phase = phase
        number += 1
        return number
    }

    func error(host: String, seconds: TimeInterval?) -> NetworkError {
        let trials =
            failedTrialCount == 0 ? "" : " and \(failedTrialCount) failed trial\(failedTrialCount == 1 ? "" : "s")"
        let next = seconds.map { "the next trial can start in \($0.shortText) s" } ?? "a trial is running"
        var error = NetworkError(
            code: .circuitOpen,
            message: "the circuit to \(host) is open after \(reason)\(trials), the last one \(lastFailure); \(next)"
        )
        // The seconds are at most a day.
        if let seconds { error.headers["Retry-After"] = "\(Int(seconds.rounded(.up)))" }
        return error
    }
}

/// The counters of messages for a ``CircuitBreaker/Threshold``.
private struct CircuitTally {
    /// A tenth of the window.
    private struct Slice {
        let start: TimeInterval
        var count = 0
        var failureCount = 0
    }

    private var failuresInRow = 0
    private var slices: [Slice] = []

    mutating func add(isFailure: Bool, at now: TimeInterval, within window: TimeInterval?) {
        failuresInRow = isFailure ? failuresInRow + 1 : 0
        guard let window else { return }
        slices.removeAll { $0.start <= now - window }
        if slices.last.map({ now - $0.start >= window / 10 }) ?? true { slices.append(Slice(start: now)) }
        slices[slices.count - 1].count += 1
        if isFailure { slices[slices.count - 1].failureCount += 1 }
    }

    /// Returns the count that has reached the threshold, for error messages, or nil if none has.
    func counted(for threshold: CircuitBreaker.Threshold) -> String? {
        let (count, failures) = slices.reduce((0, 0)) { ($0.0 + $1.count, $0.1 + $1.failureCount) }
        switch threshold {
        case .never: return nil
        case .failuresInRow(let limit):
            return failuresInRow >= limit ? "\(failuresInRow) failure\(failuresInRow == 1 ? "" : "s") in a row" : nil
        case .failures(let limit, let window):
            return failures >= limit
                ? "\(failures) failure\(failures == 1 ? "" : "s") within \(window.shortText) s" : nil
        case .share(let share, let limit, let window):
            let isReached = count >= limit && Double(failures) >= share * Double(count)
            return isReached ? "\(failures) failures of \(count) messages within \(window.shortText) s" : nil
        }
    }
}

extension TimeInterval {
    /// The number rounded to a tenth, such as 0.3, 10 and 3600.
    fileprivate var shortText: String {
        (self * 10).rounded() / 10 == rounded() ? String(format: "%.0f", self) : String(format: "%.1f", self)
    }
}
