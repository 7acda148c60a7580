import Foundation

@testable import EasyNetwork

extension Operation {
    /// Returns when the operation has finished.
    func ended() async {
        await withCheckedContinuation { continuation in
            asNetworkOperation.whenFinished { continuation.resume() }
        }
    }
}

/// Polls a condition that soon becomes true without a notification, such as a release.
///
/// - Returns: `false` if the condition is still false after very many checks.
func eventually(_ condition: () -> Bool) async -> Bool {
    for look in 0..<12_000 {
        if condition() { return true }
        // Paces the polling, to leave the processor to the many tests that run at once; it does not synchronise.
        if look < 20 {
            await Task.yield()
        } else {
            try? await Task.sleep(nanoseconds: look < 200 ? 1_000_000 : 10_000_000)
        }
    }
    return false
}

/// Leaves a condition that must not become true some time to do so. On a slow machine it finds less, and never fails.
///
/// - Returns: whether the condition has stayed false.
func staysFalse(_ condition: () async -> Bool) async -> Bool {
    for _ in 0..<50 {
        if await condition() { return false }
        // Leaves the processor to what might make it true.
        try? await Task.sleep(nanoseconds: 1_000_000)
    }
    return true
}

/// Returns when the task is cancelled.
func untilCancelled() async {
    await Promise<Void>().wait()
}

/// A gate that tests and jobs wait for.
final class Gate: Sendable {
    private let isOpen = Promise<Void>()

    func open() {
        isOpen.set()
    }

    /// Calls `action` when the gate is open, on the thread that opens it.
    func whenOpen(_ action: @escaping @Sendable () -> Void) {
        isOpen.whenSet(action)
    }

    /// Returns when the gate is open, also in a task that is cancelled.
    func opened() async {
        await withCheckedContinuation { continuation in whenOpen { continuation.resume() } }
    }
}
