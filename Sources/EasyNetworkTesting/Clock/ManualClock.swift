import EasyNetwork
import Foundation

/// A clock whose time changes only when a test advances it.
///
/// ```swift
/// let clock = ManualClock()
/// let host = HostConfiguration(baseURL: url, transport: InMemoryTransport()) { host in host.clock = clock }
/// // … start a request whose response is 503, so that it waits for its retry …
/// await clock.waitForTimers(1)
/// clock.advance(by: 10)
/// ```
///
/// A transport with the same clock, `InMemoryTransport(clock: clock)`, sets a timer for the deadlines of each exchange,
/// by default for 60 seconds without data. ``waitForTimers(_:timeout:)`` counts these timers, too.
///
/// A timer without delay also waits for the next ``advance(by:)``; `advance(by: 0)` is enough.
public final class ManualClock: NetworkClock, Sendable {
    private struct State: Sendable {
        var now: TimeInterval
        var lastTimer = 0
        /// The queue can contain cancelled timers, which no longer have an action.
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

        /// Removes cancelled timers from the heap, at a constant average cost for each cancellation.
        mutating func sweep() {
            guard queue.count > 64, queue.count > 2 * actions.count else { return }
            queue.sweep { actions[$0] != nil }
        }
    }

    private let state: Watched<State>

    /// Creates a clock.
    ///
    /// - Parameter now: The initial time in seconds. Defaults to 0.
    public init(now: TimeInterval = 0) {
        state = Watched(State(now: now))
    }

    /// The time in seconds.
    public var now: TimeInterval { state.value.now }

    /// The beginning of 2026 (UTC) plus ``now``.
    public var date: Date { Date(timeIntervalSince1970: 1_767_225_600 + now) }

    /// The number of timers that have neither run nor been cancelled.
    public var pendingCount: Int { state.value.actions.count }

    /// Sets a timer. The next ``advance(by:)`` that reaches its time calls the action, on the calling thread and
    /// without holding a lock.
    public func schedule(after delay: TimeInterval, _ action: @escaping @Sendable () -> Void) -> any ClockTimer {
        let order = state.update { state in
            state.lastTimer += 1
            // The comparison also turns NaN into no delay.
            state.queue.add(state.lastTimer, at: state.now + (delay > 0 ? delay : 0))
            state.actions[state.lastTimer] = action
            return state.lastTimer
        }
        return Timer { [weak self] in self?.cancel(order) }
    }

    /// Moves the time forward and runs the due timers, in the order of their times. Timers with equal times run in the
    /// order of their creation.
    ///
    /// While an action runs, ``now`` is its time. Timers that the action sets also run if they are due. The method
    /// returns when all actions have run. You can call it on any thread, including from an action.
    ///
    /// - Parameter seconds: A value below 0 counts as 0.
    public func advance(by seconds: TimeInterval) {
        let end = now + (seconds > 0 ? seconds : 0)
        while let action = state.update({ $0.takeNext(until: end) }) { action() }
    }

    /// Waits until at least `count` timers are set at the same time.
    ///
    /// - Parameters:
    ///   - count: The number of timers.
    ///   - timeout: The longest wait in real seconds, so that a broken test ends. Defaults to 300.
    /// - Returns: `false` if the wait timed out or the task was cancelled.
    @discardableResult
    public func waitForTimers(_ count: Int, timeout: TimeInterval = 300) async -> Bool {
        await state.wait(timeout: timeout) { $0.actions.count >= count }
    }

    private func cancel(_ order: Int) {
        // Release the closure outside the lock, because its release can run user code.
        _ = state.update { state in
            defer { state.sweep() }
            return state.actions.removeValue(forKey: order)
        }
    }

    private struct Timer: ClockTimer {
        /// The action holds the clock weakly, because an action of the clock can hold this timer.
        let action: @Sendable () -> Void

        func cancel() {
            action()
        }
    }
}
