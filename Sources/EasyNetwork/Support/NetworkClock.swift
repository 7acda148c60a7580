import Dispatch
import Foundation

/// A source of time and timers, which a test can replace.
///
/// ```swift
/// let clock = ManualClock()
/// let host = HostConfiguration(baseURL: url) { host in host.clock = clock }
/// ```
///
/// The default is ``SystemClock``. `ManualClock` of EasyNetworkTesting does not move until a test advances it.
public protocol NetworkClock: Sendable {
    /// The number of seconds since a fixed moment. It never decreases, and does not follow changes of the wall clock.
    var now: TimeInterval { get }

    /// The date and time of day, used with dates from servers. Defaults to the machine's date.
    var date: Date { get }

    /// Calls `action` once after `delay` seconds, on a queue of the clock.
    ///
    /// - Parameters:
    ///   - delay: The delay in seconds. Zero or less means as soon as possible, but not before this method returns.
    ///   - action: The closure to call. It is released after the call.
    /// - Returns: The timer. Releasing it does not cancel it.
    func schedule(after delay: TimeInterval, _ action: @escaping @Sendable () -> Void) -> any ClockTimer
}

extension NetworkClock {
    public var date: Date { Date() }

    /// Returns after `delay` seconds, or when the task is cancelled.
    func sleep(_ delay: TimeInterval) async {
        let over = Promise<Void>()
        let timer = schedule(after: delay) { over.set() }
        await over.wait()
        timer.cancel()
    }
}

/// A scheduled call of a ``NetworkClock``.
///
/// ```swift
/// let timer = clock.schedule(after: 5) { print("too late") }
/// timer.cancel()
/// ```
public protocol ClockTimer: Sendable {
    /// Cancels the call and releases its closure. A call that is already running is not stopped.
    func cancel()
}

/// The machine's monotonic clock, with timers on a background queue.
///
/// The clock stops while the machine sleeps: deadlines, intervals and retry delays count only the time awake. Anything
/// that has a date, such as the age of a cached response or the expiry of a cookie, uses ``date``.
///
/// ```swift
/// let clock: any NetworkClock = SystemClock()
/// print(clock.now)
/// ```
public struct SystemClock: NetworkClock {
    private static let queue = DispatchQueue(
        label: "EasyNetwork.SystemClock",
        attributes: .concurrent,
        autoreleaseFrequency: .workItem
    )

    /// Creates a clock. All system clocks show the same time.
    public init() {}

    public var now: TimeInterval {
        WorkQueue.loop?.clock.now ?? TimeInterval(DispatchTime.now().uptimeNanoseconds) / 1_000_000_000
    }

    public var date: Date { WorkQueue.loop?.clock.date ?? Date() }

    public func schedule(after delay: TimeInterval, _ action: @escaping @Sendable () -> Void) -> any ClockTimer {
        if let loop = WorkQueue.loop { return loop.clock.schedule(after: delay, action) }
        // A cancelled timer source releases its closure at once. A cancelled work item of `asyncAfter` keeps its
        // closure until its time.
        let source = DispatchSource.makeTimerSource(queue: Self.queue)
        // The nanoseconds of a delay of several centuries overflow. NaN counts as zero.
        let bounded = delay > 0 ? min(delay, 1_000_000_000) : 0
        source.schedule(deadline: .now() + bounded)
        let timer = SystemTimer(source: source)
        source.setEventHandler {
            // Without this cancellation, the source would keep its handler until the timer is released.
            timer.cancel()
            action()
        }
        source.activate()
        return timer
    }
}

private struct SystemTimer: ClockTimer, @unchecked Sendable {
    // The struct is Sendable because a dispatch source can be used from any thread, although its protocol does not
    // declare this on every platform.
    let source: any DispatchSourceTimer

    func cancel() {
        source.cancel()
    }
}
