import Foundation

/// An exponentially weighted average of the transfer rate.
///
/// Bytes and time have the same weights, so that the first seconds are not averaged with a zero before them. The rate
/// is the weighted bytes divided by the weighted time since the start.
struct TransferRate {
    /// The age in seconds at which bytes have 1/e of their weight.
    private static let span: TimeInterval = 5
    /// The minimum time to divide by, because the first bytes often arrive in one piece.
    private static let leastTime: TimeInterval = 0.1

    private var start: TimeInterval
    private var last: TimeInterval
    private var completed: Int64
    private var weightedBytes = 0.0

    /// - Parameter completed: the number of bytes transferred before, which do not count.
    init(completed: Int64, at now: TimeInterval) {
        self.completed = completed
        start = now
        last = now
    }

    /// - Parameter completed: the number of all bytes so far. If it is smaller than before, the transfer has started
    ///   again.
    mutating func note(completed: Int64, at now: TimeInterval) {
        guard completed >= self.completed else { return self = TransferRate(completed: completed, at: now) }
        let time = max(0, now - last)
        let bytes = Double(completed - self.completed)
        // The bytes arrived during that time, not at its end.
        let weight = time > 0 ? -expm1(-time / Self.span) * Self.span / time : 1
        weightedBytes = weightedBytes * exp(-time / Self.span) + bytes * weight
        self.completed = completed
        last = max(last, now)
    }

    /// Returns the rate, which falls while no bytes are transferred.
    func bytesPerSecond(at now: TimeInterval) -> Double {
        let weightedTime = -expm1(-max(0, now - start, last - start) / Self.span) * Self.span
        return weightedBytes * exp(-max(0, now - last) / Self.span) / max(Self.leastTime, weightedTime)
    }
}
