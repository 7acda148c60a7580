import Foundation

/// What a transfer has moved, and when that is to be told, as a value.
struct TransferTally {
    /// The least time between two publications, in seconds.
    static let interval: TimeInterval = 0.1
    /// The time between two looks at a rate that falls, in seconds.
    static let lookInterval: TimeInterval = 1

    enum Step: Equatable {
        case nothing
        /// Tell of it now, by ``take(at:)``.
        case publish
        /// Do that after so many seconds.
        case publishLater(TimeInterval)
    }

    private(set) var completed: Int64 = 0
    /// Those of them that were there at the first beginning; nil before that.
    private var initial: Int64?
    private(set) var total: Int64?
    /// Whether it succeeded; nil while it goes on.
    private(set) var outcome: Bool?
    private var rate: TransferRate?
    private var lastPublication = -TimeInterval.infinity
    /// Whether what is new now will be told of without another step.
    private var isPublicationDue = false
    /// Whether the rate that was told of last falls when nothing comes.
    private(set) var mayFall = false

    /// - Parameter completed: the bytes that are there already.
    mutating func begin(completed: Int64, total: Int64?, at now: TimeInterval) -> Step {
        guard outcome == nil else { return .nothing }
        self.completed = max(0, completed)
        initial = min(initial ?? self.completed, self.completed)
        self.total = total.flatMap { $0 < 0 ? nil : $0 }
        rate = TransferRate(completed: self.completed, at: now)
        return changed(at: now)
    }

    mutating func set(completed: Int64, at now: TimeInterval) -> Step {
        guard outcome == nil, completed != self.completed else { return .nothing }
        if rate == nil { rate = TransferRate(completed: self.completed, at: now) }
        // Noted by the rate, too, so that it sees the step back whatever comes after it.
        if completed < self.completed { rate?.note(completed: max(0, completed), at: now) }
        self.completed = max(0, completed)
        return changed(at: now)
    }

    mutating func add(_ count: Int, at now: TimeInterval) -> Step {
        let sum = completed.addingReportingOverflow(Int64(count))
        return sum.overflow ? .nothing : set(completed: sum.partialValue, at: now)
    }

    /// Nothing is to come for a while: the rate is none.
    mutating func rest(at now: TimeInterval) -> Step {
        guard outcome == nil, rate != nil else { return .nothing }
        rate = TransferRate(completed: completed, at: now)
        return changed(at: now)
    }

    /// Perhaps nothing has come for a while: then the rate has fallen.
    mutating func look(at now: TimeInterval) -> Step {
        outcome == nil && mayFall ? changed(at: now) : .nothing
    }

    mutating func finish(success: Bool) -> Step {
        guard outcome == nil else { return .nothing }
        outcome = success
        isPublicationDue = true
        return .publish
    }

    private mutating func changed(at now: TimeInterval) -> Step {
        guard !isPublicationDue else { return .nothing }
        isPublicationDue = true
        let wait = lastPublication + Self.interval - now
        return wait > 0 ? .publishLater(wait) : .publish
    }

    /// - Returns: what there is to tell; nil when it has been told.
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
