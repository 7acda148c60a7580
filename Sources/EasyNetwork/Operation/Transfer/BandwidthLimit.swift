import Foundation

/// How many bytes a second the bodies of transfers may take together.
///
/// ```swift
/// let limit = BandwidthLimit(bytesPerSecond: 200_000)
/// upload.bandwidthLimit = limit           // of one transfer, or of all that are given it
/// options.bandwidthLimit = limit          // of a download, in its DownloadOptions
/// queue.bandwidthLimit = limit            // of all transfers of a queue
/// ```
///
/// Operations and queues that are given the same limit share it: it lasts as long as one of them has it. Uploads and
/// downloads count alike; what TLS and HTTP add does not. It is kept in the long run, from a tenth of a second on. All
/// members may be used from any thread.
public final class BandwidthLimit: Sendable {
    private struct State {
        var bytesPerSecond: Int
        var bucket: ByteBucket
    }

    private let clock: any NetworkClock
    private let state: Locked<State>

    /// - Parameters:
    ///   - bytesPerSecond: at least 1; less is raised to it.
    ///   - clock: default ``SystemClock``.
    public init(bytesPerSecond: Int, clock: any NetworkClock = SystemClock()) {
        self.clock = clock
        let bytesPerSecond = max(1, bytesPerSecond)
        let bucket = ByteBucket(bytesPerSecond: bytesPerSecond, at: clock.now)
        state = Locked(State(bytesPerSecond: bytesPerSecond, bucket: bucket))
    }

    /// At least 1; less is raised to it. A change takes effect with the next bytes.
    public var bytesPerSecond: Int {
        get { state.withLock { $0.bytesPerSecond } }
        set {
            let now = clock.now
            state.withLock { state in
                state.bytesPerSecond = max(1, newValue)
                state.bucket.setRate(newValue, at: now)
            }
        }
    }

    /// Takes bytes that have come or are about to go.
    ///
    /// - Returns: in how many seconds, by the limit's clock, the next may; 0 for at once.
    func delay(after count: Int) -> TimeInterval {
        let now = clock.now
        return state.withLock { $0.bucket.take(count, at: now) }
    }

    /// Those that there are; who has one limit twice is to pay once.
    static func both(_ one: BandwidthLimit?, _ other: BandwidthLimit?) -> [BandwidthLimit] {
        one === other ? [one].compactMap { $0 } : [one, other].compactMap { $0 }
    }
}
