import Foundation

/// How many bytes a second transfers may move together: a token bucket.
///
/// A taker gets its bytes at once and waits for the debt afterwards. After a pause, a tenth of a second is free. The
/// bytes that TLS and HTTP add do not count.
final class BandwidthLimit: Sendable {
    private static let burst: TimeInterval = 0.1

    /// At least 1; less is raised to it.
    let bytesPerSecond: Int
    private let clock: any NetworkClock
    /// The debt is in bytes, negative for those that are free.
    private let state: Locked<(debt: Double, last: TimeInterval)>

    init(bytesPerSecond: Int, clock: any NetworkClock) {
        self.bytesPerSecond = max(1, bytesPerSecond)
        self.clock = clock
        state = Locked((-Double(self.bytesPerSecond) * Self.burst, clock.now))
    }

    /// Takes bytes that have come or are about to go.
    ///
    /// - Returns: the seconds until the next bytes may move; 0 for at once.
    func delay(after count: Int) -> TimeInterval {
        let (now, rate) = (clock.now, Double(bytesPerSecond))
        return state.withLock { state in
            let paid = max(0, now - state.last) * rate
            state.debt = max(state.debt - paid, -rate * Self.burst) + Double(max(0, count))
            state.last = max(state.last, now)
            return max(0, state.debt / rate)
        }
    }
}

extension ServiceOperation {
    /// The bytes a second of the limit that a transfer has besides that of its queue; nil when it has none.
    final var ownBandwidthLimit: Int? {
        get { option { $0.bandwidth?.bytesPerSecond } }
        set {
            let clock = callGroup.host.settings.clock
            setOption(\.bandwidth, newValue.map { BandwidthLimit(bytesPerSecond: $0, clock: clock) })
        }
    }

    /// Its own limit and the queue's.
    final var bandwidthLimits: [BandwidthLimit] {
        [option { $0.bandwidth }, scheduling?.queue.bandwidth].compactMap { $0 }
    }
}
