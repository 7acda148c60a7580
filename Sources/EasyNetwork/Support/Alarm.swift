import Foundation

/// A single timer that fires at the earliest of the times that are set.
package final class Alarm: Sendable {
    private struct State {
        /// The number of the current timer. A replaced timer can still fire, and is ignored.
        var number = 0
        var time: TimeInterval?
        var timer: (any ClockTimer)?
    }

    private let state = Locked(State())

    package init() {}

    deinit {
        state.withLock { $0.timer }?.cancel()
    }

    /// Schedules a call of `action`, unless the alarm is already set to an earlier time.
    ///
    /// - Parameters:
    ///   - time: The time on the clock. Nil cancels the alarm, including times that were set before. The alarm
    ///     evaluates it under its lock, so that of two threads that set it, the later one has the newer information. It
    ///     must call no user code.
    ///   - action: The closure to call on the clock's thread. The alarm is unset by then, and can be set again.
    package func set(
        _ time: @autoclosure () -> TimeInterval?,
        _ clock: any NetworkClock,
        _ action: @escaping @Sendable () -> Void
    ) {
        let (next, old) = state.withLock { state -> ((time: TimeInterval, number: Int)?, (any ClockTimer)?) in
            let time = time()
            if let time, let earlier = state.time, earlier <= time { return (nil, nil) }
            state.number += 1
            state.time = time
            return (time.map { ($0, state.number) }, state.timer.take())
        }
        old?.cancel()
        guard let next else { return }
        let timer = clock.schedule(after: max(0, next.time - clock.now)) { [weak self] in
            let isDue = self?.state.withLock { state in
                guard state.number == next.number, state.time != nil else { return false }
                (state.time, state.timer) = (nil, nil)
                return true
            }
            if isDue == true { action() }
        }
        // The new timer can have fired already, or another thread can have replaced it.
        let superfluous = state.withLock { state in
            state.number == next.number && state.time != nil ? exchange(&state.timer, with: timer) : timer
        }
        superfluous?.cancel()
    }
}
