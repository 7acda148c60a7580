import Foundation

/// How many bytes a transfer has moved, and when that is to be published: a value.
///
/// Each change returns in how many seconds to publish what ``take(at:)`` returns then; nil when that is not due, or is due
/// already.
struct TransferTally {
    /// The least time between two publications, in seconds.
    static let interval: TimeInterval = 0.1
    /// The time between two looks at a rate that falls, in seconds.
    static let lookInterval: TimeInterval = 1

    private(set) var completed: Int64 = 0
    /// The bytes that were there at the first beginning; nil before that.
    private var initial: Int64?
    private(set) var total: Int64?
    /// Whether it succeeded; nil while it goes on.
    private(set) var outcome: Bool?
    private var rate: TransferRate?
    private var lastPublication = -TimeInterval.infinity
    /// Whether a publication is under way, or a timer is set for it.
    private var isPublicationDue = false
    /// Whether the published rate falls when nothing comes.
    private(set) var mayFall = false

    /// - Parameter completed: the bytes that are there already.
    mutating func begin(completed: Int64, total: Int64?, at now: TimeInterval) -> TimeInterval? {
        guard outcome == nil else { return nil }
        self.completed = max(0, completed)
        initial = min(initial ?? self.completed, self.completed)
        self.total = total.flatMap { $0 < 0 ? nil : $0 }
        rate = TransferRate(completed: self.completed, at: now)
        return changed(at: now)
    }

    mutating func set(completed: Int64, at now: TimeInterval) -> TimeInterval? {
        guard outcome == nil, completed != self.completed else { return nil }
        if rate == nil { rate = TransferRate(completed: self.completed, at: now) }
        // The rate must see the step back, whatever comes after it.
        if completed < self.completed { rate?.note(completed: max(0, completed), at: now) }
        self.completed = max(0, completed)
        return changed(at: now)
    }

    mutating func add(_ count: Int, at now: TimeInterval) -> TimeInterval? {
        let sum = completed.addingReportingOverflow(Int64(count))
        return sum.overflow ? nil : set(completed: sum.partialValue, at: now)
    }

    /// No bytes are expected for a while: the rate becomes 0.
    mutating func rest(at now: TimeInterval) -> TimeInterval? {
        guard outcome == nil, rate != nil else { return nil }
        rate = TransferRate(completed: completed, at: now)
        return changed(at: now)
    }

    /// The rate has fallen if nothing has come since the last publication.
    mutating func look(at now: TimeInterval) -> TimeInterval? {
        outcome == nil && mayFall ? changed(at: now) : nil
    }

    mutating func finish(success: Bool) -> TimeInterval? {
        guard outcome == nil else { return nil }
        outcome = success
        isPublicationDue = true
        return 0
    }

    private mutating func changed(at now: TimeInterval) -> TimeInterval? {
        guard !isPublicationDue else { return nil }
        isPublicationDue = true
        return max(0, lastPublication + Self.interval - now)
    }

    /// - Returns: the value to publish; nil when it has been published.
    mutating func take(at now: TimeInterval) -> TransferProgress? {
        guard isPublicationDue else { return nil }
        isPublicationDue = false
        lastPublication = now
        rate?.note(completed: completed, at: now)
        let bytesPerSecond = rate?.bytesPerSecond(at: now) ?? 0
        mayFall = bytesPerSecond >= 1
        return TransferProgress(
            completedBytes: completed,
            initialBytes: min(initial ?? 0, completed),
            totalBytes: total,
            bytesPerSecond: bytesPerSecond,
            secondsLeft: secondsLeft(bytesPerSecond)
        )
    }

    private func secondsLeft(_ bytesPerSecond: Double) -> TimeInterval? {
        guard let total, outcome != false else { return nil }
        let rest = max(0, total - completed)
        if rest == 0 || outcome == true { return 0 }
        let seconds = Double(rest) / bytesPerSecond
        return seconds.isFinite ? seconds : nil
    }
}

/// An exponentially weighted average of the speed.
///
/// Bytes and time have the same weights, so that the first seconds are not averaged with a zero before them: the rate is the
/// weighted bytes divided by the weighted time since the beginning.
struct TransferRate {
    /// The age in seconds at which bytes have 1/e of their weight.
    private static let span: TimeInterval = 5
    /// The least time to divide by: the first bytes often come in one piece.
    private static let leastTime: TimeInterval = 0.1

    private var start: TimeInterval
    private var last: TimeInterval
    private var completed: Int64
    private var weightedBytes = 0.0

    /// - Parameter completed: the bytes that were there before, which do not count.
    init(completed: Int64, at now: TimeInterval) {
        self.completed = completed
        start = now
        last = now
    }

    /// - Parameter completed: all bytes by now. Fewer than before mean that the transfer has begun again.
    mutating func note(completed: Int64, at now: TimeInterval) {
        guard completed >= self.completed else { return self = TransferRate(completed: completed, at: now) }
        let time = max(0, now - last)
        let bytes = Double(completed - self.completed)
        // They came in the course of that time, not at its end.
        let weight = time > 0 ? -expm1(-time / Self.span) * Self.span / time : 1
        weightedBytes = weightedBytes * exp(-time / Self.span) + bytes * weight
        self.completed = completed
        last = max(last, now)
    }

    /// Falls while nothing comes.
    func bytesPerSecond(at now: TimeInterval) -> Double {
        let weightedTime = -expm1(-max(0, now - start, last - start) / Self.span) * Self.span
        return weightedBytes * exp(-max(0, now - last) / Self.span) / max(Self.leastTime, weightedTime)
    }
}
