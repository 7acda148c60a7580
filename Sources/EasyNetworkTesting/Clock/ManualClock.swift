import EasyNetwork
import Foundation

/// A clock that stands still until a test advances it.
///
/// ```swift
/// let clock = ManualClock()
/// let host = HostConfiguration(baseURL: url, transport: InMemoryTransport()) { host in host.clock = clock }
/// // … start a request whose answer is 503, so that it waits for its retry …
/// await clock.waitForTimers(1)
/// clock.advance(by: 10)
/// ```
///
/// A transport with the same clock, `InMemoryTransport(clock: clock)`, sets a timer for the deadlines of each exchange,
/// by default 60 seconds of silence: ``waitForTimers(_:timeout:)`` counts those too.
///
/// A timer without delay waits for the next ``advance(by:)`` too; `advance(by: 0)` is enough.
public final class ManualClock: NetworkClock, Sendable {
    private struct State: Sendable {
        var now: TimeInterval
        var lastTimer = 0
        /// It may hold cancelled timers, which have no action any more.
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

    /// A clock that stands still.
    ///
    /// - Parameter now: the first time in seconds; default 0.
    public init(now: TimeInterval = 0) {
        state = Watched(State(now: now))
    }

    /// The time in seconds.
    public var now: TimeInterval { state.value.now }

    /// The beginning of 2026 (UTC) plus ``now``.
    public var date: Date { Date(timeIntervalSince1970: 1_767_225_600 + now) }

    /// The number of timers that have neither run nor been cancelled.
    public var pendingCount: Int { state.value.actions.count }

    /// Sets a timer; its action is called by an ``advance(by:)``, on the thread that advances, with no lock held.
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

    /// Moves time forward and runs the due timers, in the order of their times, and of their creation for equal times.
    ///
    /// While an action runs, ``now`` is its time; timers that it sets run as well if they are due by the end. The
    /// method returns when all have run. It may be called on any thread, also by an action.
    ///
    /// - Parameter seconds: a value below 0 counts as 0.
    public func advance(by seconds: TimeInterval) {
        let end = now + (seconds > 0 ? seconds : 0)
        while let action = state.update({ $0.takeNext(until: end) }) { action() }
    }

    /// Waits until at least `count` timers are set at once.
    ///
    /// - Parameters:
    ///   - count: the number of timers.
    ///   - timeout: the longest wait in real seconds, so that a broken test ends. Default 300.
    /// - Returns: false when the time ran out or the task was cancelled.
    @discardableResult
    public func waitForTimers(_ count: Int, timeout: TimeInterval = 300) async -> Bool {
        await state.wait(timeout: timeout) { $0.actions.count >= count }
    }

    private func cancel(_ order: Int) {
        // The closure is released outside of the lock, because its release may run user code.
        _ = state.update { state in
            defer { state.sweep() }
            return state.actions.removeValue(forKey: order)
        }
    }

    private struct Timer: ClockTimer {
        /// Holds the clock weakly, because an action of the clock may hold this timer.
        let action: @Sendable () -> Void

        func cancel() {
            action()
        }
    }
}
