import Foundation

/// The maximum number of bytes per second that several transfers share: a token bucket.
///
/// A transfer gets its bytes at once, and waits for the debt afterwards. After a pause, it gets the bytes of a tenth of
/// a second without a wait. The bytes that TLS and HTTP add do not count.
final class BandwidthLimit: Sendable {
    private static let burst: TimeInterval = 0.1

    /// The rate. A value below 1 is raised to 1.
    let bytesPerSecond: Int
    private let clock: any NetworkClock
    /// The debt in bytes, negative for bytes that cause no wait, and the time of its last change.
    private let state: Locked<(debt: Double, last: TimeInterval)>

    init(bytesPerSecond: Int, clock: any NetworkClock) {
        self.bytesPerSecond = max(1, bytesPerSecond)
        self.clock = clock
        state = Locked((-Double(self.bytesPerSecond) * Self.burst, clock.now))
    }

    /// Takes bytes that have been received or are about to be sent.
    ///
    /// - Returns: the seconds until the next bytes can be transferred; `0` if they can be at once.
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
    /// The transfer's own limit in bytes per second, in addition to its queue's; `nil` if it has no limit of its own.
    final var ownBandwidthLimit: Int? {
        get { option { $0.bandwidth?.bytesPerSecond } }
        set {
            let clock = clock
            setOption(\.bandwidth, newValue.map { BandwidthLimit(bytesPerSecond: $0, clock: clock) })
        }
    }

    /// The transfer's own limit and the queue's, as far as they are set.
    final var bandwidthLimits: [BandwidthLimit] {
        [option { $0.bandwidth }, scheduling?.queue.bandwidth].compactMap { $0 }
    }

    /// Returns the body of a message with these limits.
    final func limited(_ body: TransportBody) throws(NetworkError) -> TransportBody {
        if case .stream = body {} else if bandwidthLimits.isEmpty { return body }
        return try body.paced(
            pieceSize: { [weak self] in
                let slowest = self?.bandwidthLimits.map(\.bytesPerSecond).min()
                // A piece takes a tenth of a second. Larger pieces would leave long pauses between them.
                return slowest.map { min(65_536, max(1, $0 / 10)) } ?? .max
            },
            delay: { [weak self] count in self?.bandwidthDelay(after: count) ?? 0 },
            clock: clock
        )
    }

    /// Returns the seconds until the next bytes can be transferred.
    final func bandwidthDelay(after count: Int) -> TimeInterval {
        bandwidthLimits.map { $0.delay(after: count) }.max() ?? 0
    }
}
