import EasyNetwork
import Foundation

/// A value protected by a lock. Callers can wait for a change of the value without sleeping.
final class Watched<State: Sendable>: Sendable {
    private struct Waiter {
        var condition: @Sendable (State) -> Bool
        var continuation: CheckedContinuation<Bool, Never>
        var timer: (any ClockTimer)?
    }

    private struct Storage {
        var state: State
        var waiters: [Int: Waiter] = [:]
        var lastWaiter = 0
    }

    private let storage: Locked<Storage>

    init(_ state: State) {
        storage = Locked(Storage(state: state))
    }

    var value: State { storage.withLock { $0.state } }

    /// Changes the value and resumes the waits whose conditions hold.
    func update<Result>(_ body: (inout State) -> Result) -> Result {
        let (result, woken) = storage.withLock { storage in
            let result = body(&storage.state)
            var woken: [Waiter] = []
            for (id, waiter) in storage.waiters where waiter.condition(storage.state) {
                woken.append(waiter)
                storage.waiters[id] = nil
            }
            return (result, woken)
        }
        for waiter in woken {
            waiter.timer?.cancel()
            waiter.continuation.resume(returning: true)
        }
        return result
    }

    /// Returns `true` as soon as the condition holds, and `false` after `timeout` seconds or when the task is
    /// cancelled.
    ///
    /// - Parameter condition: Runs while the lock is held, and must only read the value.
    func wait(timeout: TimeInterval, until condition: @escaping @Sendable (State) -> Bool) async -> Bool {
        let id = storage.withLock { storage in
            storage.lastWaiter += 1
            return storage.lastWaiter
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let holds = storage.withLock { storage in
                    if condition(storage.state) { return true }
                    storage.waiters[id] = Waiter(condition: condition, continuation: continuation)
                    return false
                }
                if holds { return continuation.resume(returning: true) }
                // If the task was cancelled before the waiter existed, the cancellation handler found no waiter.
                if Task.isCancelled { return giveUp(id) }
                let timer = SystemClock().schedule(after: timeout) { [weak self] in self?.giveUp(id) }
                let isWaiting = storage.withLock { storage in
                    storage.waiters[id]?.timer = timer
                    return storage.waiters[id] != nil
                }
                if !isWaiting { timer.cancel() }
            }
        } onCancel: {
            giveUp(id)
        }
    }

    private func giveUp(_ id: Int) {
        guard let waiter = storage.withLock({ $0.waiters.removeValue(forKey: id) }) else { return }
        waiter.timer?.cancel()
        waiter.continuation.resume(returning: false)
    }
}
