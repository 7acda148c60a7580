import Foundation

/// How many bytes may move in a second, as a value: a token bucket, kept as what is owed to it.
///
/// Whoever takes bytes gets them, and owes the time that they take; the next ones come when all is paid. A tenth of a
/// second is given in advance to whoever has taken nothing for as long.
struct ByteBucket {
    private static let burst: TimeInterval = 0.1

    private var bytesPerSecond: Double
    /// In bytes; below zero what may be taken in advance.
    private var debt: Double
    private var last: TimeInterval

    init(bytesPerSecond: Int, at now: TimeInterval) {
        self.bytesPerSecond = Double(max(1, bytesPerSecond))
        debt = -self.bytesPerSecond * Self.burst
        last = now
    }

    /// What is owed stays owed, at the new rate from now on.
    mutating func setRate(_ bytesPerSecond: Int, at now: TimeInterval) {
        pay(until: now)
        self.bytesPerSecond = Double(max(1, bytesPerSecond))
        debt = max(debt, -self.bytesPerSecond * Self.burst)
    }

    /// - Returns: in how many seconds the next bytes may be taken; 0 for at once.
    mutating func take(_ count: Int, at now: TimeInterval) -> TimeInterval {
        pay(until: now)
        debt += Double(max(0, count))
        return max(0, debt / bytesPerSecond)
    }

    private mutating func pay(until now: TimeInterval) {
        debt = max(debt - max(0, now - last) * bytesPerSecond, -bytesPerSecond * Self.burst)
        last = max(last, now)
    }
}
