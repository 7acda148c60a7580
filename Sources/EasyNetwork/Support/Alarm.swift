import Foundation

/// A single timer for the earliest of the times that it is set to.
package final class Alarm: Sendable {
    private struct State {
        /// The number of the timer that counts: a replaced one may fire all the same.
        var number = 0
        var time: TimeInterval?
        var timer: (any ClockTimer)?
    }

    private let state = Locked(State())

    package init() {}

    deinit {
        state.withLock { $0.timer }?.cancel()
    }

    /// Has `action` called at a time, unless it is set to an earlier one.
    ///
    /// - Parameters:
    ///   - time: on the clock; nil for never, which also holds for times set before. Asked for under the lock of the
    ///     alarm, so that of two threads that set it the later one also knows more. It must call no user code.
    ///   - action: called on the clock's thread. The time is over then, and may be set again.
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
            guard let self, isDue(next.number) else { return }
            action()
        }
        // It may have fired by now, or another one may count.
        let superfluous = state.withLock { state in
            state.number == next.number && state.time != nil ? exchange(&state.timer, with: timer) : timer
        }
        superfluous?.cancel()
    }

    private func isDue(_ number: Int) -> Bool {
        state.withLock { state in
            guard state.number == number, state.time != nil else { return false }
            (state.time, state.timer) = (nil, nil)
            return true
        }
    }
}
