import Foundation

@testable import EasyNetwork

extension Operation {
    /// Returns when the operation has finished.
    func finished() async {
        await withCheckedContinuation { continuation in
            FinishWatcher.watch(self) { continuation.resume() }
        }
    }
}

/// Waits for what comes soon after something else, a release for instance, and tells nobody when it does.
///
/// - Returns: false when it had not come after so many looks that it never will.
func eventually(_ condition: () -> Bool) async -> Bool {
    for look in 0..<60_000 {
        if condition() { return true }
        // Not to synchronise: a pause between looks, so that the threads looked at get the processor.
        if look < 1_000 { await Task.yield() } else { try? await Task.sleep(nanoseconds: 1_000_000) }
    }
    return false
}

/// Something that a test waits for, or lets others wait for.
final class Gate: Sendable {
    private let state = Locked<(isOpen: Bool, waiting: [@Sendable () -> Void])>((false, []))

    func open() {
        let waiting = state.withLock { state in
            state.isOpen = true
            return state.waiting.take()
        }
        for action in waiting { action() }
    }

    /// Calls `action` when the gate is open, on the thread that opens it.
    func whenOpen(_ action: @escaping @Sendable () -> Void) {
        let isOpen = state.withLock { state in
            if !state.isOpen { state.waiting.append(action) }
            return state.isOpen
        }
        if isOpen { action() }
    }

    func opened() async {
        await withCheckedContinuation { continuation in whenOpen { continuation.resume() } }
    }
}
