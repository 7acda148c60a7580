import EasyNetwork
import Foundation

/// A clock that stands still until a test advances it.
///
/// ```swift
/// let clock = ManualClock()
/// let host = HostConfiguration(baseURL: url, transport: InMemoryTransport()) { host in host.clock = clock }
/// // … start a request that is answered 503, so that it waits to be sent again …
/// await clock.waitForTimers(1)
/// clock.advance(by: 10)
/// ```
///
/// A transport with the same clock, `InMemoryTransport(clock: clock)`, sets a timer for the deadlines of each exchange, by
/// default 60 seconds of silence: ``waitForTimers(_:timeout:)`` counts those too.
///
/// A timer of no delay waits too: for the next ``advance(by:)``, of which `advance(by: 0)` is the least.
public final class ManualClock: NetworkClock, Sendable {
    private struct State: Sendable {
        var now: TimeInterval
        var lastTimer = 0
        /// May still hold timers that were cancelled; those have no action any more.
        var queue = TimerHeap<Int>()
        var actions: [Int: @Sendable () -> Void] = [:]

        mutating func takeNext(until end: TimeInterval) -> (@Sendable () -> Void)? {
            while let time = queue.earliest, let order = queue.takeDue(now: end) {
                guard let action = actions.removeValue(forKey: order) else { continue }
                now = max(now, time)
                return action
            }
            now = max(now, end)
            return nil
        }

        /// Keeps the heap from growing with what was cancelled, at a cost spread over the cancellations.
        mutating func sweep() {
            guard queue.count > 64, queue.count > 2 * actions.count else { return }
            queue.sweep { actions[$0] != nil }
        }
    }

    private let state: Watched<State>

    /// - Parameter now: where the clock starts, in seconds; default 0.
    public init(now: TimeInterval = 0) {
        state = Watched(State(now: now))
    }

    public var now: TimeInterval { state.value.now }

    /// As many seconds after the beginning of 2026 (UTC) as the clock shows.
    public var date: Date { Date(timeIntervalSince1970: 1_767_225_600 + now) }

    /// How many timers are set: neither run nor cancelled.
    public var pendingCount: Int { state.value.actions.count }

    /// Sets a timer; its action is called by an ``advance(by:)``, on the thread that advances, with no lock held.
    public func schedule(after delay: TimeInterval, _ action: @escaping @Sendable () -> Void) -> any ClockTimer {
        let order = state.update { state in
            state.lastTimer += 1
            // The comparison also turns what is no number into no delay.
            state.queue.add(state.lastTimer, at: state.now + (delay > 0 ? delay : 0))
            state.actions[state.lastTimer] = action
            return state.lastTimer
        }
        return Timer { [weak self] in self?.cancel(order) }
    }

    /// Moves time forward and runs the timers that come due, in order of their time, then of their setting.
    ///
    /// While an action runs, ``now`` is its time; timers that it sets and that are due by the end run as well. Returns
    /// when all have run. May be called from any thread, also from inside an action.
    ///
    /// - Parameter seconds: time never goes back, so less than zero is zero.
    public func advance(by seconds: TimeInterval) {
        let end = now + (seconds > 0 ? seconds : 0)
        while let action = state.update({ $0.takeNext(until: end) }) { action() }
    }

    /// Waits until at least `count` timers are set at once.
    ///
    /// - Parameters:
    ///   - timeout: real seconds after which it returns regardless, so that a broken test ends. Default 60.
    /// - Returns: false when the time ran out or the task was cancelled.
    @discardableResult
    public func waitForTimers(_ count: Int, timeout: TimeInterval = 60) async -> Bool {
        await state.wait(timeout: timeout) { $0.actions.count >= count }
    }

    private func cancel(_ order: Int) {
        // Handed out of the lock, as letting go of a closure may run whatever it held last.
        _ = state.update { state in
            defer { state.sweep() }
            return state.actions.removeValue(forKey: order)
        }
    }

    private struct Timer: ClockTimer {
        /// Holds the clock weakly: its actions may hold this timer.
        let action: @Sendable () -> Void

        func cancel() {
            action()
        }
    }
}
