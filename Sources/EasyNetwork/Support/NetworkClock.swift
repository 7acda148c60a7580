import Dispatch
import Foundation

/// Where the package reads the time and sets its timers, so that a test can move time by hand.
///
/// The default everywhere is ``SystemClock``. `ManualClock` of EasyNetworkTesting stands still until it is advanced.
public protocol NetworkClock: Sendable {
    /// Seconds since some fixed moment; never goes back, and does not follow changes of the wall clock.
    var now: TimeInterval { get }

    /// The date and time of day, for what servers say of moments. Default: the machine's.
    var date: Date { get }

    /// Calls `action` once, `delay` seconds from now, on a queue of the clock's own.
    ///
    /// - Parameter delay: seconds; zero or less means as soon as possible, never before this call returns.
    /// - Returns: the timer. Dropping it does not cancel it.
    func schedule(after delay: TimeInterval, _ action: @escaping @Sendable () -> Void) -> any ClockTimer
}

extension NetworkClock {
    public var date: Date { Date() }
}

/// A call that a ``NetworkClock`` will make later.
public protocol ClockTimer: Sendable {
    /// Takes the call back, and lets go of what its closure holds. A call already under way is not stopped.
    func cancel()
}

/// The machine's monotonic clock, with timers on a background queue.
public struct SystemClock: NetworkClock {
    private static let queue = DispatchQueue(label: "EasyNetwork.SystemClock", attributes: .concurrent)

    public init() {}

    public var now: TimeInterval {
        TimeInterval(DispatchTime.now().uptimeNanoseconds) / 1_000_000_000
    }

    public func schedule(after delay: TimeInterval, _ action: @escaping @Sendable () -> Void) -> any ClockTimer {
        // A timer source and not `asyncAfter`: a cancelled source frees its closure at once, a cancelled work item
        // keeps it until the time has come.
        let source = DispatchSource.makeTimerSource(queue: Self.queue)
        // Past some hundred years the nanoseconds overflow; nobody waits that long. What is no number counts as zero.
        let bounded = delay > 0 ? min(delay, 1_000_000_000) : 0
        source.schedule(deadline: .now() + bounded)
        let timer = SystemTimer(source)
        source.setEventHandler {
            // A source that has fired is cancelled, or it would keep its handler until the timer is dropped.
            timer.cancel()
            action()
        }
        source.activate()
        return timer
    }
}

private final class SystemTimer: ClockTimer, @unchecked Sendable {
    // Sendable because a dispatch source may be used from any thread; its protocol does not say so everywhere.
    private let source: any DispatchSourceTimer

    init(_ source: any DispatchSourceTimer) {
        self.source = source
    }

    func cancel() {
        source.cancel()
    }
}
