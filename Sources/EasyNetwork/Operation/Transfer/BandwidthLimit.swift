import Foundation

/// How many bytes a second the bodies of transfers may move together.
///
/// ```swift
/// let limit = BandwidthLimit(bytesPerSecond: 200_000)
/// upload.bandwidthLimit = limit           // of one transfer, or of several
/// options.bandwidthLimit = limit          // of a download, in its DownloadOptions
/// queue.bandwidthLimit = limit            // of all transfers of a queue
/// ```
///
/// Operations and queues with the same limit share it. Uploads and downloads count alike; the bytes that TLS and HTTP add do
/// not count. The limit is kept on average, over a tenth of a second and more. All members may be used from any thread.
public final class BandwidthLimit: Sendable {
    private let clock: any NetworkClock
    private let bucket: Locked<ByteBucket>

    /// - Parameters:
    ///   - bytesPerSecond: at least 1; less is raised to it.
    ///   - clock: default ``SystemClock``.
    public init(bytesPerSecond: Int, clock: any NetworkClock = SystemClock()) {
        self.clock = clock
        bucket = Locked(ByteBucket(bytesPerSecond: bytesPerSecond, at: clock.now))
    }

    /// At least 1; less is raised to it. A change takes effect with the next bytes.
    public var bytesPerSecond: Int {
        get { bucket.withLock { $0.bytesPerSecond } }
        set {
            let now = clock.now
            bucket.withLock { $0.setRate(newValue, at: now) }
        }
    }

    /// Takes bytes that have come or are about to go.
    ///
    /// - Returns: the seconds until the next bytes may move; 0 for at once.
    func delay(after count: Int) -> TimeInterval {
        let now = clock.now
        return bucket.withLock { $0.take(count, at: now) }
    }

    /// The limits that are not nil; the same limit counts once.
    static func both(_ one: BandwidthLimit?, _ other: BandwidthLimit?) -> [BandwidthLimit] {
        one === other ? [one].compactMap { $0 } : [one, other].compactMap { $0 }
    }
}

/// A token bucket: a value that counts the bytes to be paid for by time.
///
/// A taker gets its bytes at once and waits for the debt afterwards. After a pause, a tenth of a second is free.
struct ByteBucket {
    private static let burst: TimeInterval = 0.1

    private(set) var bytesPerSecond: Int
    /// In bytes; negative for those that are free.
    private var debt: Double
    private var last: TimeInterval

    private var rate: Double { Double(bytesPerSecond) }

    init(bytesPerSecond: Int, at now: TimeInterval) {
        self.bytesPerSecond = max(1, bytesPerSecond)
        debt = -Double(self.bytesPerSecond) * Self.burst
        last = now
    }

    /// The debt stays, and is paid at the new rate.
    mutating func setRate(_ bytesPerSecond: Int, at now: TimeInterval) {
        pay(until: now)
        self.bytesPerSecond = max(1, bytesPerSecond)
        debt = max(debt, -rate * Self.burst)
    }

    /// - Returns: the seconds until the next bytes may be taken; 0 for at once.
    mutating func take(_ count: Int, at now: TimeInterval) -> TimeInterval {
        pay(until: now)
        debt += Double(max(0, count))
        return max(0, debt / rate)
    }

    private mutating func pay(until now: TimeInterval) {
        debt = max(debt - max(0, now - last) * rate, -rate * Self.burst)
        last = max(last, now)
    }
}
