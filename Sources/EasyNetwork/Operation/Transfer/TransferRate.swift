import Foundation

/// An exponentially weighted average of the speed.
///
/// Bytes and time have the same weights, so that the first seconds are not averaged with a zero before them: the rate
/// is the weighted bytes divided by the weighted time since the beginning.
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
