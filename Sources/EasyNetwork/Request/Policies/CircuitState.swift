import Foundation

/// The circuit to one server: closed, open, or with a trial under way. A value that is told events, by the rule of a
/// ``CircuitBreaker``; times are those of one clock, in seconds.
///
///     closed ──(threshold)──▶ open ──(after its time)──▶ trial ──(success)─────────▶ closed
///                              ▲───────(failure, given up)──┤                         ▲
///                              │                    (its time)──▶ trusted ──(success)─┘
///                              └───────(failure of the trial, threshold)──┘
struct CircuitState: Sendable {
    /// Lets one message through. Its end counts only while nothing has opened or closed the circuit.
    struct Pass: Equatable, Sendable {
        fileprivate let number: UInt64
        let isTrial: Bool
    }

    enum Admission: Equatable {
        case go(Pass)
        /// - Parameter seconds: until a trial may go; nil while one is under way.
        case refused(seconds: TimeInterval?)
    }

    enum Change: Equatable {
        case opened
        case closed
        /// The trial was given up: another one may go.
        case freed
    }

    private enum Phase {
        case closed
        case open(until: TimeInterval)
        case trial
        /// The trial has run for its time without failing: other messages go, too. If it fails after all, before another
        /// one has succeeded, the circuit opens again.
        case trusted
    }

    private var phase = Phase.closed
    /// The number of the passes that count.
    private var number: UInt64 = 0
    private var tally = CircuitTally()
    private var failedTrialCount = 0
    /// Before this time the server does not want to be asked.
    private var notBefore = -TimeInterval.infinity
    /// The reason for the opening, for a person, such as "5 failures in a row".
    private var reason = ""
    private var lastFailure = ""

    /// When a trial may go; nil when the circuit is closed, and while a trial is under way.
    var nextTrial: TimeInterval? {
        if case .open(let until) = phase { max(until, notBefore) } else { nil }
    }

    /// The answer that a message would get at a time; nil when it may go.
    func refusal(at now: TimeInterval) -> Admission? {
        switch phase {
        case .closed, .trusted: return nil
        case .trial: return .refused(seconds: nil)
        case .open(let until):
            let seconds = max(until, notBefore) - now
            return seconds > 0 ? .refused(seconds: seconds) : nil
        }
    }

    mutating func mayCall(at now: TimeInterval) -> Admission {
        if let refusal = refusal(at: now) { return refusal }
        switch phase {
        case .closed, .trusted: return .go(Pass(number: number, isTrial: false))
        case .open, .trial: return .go(Pass(number: enter(.trial), isTrial: true))
        }
    }

    mutating func succeeded(_ pass: Pass, at now: TimeInterval, _ breaker: CircuitBreaker) -> Change? {
        guard pass.number == number else { return nil }
        notBefore = -.infinity
        guard case .trial = phase else {
            if case .trusted = phase { (phase, failedTrialCount) = (.closed, 0) }
            tally.add(isFailure: false, at: now, within: breaker.threshold.window)
            return nil
        }
        tally = CircuitTally()
        failedTrialCount = 0
        enter(.closed)
        return .closed
    }

    /// The trial has run for ``CircuitBreaker/trialTime``.
    mutating func ranLong(_ pass: Pass) -> Change? {
        guard pass.number == number, case .trial = phase else { return nil }
        tally = CircuitTally()
        // With the number of the trial, whose end counts.
        phase = .trusted
        return .closed
    }

    /// - Parameters:
    ///   - what: the failure, for a person.
    ///   - retryAfter: what the server has asked to wait, in seconds.
    mutating func failed(
        _ pass: Pass,
        at now: TimeInterval,
        what: String,
        retryAfter: TimeInterval?,
        _ breaker: CircuitBreaker
    ) -> Change? {
        // Also of a message that went out before the circuit opened.
        if let retryAfter { notBefore = max(notBefore, now + min(retryAfter, CircuitBreaker.day)) }
        guard pass.number == number else { return nil }
        lastFailure = what
        if pass.isTrial, !isClosed {
            failedTrialCount += 1
        } else {
            tally.add(isFailure: true, at: now, within: breaker.threshold.window)
            guard let counted = tally.counted(for: breaker.threshold) else { return nil }
            reason = counted
        }
        enter(.open(until: now + breaker.openTime(afterFailedTrials: failedTrialCount)))
        return .opened
    }

    /// A message ended in a way that says nothing of the server, or its end is not known.
    mutating func givenUp(_ pass: Pass, at now: TimeInterval) -> Change? {
        guard pass.number == number, pass.isTrial, case .trial = phase else { return nil }
        enter(.open(until: now))
        return .freed
    }

    private var isClosed: Bool {
        if case .closed = phase { true } else { false }
    }

    @discardableResult
    private mutating func enter(_ phase: Phase) -> UInt64 {
        self.phase = phase
        number += 1
        return number
    }

    /// The error of a message that is refused.
    func error(host: String, seconds: TimeInterval?) -> NetworkError {
        let trials =
            failedTrialCount == 0 ? "" : " and \(failedTrialCount) failed trial\(failedTrialCount == 1 ? "" : "s")"
        let next = seconds.map { "the next trial may go in \($0.shortText) s" } ?? "a trial is under way"
        var error = NetworkError(
            code: .circuitOpen,
            message: "the circuit to \(host) is open after \(reason)\(trials), the last one \(lastFailure); \(next)"
        )
        // At most a day.
        if let seconds { error.headers["Retry-After"] = "\(Int(seconds.rounded(.up)))" }
        return error
    }
}

/// The messages that count for a ``CircuitBreaker/Threshold``.
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

    /// The count that has reached the threshold, for a person; nil when it is not reached.
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
    /// To a tenth, such as 0.3, 10 and 3600.
    fileprivate var shortText: String {
        (self * 10).rounded() / 10 == rounded() ? String(format: "%.0f", self) : String(format: "%.1f", self)
    }
}
